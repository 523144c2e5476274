"""`calibrant report`: a page to send to a colleague."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from .._json import as_json
from .._text import shown
from ..logs import PredictionLog
from ..report._models import MOST_MODELS
from ..report._settings import Settings
from ..report._write import Report, write_sources
from ._options import (
    FORMATS,
    Confidence,
    Draws,
    Labels,
    Level,
    Logits,
    Outcome,
    Probabilities,
    Seed,
    Weights,
    column,
    opened,
    path,
)
from ._output import check_apart, check_writable, wrapped, write
from ._report_files import Say, class_names_of, names_of, source

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
        typer.Argument(metavar="FILE", help=f"One per model. {FORMATS}", parser=path),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    logits: Logits = None,
    probabilities: Probabilities = None,
    labels: Labels = None,
    confidence: Confidence = None,
    outcome: Outcome = None,
    weights: Weights = None,
    groups: Annotated[str | None, column("Groups, each of which is judged too.")] = None,
    severity: Annotated[
        str | None, column("How far each row was shifted, a number; 0 for not at all.")
    ] = None,
    class_names: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="A file with one name per line, or cat,dog,..."),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Of the page.")] = None,
    bins: Annotated[int, typer.Option(metavar="N", help="Number of bins, of equal width.")] = 15,
    draws: Draws = None,
    level: Level = 0.95,
    seed: Seed = 0,
    json: Annotated[bool, typer.Option("--json", help="Print path and verdicts as JSON.")] = False,
) -> int:
    """Write a page that says whether models can be believed.

    Each file is a model. The page is one HTML file: it says how far confidence can be believed,
    shows why, and needs no network: mail it, keep it, print it. Columns are known by the usual
    names, as in calibrant evaluate; name those that are called otherwise.
    """
    check_writable(out)
    check_apart(out, *files, *([Path(class_names)] if class_names else []))
    settings = Settings(bins, draws, level, seed)
    if len(files) > MOST_MODELS:
        raise ValueError(f"a report holds at most {MOST_MODELS} files; got {len(files)}.")

    def log(file: Path, groups: str | None) -> PredictionLog:
        return opened(
            file, logits, probabilities, labels, confidence, outcome, weights=weights, groups=groups
        )

    # A log has one column of names, so that severities are read from a second one.
    logs = {
        name: (log(file, groups), log(file, severity) if severity else None)
        for name, file in zip(names_of(files), files, strict=True)
    }
    with _steps() as say:
        sources = (source(name, *pair, say) for name, pair in logs.items())
        found = write_sources(
            out,
            sources,
            settings,
            class_names=None if class_names is None else class_names_of(class_names),
            title=title,
            progress=say,
            command=shlex.join(["calibrant", *sys.argv[1:]]) if _typed() else None,
        )
    write(as_json(found.to_dict()) if json else _said(found), None)
    return 0


@contextmanager
def _steps() -> Iterator[Say | None]:
    """A line that says what is being done, gone when all is; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True).status("reading") as line:
        yield lambda what: line.update(escape(what))


def _typed() -> bool:
    """Whether a person's shell line is what runs, and not a program that called `main`."""
    return Path(sys.argv[0]).name.startswith(("calibrant", "__main__"))


def _said(found: Report) -> str:
    lines = [wrapped(f"{shown(name)}: {said.sentence}") for name, said in found.verdicts.items()]
    return "\n".join([*lines, f"The report is in {found.path}"])
