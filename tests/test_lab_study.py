"""A study from the shell: real searches, real processes, a kill in the middle, and going on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from calibrant.cli import main
from calibrant.lab import (
    STUDIES,
    Arm,
    Budget,
    Column,
    Rule,
    RunSettings,
    Stage,
    Store,
    Study,
    plan,
    render,
    run_study,
)
from calibrant.lab._journal_lock import JournalLock
from calibrant.lab._tuning import Tuner

COMMAND = [sys.executable, "-m", "calibrant", "study"]
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
    assert 1 <= len(before) < 7

    done = study(*run, "--json")
    assert done.returncode == 0, done.stderr
    after = whole_lines(rows)
    # What was finished is untouched, and nothing ran twice.
    assert after[: len(before)] == before
    identities = [json.loads(line)["identity"] for line in after]
    assert len(identities) == len(set(identities)) == 7
    assert f"{len(before)} of" in done.stderr or len(before) > 5
    (choice,) = json.loads(done.stdout)["choices"]
    assert choice["value"] in (2.0, 4.0)
    # Workers leave which samples each seed drew.
    kept = sorted(path.name for path in (tmp_path / "splits").iterdir())
    assert kept == [f"digits-seed-{seed}.split.safetensors" for seed in (0, 1)]

    journal = JournalStorage(JournalFileBackend(str(tmp_path / "optuna.journal")))
    search = optuna.load_study(study_name="digits/digits/NLL + ESD/weight", storage=journal)
    complete = [each for each in search.trials if each.state.name == "COMPLETE"]
    assert sorted(each.params["weight"] for each in complete) == [2.0, 4.0]
    stored = Store(tmp_path).rows()
    errors = {
        row["trial"]["weight"]: row["validation"]["none"]["ece20"]
        for row in stored.values()
        if row["trial"].get("judged_on") == "validation" and "weight" in row["trial"]
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
    assert len(whole_lines(results / "digits-quick.jsonl")) == 7


@pytest.mark.parametrize("stored", [False, True])
def test_a_value_that_explodes_in_its_last_step_stops_no_study(
    stored: bool, tmp_path: Path
) -> None:
    one_step = {"epochs": 1, "batch": 4000, "schedule": "constant"}
    study = Study(
        title="",
        paper="",
        place="",
        arms={"NLL": Arm({}, (Stage("lr", (2e-3, 1e30)),))},
        columns={"ECE": Column("ece20")},
        rule=Rule("ece20", margin=0.015),
        budgets={"quick": Budget((("digits", "mlp"),), seeds=1, settings=one_step)},
    )
    if stored:  # with nulls for figures and no error
        trial = plan("s", study, study.budgets["quick"], {}).missing[1]
        nulls = {"none": {"accuracy": 0.1, "ece20": None}}
        told = {"identity": trial.identity, "trial": trial.to_dict(), "seconds": 1.0}
        Store(tmp_path).append({**told, "validation": nulls})
    done = run_study("s", study, study.budgets["quick"], RunSettings(None, tmp_path))
    assert not done.missing
    assert [choice["value"] for choice in done.choices] == [2e-3]
    assert "1 tested runs and 2 of tuning" in render("s", study, "quick", Store(tmp_path).rows())
    # The search has it as failed, and would ask for it again.
    again = Tuner(tmp_path / "optuna.journal").ask("s/digits/NLL/lr", "lr", (2e-3, 1e30))
    assert again.keys() == {1e30}


ASK = """
import os, signal, sys
from calibrant.lab._tuning import Tuner
tuner = Tuner("runs/journal")
if sys.argv[1] == "die":
    tuner.storage._backend._lock.acquire()
    os.kill(os.getpid(), signal.SIGKILL)
print(sorted(tuner.ask("search", "weight", (1.0, 2.0))))
"""


def test_a_kill_in_the_middle_of_a_write_to_the_journal_stops_no_later_run(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()

    def ask(how: str) -> subprocess.CompletedProcess[str]:
        """From the folder above, so that the journal's path is a relative one."""
        command = [sys.executable, "-c", ASK, how]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=25
        )

    assert ask("die").returncode == -signal.SIGKILL
    # As one of Optuna's own would be left, and half of what was to be written.
    (tmp_path / "runs/journal.lock").symlink_to("runs/journal")
    with open(tmp_path / "runs/journal", "ab") as journal:
        journal.write(b'{"op_code":')
    done = ask("go on")
    assert done.stdout == "[1.0, 2.0]\n", done.stderr
    assert Tuner(tmp_path / "runs/journal").ask("search", "weight", (1.0, 2.0)).keys() == {1.0, 2.0}


def test_only_one_at_a_time_writes_to_a_journal(tmp_path: Path) -> None:
    ours, theirs = JournalLock(tmp_path / "journal"), JournalLock(tmp_path / "journal")
    ours.acquire()
    waiting = Thread(target=theirs.acquire, daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    ours.release()
    waiting.join(10)
    assert not waiting.is_alive()
    theirs.release()


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


def test_two_processes_on_one_journal_do_not_stop_each_other(tmp_path: Path) -> None:
    values, figures = (1.0, 2.0), {"accuracy": 0.9, "ece20": 0.1}
    first, second = Tuner(tmp_path / "journal"), Tuner(tmp_path / "journal")
    asked = first.ask("search", "weight", values)
    again = second.ask("search", "weight", values)  # takes what the first runs for left over
    assert again.keys() == asked.keys() == set(values)
    for tuner, numbers in ((first, asked), (second, again)):
        tuner.tell("search", "weight", values, numbers[1.0], figures, "ece20")
        tuner.tell("search", "weight", values, numbers[2.0], None, "ece20")
    assert first.ask("search", "weight", values).keys() == {2.0}


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        (optuna.samplers.GridSampler, "before_trial"),
        (optuna.trial.Trial, "suggest_categorical"),
    ],
)
def test_a_trial_that_another_process_ends_while_it_is_asked_for_is_let_go(
    kind: Any, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = (1.0, 2.0)
    first, second = Tuner(tmp_path / "journal"), Tuner(tmp_path / "journal")
    real = getattr(kind, step)

    def late(*given: Any) -> Any:
        second._give_up_interrupted(second._grid("search", "weight", values))
        return real(*given)

    monkeypatch.setattr(kind, step, late)
    assert first.ask("search", "weight", values) == {}


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


def test_a_search_goes_on_past_trials_that_diverge(tmp_path: Path) -> None:
    from calibrant.lab import Trial

    base = Trial("digits", "mlp", procedure="joint", calibration="mmce", weight=1.0)
    asked: list[float] = []

    def run(trial: Trial) -> dict[str, Any]:
        assert isinstance(trial.weight, float)
        asked.append(trial.weight)
        if trial.weight > 1.0:
            return {"error": "the loss must be finite; it was not. Lower the rate."}
        return {"validation": {"none": {"ece20": trial.weight}}}

    tuner = Tuner(tmp_path / "journal")
    tried = tuner.search("w", base, "weight", (0.01, 10.0), run, trials=12, column="ece20")
    assert len(asked) == 12
    assert [value for value, _ in tried] == [value for value in asked if value <= 1.0]
    assert 0 < len(tried) < 12
    told = optuna.load_study(study_name="w", storage=tuner.storage).get_trials()
    failed = [each for each in told if each.state == optuna.trial.TrialState.FAIL]
    assert len(failed) == 12 - len(tried)
    assert all(each.params["weight"] > 1.0 for each in failed)
    assert tuner.search("w", base, "weight", (0.01, 10.0), run, trials=12, column="ece20") == []
    study = optuna.load_study(study_name="w", storage=tuner.storage)
    study.ask()  # and killed before it was told of
    again = tuner.search("w", base, "weight", (0.01, 10.0), run, trials=13, column="ece20")
    assert len(asked) == 13
    assert len(again) <= 1


def test_a_database_that_many_share_leaves_what_others_run_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'searches.db'}"
    first, second = Tuner(url), Tuner(url)
    asked = first.ask("search", "weight", (1.0, 2.0))
    assert second.ask("search", "weight", (1.0, 2.0)) == {}
    first.tell("search", "weight", (1.0, 2.0), asked[1.0], None, "ece20")
    assert second.ask("search", "weight", (1.0, 2.0)).keys() == {1.0}
