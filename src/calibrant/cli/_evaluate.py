"""`calibrant evaluate`: every measure of a file of predictions."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .._json import as_json
from .._text import shown
from ..evaluation import Summary, calibration_tests
from ..evaluation._inputs import check_enough
from ..logs import Batch, PredictionLog
from ..logs._batch import joined
from ..report._rows import draws_of
from ..report._settings import Settings
from . import _options as options
from ._limits import Limits, check_limits, crossed, parse_limits, rows_to_come
from ._output import Format, check_apart, check_writable, write
from ._progress import reading, working
from ._results import Resampled, Streamed

# What a machine of some gigabytes holds; a longer file is streamed. Ten million events took 2.6 GiB
# at their peak and 24 s of a core; of float32 logits, five million rows of ten classes 2.5 GiB and
# 59 s. Twice these numbers, a hundred thousand rows of a thousand, took 5.1 GiB.
MOST_ROWS, MOST_NUMBERS = 10_000_000, 50_000_000

_WITH_WEIGHTS = (
    "they need equally weighted rows. Use the interval of ks_error instead: if it begins above "
    "zero, the model is probably not calibrated."
)

_STREAMED = " Streaming finds no other rows and no intervals: --no-stream reads the file whole."

EVALUATE_EXAMPLES = """
\b
Examples:
  calibrant evaluate predictions.npz
  calibrant evaluate log.parquet --probabilities p --labels truth
  calibrant evaluate folder_of_parquet/ --groups country
  calibrant evaluate answers.csv --confidence sure --outcome right --json
  calibrant evaluate predictions.npz --groups country --format markdown
  calibrant evaluate predictions.npz --fail-above ece.low=0.05
  calibrant evaluate predictions.npz --fail-below accuracy=0.9
"""


def evaluate(
    file: options.File,
    logits: options.Logits = None,
    probabilities: options.Probabilities = None,
    labels: options.Labels = None,
    confidence: options.Confidence = None,
    outcome: options.Outcome = None,
    weights: options.Weights = None,
    groups: Annotated[str | None, options.column("Groups, each of which is judged too.")] = None,
    bins: Annotated[
        int, typer.Option(metavar="N", help="Number of bins of every binned measure.")
    ] = 15,
    draws: options.Draws = None,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Count rows in fixed memory, without intervals. By default above "
            f"{MOST_ROWS:,} rows or {MOST_NUMBERS:,} numbers.",
            show_default=False,
        ),
    ] = None,
    fail_above: Annotated[list[str] | None, options.fail_above(f"a row{options.OR_AN_END}")] = None,
    fail_below: Annotated[list[str] | None, options.fail_below(f"a row{options.OR_AN_END}")] = None,
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.table,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result there.")
    ] = None,
) -> int:
    """Every score and measure of a file, with intervals and tests.

    The file, or the folder of Parquet files, has logits or probabilities and labels, or a
    confidence and an outcome. Columns are known by the usual names (logits, logit_0, probs,
    prob_0, label, confidence, correct, ...); name those that are called otherwise.
    """
    limits = parse_limits(fail_above or [], fail_below or [])
    check_writable(out)
    check_apart(out, file)
    settings = Settings(bins, draws, level, seed)
    log = options.opened(
        file, logits, probabilities, labels, confidence, outcome, weights=weights, groups=groups
    )
    if stream:
        _check_streamable(settings)
    elif limits:
        check_limits(limits, rows_to_come(log.classes), intervals=True)
    found = _measured(log, stream, settings, limits)
    broken = crossed(limits, found.values)
    if json or form is Format.json:
        text = as_json({"file": log.path.name, "kind": log.columns.kind, **found.to_dict()})
    else:
        markdown = form is Format.markdown
        text = "\n\n".join([_heading(log), *found.parts(markdown=markdown)])
    write(text, out)
    for sentence in broken:
        print(f"calibrant: {sentence}", file=sys.stderr)
    return 1 if broken else 0


def _check_streamable(asked: Settings) -> None:
    """Whoever asks for intervals must not be left without them in silence."""
    if asked.draws is not None or asked.level != Settings.level:
        option = "--level" if asked.draws is None else "--draws"
        raise ValueError(
            f"--stream must go without {option}, since rows that are counted have no intervals; "
            "got both. Leave one of them out."
        )


def _measured(
    log: PredictionLog, stream: bool | None, asked: Settings, limits: Limits
) -> Resampled | Streamed:
    told = None if stream else _read(log, at_any_length=stream is False)
    if told is None:
        check_limits(limits, rows_to_come(log.classes, streamed=True), _STREAMED)
        return _streamed(log, asked.bins, asked=bool(stream))
    times = draws_of(asked)
    with working(f"resampling {times:,} times"):
        evaluation = told.evaluate(bins=asked.bins, draws=times, level=asked.level, seed=asked.seed)
        if told.weights is not None:
            return Resampled(evaluation, _WITH_WEIGHTS)
        try:
            return Resampled(evaluation, calibration_tests(told.forecasts, seed=asked.seed))
        except ValueError as unfit:  # too few samples, or nothing left to chance
            return Resampled(evaluation, str(unfit))


def _read(log: PredictionLog, *, at_any_length: bool) -> Batch | None:
    """Every row; nothing where there are too many to resample."""

    def long(rows: int) -> bool:
        numbers = rows * (log.classes or 1)
        return not at_any_length and (rows > MOST_ROWS or numbers > MOST_NUMBERS)

    if log.rows is not None and long(log.rows):
        return None
    kept, done = [], 0
    with reading(log.path.name) as progress:
        for batch in log.batches(progress=progress):
            done += len(batch)
            if long(done):
                return None
            kept.append(batch)
    return joined(kept)


def _streamed(log: PredictionLog, bins: int, *, asked: bool) -> Streamed:
    if log.columns.weights is not None and not asked:
        raise ValueError(
            f"a file of more than {MOST_ROWS:,} rows or {MOST_NUMBERS:,} numbers is streamed, "
            "which counts every row once; got --weights. Leave it out, or add --no-stream to "
            "resample all the same."
        )
    with reading(log.path.name) as progress:
        if log.columns.groups is None:
            return Streamed(log.summary(bins=bins, progress=progress))
        groups = log.summaries(bins=bins, progress=progress)
    whole = Summary(log.classes, bins=bins)
    for name, one in groups.items():
        check_enough(len(one), f" in every group, also in {name!r}")
        whole = whole.merge(one)
    return Streamed(whole, groups)


def _heading(log: PredictionLog) -> str:
    of = "confidence and outcome" if log.classes is None else f"{log.columns.kind}"
    return f"{shown(log.path.name)}: {of}" + (f" of {log.classes} classes" if log.classes else "")
