"""A column's figures in stored rows, in the units that tables print."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ._diverged import error_of
from ._plan import Rows
from ._study import Column, Spread
from ._trial import Trial
from ._under_shift import figures_at

# Printed as they are; everything else is a share, printed in hundredths.
PLAIN = ("nll", "brier", "entropy", "mean_entropy", "temperature")


def figures_of(column: Column, trials: Sequence[Trial], rows: Rows) -> dict[int, float]:
    """A column's figures by seed, as the table prints them: percentages, but for some."""
    found = {}
    for trial in trials:
        value = value_of(column, rows.get(trial.identity, {}))
        if value is not None:
            found[trial.seed] = value
    return found


def value_of(column: Column, row: Mapping[str, Any]) -> float | None:
    """One figure of one row, or `None` where the row lacks it, as one that diverged does."""
    if error_of(row) is not None:
        return None
    if column.over is not None:
        whole, part = (
            value_of(replace(column, split=split, over=None), row)
            for split in (column.split, column.over)
        )
        return None if whole is None or not part else whole / part
    if column.groups is not None:
        groups = row.get("groups", {}).get(column.groups, {})
        found = [_figure(column.measure, own) for own in groups.values()]
        values = [value for value in found if value is not None]
        if not values:
            return None
        return max(values) - (min(values) if column.across == "apart" else 0.0)
    if column.split in ("test", "validation", "people"):
        figures = row.get(column.split, {}).get(column.after, {})
    elif column.split == "train":
        figures = (row.get("epochs") or [{}])[-1].get("train", {})
    elif column.split == "shift":
        figures = figures_at(row.get("shift", {}), column.severity).get(column.after, {})
    else:
        figures = row.get("elsewhere", {}).get(column.split, {}).get(column.after, {})
    return _figure(column.measure, figures)


def spread_of(figures: Sequence[float], spread: Spread) -> float | None:
    """What stands behind a plus-minus sign; `None` for a lone figure, or where nothing does."""
    if spread == "none" or len(figures) < 2:
        return None
    return statistics.stdev(figures) / (len(figures) ** 0.5 if spread == "sem" else 1)


def _figure(measure: str, figures: Mapping[str, Any]) -> float | None:
    """A measure, or what follows from two of them; `None` where it is not there."""
    if measure in ("error", "overconfidence"):
        accuracy = figures.get("accuracy")
        rest = 1.0 if measure == "error" else figures.get("mean_confidence")
        return None if accuracy is None or rest is None else 100 * (float(rest) - float(accuracy))
    value = figures.get(measure)
    if value is None:
        return None
    return float(value) if measure in PLAIN else 100 * float(value)
