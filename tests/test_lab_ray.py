"""Trials on a cluster of Ray's, of one machine here."""

from pathlib import Path

import pytest

from calibrant.lab import Engine, RunSettings, Trial, run_trial, run_trials
from calibrant.lab._store import Store, read_lines

ray = pytest.importorskip("ray", reason="Ray is large, and not among the test dependencies")


@pytest.mark.filterwarnings("ignore")  # of Ray's own
def test_rows_from_a_cluster_are_those_of_this_process(tmp_path: Path) -> None:
    base = Trial("digits", "mlp", epochs=1, batch=64, recalibrators=())
    trials = [base, base.but(seed=1)]
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
