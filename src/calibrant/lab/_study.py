"""A published table or figure as a value: what is trained, tuned, chosen, measured and claimed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Spread = Literal["std", "sem", "none"]
Across = Literal["worst", "apart"]


@dataclass(frozen=True)
class Stage:
    """A setting that is tuned while the others stay as they are.

    - `setting`: of a trial, such as `"weight"`, or `"calibration_settings.temperature"`.
    - `values`: the grid.
    """

    setting: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Arm:
    """One way to train: a line of the table.

    - `settings`: what it changes in the trials of the study.
    - `stages`: what is tuned, one at a time, in the order in which the paper tunes it.
    - `after`: the name of the arm it repeats with other settings; it takes over what was tuned.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    after: str | None = None


@dataclass(frozen=True)
class Rule:
    """How a setting is chosen, by validation data alone: `calibrant.select` with these arguments.

    - `column`: the error to be lowest.
    - `baseline`: the arm whose accuracy the others are held against; without one they are held
      against the most accurate of themselves.
    """

    column: str
    margin: float
    relative: bool = False
    baseline: str | None = None


@dataclass(frozen=True)
class Column:
    """What the table prints.

    - `measure`: a name in `COLUMNS`; `"error"`, 1 less the accuracy; `"overconfidence"`, mean
      confidence less the accuracy; or `"temperature"`, of a recalibrator that fits one.
      `after`: recalibrator.
    - `split`: `"test"`, `"validation"`, `"train"`, judged at the last of the epochs that are kept,
      `"people"`, the test split with what people said for the truth, where they were asked,
      `"shift"`, the mean over corruptions at a `severity`, or over all of them if none is named,
      or a set that comes with the data from elsewhere, such as `"out-of-scope"`.
    - `over`: another split, by whose figure it is divided; the quotient is printed as it is.
    - `groups`: by name, such as `"sex"`: judged one by one on the test split before recalibration.
      `across`: what is told of them: the highest figure, or how far the highest and the lowest
      are apart.
    """

    measure: str
    after: str = "none"
    split: str = "test"
    over: str | None = None
    groups: str | None = None
    across: Across = "worst"
    severity: int | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that its table is there to support, as something that can fail.

    - `column`: in which `better` has the lower figure than `worse`, or the higher if `higher`.
    - `against`: the column of `worse`, where it is another.
    - `by`: below by at least that share of it, such as 0.4.
    - `within`: instead, that `better` is less than so many points below `worse`.
    """

    column: str
    better: str
    worse: str
    higher: bool = False
    by: float = 0.0
    within: float | None = None
    against: str | None = None

    @property
    def columns(self) -> tuple[str, str]:
        """Of `better` and of `worse`."""
        return self.column, self.against or self.column

    def __str__(self) -> str:
        way = "above" if self.higher else "below"
        least = f" by {self.by:.0%} or more" if self.by else ""
        if self.within is not None:
            way, least = f"is less than {self.within:g} points below", ""
        if self.against is not None:
            return f"{self.column} of {self.better} {way} {self.against} of {self.worse}{least}"
        return f"{self.column}: {self.better} {way} {self.worse}{least}"

    def excess(self, better: float, worse: float) -> float:
        """How far a pair of figures is on the wrong side: below zero where the claim holds."""
        if self.within is not None:
            return worse - better - self.within
        if self.higher:
            return worse * (1 + self.by) - better
        return better - worse * (1 - self.by)


@dataclass(frozen=True)
class Budget:
    """How much of a study is run.

    - `pairs`: of data set and model. `seeds`: how many, from 0.
    - `settings`: of every trial, such as epochs; `by_data`: of those on one data set.
    - `grids`: shorter ones than the paper's, by setting. `arms`: fewer of them.
    """

    pairs: tuple[tuple[str, str], ...]
    seeds: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    by_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    grids: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    arms: tuple[str, ...] | None = None


Figures = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Published:
    """The numbers of one data set in the table: of each arm means and spreads, column by column."""

    means: Figures
    spreads: Figures


@dataclass(frozen=True)
class Study:
    """A table or figure of a paper.

    - `title`, `paper`, `place`: what it is and where it stands; no place if nowhere.
    - `arms`, `columns`, `published`: lines, columns and the paper's numbers by data set.
    - `spread`: what stands behind the paper's plus-minus signs.
    - `rule`: how settings are chosen. `claims`: what it is there to show.
    - `budgets`: `"paper"` and `"quick"`. `figure`: what is drawn, a name in `FIGURES`.
    - `note`: what the paper leaves open, and what is done here.
    """

    title: str
    paper: str
    place: str
    arms: Mapping[str, Arm] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    published: Mapping[str, Published] = field(default_factory=dict)
    spread: Spread = "std"
    rule: Rule | None = None
    claims: tuple[Claim, ...] = ()
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    figure: str | None = None
    figure_settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def heading(self) -> str:
        """Where it stands and what it is."""
        return f"{self.place}: {self.title}" if self.place else self.title


def published(text: str) -> Published:
    """The numbers of a table as it is printed: an arm a line, `mean spread` between bars.

    >>> table = published("NLL | 98.8 0.034 | 0.91 0.080")
    >>> table.means["NLL"], table.spreads["NLL"]
    ((98.8, 0.91), (0.034, 0.08))
    """
    means: dict[str, tuple[float | None, ...]] = {}
    spreads: dict[str, tuple[float | None, ...]] = {}
    for line in text.strip().splitlines():
        label, *cells = (cell.strip() for cell in line.split("|"))
        pairs = [[float(number) for number in cell.split()] for cell in cells]
        means[label] = tuple(pair[0] for pair in pairs)
        spreads[label] = tuple(pair[1] if len(pair) > 1 else None for pair in pairs)
    return Published(means, spreads)
