"""Figures of training: epochs, tuned settings, cost, learnt coefficients."""

from statistics import fmean
from typing import Any

from .._diverged import error_of
from .._plan import Plan, Rows, baseline_row
from .._setting import setting_of
from .._study import Study
from ._panels import legend, panels, rows_on_test


def epochs(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    figure, axes = panels(pyplot, 2, len(data))
    drawn = False
    for line, own in zip(axes, data, strict=True):
        for label, found in rows_on_test(study, current, rows, own):
            for split in ("train", "test"):
                points = found[0].get("epochs", [])
                drawn = drawn or bool(points)
                at = [point["epoch"] for point in points]
                for axis, column in zip(line, ("accuracy", "ece20"), strict=True):
                    values = [100 * point[split][column] for point in points]
                    axis.plot(at, values, label=f"{label}, {split}")
                    axis.set(xlabel="epoch", ylabel=f"{column}, %", title=own)
        legend(line[0])
    return figure if drawn else None


def settings(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    wanted, column = study.figure_settings["settings"], study.figure_settings["column"]
    found = {
        key: [t for t in trials if "validation" in rows.get(t.identity, {})]
        for key, trials in current.tuning.items()
        if key[2] in wanted
    }
    if not any(found.values()):
        return None
    figure, axes = panels(pyplot, len(wanted), len(data))
    for (own, label, setting), trials in found.items():
        if not trials:
            continue
        axis = axes[data.index(own)][wanted.index(setting)]
        points = sorted(
            (setting_of(t, setting), rows[t.identity]["validation"]["none"][column]) for t in trials
        )
        axis.plot([x for x, _ in points], [100 * y for _, y in points], "o-", label=label)
        axis.set(xlabel=setting, ylabel=f"{column} on validation data, %", title=own)
        axis.set_xscale("log")
        alike = (own_trials for key, own_trials in found.items() if key[::2] == (own, setting))
        tried = sorted({setting_of(t, setting) for trials in alike for t in trials})
        axis.set_xticks(tried, [f"{x:g}" for x in tried], rotation=90, fontsize="x-small")
        axis.set_xticks([], minor=True)
        legend(axis)
    if study.figure_settings.get("threshold"):
        for line, own in zip(axes, data, strict=True):
            for axis in line:
                _threshold(axis, study, own, current, rows)
    return figure


def _threshold(axis: Any, study: Study, data: str, current: Plan, rows: Rows) -> None:
    """A line at the accuracy below which nothing is chosen, once the baseline has run."""
    rule = study.rule
    assert rule is not None
    assert rule.baseline is not None
    row = baseline_row(data, rule.baseline, rows, current)
    if row is None or error_of(row) is not None:
        return
    accuracy = row["validation"]["none"]["accuracy"]
    least = accuracy * (1 - rule.margin) if rule.relative else accuracy - rule.margin
    axis.axhline(100 * least, color="grey", linestyle="--", linewidth=1, label="threshold")
    legend(axis)


def cost(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    figure, axes = panels(pyplot, 2)
    drawn = False
    for place, own in enumerate(data):
        for shift, (label, found) in enumerate(rows_on_test(study, current, rows, own)):
            drawn = True
            one = fmean(row["training_seconds"] for row in found)
            tuning = [
                t for key, ts in current.tuning.items() if key[:2] == (own, label) for t in ts
            ]
            seconds = [rows[t.identity]["seconds"] for t in tuning if t.identity in rows]
            for axis, height in zip(axes[0], (one, one + sum(seconds)), strict=True):
                axis.bar(
                    place + 0.2 * shift,
                    height / 60,
                    0.18,
                    color=f"C{shift}",
                    label=label if place == 0 else None,
                )
    for axis, title in zip(axes[0], ("one run", "with tuning"), strict=True):
        axis.set(ylabel="minutes", title=title)
        axis.set_xticks(range(len(data)), data)
    legend(axes[0][0])
    return figure if drawn else None


def correlation(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    across, up = study.figure_settings["across"], study.figure_settings["up"]
    figure, axes = panels(pyplot, len(data))
    drawn = False
    for axis, own in zip(axes[0], data, strict=True):
        for label, found in rows_on_test(study, current, rows, own):
            points = found[0].get("epochs", [])
            drawn = drawn or bool(points)
            axis.plot(
                [100 * point["test"][across] for point in points],
                [100 * point["test"][up] for point in points],
                "o",
                label=label,
            )
        axis.set(xlabel=f"{across}, %", ylabel=f"{up}, %", title=own)
    return figure if drawn else None


def coefficients(pyplot: Any, study: Study, current: Plan, rows: Rows, data: list[str]) -> Any:
    figure, axes = panels(pyplot, len(data))
    drawn = False
    for axis, own in zip(axes[0], data, strict=True):
        for label, found in rows_on_test(study, current, rows, own):
            learnt = found[0].get("coefficients")
            if learnt:
                drawn = True
                axis.stairs(learnt["counts"], learnt["edges"], label=label)
        axis.set(xlabel="coefficient", ylabel="weights", title=own)
        legend(axis)
    return figure if drawn else None
