"""The parts of the page that say how far the intervals and tests can be trusted."""

from collections.abc import Callable, Iterable, Sequence
from textwrap import fill
from typing import Any

from record import RESULTS, Row, read

Table = Callable[[Sequence[str], Iterable[Sequence[str]], int], str]

_BULLET: dict[str, Any] = {"subsequent_indent": "  ", "break_on_hyphens": False}

COVERAGE = """\
How often the 95% interval of `evaluate` holds the truth (`interval_coverage.py`): samples of 2,000
of worlds of ten classes, or of a hundred, whose model reports its logits times T, 1 being
calibrated. In two of them T depends on the chance of the likeliest class: 1.3 where that is above
a half and 0.8 elsewhere (*both signs*), and 1.5 between 0.7 and 0.8 and 1 elsewhere (*few bins*).
In a calibrated world the truth of an error is zero and only the lower end can fail, so up to 97.5%
is right there. The Monte-Carlo error is in brackets; rows with fewer repetitions are those that are
slow to resample, or were recorded again by themselves. Rows of one world share their samples, and
so their luck. They were drawn after the last change to the intervals of a row, and nothing was
chosen by them.
"""

FEW_SAMPLES = """\
The same of few samples: n in each.
"""

RESAMPLING = """\
A thousand resamples of ten thousand predictions of ten classes (`resampling.py`), by the clock:
each row of `evaluate` alone, some of them together, since they share totals, and all of them as a
user gets them. A row that is slow to resample has fewer draws: those of the slowest are given.
"""

PAIRED = """\
How often the 95% interval of `compare` holds the true difference between two models that see the
same 2,000 samples through noise of their own (`paired_coverage.py`), and how often its p-value is
below 5%: where the two temperatures are the same, that is a false alarm. Rows by class cannot be
drawn together, so their intervals are wide and hold nearly always.
"""

NULLS = """\
How often `calibration_tests` reject at 5% (`null_size.py`): with outcomes drawn from the
confidences themselves (*size*: false alarms), and for a model at temperature 1.2 (*power*).
"""

MONITOR = """\
How often `CalibrationMonitor` alarms in sequences of a hundred windows of n answers that never
leave the tolerance, where it promises at most 5% (`monitor.py`; the Monte-Carlo error is in
brackets); and after how many windows, the median, it notices a gap between confidence and accuracy.
"""


def sections(setting: Callable[[Row], str], table: Table) -> list[str]:
    """Whatever has been recorded."""
    parts: list[str] = []
    for title, text, name, render in (
        ("Do the intervals hold the truth?", COVERAGE, "coverage", _coverage),
        ("How long do intervals take?", RESAMPLING, "resampling-cpu", _resampling),
        ("Does a comparison hold the truth?", PAIRED, "paired_coverage", _paired),
        ("Do the tests keep their promise?", NULLS, "null_size", _nulls),
        ("Does the monitor keep its promise?", MONITOR, "monitor", _monitor),
    ):
        path = RESULTS / f"{name}.csv"
        if path.exists():
            rows = read(path)
            parts += [f"## {title}\n", *_recorded(rows, setting), text, render(rows, table)]
    return parts


def _recorded(rows: Sequence[Row], setting: Callable[[Row], str]) -> list[str]:
    """Every machine and day, with what was recorded there where they are several."""
    settings = list(dict.fromkeys(setting(row) for row in rows))
    if len(settings) == 1:
        return settings
    names = set(_named(rows))
    parts = []
    for told in settings:
        own = [row for row in rows if setting(row) == told]
        some = _named(own)
        few = ", ".join(f"`{name}`" for name in some) if len(some) < len(names) / 2 else "others"
        what = "all rows" if set(some) == names else few
        worlds = ", ".join(dict.fromkeys(_world(row) for row in own))
        machine = told.strip(" .\n")
        parts.append(fill(f"- {machine}: {what} of {worlds}.", 100, **_BULLET))
    return [*parts, ""]


def _named(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row["row"] for row in rows))


def _world(row: Row) -> str:
    few = "" if row["n"] == "2000" else f" with n = {row['n']}"
    return f"*{row['world']}*{few}"


def _coverage(rows: Sequence[Row], table: Table) -> str:
    usual = [row for row in rows if row["n"] == "2000"]
    few = [
        row | {"world": f"{row['world']}, n = {int(row['n']):,}"}
        for row in rows
        if row["n"] != "2000"
    ]
    parts = [_by_world(usual, table)] if usual else []
    return "\n".join([*parts, FEW_SAMPLES, _by_world(few, table)] if few else parts)


def _by_world(rows: Sequence[Row], table: Table) -> str:
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    found = {(row["row"], row["world"]): row for row in rows}
    names = list(dict.fromkeys(row["row"] for row in rows))
    body = [
        [
            f"`{name}`",
            _numbers(int(row["repetitions"]) for row in rows if row["row"] == name),
            *(_percent(found[name, world]) if (name, world) in found else "" for world in worlds),
        ]
        for name in names
    ]
    return table(["row", "repetitions", *worlds], body, 1)


def _resampling(rows: Sequence[Row], table: Table) -> str:
    header = ["what", "rows", "fewest draws", "seconds"]
    body = [
        [
            f"`{row['what']}`" if row["rows"] == "1" else row["what"],
            row["rows"],
            row["fewest_draws"],
            f"{float(row['seconds']):.2f}",
        ]
        for row in rows
    ]
    return table(header, body, 1)


def _paired(rows: Sequence[Row], table: Table) -> str:
    header = ["first", "second", "criterion", "true difference", "covered", "p < 5%", "mean width"]
    body = [
        [
            f"T = {row['first']}",
            f"T = {row['second']}",
            f"`{row['criterion']}`",
            row["truth"],
            _percent(row),
            f"{100 * float(row['alarms']):.1f}%",
            row["mean_width"],
        ]
        for row in rows
    ]
    return table(header, body, 3)


def _nulls(rows: Sequence[Row], table: Table) -> str:
    header = ["what", "confidences", "n", "test", "rejected"]
    body = [
        [
            row["kind"],
            row["confidences"],
            f"{int(row['n']):,}",
            f"`{row['test']}`",
            f"{100 * float(row['alarms']):.1f}% (±{100 * float(row['error']):.1f})",
        ]
        for row in rows
    ]
    return table(header, body, 2)


def _monitor(rows: Sequence[Row], table: Table) -> str:
    header = ["what", "confidences", "n", "tolerance", "gap", "sequences", "found"]
    body = [
        [
            row["what"],
            row["confidences"],
            f"{int(row['n']):,}",
            row["tolerance"],
            row["gap"],
            f"{int(row['sequences']):,}",
            f"{100 * float(row['value']):.1f}% (±{100 * float(row['error']):.1f})"
            if row["error"]
            else f"after {row['value']} window{'s' * (row['value'] != '1')}",
        ]
        for row in rows
    ]
    return table(header, body, 2)


def _numbers(several: Iterable[int]) -> str:
    low, *_, high = sorted([*several] * 2)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _percent(row: Row) -> str:
    return f"{100 * float(row['coverage']):.1f}% (±{100 * float(row['monte_carlo_error']):.1f})"
