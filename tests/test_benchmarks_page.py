"""The page of benchmarks: made from what was recorded, all of it, and up to date."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_the_page_is_what_the_records_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    render = importlib.import_module("render")
    monkeypatch.setattr(render, "README", tmp_path / "README.md")
    render.main()
    made = (tmp_path / "README.md").read_text()
    assert made == (BENCHMARKS / "README.md").read_text()
    _, _, promise = made.partition("## Does the monitor keep its promise?")
    recorded = (BENCHMARKS / "results" / "monitor.csv").read_text().splitlines()[1:]
    assert promise.count("| false alarms |") + promise.count("| delay |") == len(recorded)
