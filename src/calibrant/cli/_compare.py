"""`calibrant compare`: two models on the same samples."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import Tensor

from .._json import as_json
from .._text import shown
from ..evaluation import Comparison, compare_events
from ..evaluation import compare as compared
from ..evaluation._comparison import COMPARED
from ..evaluation._how_often import draws_for
from ..evaluation._named import BINS, NAMES, OF_EVENTS, named
from ..evaluation._settings import check_draws, check_settings
from ..logs import Batch
from ..predictions import Predictions
from . import _options as options
from ._limits import check_limits, crossed, parse_limits, with_ends
from ._named import check_named
from ._output import Format, check_apart, check_writable, wrapped, write
from ._paired_files import Pair, check_same_form, pair_of
from ._progress import working

COMPARE_EXAMPLES = """
\b
Examples:
  calibrant compare new.npz old.npz
  calibrant compare new.npz old.npz --criterion ece --criterion nll --json
  calibrant compare new.csv old.csv --confidence sure --outcome right
  calibrant compare new.npz old.npz --fail-above ece.low=0
"""

_LESS = f"the difference A less B{options.OR_AN_END}"


def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="Predictions of one model.", parser=options.path)
    ],
    b: Annotated[
        Path,
        typer.Argument(
            metavar="B", help=f"Predictions of the other. {options.FORMATS}", parser=options.path
        ),
    ],
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"What to compare; repeat for more. By default {', '.join(COMPARED)}.",
            autocompletion=lambda: list(NAMES),
        ),
    ] = None,
    logits: options.Logits = None,
    probabilities: options.Probabilities = None,
    labels: options.Labels = None,
    confidence: options.Confidence = None,
    outcome: options.Outcome = None,
    weights: options.Weights = None,
    bins: Annotated[
        int, typer.Option(metavar="N", help="Number of bins of every binned measure.")
    ] = BINS,
    draws: options.Draws = None,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    fail_above: Annotated[list[str] | None, options.fail_above(_LESS)] = None,
    fail_below: Annotated[list[str] | None, options.fail_below(_LESS)] = None,
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.table,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result there.")
    ] = None,
) -> int:
    """Differences between two models, with intervals and p-values.

    Both files, or folders of Parquet, must hold the same samples in the same order, since both
    models are resampled together: what is hard for both cancels. Differences are A less B. With
    --confidence and --outcome each file has its own outcomes: whether that model's answer was
    right.
    """
    limits = parse_limits(fail_above or [], fail_below or [])
    names = _checked(criterion)
    check_limits(limits, names, intervals=True)
    check_writable(out)
    check_apart(out, a, b)
    check_settings(bins, 1 if draws is None else draws, level, seed)
    if draws is not None:
        check_draws(draws, level)
    one, other = (
        options.opened(file, logits, probabilities, labels, confidence, outcome, weights=weights)
        for file in (a, b)
    )
    check_same_form(one, other)
    if one.classes is None:
        _check_told_of_events(names)
    pair = pair_of(one, other)
    times = draws_for(len(pair), names, draws, level)
    with working(f"resampling {times:,} times"):
        by = _by_events if one.classes is None else _by_tables
        found = by(pair, names, bins=bins, draws=times, level=level, seed=seed)
    told = {name: (row.difference, row.low, row.high) for name, row in found.items()}
    broken = crossed(limits, with_ends(told))
    if json or form is Format.json:
        text = as_json({"first": pair.names[0], "second": pair.names[1], **found.to_dict()})
    else:
        table = found.to_markdown() if form is Format.markdown else str(found)
        text = "\n\n".join([_heading(pair, found), table])
    write(text, out)
    for sentence in broken:
        print(f"calibrant: the difference in {sentence}", file=sys.stderr)
    return 1 if broken else 0


def _checked(names: list[str] | None) -> list[str]:
    for name in names or []:
        check_named("criterion", name, NAMES)
    return names or list(COMPARED)


def _check_told_of_events(names: Sequence[str]) -> None:
    for name in names:
        if name not in OF_EVENTS:
            raise ValueError(
                f"criterion must be one of {', '.join(OF_EVENTS)} where models are compared by a "
                f"confidence and an outcome; got {name!r}. Compare logits or probabilities by it."
            )


def _by_tables(pair: Pair, names: Sequence[str], *, bins: int, **drawn: Any) -> Comparison:
    """By `compare` of Python."""
    logits = all(batch.kind == "logits" for batch in pair.batches)
    first, second = (each.forecast if logits else _chances(each) for each in pair.batches)
    return compared(
        first,
        second,
        pair.batches[0].truth,
        criteria={name: named(name, bins) for name in names},
        probabilities=not logits,
        weights=pair.batches[0].weights,
        **drawn,
    )


def _by_events(pair: Pair, names: Sequence[str], **asked: Any) -> Comparison:
    """By `compare_events` of Python."""
    first, second = ((batch.forecast, batch.truth) for batch in pair.batches)
    weights = pair.batches[0].weights
    return compare_events(first, second, criteria=names, weights=weights, **asked)


def _chances(told: Batch) -> Tensor:
    if told.kind == "probabilities":
        return told.forecast
    return Predictions(told.forecast, told.truth).probs


def _heading(pair: Pair, found: Comparison) -> str:
    first, second = map(shown, pair.names)
    return (
        f"{wrapped(f'first {first}, second {second}')}\n"
        f"{found.n:,} samples, {found.draws:,} draws, {100 * found.level:g}% intervals"
    )
