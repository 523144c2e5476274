"""Trials on a cluster of Ray's, of one machine here."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from calibrant.lab import STUDIES, Engine, RunSettings, Trial, run_study, run_trial, run_trials
from calibrant.lab._ray import _keep
from calibrant.lab._store import Store, read_lines

BASE_SETTINGS: dict[str, Any] = {"epochs": 1, "batch": 64, "recalibrators": ()}
BASE = Trial("digits", "mlp", **BASE_SETTINGS)


def settings_of(store: Path) -> RunSettings:
    return RunSettings(None, store, workers=2, engine=Engine.ray)


@pytest.mark.filterwarnings("ignore")  # of Ray's own
def test_rows_from_a_cluster_are_those_of_this_process(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="Ray is large, and not among the test dependencies")
    trials = [BASE, BASE.but(seed=1)]
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
    try:
        rows = run_trials(trials, settings_of(tmp_path / "ray"), lambda line: None)
    finally:
        ray.shutdown()
    for trial in trials:
        alone = run_trial(trial, None, Store(tmp_path / "alone"))
        theirs = rows[trial.identity]["test"]["none"]
        assert theirs == pytest.approx(alone["test"]["none"], rel=1e-4, abs=1e-6)
    chosen = read_lines(tmp_path / "ray" / "selections.jsonl")
    assert {line["identity"] for line in chosen} == {trial.identity for trial in trials}


class RayError(Exception):
    """As Ray's: of a cluster that is in trouble."""


class RayTaskError(RayError):
    """As Ray's: of a task, with the error that it raised."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("ray::_run_elsewhere() (pid=1), and pages of where it came from")
        self.cause = cause


class Cluster:
    """What is asked of Ray, done in this process."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self) -> None:
        self.runs, self.begun, self.ended = False, 0, 0

    def is_initialized(self) -> bool:
        return self.runs

    def init(self, **_: Any) -> None:
        self.runs, self.begun = True, self.begun + 1

    def shutdown(self) -> None:
        self.runs, self.ended = False, self.ended + 1

    def remote(self, **_: Any) -> Any:
        return lambda run: SimpleNamespace(remote=lambda *given: (run, given))

    def wait(self, running: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return running[:num_returns], running[num_returns:]

    def get(self, asked: tuple[Any, tuple[Any, ...]]) -> Any:
        run, given = asked
        try:
            return run(*given)
        except Exception as wrong:
            raise RayTaskError(wrong) from wrong


@pytest.fixture
def a_cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    told = Cluster()
    monkeypatch.setattr("calibrant.lab._ray._ray", lambda: told)
    return told


def test_all_rounds_of_a_study_share_a_cluster_that_ends_with_it(
    tmp_path: Path, a_cluster: Cluster
) -> None:
    study = STUDIES["digits"]
    budget = replace(study.budgets["quick"], settings=BASE_SETTINGS, seeds=1)
    done = run_study("digits", study, budget, settings_of(tmp_path), tell=lambda line: None)
    assert not done.missing
    assert done.choices  # so that there were two rounds
    assert (a_cluster.begun, a_cluster.ended) == (1, 1)


def test_a_cluster_that_runs_already_is_left_running(tmp_path: Path, a_cluster: Cluster) -> None:
    a_cluster.runs = True
    run_trials([BASE], settings_of(tmp_path), lambda line: None)
    assert (a_cluster.begun, a_cluster.ended) == (0, 0)


@pytest.mark.usefixtures("a_cluster")
def test_an_error_of_a_trial_is_told_as_it_was_raised_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mnist must be read from a folder; got none"):
        run_trials([BASE.but(data="mnist")], settings_of(tmp_path), lambda line: None)


def test_a_worker_that_died_is_told_in_a_sentence(
    tmp_path: Path, a_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(asked: Any) -> Any:
        raise RayError("The worker died unexpectedly.\nAnd pages of it.")

    monkeypatch.setattr(a_cluster, "get", dead)
    sentence = "after 0 of 1 trials: The worker died unexpectedly. What was finished is kept"
    with pytest.raises(ChildProcessError, match=sentence):
        run_trials([BASE], settings_of(tmp_path), lambda line: None)


def test_a_worker_elsewhere_is_told_the_whole_path_of_the_data(
    tmp_path: Path, a_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    def get(asked: tuple[Any, tuple[Any, ...]]) -> Any:
        told.append(asked[1][1])
        raise RayTaskError(ValueError("enough"))

    monkeypatch.setattr(a_cluster, "get", get)
    monkeypatch.chdir(tmp_path)
    settings = RunSettings("here", tmp_path / "store", engine=Engine.ray)
    with pytest.raises(ValueError, match="enough"):
        run_trials([BASE], settings, lambda line: None)
    assert told == [os.path.join(tmp_path, "here")]


@pytest.mark.usefixtures("a_cluster")
def test_splits_drawn_on_a_cluster_are_kept_here_and_drawn_once(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    run_trials([BASE, BASE.but(seed=1)], settings, lambda line: None)
    splits = {path.name: path.read_bytes() for path in Store(tmp_path).splits.iterdir()}
    assert sorted(splits) == [f"digits-seed-{seed}.split.safetensors" for seed in (0, 1)]
    other = splits["digits-seed-0.split.safetensors"].replace(b"labels_sha256", b"labels_sha257")
    (Store(tmp_path).splits / "digits-seed-0.split.safetensors").write_bytes(other)
    with pytest.raises(ValueError, match="must be the split of this data; its labels_sha256 is No"):
        run_trials([BASE.but(epochs=2)], settings, lambda line: None)


def test_machines_with_different_data_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _keep(store, {"a.split": b"one"})
    _keep(store, {"a.split": b"one"})
    with pytest.raises(ValueError, match=r"the same data; two drew a\.split differently"):
        _keep(store, {"a.split": b"two"})
    assert (store.splits / "a.split").read_bytes() == b"one"
