"""Many small models trained as one are what they would be alone."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from calibrant.lab import Engine, RunSettings, Store, Trial, open_task, run_trial, run_trials
from calibrant.lab._pace import Pace, duration
from calibrant.lab._together import groups_of, run_together
from calibrant.lab.augment import Augmentation
from calibrant.lab.data import Samples, Splits

BASE = Trial("digits", "mlp", epochs=2, batch=64, lr=2e-3, recalibrators=())
# Not its root: where it is about zero a rounding decides whether a root has a slope.
ESD: dict[str, Any] = {"procedure": "interleaved", "calibration": "esd"}

GROUPS: dict[str, list[Trial]] = {
    "plain": [BASE.but(seed=seed) for seed in (0, 1)],
    "interleaved": [
        BASE.but(**ESD, weight=weight, seed=seed, keep="calibrated")
        for weight in (5.0, 40.0)
        for seed in (0, 1)
    ],
    "joint": [
        BASE.but(procedure="joint", calibration="mmce", weight=weight, optimiser="sgd", lr=0.1)
        for weight in (0.0, 2.0)
    ],
}


def told(epoch: dict[str, float | None]) -> dict[str, float]:
    """An epoch's numbers, with -1 where there is none."""
    return {name: -1.0 if value is None else value for name, value in epoch.items()}


@pytest.mark.parametrize("trials", GROUPS.values(), ids=GROUPS)
def test_rows_are_those_of_single_runs(trials: list[Trial], tmp_path: Path) -> None:
    together = list(run_together(trials, None, Store(tmp_path / "together")))
    alone = [run_trial(trial, None, Store(tmp_path / "alone")) for trial in trials]
    assert [row["identity"] for row in together] == [row["identity"] for row in alone]
    for ours, theirs in zip(together, alone, strict=True):
        assert ours["choice"] == theirs["choice"]
        assert ours["test"]["none"] == pytest.approx(theirs["test"]["none"], rel=1e-4, abs=1e-6)
        for one, other in zip(ours["history"], theirs["history"], strict=True):
            assert told(one) == pytest.approx(told(other), rel=1e-4, abs=1e-6)
    # Otherwise the comparison would hold of models that learn nothing from their weights.
    assert len({row["test"]["none"]["nll"] for row in together}) == len(trials)


def test_a_rooted_measure_is_trained_together_too(tmp_path: Path) -> None:
    """As alone, up to what a root makes of roundings."""
    trials = [
        BASE.but(procedure="interleaved", calibration="rooted_esd", weight=weight)
        for weight in (0.5, 4.0)
    ]
    together = list(run_together(trials, None, Store(tmp_path / "together")))
    for trial, ours in zip(trials, together, strict=True):
        theirs = run_trial(trial, None, Store(tmp_path / "alone"))
        for name in ("accuracy", "nll"):
            expected = theirs["test"]["none"][name]
            assert ours["test"]["none"][name] == pytest.approx(expected, rel=0.05)


def images(n: int, seed: int) -> Samples:
    rng = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3
    pixels = torch.randint(100, (n, 1, 28, 28), generator=rng) + 50 * labels[:, None, None, None]
    return Samples(pixels.byte(), labels)


def test_convolutions_with_augmentation_are_those_of_single_runs(tmp_path: Path) -> None:
    splits = Splits(images(90, 0), images(30, 1), lambda: images(30, 2), 3)
    augmentation = Augmentation((0.5,), (0.5,), padding=2, side=32)
    task = replace(open_task(BASE, None), splits=splits, augmentation=augmentation)
    base = Trial("made up", "lenet5", epochs=2, batch=30, recalibrators=(), **ESD, weight=1.0)
    trials = [base.but(weight=weight) for weight in (0.5, 5.0)]
    together = run_together(trials, None, Store(tmp_path / "together"), task=task)
    for trial, ours in zip(trials, together, strict=True):
        theirs = run_trial(trial, None, Store(tmp_path / "alone"), task=task)
        assert ours["test"]["none"] == pytest.approx(theirs["test"]["none"], rel=1e-4, abs=1e-6)


def test_what_cannot_be_stacked_is_left_to_run_alone() -> None:
    base = BASE.but(**ESD, weight=1.0)
    alike = [base, base.but(weight=2.0), base.but(seed=1, judged_on="validation")]
    others: list[Trial] = [
        base.but(weight="adaptive"),
        base.but(calibration_groups="sex"),
        base.but(calibration_groups="sex", weight=2.0),
        base.but(lr=0.1),
        base.but(calibration="mmce"),
        BASE.but(procedure="meta", calibration="dece"),
        BASE.but(model="resnet18"),
        BASE.but(model_settings={"dropout": 0.5}),
    ]
    groups, rest = groups_of([*alike, *others])
    assert groups == [alike]
    assert set(rest) == set(others)


def test_a_model_that_diverges_does_not_take_others_with_it(tmp_path: Path) -> None:
    base = BASE.but(procedure="joint", calibration="mmce", optimiser="sgd", lr=0.1, weight=1.0)
    trials = [base, base.but(weight=1e30)]
    fine, diverged = run_together(trials, None, Store(tmp_path))
    assert fine["test"]["none"]["accuracy"] > 0.2
    assert "must be finite" in diverged["error"]


def test_models_that_explode_in_their_last_step_have_diverged(tmp_path: Path) -> None:
    base = BASE.but(epochs=1, batch=4000, schedule="constant", lr=1e30)
    for row in run_together([base, base.but(seed=1)], None, Store(tmp_path)):
        assert "logits of the validation split must be finite" in row["error"]
        assert row["together"] == 2


def test_running_statistics_are_refused(tmp_path: Path) -> None:
    task = open_task(BASE, None)

    def build(trial: Trial, splits: Splits[Samples]) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 10))

    with pytest.raises(ValueError, match="no running statistics"):
        list(run_together(GROUPS["plain"], None, Store(tmp_path), task=replace(task, build=build)))


def test_the_runner_trains_groups_together_and_the_rest_alone(tmp_path: Path) -> None:
    told: list[str] = []
    trials = [*GROUPS["plain"], BASE.but(lr=0.1)]
    settings = RunSettings(None, tmp_path, together=True, engine=Engine.local)
    rows = run_trials(trials, settings, told.append)
    assert rows.keys() == {trial.identity for trial in trials}
    again: list[str] = []
    run_trials(trials, settings, again.append)
    assert again == ["3 of 3 trials are in the store already."]
    assert len(told) == 3


def test_no_trial_is_begun_that_would_not_finish_in_time(tmp_path: Path) -> None:
    told: list[str] = []
    trials = [BASE.but(seed=seed) for seed in range(3)]
    settings: Any = RunSettings(None, tmp_path, stop_after=0.01)
    rows = run_trials(trials, settings, told.append)
    assert len(rows) <= 1
    assert "were left for another time" in told[-1]


def test_what_is_short_still_begins_when_what_is_long_would_not_finish() -> None:
    long, short = BASE.but(procedure="meta", calibration="dece"), BASE
    pace = Pace(stop_after=100.0, began=time.monotonic() - 90, total=4)
    figures = {"validation": {"none": {"accuracy": 0.5, "ece20": 0.1}}}
    waiting = [long, short]
    # Nothing is known of either yet.
    assert pace.next_of(waiting) == long
    for trial, seconds in ((long, 50.0), (short, 5.0)):
        pace.after({"trial": trial.to_dict(), "seconds": seconds, **figures})
    waiting = [long, short]
    assert pace.next_of(waiting) == short
    assert waiting == [long]
    assert pace.next_of(waiting) is None
    # Of its kind nothing is known, so it is taken for the slowest.
    assert pace.next_of([BASE.but(procedure="joint", calibration="esd", weight=1.0)]) is None


FIGURES = {"validation": {"none": {"accuracy": 0.5, "ece20": 0.1}}}


def taught(trial: Trial, seconds: float, **more: Any) -> dict[str, Any]:
    own = {"identity": trial.identity, "trial": trial.to_dict(), "seconds": seconds}
    return own | FIGURES | more


def test_the_time_left_is_that_of_all_that_is_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 30.0])
    monkeypatch.setattr("calibrant.lab._pace.time", SimpleNamespace(monotonic=lambda: next(clock)))
    pace = Pace(None, 0.0, total=2, later=3)
    assert pace.after(taught(BASE, 10.0)).startswith("1 of 2 and 3 to come, 40 s left: digits")
    assert pace.after(taught(BASE, 20.0)).startswith("2 of 2 and 3 to come, 45 s left: digits")


@pytest.mark.parametrize(
    "end", [{"error": "not finite"}, {"validation": {"none": {"accuracy": 0.1, "ece20": None}}}]
)
def test_a_trial_that_diverged_says_nothing_of_how_long_others_take(end: dict[str, Any]) -> None:
    pace = Pace(stop_after=100.0, began=time.monotonic() - 20, total=3)
    pace.after(taught(BASE, 90.0))
    assert not pace.fits(BASE.but(seed=1))
    assert "finite" in pace.after(taught(BASE.but(lr=100.0), 0.3, **end))
    assert not pace.fits(BASE.but(seed=1))


def test_a_group_takes_as_long_as_all_its_members() -> None:
    group = [BASE.but(seed=seed) for seed in range(10)]
    pace = Pace(stop_after=100.0, began=time.monotonic(), total=20)
    for trial in group:
        pace.after(taught(trial, 5.0), together=10)
    # Their shares are 50 seconds and a tenth; later there is time for one share, not for ten.
    assert pace.fits(*group)
    pace.began -= 60
    assert not pace.fits(*group)
    # One that trains alone takes longer than a share, but nobody knows how long.
    assert pace.fits(BASE)


def test_the_runner_judges_a_group_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def slow(group: list[Trial], data: Path | None, store: Store, *, device: str) -> Any:
        begun.append(group)
        for trial in group:
            row = taught(trial, 40.0)
            store.append(row)
            yield row

    monkeypatch.setattr("calibrant.lab._together.run_together", slow)
    trials = [BASE.but(seed=seed, lr=lr) for lr in (0.1, 0.2) for seed in (0, 1)]
    settings = RunSettings(None, tmp_path, stop_after=60.0, together=True)
    run_trials(trials, settings, lambda line: None)
    assert begun == [trials[:2]]


@pytest.mark.parametrize(
    ("more", "begins"),
    [({}, False), ({"device": "another"}, True), ({"together": 3}, True), ({"error": "x"}, True)],
)
def test_how_long_trials_take_is_remembered_by_the_store(
    more: dict[str, Any], begins: bool, tmp_path: Path
) -> None:
    Store(tmp_path).append(taught(BASE, 600.0, **more))
    # A row without a trial teaches nothing, nor does one with a trial that nobody knows now.
    Store(tmp_path).append({"identity": "a"})
    Store(tmp_path).append({"identity": "b", "trial": {"data": "old", "size": 3}, "seconds": 1.0})
    other = BASE.but(seed=1)
    settings: Any = RunSettings(None, tmp_path, stop_after=300.0)
    rows = run_trials([BASE, other], settings, lambda line: None)
    assert (other.identity in rows) == begins


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"workers": -1}, "workers must be 0 or more; got -1. 0 runs trials in this process."),
        ({"threads": 0}, "threads must be 1 or more; got 0. Or leave it out."),
    ],
)
def test_processes_and_threads_that_cannot_be_are_refused(
    settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        RunSettings(None, "store", **settings)


POOL = """
import os, time
from calibrant.lab._runner import RunSettings, processes

if __name__ == "__main__":
    pool = processes(RunSettings(None, "unused", workers=1, threads=1))
    print(pool.submit(os.getpid).result(), flush=True)
    time.sleep(600)
"""


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert is_running(worker)
        parent.kill()
    deadline = time.monotonic() + 30
    while is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        assert not is_running(worker)
    finally:
        if is_running(worker):
            os.kill(worker, signal.SIGKILL)


def test_a_worker_that_dies_is_told_and_what_was_finished_is_kept(tmp_path: Path) -> None:
    settings = RunSettings(None, tmp_path, workers=1, threads=1)

    def kill_after_the_first(line: str) -> None:
        (worker,) = multiprocessing.active_children()
        worker.kill()

    with pytest.raises(ChildProcessError, match="a worker process died, after 1 of 3 trials"):
        run_trials([BASE.but(seed=seed) for seed in range(3)], settings, kill_after_the_first)
    assert set(Store(tmp_path).rows()) == {BASE.identity}


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "0 ms"), (0.0412, "41 ms"), (1.2, "1 s"), (200.0, "3 min")]
)
def test_a_time_under_a_second_is_told_in_milliseconds(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
