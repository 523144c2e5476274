"""Options that several commands share: which column of a file holds what."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..logs import PredictionLog, open_log


def column(what: str) -> Any:
    """An option that names a column."""
    return typer.Option(metavar="COLUMN", help=what)


FORMATS = "Parquet, Arrow, NPZ, CSV or safetensors; or a folder of Parquet."


def path(text: str) -> Path:
    """A name of nothing would be the current folder."""
    if not text:
        raise typer.BadParameter("must name a file; got an empty name. Is a variable not set?")
    return Path(text)


File = Annotated[Path, typer.Argument(metavar="FILE", help=FORMATS, parser=path)]
Logits = Annotated[
    list[str] | None,
    column("Column of logits, or the stem of numbered columns; repeat to name one per class."),
]
Probabilities = Annotated[
    list[str] | None,
    column(
        "Column of probabilities, or the stem of numbered columns; repeat to name one per class."
    ),
]
Labels = Annotated[str | None, column("Indices of the true classes.")]
Confidence = Annotated[str | None, column("How sure, from 0 to 1.")]
Outcome = Annotated[str | None, column("Whether it was right, 0 or 1.")]
Weights = Annotated[str | None, column("How much each row counts.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Draws = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Resamples behind the intervals; by default 1000, unless the result says otherwise.",
    ),
]
Level = Annotated[float, typer.Option(metavar="X", help="Confidence level of the intervals.")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the random resampling.")]


OR_AN_END = ", or an end of its interval (ROW.low, ROW.high),"
"""What a limit may be set on as well, where rows have intervals."""


def fail_above(what: str) -> Any:
    """The option that makes an exit code of a limit."""
    return typer.Option(metavar="ROW=LIMIT", help=f"Exit with 1 if {what} is above its limit.")


def fail_below(what: str) -> Any:
    """The same for what must not fall, such as the accuracy."""
    return typer.Option(metavar="ROW=LIMIT", help=f"Exit with 1 if {what} is below its limit.")


def one_or_more(names: list[str] | None) -> str | list[str] | None:
    """One name as text, several as a list, none as nothing."""
    return names[0] if names and len(names) == 1 else names or None


def opened(
    file: Path,
    logits: list[str] | None,
    probabilities: list[str] | None,
    labels: str | None,
    confidence: str | None = None,
    outcome: str | None = None,
    **more: str | None,
) -> PredictionLog:
    """The log of a file, by the columns that were named."""
    return open_log(
        file,
        logits=one_or_more(logits),
        probabilities=one_or_more(probabilities),
        labels=labels,
        confidence=confidence,
        outcome=outcome,
        **more,
    )
