"""What stands behind the numbers of a page."""

from collections.abc import Mapping, Sequence
from typing import Any

from ._diverged import error_of
from ._plan import Plan, Rows
from ._study import Study

SPREADS = {"std": "standard deviation", "sem": "standard error of the mean", "none": "no spread"}


def evidence_of(study: Study, used: Sequence[Mapping[str, Any]], current: Plan, rows: Rows) -> str:
    """How many runs are behind a page, how long they took, on what, and by which versions."""

    def all_of(key: str) -> str:
        return ", ".join(sorted({str(row.get(key, "")) for row in used} - {""})) or "—"

    tuned = [*current.tuning.values(), current.baselines.values()]
    tuning = {t.identity for own in tuned for t in own} & rows.keys()
    diverged = sum(error_of(row) is not None for row in used)
    trouble = f" {diverged} diverged." if diverged else ""
    left = len(current.missing)
    open_ones = f" {left} trials that can run now have not." if left else ""
    spread = "" if study.spread == "none" else f" Behind ±: {SPREADS[study.spread]}."
    return (
        f"{len(used)} tested runs and {len(tuning)} of tuning, "
        f"{_hours([*used, *(rows[each] for each in tuning)])}."
        f"{trouble}{open_ones}{spread} {all_of('device')}; torch {all_of('torch')}, calibrant "
        f"{all_of('calibrant')}, commit {all_of('commit')}, last finished "
        f"{max((row['finished'] for row in used if 'finished' in row), default='—')}."
    )


def _hours(ended: Sequence[Mapping[str, Any]]) -> str:
    """How long the runs took together, as far as their rows say.

    >>> for ended in ([{"seconds": 5400}, {"seconds": 1800}], [{"seconds": 1800}, {}], [{}]):
    ...     print(_hours(ended))
    2.00 hours in all
    0.50 hours without 1 whose time is not known
    hours not known
    """
    timed = [row["seconds"] for row in ended if row.get("seconds") is not None]
    if not timed:
        return "hours not known"
    hours, lost = sum(timed) / 3600, len(ended) - len(timed)
    return f"{hours:.2f} hours " + (f"without {lost} whose time is not known" if lost else "in all")
