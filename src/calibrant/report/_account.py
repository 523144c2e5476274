"""Everything that a report says about one model, and nothing of its size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

from ..criteria import class_wise
from ..evaluation import CalibrationTests, Estimate, calibration_tests
from ..evaluation._arrays import Numbers
from ..measures import ece
from ..measures._binned import Binning
from ._bins import Bin, reliability_bins
from ._classes import ClassRow, class_rows, names_of_classes
from ._curves import Cumulative, RiskCoverage, cumulative, risk_coverage
from ._groups import Group, groups_of, severities_of
from ._mistakes import Mistake, mistakes_of
from ._models import Told
from ._repair import Repair, repair
from ._rows import rows_of
from ._settings import Settings
from ._verdict import Verdict, verdict

Progress = Callable[[str], None]
"""Told what is being done."""

# What a reader may choose; the first of them is the report's own.
_WIDTHS, _MASSES = (5, 10, 15, 20, 30), (10, 15)


@dataclass(frozen=True)
class Binned:
    """One way of cutting confidence into bins, and the calibration error over it."""

    bins: int
    binning: Binning
    error: float
    parts: list[Bin]

    @property
    def name(self) -> str:
        """As a reader chooses it."""
        return f"{self.bins} bins of equal {self.binning}"


@dataclass(frozen=True)
class Account:
    """What is known of one model: numbers, bins, curves and sentences.

    - `name`, `n`, `classes`: which model, how many samples and classes.
    - `tests`: or the sentence that says why there are none.
    - `binned`: the report's own bins first.
    - `repair`: or the sentence that says why there is none.
    - `fingerprint`: of the confidences and outcomes, for whoever repeats this.
    - `weighted`: whether some samples count more than others.
    """

    name: str
    n: int
    classes: int | None
    verdict: Verdict
    rows: dict[str, Estimate]
    tests: CalibrationTests | str
    binned: list[Binned]
    cumulative: Cumulative
    risk_coverage: RiskCoverage
    classes_shown: list[ClassRow]
    mistakes: list[Mistake]
    repair: Repair | str
    fingerprint: str
    class_wise_ece: float | None = None
    groups: list[Group] = field(default_factory=list)
    severities: list[Group] = field(default_factory=list)
    weighted: bool = False


def account_of(
    told: Told,
    settings: Settings,
    *,
    class_names: Sequence[object] | None = None,
    groups: Numbers | None = None,
    severity: Numbers | None = None,
    sample_names: Sequence[object] | None = None,
    mistakes: int = 10,
    progress: Progress = lambda what: None,
) -> Account:
    """Measure one model from every side."""
    names = names_of_classes(class_names, told.classes)
    wrong = mistakes_of(told, names, sample_names, mistakes)
    progress(f"{told.name}: intervals")
    rows = rows_of(told, settings)
    progress(f"{told.name}: tests")
    tests = _tests(told, settings)
    binned = _binned(told, settings)
    progress(f"{told.name}: recalibration")
    repaired = repair(told, rows, settings)
    progress(f"{told.name}: classes and groups")
    found = None if isinstance(tests, str) else tests
    return Account(
        told.name,
        len(told),
        told.classes,
        verdict(rows, found, binned[0].parts, settings.level),
        rows,
        tests,
        binned,
        cumulative(told.confidence, told.outcome, weights=told.weights),
        risk_coverage(told.confidence, told.outcome, weights=told.weights, level=settings.level),
        class_rows(told, names, settings.level),
        wrong,
        repaired,
        _fingerprint(told),
        _class_wise(told, settings),
        [] if groups is None else groups_of(told, groups, settings),
        [] if severity is None else severities_of(told, severity, settings),
        told.weights is not None,
    )


def _tests(told: Told, settings: Settings) -> CalibrationTests | str:
    if told.weights is not None:
        return "they are for samples that count alike."
    try:
        return calibration_tests((told.confidence, told.outcome), seed=settings.seed)
    except ValueError as unfit:  # too few samples, or nothing left to chance
        return str(unfit)


def _binned(told: Told, settings: Settings) -> list[Binned]:
    ways: list[tuple[int, Binning]] = [(settings.bins, "width")]
    ways += [(bins, "width") for bins in _WIDTHS if bins != settings.bins]
    ways += [(bins, "mass") for bins in _MASSES]
    found = []
    for bins, binning in ways:
        parts = reliability_bins(
            told.confidence,
            told.outcome,
            bins=bins,
            binning=binning,
            level=settings.level,
            weights=told.weights,
        )
        error = ece(told.confidence, told.outcome, bins=bins, binning=binning, weights=told.weights)
        found.append(Binned(bins, binning, error.item(), parts))
    return found


def _class_wise(told: Told, settings: Settings) -> float | None:
    if told.predictions is None:
        return None
    return class_wise(partial(ece, bins=settings.bins))(told.predictions).item()


def _fingerprint(told: Told) -> str:
    seen = sha256()
    weights = () if told.weights is None else (told.weights,)
    for column in (told.confidence, told.outcome, *weights):
        seen.update(column.double().numpy().tobytes())
    return seen.hexdigest()[:16]
