"""What a study tells under shift is the same from whole rows and from those that are kept."""

import json
import random
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from calibrant.cli import main
from calibrant.lab import STUDIES, Column, Store, figures_and_claims, plan, render, write_results
from calibrant.lab._values import value_of

NAME = "objectives-shifted"
STUDY = STUDIES[NAME]
CORRUPTIONS = ("fog", "frost", "snow")
CONDITIONS = ("none", "temperature", "temperature_sb_ece", "vector")
MEASURES = ("accuracy", "ece15", "ece20", "mean_confidence", "nll")


def made_up(draws: random.Random) -> dict[str, dict[str, float]]:
    return {after: {name: draws.random() for name in MEASURES} for after in CONDITIONS}


@pytest.fixture
def rows() -> dict[str, Any]:
    """Three seeds of one arm of CIFAR-10 and one of another, as trials leave them."""
    draws, rows = random.Random(0), {}
    finals = plan(NAME, STUDY, STUDY.budgets["quick"], {}).finals
    for trial in (*finals["cifar10", "NLL"], finals["cifar10", "Brier"][0]):
        shift = {
            name: {str(severity): made_up(draws) for severity in trial.shift}
            for name in CORRUPTIONS
        }
        rows[trial.identity] = {
            "identity": trial.identity,
            "validation": made_up(draws),
            "test": made_up(draws),
            "curves": {"none": {}},
            "shift": shift,
        }
    return rows


def by_hand(row: dict[str, Any], severities: str, after: str, measure: str) -> float:
    return fmean(
        100 * row["shift"][name][severity][after][measure]
        for name in CORRUPTIONS
        for severity in severities
    )


@pytest.mark.parametrize(("heading", "severities"), [("2", "2"), ("5", "5"), ("mean", "12345")])
@pytest.mark.parametrize(
    ("label", "after", "measure"),
    [
        ("Acc.", "none", "accuracy"),
        ("ECE", "none", "ece20"),
        ("ECE after TS", "temperature", "ece20"),
    ],
)
def test_tables_have_means_over_corruptions_and_the_spread_over_seeds(
    rows: dict[str, Any], heading: str, severities: str, label: str, after: str, measure: str
) -> None:
    *seeds, lone = (by_hand(row, severities, after, measure) for row in rows.values())
    page = render(NAME, STUDY, "quick", rows)
    start = page.index(f"| {label} at severity | 1 ± std |")
    head, _, first, second = page[start:].splitlines()[:4]
    place = head.split(" | ").index(f"{heading} ± std")
    assert first.startswith("| NLL |")
    assert first.endswith("| 3 |")
    assert first.split(" | ")[place] == f"{fmean(seeds):.2f} ± {stdev(seeds):.2f}"
    assert second.startswith("| Brier |")
    assert second.endswith("| 1 |")
    assert second.split(" | ")[place] == f"{lone:.2f}"
    told = figures_and_claims(NAME, STUDY, "quick", rows)["cifar10"]["shift"][label]
    assert list(told["NLL"][heading].values()) == pytest.approx(seeds)
    assert told["Brier"][heading] == pytest.approx({0: lone})


def test_the_page_says_what_is_averaged(rows: dict[str, Any]) -> None:
    page = render(NAME, STUDY, "quick", rows)
    assert "the mean over 3 corruptions of the test split" in page
    without = {
        identity: {key: value for key, value in row.items() if key != "shift"}
        for identity, row in rows.items()
    }
    assert "at severity" not in render(NAME, STUDY, "quick", without)


def test_kept_rows_give_the_same_page_rows_and_figure(rows: dict[str, Any], tmp_path: Path) -> None:
    first = write_results(NAME, STUDY, "quick", rows, tmp_path / "first")
    (tmp_path / "store").mkdir()
    kept = (tmp_path / "first" / f"{NAME}-quick.jsonl").read_text()
    (tmp_path / "store" / "rows.jsonl").write_text(kept)
    short = Store(tmp_path / "store").rows()
    again = write_results(NAME, STUDY, "quick", short, tmp_path / "again")
    assert [path.suffix for path in first] == [".md", ".jsonl", ".png"]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in first]
    for identity, row in short.items():
        assert row["shift"]["corruptions"] == list(CORRUPTIONS)
        assert "curves" not in row
        # Thrice as short, since there are three corruptions.
        assert len(json.dumps(row["shift"])) < 0.4 * len(json.dumps(rows[identity]["shift"]))
    # Whole rows beside kept ones are the same again.
    mixed = short | dict(list(rows.items())[:2])
    assert render(NAME, STUDY, "quick", mixed) == render(NAME, STUDY, "quick", rows)


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--results", "out"]])
def test_rows_of_other_corruptions_are_not_mixed(
    rows: dict[str, Any],
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    del list(rows.values())[1]["shift"]["frost"]
    for row in rows.values():
        Store("store").append(row)
    assert main(["study", "render", NAME, "--store", "store", *arguments]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "rows of cifar10 under shift must have the same corruptions" in said
    assert "only some have frost" in said


def test_a_figure_under_shift_is_missing_where_one_of_its_parts_is() -> None:
    def row(of_snow: float | None) -> dict[str, Any]:
        told = {"fog": 0.5, "snow": of_snow}
        return {"shift": {name: {"1": {"none": {"nll": nll}}} for name, nll in told.items()}}

    column = Column("nll", split="shift", severity=1)
    assert value_of(column, row(1.5)) == 1.0
    assert value_of(column, row(None)) is None
    assert value_of(Column("nll", split="shift", severity=2), row(1.5)) is None
    assert value_of(Column("nll", after="vector", split="shift"), row(1.5)) is None
    assert value_of(column, {"test": {"none": {"nll": 0.5}}}) is None
