"""Every kind of figure is drawn from rows, and not drawn where there is nothing to draw."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrant.lab import (
    Arm,
    Budget,
    Column,
    Rule,
    Stage,
    Store,
    Study,
    Trial,
    plan,
    run_trial,
    write_results,
)
from calibrant.lab.figures import FIGURES, draw
from calibrant.lab.figures._draw import _pyplot

MMCE = {"procedure": "joint", "calibration": "mmce", "weight": 1.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "settings": {"settings": ("weight",), "column": "ece20"},
    "cumulative": {"conditions": ("none", "temperature")},
    "shift": {"panels": (("ECE",), ("ECE", "ECE after TS"))},
    "bars": {"column": "ECE", "under": "Acc."},
    "effect": {"primaries": ("NLL",), "columns": ("ECE",)},
    "correlation": {"across": "ece15", "up": "dece"},
    "membership": {"bins": 15, "temperatures": (0.01, 0.1)},
    "uncertainty": {"thresholds": (0.5,), "temperatures": (0.1, 1.0)},
}


def study(kind: str) -> Study:
    trained = kind not in ("membership", "uncertainty")
    own = {"shift": (1, 5)} if kind == "shift" else {}
    return Study(
        title="A figure",
        paper="",
        place="Figure 0",
        arms={"NLL": Arm(), "NLL + MMCE": Arm(MMCE, (Stage("weight", (1.0, 2.0)),))},
        columns={
            "Acc.": Column("accuracy"),
            "ECE": Column("ece20"),
            "ECE after TS": Column("ece20", after="temperature"),
        },
        rule=Rule("ece20", margin=0.015, baseline="NLL"),
        budgets={"quick": Budget((("digits", "mlp"),), 2, own)} if trained else {},
        figure=kind,
        figure_settings=SETTINGS.get(kind, {}),
    )


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No figure of a test stays open."""
    yield
    _pyplot().close("all")


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A real row, and beside it what only other data and procedures give."""
    trial = Trial("digits", "mlp", epochs=1, batch=64, history_every=1)
    found = run_trial(trial, None, Store(tmp_path_factory.mktemp("store")))
    shift = {name: {"1": found["test"], "5": found["test"]} for name in ("fog", "snow")}
    return found | {"shift": shift, "coefficients": {"edges": [0.0, 1.0, 2.0], "counts": [3, 4]}}


def rows_of(kind: str, row: dict[str, Any]) -> dict[str, Any]:
    """The same row for every trial of the study, apart from a little for each seed."""
    rows: dict[str, Any] = {}
    while study(kind).budgets:
        missing = plan("a", study(kind), study(kind).budgets["quick"], rows).missing
        if not missing:
            break
        for trial in missing:
            test = {
                name: {
                    key: value + 0.001 * trial.seed if isinstance(value, float) else value
                    for key, value in figures.items()
                }
                for name, figures in row["test"].items()
            }
            rows[trial.identity] = row | {"test": test}
    return rows


@pytest.mark.parametrize("kind", FIGURES)
def test_every_kind_is_drawn(kind: str, row: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "figure.png"
    assert draw("a", study(kind), "quick", rows_of(kind, row), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 5_000


@pytest.mark.parametrize("kind", sorted(FIGURES.keys() - {"membership", "uncertainty"}))
def test_nothing_is_drawn_of_nothing(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "figure.png"
    assert not draw("a", study(kind), "quick", {}, path)
    assert not path.exists()


@pytest.mark.parametrize("kind", ["settings", "cost"])
def test_a_run_that_diverged_with_null_figures_does_not_stop_a_figure(
    kind: str, row: dict[str, Any], tmp_path: Path
) -> None:
    rows = rows_of(kind, row)
    current = plan("a", study(kind), study(kind).budgets["quick"], rows)
    tried = current.tuning["digits", "NLL + MMCE", "weight"][1]
    nulls = row["validation"]["none"] | {"ece20": None}
    rows[tried.identity] = row | {"validation": {"none": nulls}}
    written = write_results("a", study(kind), "quick", rows, tmp_path)
    assert tmp_path / "a-quick.png" in written
    assert '"ece20": null' in (tmp_path / "a-quick.jsonl").read_text()  # as it was stored


def test_bars_have_their_spread_and_the_accuracy_below(row: dict[str, Any]) -> None:
    own = replace(study("bars"), spread="sem")
    rows = rows_of("bars", row)
    current = plan("a", own, own.budgets["quick"], rows)
    (axis,) = FIGURES["bars"](_pyplot(), own, current, rows, ["digits"]).axes
    error, accuracy = (100 * row["test"]["none"][name] for name in ("ece20", "accuracy"))
    assert [bar.get_height() for bar in axis.patches] == pytest.approx([error + 0.05] * 2)
    ends = axis.containers[0].lines[2][0].get_segments()[0][:, 1]
    assert list(ends) == pytest.approx([error, error + 0.1])  # of 0 and 0.1 half the distance
    assert [text.get_text() for text in axis.texts] == [f"{accuracy + 0.05:.1f}"] * 2
    assert [text.xy for text in axis.texts] == [(0, 0), (1, 0)]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["NLL", "NLL + MMCE"]


def test_the_accuracy_below_which_nothing_is_chosen_is_a_line(row: dict[str, Any]) -> None:
    wanted = {**SETTINGS["settings"], "column": "accuracy", "threshold": True}
    own = replace(study("settings"), figure_settings=wanted)
    rows = rows_of("settings", row)
    current = plan("a", own, own.budgets["quick"], rows)
    (axis,) = FIGURES["settings"](_pyplot(), own, current, rows, ["digits"]).axes
    least = 100 * (row["validation"]["none"]["accuracy"] - 0.015)
    assert list(axis.lines[-1].get_ydata()) == pytest.approx([least, least])
    assert [text.get_text() for text in axis.get_legend().get_texts()][-1] == "threshold"
    # As long as the baseline has not run there is no such line.
    tried = {trial.identity for trials in current.tuning.values() for trial in trials}
    few = {identity: rows[identity] for identity in tried}
    current = plan("a", own, own.budgets["quick"], few)
    (axis,) = FIGURES["settings"](_pyplot(), own, current, few, ["digits"]).axes
    assert len(axis.lines) == 1


ARMS = {f"NLL + measure {place}": Arm({"lr": 0.001 * (place + 1)}) for place in range(16)}
MANY = Study(
    title="Many",
    paper="",
    place="",
    arms=ARMS,
    columns={"Acc.": Column("accuracy"), "ECE after TS": Column("ece20", after="temperature")},
    budgets={"quick": Budget((("cifar10", "mlp"), ("cifar100", "mlp")), 3, {"shift": (1, 3)})},
    figure="shift",
    figure_settings={"panels": (("Acc.",), ("ECE after TS",))},
)


def figures(accuracy: float, ece: float) -> dict[str, Any]:
    return {"none": {"accuracy": accuracy}, "temperature": {"ece20": ece}}


def drawn_under_shift(study: Study, rows: dict[str, Any]) -> Any:
    current = plan("many", study, study.budgets["quick"], rows)
    return FIGURES["shift"](_pyplot(), study, current, rows, ["cifar10", "cifar100"])


def many_rows(data: str, seeds: int = 3) -> dict[str, Any]:
    """Rows of every arm, each a point below the one before; a point more for each seed."""
    rows = {}
    for (own, arm), trials in plan("many", MANY, MANY.budgets["quick"], {}).finals.items():
        for trial in trials[:seeds] if own == data else []:
            a, e = 0.9 - 0.01 * list(ARMS).index(arm) + 0.01 * trial.seed, 0.02
            rows[trial.identity] = {
                "test": figures(a, e),
                "shift": {
                    "fog": {"1": figures(a - 0.1, e + 0.1), "3": figures(a - 0.2, e + 0.3)},
                    "snow": {"1": figures(a - 0.3, e + 0.2), "3": figures(a - 0.4, e + 0.5)},
                },
            }
    return rows


def test_points_under_shift_are_means_over_corruptions_and_seeds() -> None:
    figure = drawn_under_shift(MANY, many_rows("cifar10"))
    accuracy, error = figure.axes
    (line, _, (bars,)) = accuracy.containers[2]
    assert [round(x) for x in line.get_xdata()] == [0, 1, 3]  # 0 is the test split itself
    assert list(line.get_ydata()) == pytest.approx([89, 69, 59])
    below, above = bars.get_segments()[0][:, 1]
    assert (below, above) == pytest.approx((88, 90))  # a standard deviation of seeds each way
    assert list(error.containers[2][0].get_ydata()) == pytest.approx([2, 17, 42])
    assert (accuracy.get_ylabel(), error.get_ylabel()) == ("Acc., %", "ECE after TS, %")


def test_sixteen_arms_under_shift_can_be_told_apart() -> None:
    figure = drawn_under_shift(MANY, many_rows("cifar10"))
    lines = [container[0] for container in figure.axes[0].containers]
    assert len({line.get_color() for line in lines}) == 16
    for severity in range(3):  # side by side, and nearer to their own severity than to another
        places = [line.get_xdata()[severity] for line in lines]
        assert sorted(set(places)) == places
        assert max(places) - min(places) < 1


def test_legend_and_heading_under_shift_cover_nothing() -> None:
    figure = drawn_under_shift(MANY, many_rows("cifar10") | many_rows("cifar100"))
    heading = figure.suptitle("Many")
    figure.canvas.draw()
    title = figure.axes[0].title.get_window_extent()
    assert not heading.get_window_extent().overlaps(title)
    for axis in figure.axes:
        legend = axis.get_legend().get_window_extent()
        assert not any(legend.overlaps(other.get_window_extent()) for other in figure.axes)
        assert figure.bbox.x1 >= legend.x1
        assert [text.get_text() for text in axis.get_legend().get_texts()] == list(ARMS)


def test_data_sets_of_which_nothing_was_shifted_have_no_panel() -> None:
    rows = many_rows("cifar100")
    assert [axis.get_title() for axis in drawn_under_shift(MANY, rows).axes] == ["cifar100"] * 2
    both = rows | many_rows("cifar10", seeds=1)
    titles = [axis.get_title() for axis in drawn_under_shift(MANY, both).axes]
    assert titles == ["cifar10"] * 2 + ["cifar100"] * 2
    as_it_was = {identity: {"test": row["test"]} for identity, row in rows.items()}
    assert drawn_under_shift(MANY, as_it_was) is None


def test_a_panel_of_two_columns_names_them_beside_the_arm(row: dict[str, Any]) -> None:
    own = study("shift")
    rows = rows_of("shift", row)
    current = plan("a", own, own.budgets["quick"], rows)
    figure = FIGURES["shift"](_pyplot(), own, current, rows, ["digits"])
    labels = [[text.get_text() for text in axis.get_legend().get_texts()] for axis in figure.axes]
    assert labels[0] == ["NLL", "NLL + MMCE"]
    assert labels[1][:2] == ["NLL: ECE", "NLL: ECE after TS"]
