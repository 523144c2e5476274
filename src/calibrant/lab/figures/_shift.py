"""The figure of results under shift."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from .._plan import Plan, Rows
from .._study import Column, Study
from .._under_shift import columns_under_shift
from .._values import figures_of, spread_of
from ._panels import panels

MARKERS = "osD^vPX*<>"


def shift(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    """Columns by severity, 0 being the test split as it is, with their spread over seeds.

    Panels stand one below another, and arms side by side at every severity, so that there is room
    for many. Data sets of which nothing was judged under shift have no panel.
    """
    told = {own: columns_under_shift(study, own, current, rows) for own in data}
    shown = [(own, panel) for own in data if told[own] for panel in study.figure_settings["panels"]]
    if not shown:
        return None
    figure, axes = panels(pyplot, 1, len(shown), size=(9, 3))
    colours = pyplot.get_cmap("tab20").colors
    colours = colours[::2] + colours[1::2]  # the ten strong ones first
    for (own, panel), (axis,) in zip(shown, axes, strict=True):
        series = [(arm, name) for arm in study.arms for name in panel]
        for place, (arm, name) in enumerate(series):
            columns = [study.columns[name], *(c for c in told[own][name].values() if c.severity)]
            figures = _by_severity(columns, own, arm, current, rows)
            aside = 0.8 * ((place + 0.5) / len(series) - 0.5)
            if figures:
                axis.errorbar(
                    [severity + aside for severity in figures],
                    [fmean(values) for values in figures.values()],
                    [spread_of(values, study.spread) or 0.0 for values in figures.values()],
                    color=colours[place % len(colours)],
                    marker=MARKERS[place % len(MARKERS)],
                    markersize=4,
                    linestyle="none",  # between points that stand aside it would mislead
                    elinewidth=1,
                    label=arm if len(panel) == 1 else f"{arm}: {name}",
                )
        for severity in (c.severity for c in told[own][panel[0]].values() if c.severity):
            axis.axvline(severity - 0.5, color="lightgrey", linewidth=0.8)
        axis.grid(axis="y", color="lightgrey", linewidth=0.4)
        axis.set(xlabel="severity", ylabel=f"{panel[0]}, %", title=own)
        axis.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.01, 1))
    return figure


def _by_severity(
    columns: Sequence[Column], data: str, arm: str, current: Plan, rows: Rows
) -> dict[int, list[float]]:
    """Figures of all seeds at every severity that has some."""
    trials = current.finals.get((data, arm), [])
    found = {own.severity or 0: list(figures_of(own, trials, rows).values()) for own in columns}
    return {severity: values for severity, values in found.items() if values}
