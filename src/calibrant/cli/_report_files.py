"""Files that a report is made from."""

from collections.abc import Callable, Sequence
from os.path import isfile
from pathlib import Path
from typing import TypeAlias

from ..logs import PredictionLog
from ..report._models import told
from ..report._write import Source

Say: TypeAlias = Callable[[str], None]

# Numbers of one file that are held in memory.
MOST_HELD = 500_000_000


def source(name: str, log: PredictionLog, shifted: PredictionLog | None, say: Say | None) -> Source:
    """One model from its file, read whole.

    - `shifted`: the same file with severities for groups. `say`: told what is being done.
    """
    held = (log.rows or 0) * (log.classes or 1)
    if held > MOST_HELD:
        raise ValueError(
            f"{log.path.name} must fit in memory, {MOST_HELD:,} numbers, for a report; it has "
            f"{held:,}. Measure it with calibrant evaluate, or report on a sample of its rows."
        )

    def rows(done: int, total: int | None) -> None:
        if say is not None:
            of = "" if total is None else f" of {total:,}"
            say(f"{name}: reading, {done:,}{of} rows")

    batch = log.read(progress=rows)
    judged = told(
        name,
        (batch.forecast, batch.truth),
        probabilities=batch.kind == "probabilities",
        weights=batch.weights,
    )
    severity = None if shifted is None else _column(shifted)
    return Source(judged, groups=batch.groups, severity=severity)


def _column(log: PredictionLog) -> Sequence[object]:
    """What the column of groups holds, and nothing else of the file."""
    read = (batch.groups for batch in log.batches())
    return [one for groups in read if groups is not None for one in groups.tolist()]


def names_of(files: Sequence[Path]) -> list[str]:
    """The names of the files; with their folders where names alone do not tell them apart."""
    for spelt in ([file.stem for file in files], [file.name for file in files]):
        if len(set(spelt)) == len(spelt):
            return spelt
    spelt = [str(file) for file in files]
    if len(set(spelt)) < len(spelt):
        twice = next(name for name in spelt if spelt.count(name) > 1)
        raise ValueError(f"each file is a model and must be given once; got {twice!r} twice.")
    return spelt


def class_names_of(given: str) -> list[str]:
    """Names of classes, one per line of a file or between commas."""
    file = Path(given)
    if isfile(given):  # which also knows that a long list is none
        return file.read_text(encoding="utf-8").splitlines()
    if file.suffix == ".txt":
        raise FileNotFoundError(f"there is no file {given!r}. Check the path.")
    return given.split(",")
