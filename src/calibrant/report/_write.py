"""Write the report."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._writing import written_whole
from ..evaluation._arrays import Numbers
from ._account import Account, Progress, account_of
from ._against import Kept, against_first
from ._models import Forecast, Told, all_told, told
from ._page import needed, page
from ._settings import Settings
from ._verdict import Verdict


@dataclass(frozen=True)
class Report:
    """Where the report is, and what it says of each model.

    - `path`: of the file. `verdicts`: by the name of the model.
    """

    path: Path
    verdicts: dict[str, Verdict]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        verdicts = {name: verdict.to_dict() for name, verdict in self.verdicts.items()}
        return {"path": str(self.path), "verdicts": verdicts}


@dataclass(frozen=True, eq=False)
class Source:
    """One model with the columns that belong to its samples."""

    told: Told
    groups: Numbers | None = None
    severity: Numbers | None = None


def write_report(
    path: str | os.PathLike[str],
    models: Mapping[str, Forecast],
    *,
    class_names: Sequence[object] | None = None,
    groups: Numbers | None = None,
    severity: Numbers | None = None,
    sample_names: Sequence[object] | None = None,
    weights: Numbers | None = None,
    probabilities: bool = False,
    title: str | None = None,
    bins: int = 15,
    draws: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    mistakes: int = 10,
    progress: Progress | None = None,
) -> Report:
    """Write one self-contained HTML file that says whether some models can be believed.

    The verdict comes first, in a sentence; then a reliability diagram with intervals and counts,
    the confidences, cumulative accuracy and confidence, risk and coverage, classes, the surest
    mistakes, and what the recommended recalibration would change, judged by cross-fitting.
    Several models are compared. The file needs no network and no other file.

    - `path`: where to write; the whole file or nothing.
    - `models`: by name, `(logits, labels)` as torch tensors or NumPy arrays; or `(confidence,
      outcome)`, both of shape `(n,)`, where only "how sure" and "was it right" are known; or
      `Predictions`.
    - `class_names`: of all classes, in the order of their indices.
    - `groups`: a name for each sample; every group is judged on its own.
    - `severity`: a number for each sample, how far it was shifted, 0 for not at all.
    - `sample_names`: of each sample, such as the file of an image, to name mistakes by.
    - `weights`: how much each sample counts, by default alike.
    - `probabilities`: whether tables hold probabilities and not logits.
    - `title`: of the page.
    - `bins`, `draws`, `level`, `seed`: as in `evaluate`. Unless `draws` says how often, models of
      more than 20,000 samples are compared by fewer resamples than 1,000.
    - `mistakes`: how many to show.
    - `progress`: told what is being done.

    Needs `pip install 'calibrant[report]'`.

    >>> import tempfile, torch
    >>> rng = torch.Generator().manual_seed(0)
    >>> logits = torch.randn(500, 3, generator=rng)
    >>> labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    >>> place = Path(tempfile.mkdtemp()) / "report.html"
    >>> report = write_report(place, {"boastful": (3 * logits, labels)}, draws=100)
    >>> report.verdicts["boastful"].kind
    'over'
    >>> report.verdicts["boastful"].sentence[:29]
    'Over-confident by 22.2 points'
    """
    settings = Settings(bins, draws, level, seed)
    given = all_told(models, probabilities=probabilities)
    sources = (
        Source(told(name, forecast, probabilities=so, weights=weights), groups, severity)
        for name, forecast, so in given
    )
    return write_sources(
        path,
        sources,
        settings,
        class_names=class_names,
        sample_names=sample_names,
        title=title,
        mistakes=mistakes,
        progress=progress,
    )


def write_sources(
    path: str | os.PathLike[str],
    sources: Iterable[Source],
    settings: Settings,
    *,
    class_names: Sequence[object] | None = None,
    sample_names: Sequence[object] | None = None,
    title: str | None = None,
    mistakes: int = 10,
    progress: Progress | None = None,
    command: str | None = None,
) -> Report:
    """The same from models that are taken one after another, so that one table is held at a time.

    - `command`: what was typed, where this was asked for in a shell.
    """
    needed()  # before the work, so that none is lost
    place = Path(path)
    if place.is_dir() or not place.parent.is_dir():
        raise ValueError(
            f"a report must be a file in a folder that exists; got {str(place)!r}. "
            "Make the folder first."
        )
    say: Callable[[str], None] = progress or (lambda what: None)
    accounts: list[Account] = []
    kept: list[Kept] = []
    for source in sources:
        say(f"{source.told.name}: reading")
        accounts.append(
            account_of(
                source.told,
                settings,
                class_names=class_names,
                groups=source.groups,
                severity=source.severity,
                sample_names=sample_names,
                mistakes=mistakes,
                progress=say,
            )
        )
        kept.append(Kept.of(source.told))
        del source
    say("comparing")
    against = against_first(kept, settings)
    say("drawing")
    heading = title or _title(accounts)
    text = page(accounts, against, settings, title=heading, command=command)
    with written_whole(place) as file:
        file.write(text.encode("utf-8", "replace"))
    return Report(place, {one.name: one.verdict for one in accounts})


def _title(accounts: Sequence[Account]) -> str:
    if len(accounts) == 1:
        return f"Can {accounts[0].name} be believed?"
    return f"Can these {len(accounts)} models be believed?"
