"""Trials on a cluster of Ray's, of one machine here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from calibrant.lab import Engine, RunSettings, Trial, run_trial, run_trials
from calibrant.lab._ray import _keep
from calibrant.lab._store import Store, read_lines

BASE = Trial("digits", "mlp", epochs=1, batch=64, recalibrators=())


@pytest.mark.filterwarnings("ignore")  # of Ray's own
def test_rows_from_a_cluster_are_those_of_this_process(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="Ray is large, and not among the test dependencies")
    trials = [BASE, BASE.but(seed=1)]
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
    try:
        settings = RunSettings(None, tmp_path / "ray", workers=2, engine=Engine.ray)
        rows = run_trials(trials, settings, lambda line: None)
    finally:
        ray.shutdown()
    for trial in trials:
        alone = run_trial(trial, None, Store(tmp_path / "alone"))
        theirs = rows[trial.identity]["test"]["none"]
        assert theirs == pytest.approx(alone["test"]["none"], rel=1e-4, abs=1e-6)
    chosen = read_lines(tmp_path / "ray" / "selections.jsonl")
    assert {line["identity"] for line in chosen} == {trial.identity for trial in trials}


def at_once(**_: Any) -> Any:
    return lambda run: SimpleNamespace(remote=run)


@pytest.fixture
def a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of Ray, done in this process."""
    told = SimpleNamespace(
        is_initialized=lambda: True,
        remote=at_once,
        wait=lambda running, num_returns: (running[:1], running[1:]),
        get=lambda answer: answer,
    )
    monkeypatch.setattr("calibrant.lab._ray._ray", lambda: told)


@pytest.mark.usefixtures("a_cluster")
def test_splits_drawn_on_a_cluster_are_kept_here_and_drawn_once(tmp_path: Path) -> None:
    settings = RunSettings(None, tmp_path, workers=2, engine=Engine.ray)
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
