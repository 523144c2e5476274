"""Figures of test results: curves, bars, effects."""

from statistics import fmean
from typing import Any

from ...evaluation import cohens_d
from .._plan import Plan, Rows
from .._study import Study
from .._values import figures_of, spread_of
from ._panels import NAMES, legend, panels, rows_on_test


def cumulative(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    conditions = study.figure_settings["conditions"]
    figure, axes = panels(pyplot, len(conditions), len(data))
    drawn = False
    for line, own in zip(axes, data, strict=True):
        for label, found in rows_on_test(study, current, rows, own):
            for axis, condition in zip(line, conditions, strict=True):
                points = found[0].get("curves", {}).get(condition, {}).get("cumulative", [])
                drawn = drawn or bool(points)
                at = [i / max(len(points) - 1, 1) for i in range(len(points))]
                axis.plot(at, [point[1] for point in points], label="cumulative confidence")
                axis.plot(at, [point[2] for point in points], label="cumulative accuracy")
                axis.set(xlabel="quantile of confidence", title=f"{label}{NAMES[condition]}")
                legend(axis)
    return figure if drawn else None


def frontier(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    """Accuracy against error: every run a point, every way to train a larger one."""
    figure, axes = panels(pyplot, 1, len(data), (7, 3.8))
    drawn = False
    for (axis,), own in zip(axes, data, strict=True):
        for colour, (label, found) in enumerate(rows_on_test(study, current, rows, own)):
            drawn = True
            error, right = (
                [100 * row["test"]["none"][name] for row in found] for name in ("ece20", "accuracy")
            )
            axis.scatter(error, right, s=12, color=f"C{colour}", alpha=0.5)
            axis.scatter(fmean(error), fmean(right), s=60, color=f"C{colour}", label=label)
        axis.set(xlabel="ECE, %", ylabel="accuracy, %", title=own)
        legend(axis, beside=True)
    return figure if drawn else None


def bars(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    """A column of every arm as a bar with its spread, and below it the mean of another."""
    height, under = (study.columns[study.figure_settings[key]] for key in ("column", "under"))
    size = (max(5.0, 0.5 * len(study.arms)), 3.8)
    figure, axes = panels(pyplot, 1, len(data), size)
    drawn = False
    for (axis,), own in zip(axes, data, strict=True):
        names: list[str] = []
        for label in study.arms:
            trials = current.finals.get((own, label), [])
            values, below = (list(figures_of(c, trials, rows).values()) for c in (height, under))
            if not values:
                continue
            drawn, place = True, len(names)
            axis.bar(place, fmean(values), yerr=spread_of(values, study.spread), color="C0")
            axis.annotate(
                f"{fmean(below):.1f}",
                (place, 0),
                (0, -4),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize="x-small",
            )
            names.append(label)
        axis.set(ylabel=f"{study.figure_settings['column']}, %", title=own)
        axis.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
        axis.tick_params("x", length=0, pad=14)
    return figure if drawn else None


def effect(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    figure, axes = panels(pyplot, len(study.figure_settings["columns"]))
    drawn = False
    for axis, name in zip(axes[0], study.figure_settings["columns"], strict=True):
        column = study.columns[name]
        found: dict[str, list[float]] = {}
        for own in data:
            for primary in study.figure_settings["primaries"]:
                plain = figures_of(column, current.finals.get((own, primary), []), rows)
                for label in study.arms:
                    if label.startswith(f"{primary} + ") and len(plain) > 1:
                        trials = current.finals.get((own, label), [])
                        other = figures_of(column, trials, rows)
                        if len(other) > 1:
                            size = cohens_d(list(plain.values()), list(other.values()))
                            found.setdefault(label.removeprefix(f"{primary} + "), []).append(size)
        drawn = drawn or bool(found)
        axis.bar(list(found), [fmean(values) for values in found.values()])
        axis.set(ylabel="Cohen's d", title=name)
    return figure if drawn else None


def reliability(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    figure, axes = panels(pyplot, 2, len(data))
    drawn = False
    for line, own in zip(axes, data, strict=True):
        line[0].plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        for label, found in rows_on_test(study, current, rows, own):
            drawn = True
            bins = [each for each in found[0]["curves"]["none"]["reliability"] if each[0] > 0]
            line[0].plot([each[1] for each in bins], [each[2] for each in bins], "o-", label=label)
            line[1].plot(
                fmean(row["test"]["none"]["mean_entropy"] for row in found),
                fmean(100 * row["test"]["none"]["ece15_mass_l2"] for row in found),
                "o",
                label=label,
            )
        line[0].set(xlabel="confidence", ylabel="accuracy", title=own)
        line[1].set(xlabel="mean entropy, nats", ylabel="ECE, %")
        legend(line[0])
    return figure if drawn else None
