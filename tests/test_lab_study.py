"""A study from the shell: real searches, real processes, a kill in the middle, and going on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from calibrant.cli import main
from calibrant.lab import STUDIES, Store, plan
from calibrant.lab._tuning import Tuner

COMMAND = [sys.executable, "-m", "calibrant.cli", "study"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def study(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )


def whole_lines(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1] if path.exists() else []


def test_a_study_survives_a_kill_and_goes_on_where_it_was(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    run = ["run", "digits", "--budget", "quick", "--store", str(tmp_path), "--workers", "2"]
    process = subprocess.Popen(
        [*COMMAND, *run], env=ENVIRONMENT, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 300
    while not whole_lines(rows) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)  # the command and its workers, whatever they are at
    process.wait()
    before = whole_lines(rows)
    assert 1 <= len(before) < 6

    done = study(*run, "--json")
    assert done.returncode == 0, done.stderr
    after = whole_lines(rows)
    # What was finished is untouched, and nothing ran twice.
    assert after[: len(before)] == before
    identities = [json.loads(line)["identity"] for line in after]
    assert len(identities) == len(set(identities)) == 6
    assert f"{len(before)} of" in done.stderr or len(before) > 4
    (choice,) = json.loads(done.stdout)["choices"]
    assert choice["value"] in (2.0, 4.0)

    journal = JournalStorage(JournalFileBackend(str(tmp_path / "optuna.journal")))
    search = optuna.load_study(study_name="digits/digits/NLL + ESD/weight", storage=journal)
    complete = [each for each in search.trials if each.state.name == "COMPLETE"]
    assert sorted(each.params["weight"] for each in complete) == [2.0, 4.0]
    stored = Store(tmp_path).rows()
    errors = {
        row["trial"]["weight"]: row["validation"]["none"]["ece20"]
        for row in stored.values()
        if row["trial"].get("judged_on") == "validation"
    }
    assert {each.params["weight"]: each.value for each in complete} == pytest.approx(errors)

    # The choice of the weight stood on disk before its runs were tested.
    order = [json.loads(line) for line in whole_lines(tmp_path / "selections.jsonl")]
    place = [line["identity"] for line in order].index("digits/digits/NLL + ESD/weight")
    current = plan("digits", STUDIES["digits"], STUDIES["digits"].budgets["quick"], stored)
    for trial in current.finals["digits", "NLL + ESD"]:
        assert [line["identity"] for line in order].index(trial.identity) > place

    results = tmp_path / "results"
    render = ["render", "digits", "--store", str(tmp_path), "--results", str(results)]
    assert main(["study", *render]) == 0
    page = (results / "digits-quick.md").read_text()
    accuracy = [
        100 * stored[trial.identity]["test"]["none"]["accuracy"]
        for trial in current.finals["digits", "NLL"]
    ]
    assert f"| NLL | {sum(accuracy) / 2:.2f} ± " in page
    assert "ECE: NLL + ESD below NLL" in page
    assert len(whole_lines(results / "digits-quick.jsonl")) == 6


def test_a_search_asks_only_for_what_has_no_result(tmp_path: Path) -> None:
    tuner, values = Tuner(tmp_path / "journal"), (0.5, 1.0, 2.0)
    asked = tuner.ask("search", "weight", values)
    assert asked.keys() == set(values)
    figures = {"accuracy": 0.9, "ece20": 0.1}
    tuner.tell("search", "weight", values, asked[1.0], figures, "ece20")
    tuner.tell("search", "weight", values, asked[2.0], None, "ece20")
    # The process died here: 0.5 was running, 2.0 has failed.
    again = Tuner(tmp_path / "journal").ask("search", "weight", values)
    assert again.keys() == {0.5, 2.0}


def test_a_search_between_bounds_finds_the_better_end(tmp_path: Path) -> None:
    from calibrant.lab import Trial

    base = Trial("digits", "mlp", procedure="joint", calibration="mmce", weight=1.0)

    def run(trial: Trial) -> dict[str, Any]:
        assert isinstance(trial.weight, float)
        return {"validation": {"none": {"ece20": abs(trial.weight - 0.1)}}}

    tuner = Tuner(tmp_path / "journal")
    tried = tuner.search("w", base, "weight", (0.01, 10.0), run, trials=15, column="ece20")
    assert len(tried) == 15
    assert all(0.01 <= value <= 10.0 for value, _ in tried)
    assert min(row["validation"]["none"]["ece20"] for _, row in tried) < 0.1
    assert tuner.search("w", base, "weight", (0.01, 10.0), run, trials=15, column="ece20") == []


def test_a_database_that_many_share_leaves_what_others_run_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'searches.db'}"
    first, second = Tuner(url), Tuner(url)
    asked = first.ask("search", "weight", (1.0, 2.0))
    assert second.ask("search", "weight", (1.0, 2.0)) == {}
    first.tell("search", "weight", (1.0, 2.0), asked[1.0], None, "ece20")
    assert second.ask("search", "weight", (1.0, 2.0)).keys() == {1.0}
