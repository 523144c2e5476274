"""Every kind of figure is drawn from rows, and not drawn where there is nothing to draw."""

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

MMCE = {"procedure": "joint", "calibration": "mmce", "weight": 1.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "settings": {"settings": ("weight",), "column": "ece20"},
    "cumulative": {"conditions": ("none", "temperature")},
    "shift": {"columns": ("accuracy", "ece20"), "conditions": ("none", "temperature")},
    "bars": {"column": "ECE"},
    "effect": {"primaries": ("NLL",), "columns": ("ECE",)},
    "correlation": {"across": "ece15", "up": "dece"},
    "membership": {"bins": 15, "temperatures": (0.01, 0.1)},
    "uncertainty": {"thresholds": (0.5,), "temperatures": (0.1, 1.0)},
}


def study(kind: str) -> Study:
    trained = kind not in ("membership", "uncertainty")
    return Study(
        title="A figure",
        paper="",
        place="Figure 0",
        arms={"NLL": Arm(), "NLL + MMCE": Arm(MMCE, (Stage("weight", (1.0, 2.0)),))},
        columns={"ECE": Column("ece20")},
        rule=Rule("ece20", margin=0.015, baseline="NLL"),
        budgets={"quick": Budget((("digits", "mlp"),), seeds=2)} if trained else {},
        figure=kind,
        figure_settings=SETTINGS.get(kind, {}),
    )


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A real row, and beside it what only other data and procedures give."""
    trial = Trial("digits", "mlp", epochs=1, batch=64, history_every=1)
    found = run_trial(trial, None, Store(tmp_path_factory.mktemp("store")))
    shift = {"fog": {str(severity): found["test"] for severity in (1, 5)}}
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
