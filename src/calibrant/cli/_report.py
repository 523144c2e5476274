"""`calibrant report`: a page to send to a colleague."""

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console
from rich.markup import escape

from ..logs import PredictionLog
from ..report._models import MOST_MODELS, told
from ..report._settings import Settings
from ..report._write import Report, Source, write_sources
from ._options import (
    Confidence,
    Draws,
    Labels,
    Logits,
    Outcome,
    Probabilities,
    Seed,
    column,
    opened,
)
from ._output import as_json, check_writable, write

Say: TypeAlias = Callable[[str], None]

# Numbers of one file that are held in memory.
MOST_HELD = 500_000_000

REPORT_EXAMPLES = """
\b
Examples:
  calibrant report predictions.npz
  calibrant report before.npz after.npz -o comparison.html
  calibrant report log.parquet --groups country --class-names names.txt
  calibrant report shifted.npz --severity level --json
  calibrant report answers.csv --confidence sure --outcome right
"""


def report(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Parquet, Arrow, NPZ, CSV or safetensors; one per model."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    logits: Logits = None,
    probabilities: Probabilities = None,
    labels: Labels = None,
    confidence: Confidence = None,
    outcome: Outcome = None,
    groups: Annotated[str | None, column("Groups, each of which is judged too.")] = None,
    severity: Annotated[
        str | None, column("How far each row was shifted, a number; 0 for not at all.")
    ] = None,
    class_names: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="A file with one name per line, or cat,dog,..."),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Of the page.")] = None,
    bins: Annotated[int, typer.Option(metavar="N", help="Of equal width.")] = 15,
    draws: Draws = 1000,
    seed: Seed = 0,
    json: Annotated[bool, typer.Option("--json", help="Print path and verdicts as JSON.")] = False,
) -> int:
    """Write one HTML file that says whether some models can be believed, and shows why.

    Each file is a model. The page needs no network: mail it, keep it, print it. Columns are known
    by the usual names, as in calibrant evaluate; name those that are called otherwise.
    """
    check_writable(out)
    settings = Settings(bins, draws, seed=seed)
    if groups and severity:
        raise ValueError("--groups and --severity cannot both be given. Write two reports.")
    if len(files) > MOST_MODELS:
        raise ValueError(f"a report holds at most {MOST_MODELS} files; got {len(files)}.")
    logs = {
        name: opened(
            file, logits, probabilities, labels, confidence, outcome, groups=groups or severity
        )
        for name, file in zip(_names(files), files, strict=True)
    }
    with _steps() as say:
        sources = (_source(name, log, say, shifted=bool(severity)) for name, log in logs.items())
        found = write_sources(
            out,
            sources,
            settings,
            class_names=None if class_names is None else _class_names(class_names),
            title=title,
            progress=say,
            command=shlex.join(["calibrant", *sys.argv[1:]]) if _typed() else None,
        )
    write(as_json(found.to_dict()) if json else _said(found), None)
    return 0


def _source(name: str, log: PredictionLog, say: Say | None, *, shifted: bool) -> Source:
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
    judged = told(name, (batch.forecast, batch.truth), probabilities=batch.kind == "probabilities")
    if shifted:
        return Source(judged, severity=batch.groups)
    return Source(judged, groups=batch.groups)


def _names(files: Sequence[Path]) -> list[str]:
    """The names of the files; with their folders where names alone do not tell them apart."""
    for spelt in ([file.stem for file in files], [file.name for file in files]):
        if len(set(spelt)) == len(spelt):
            return spelt
    spelt = [str(file) for file in files]
    if len(set(spelt)) < len(spelt):
        twice = next(name for name in spelt if spelt.count(name) > 1)
        raise ValueError(f"each file is a model and must be given once; got {twice!r} twice.")
    return spelt


def _class_names(given: str) -> list[str]:
    file = Path(given)
    if file.is_file():
        return file.read_text(encoding="utf-8").splitlines()
    if file.suffix == ".txt":
        raise FileNotFoundError(f"there is no file {given!r}. Check the path.")
    return given.split(",")


@contextmanager
def _steps() -> Iterator[Say | None]:
    """A line that says what is being done, gone when all is; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True).status("reading") as shown:
        yield lambda what: shown.update(escape(what))


def _typed() -> bool:
    """Whether a person's shell line is what runs, and not a program that called `main`."""
    return Path(sys.argv[0]).name.startswith(("calibrant", "__main__"))


def _said(found: Report) -> str:
    lines = [f"{name}: {verdict.sentence}" for name, verdict in found.verdicts.items()]
    return "\n".join([*lines, f"The report is in {found.path}"])
