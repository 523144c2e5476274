"""What every figure needs: panels, and the rows of an arm."""

from collections.abc import Iterator
from typing import Any

from .._plan import Plan, Rows
from .._study import Study

NAMES = {"none": "", "temperature": " + TS", "temperature_sb_ece": " + TS-SB-ECE"}
"""What a recalibrator adds to the name of an arm."""


def rows_on_test(
    study: Study, current: Plan, rows: Rows, data: str
) -> Iterator[tuple[str, list[Any]]]:
    """Each arm of a data set with the rows that were tested."""
    for label in study.arms:
        trials = current.finals.get((data, label), [])
        own = [rows[t.identity] for t in trials if "test" in rows.get(t.identity, {})]
        if own:
            yield label, own


def panels(pyplot: Any, across: int, up: int = 1, size: tuple[float, float] = (5, 3.8)) -> Any:
    """A figure and its axes, each of that size in inches."""
    figsize = (size[0] * across, size[1] * up)
    return pyplot.subplots(up, across, figsize=figsize, squeeze=False, layout="constrained")


def legend(axis: Any, *, beside: bool = False) -> None:
    """Names of what is drawn, where something is; beside the axes if they are full."""
    if axis.get_legend_handles_labels()[0]:
        place = {"loc": "center left", "bbox_to_anchor": (1, 0.5)} if beside else {}
        axis.legend(fontsize="x-small", **place)
