"""`calibrant compare`: two models on the same samples."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from torch import Tensor

from .._json import as_json
from .._text import shown
from ..criteria import Criterion
from ..evaluation import Comparison
from ..evaluation import compare as compared
from ..evaluation._comparison import COMPARED
from ..logs import Batch
from ..measures import MEASURES
from ..predictions import Predictions
from ..report._rows import draws_for
from ..scores import SCORES
from . import _options as options
from ._limits import crossed, parse_limits
from ._named import check_named
from ._output import Format, wrapped, write
from ._progress import reading, working

COMPARE_EXAMPLES = """
\b
Examples:
  calibrant compare new.npz old.npz
  calibrant compare new.npz old.npz --criterion ece --criterion nll --json
  calibrant compare new.npz old.npz --fail-above ece=0.01
"""


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Predictions of one model.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Of another, for the same samples.")],
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"By default {', '.join(COMPARED)}. Repeat.",
            autocompletion=lambda: list(SCORES | MEASURES),
        ),
    ] = None,
    logits: options.Logits = None,
    probabilities: options.Probabilities = None,
    labels: options.Labels = None,
    draws: options.Draws = None,
    seed: options.Seed = 0,
    fail_above: Annotated[list[str] | None, options.fail_above("the difference A less B")] = None,
    form: Annotated[Format, typer.Option("--format", help="Of the result.")] = Format.table,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> int:
    """Differences between two models, with intervals and p-values.

    Both files, or folders of Parquet, must hold the same samples in the same order, since both
    models are resampled together: what is hard for both cancels. Differences are A less B.
    """
    limits = parse_limits(fail_above or [])
    criteria = _criteria(criterion)
    one, other = (_read(file, logits, probabilities, labels) for file in (a, b))
    _check_same_samples(one, other, a.name, b.name)
    told = one.kind == other.kind == "logits"
    tables = (one.forecast, other.forecast) if told else (_chances(one), _chances(other))
    times = draws_for(len(one), draws)
    with working(f"resampling {times:,} times"):
        found = compared(
            *tables, one.truth, criteria=criteria, probabilities=not told, draws=times, seed=seed
        )
    broken = crossed(limits, {name: row.difference for name, row in found.rows.items()})
    if json or form is Format.json:
        text = as_json({"first": a.name, "second": b.name, **found.to_dict()})
    else:
        table = found.to_markdown() if form is Format.markdown else str(found)
        text = "\n\n".join([_heading(a, b, found), table])
    write(text, None)
    for sentence in broken:
        print(f"calibrant: the difference in {sentence}", file=sys.stderr)
    return 1 if broken else 0


def _criteria(names: list[str] | None) -> dict[str, Criterion]:
    known = SCORES | MEASURES
    for name in names or []:
        check_named("criterion", name, known)
    return {name: known[name] for name in names} if names else COMPARED


def _read(
    file: Path,
    logits: list[str] | None,
    probabilities: list[str] | None,
    labels: str | None,
) -> Batch:
    log = options.opened(file, logits, probabilities, labels)
    if log.classes is None:
        raise ValueError(
            f"{log.path.name} must have logits or probabilities and labels to be compared; it "
            "has a confidence and an outcome. Evaluate each file on its own."
        )
    with reading(log.path.name) as progress:
        return log.read(progress=progress)


def _check_same_samples(one: Batch, other: Batch, first: str, second: str) -> None:
    if one.forecast.shape != other.forecast.shape:
        shapes = " and ".join(f"{len(x):,} by {x.forecast.shape[1]}" for x in (one, other))
        raise ValueError(
            f"{first} and {second} must hold the same samples and classes; got {shapes}."
        )
    differ = (one.truth != other.truth).nonzero()[:, 0]
    if len(differ):
        row = int(differ[0])
        raise ValueError(
            f"{first} and {second} must have the same labels in the same order; they differ in "
            f"{len(differ):,} rows, first in row {row} (counted from 0): {int(one.truth[row])} and "
            f"{int(other.truth[row])}. Sort both files alike."
        )


def _chances(told: Batch) -> Tensor:
    if told.kind == "probabilities":
        return told.forecast
    return Predictions(told.forecast, told.truth).probs


def _heading(a: Path, b: Path, found: Comparison) -> str:
    return (
        f"{wrapped(f'first {shown(a.name)}, second {shown(b.name)}')}\n"
        f"{found.n:,} samples, {found.draws:,} draws, {found.level:.0%} intervals"
    )
