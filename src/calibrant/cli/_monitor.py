"""`calibrant monitor`: a prediction log in windows of time, and an alarm when it drifts."""

import sys
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from .._json import as_json
from ..evaluation import CalibrationMonitor, Summary, Watched
from ..evaluation import _table as table
from ..evaluation._bets import DIRECTIONS, growth
from ..evaluation._events import events
from ..logs import Batch, PredictionLog
from . import _options as options
from ._output import Format, write
from ._progress import reading
from ._times import beginning, parse_length, window_of

MONITOR_EXAMPLES = """
\b
Examples:
  calibrant monitor log.parquet --time answered_at
  calibrant monitor log.csv --time day --every 1w --tolerance 0.05
  calibrant monitor log.csv --time t --every 6h --confidence p --outcome hit
"""

_MOST_WINDOWS = 10_000
# Rows of which an error says anything.
_FEWEST = 3
# Of the order of confidences; what is shown needs only bins.
_CELLS = 16


class _Window:
    """Rows of one window, counted and forgotten."""

    def __init__(self, tolerance: float) -> None:
        self.summary = Summary(None, cells=_CELLS)
        self.gained = torch.zeros(len(DIRECTIONS), dtype=torch.float64)
        self._tolerance = tolerance

    def add(self, told: Batch) -> None:
        confidence, outcome = events(told.forecasts)
        self.summary.add_events(confidence, outcome)
        self.gained += growth(confidence, outcome, self._tolerance)


def monitor(
    log: Annotated[Path, typer.Argument(metavar="LOG", help=options.FORMATS)],
    time: Annotated[str, options.column("ISO times, or seconds since 1970.")],
    every: Annotated[
        str, typer.Option(metavar="LENGTH", help="Of a window: 30m, 6h, 1d, 1w.")
    ] = "1d",
    tolerance: Annotated[
        float, typer.Option(metavar="X", help="A gap that is nobody's worry.")
    ] = 0.02,
    false_alarms: Annotated[
        float,
        typer.Option(metavar="X", help="Chance of one, ever, while the gap is tolerable."),
    ] = 0.05,
    logits: options.Logits = None,
    probabilities: options.Probabilities = None,
    labels: options.Labels = None,
    confidence: options.Confidence = None,
    outcome: options.Outcome = None,
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.table,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> int:
    """Watch calibration over time; exit with 1 if it has drifted.

    A line for every window that has rows, without an error where they are fewer than three.
    Evidence adds up over windows, by a betting martingale: while confidence is right to within
    the tolerance, the chance that an alarm is ever raised, in any window, is at most
    --false-alarms. Rows may come in any order. Windows are in UTC, weeks begin on Mondays.
    """
    if not time:
        raise ValueError(
            "--time must be the name of the column of times; got ''. Name one that is there."
        )
    length = parse_length(every)
    watch = CalibrationMonitor(false_alarms=false_alarms, tolerance=tolerance)
    opened = options.opened(log, logits, probabilities, labels, confidence, outcome, groups=time)
    windows = _windows(opened, length, tolerance)
    for window in windows.values():
        watch.advance(window.gained, len(window.summary))
    rows = [
        _row(beginning(number, length), window.summary, seen)
        for (number, window), seen in zip(windows.items(), watch.windows, strict=True)
    ]
    said = _verdict(watch, [row["window"] for row in rows])
    if json or form is Format.json:
        found = {
            "file": opened.path.name,
            "every": every,
            "false_alarms": false_alarms,
            "tolerance": tolerance,
            "bar": watch.bar,
            "alarm": _alarm(watch, [row["window"] for row in rows]),
            "windows": rows,
        }
        write(as_json(found), None)
        if watch.alarm is not None:  # which JSON says to programs, but to nobody else
            print(f"calibrant: {said.splitlines()[0]}", file=sys.stderr)
    else:
        write("\n\n".join([_rendered(rows, form), said]), None)
    return 0 if watch.alarm is None else 1


def _windows(log: PredictionLog, length: int, tolerance: float) -> dict[int, _Window]:
    """Every window that has rows, in the order of time."""
    found: dict[int, _Window] = {}
    done = 0
    with reading(log.path.name) as progress:
        for batch in log.batches(progress=progress):
            assert batch.groups is not None
            file, first = log.place(done)
            where = f"column {log.columns.groups!r} of {file}"
            numbers = torch.from_numpy(window_of(batch.groups, length, first, where))
            for number in numbers.unique().tolist():
                if number not in found and len(found) == _MOST_WINDOWS:
                    raise ValueError(
                        f"{where} must fall into at most {_MOST_WINDOWS:,} windows; got more. "
                        "Choose longer ones by --every."
                    )
                found.setdefault(number, _Window(tolerance)).add(batch.part(numbers == number))
            done += len(batch)
    return dict(sorted(found.items()))


def _row(begins: str, summary: Summary, seen: Watched) -> dict[str, Any]:
    n, right = summary.state["totals"][:2].tolist()
    sure = summary.state["totals"][4].item() / n
    row = {"window": begins, "n": int(n), "accuracy": right / n, "confidence": sure}
    ece = summary.values()["ece"].value if n >= _FEWEST else None
    return row | {"ece": ece, "evidence": seen.evidence, "alarm": seen.alarm}


def _rendered(rows: list[dict[str, Any]], form: Format) -> str:
    head = ["window", "rows", "accuracy", "confidence", "ece", "evidence", ""]
    body = [
        [
            row["window"],
            f"{row['n']:,}",
            f"{row['accuracy']:.4f}",
            f"{row['confidence']:.4f}",
            "too few" if row["ece"] is None else f"{row['ece']:.4f}",
            _evidence(row["evidence"]),
            "alarm" if row["alarm"] else "",
        ]
        for row in rows
    ]
    return (table.markdown if form is Format.markdown else table.plain)(head, body)


def _evidence(against: float) -> str:
    """Beyond a million nobody doubts; JSON has the whole number."""
    return table.number(against) if against <= 1e6 else "> 1,000,000"


def _verdict(watch: CalibrationMonitor, begins: list[str]) -> str:
    bar = f"the bar is {watch.bar:g}"
    if watch.alarm is None:
        most = max(each.evidence for each in watch.windows)
        return f"No alarm in {len(begins)} windows: evidence of at most {_evidence(most)}, {bar}."
    alarm = watch.alarm
    return (
        f"Alarm in window {begins[alarm.window]}: {alarm.direction} since {begins[alarm.since]}.\n"
        f"Evidence: {_evidence(alarm.evidence)}; {bar}."
    )


def _alarm(watch: CalibrationMonitor, begins: list[str]) -> dict[str, Any] | None:
    """The first alarm, its windows called by when they begin, as in the rows."""
    if watch.alarm is None:
        return None
    found = watch.alarm.to_dict()
    return found | {name: begins[found[name]] for name in ("window", "since")}
