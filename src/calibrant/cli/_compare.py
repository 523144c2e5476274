"""`calibrant compare`: two models on the same samples."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from torch import Tensor

from .._json import as_json
from .._text import shown
from ..evaluation import Comparison
from ..evaluation import compare as compared
from ..evaluation._comparison import COMPARED
from ..evaluation._differences import Difference
from ..logs import Batch
from ..measures import MEASURES
from ..predictions import Predictions
from ..report._against import DIFFERENCES, differences, draws_for
from ..report._models import told
from ..report._settings import Settings
from ..scores import SCORES
from . import _options as options
from ._limits import check_limits, crossed, parse_limits
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
  calibrant compare new.npz old.npz --fail-above ece=0.01
"""

_BINS = 15


def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="Predictions of one model.", parser=options.path)
    ],
    b: Annotated[
        Path,
        typer.Argument(metavar="B", help=f"Of another. {options.FORMATS}", parser=options.path),
    ],
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"What to compare; repeat for more. By default {', '.join(COMPARED)}.",
            autocompletion=lambda: [*SCORES, *MEASURES],
        ),
    ] = None,
    logits: options.Logits = None,
    probabilities: options.Probabilities = None,
    labels: options.Labels = None,
    confidence: options.Confidence = None,
    outcome: options.Outcome = None,
    weights: options.Weights = None,
    bins: Annotated[int, typer.Option(metavar="N", help="Of every binned measure.")] = _BINS,
    draws: options.Draws = None,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    fail_above: Annotated[list[str] | None, options.fail_above("the difference A less B")] = None,
    form: Annotated[Format, typer.Option("--format", help="Of the result.")] = Format.table,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result there.")
    ] = None,
) -> int:
    """Differences between two models, with intervals and p-values.

    Both files, or folders of Parquet, must hold the same samples in the same order, since both
    models are resampled together: what is hard for both cancels. Differences are A less B. Of a
    confidence and an outcome, each model has its own outcomes: whether its answer was right.
    """
    limits = parse_limits(fail_above or [])
    names = _checked(criterion)
    check_limits(limits, names)
    check_writable(out)
    check_apart(out, a, b)
    settings = Settings(bins, draws, level, seed)
    one, other = (
        options.opened(file, logits, probabilities, labels, confidence, outcome, weights=weights)
        for file in (a, b)
    )
    check_same_form(one, other)
    plain = one.classes is not None and weights is None and bins == _BINS
    if not plain:
        _check_told_of_events(names)
    pair = pair_of(one, other)
    times = draws_for(len(pair), names, draws, level)
    with working(f"resampling {times:,} times"):
        rows = (_by_tables if plain else _by_events)(pair, names, settings)
    found = Comparison(rows, n=len(pair), draws=times, level=level)
    broken = crossed(limits, {name: row.difference for name, row in found.items()})
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
        check_named("criterion", name, SCORES | MEASURES)
    return names or list(COMPARED)


def _check_told_of_events(names: Sequence[str]) -> None:
    for name in names:
        if name not in DIFFERENCES:
            raise ValueError(
                f"criterion must be one of {', '.join(DIFFERENCES)} where models are compared by a "
                f"confidence and an outcome, with --weights or with --bins; got {name!r}. Compare "
                "logits or probabilities without them."
            )


def _by_tables(pair: Pair, names: Sequence[str], settings: Settings) -> dict[str, Difference]:
    """By `compare` of Python, which knows every criterion and neither weights nor bins."""
    logits = all(batch.kind == "logits" for batch in pair.batches)
    first, second = (each.forecast if logits else _chances(each) for each in pair.batches)
    return compared(
        first,
        second,
        pair.batches[0].truth,
        criteria={name: (SCORES | MEASURES)[name] for name in names},
        probabilities=not logits,
        draws=draws_for(len(pair), names, settings.draws, settings.level),
        level=settings.level,
        seed=settings.seed,
    ).rows


def _by_events(pair: Pair, names: Sequence[str], settings: Settings) -> dict[str, Difference]:
    """As the report compares: with the same resamples, so that both ways find the same."""
    weights = pair.batches[0].weights
    one, other = (
        told(
            name,
            (batch.forecast, batch.truth),
            probabilities=batch.kind == "probabilities",
            weights=weights,
        )
        for name, batch in zip(pair.names, pair.batches, strict=True)
    )
    return differences(one, other, settings, names)


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
