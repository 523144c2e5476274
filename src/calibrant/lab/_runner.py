"""Run many trials: in this process, in several, or on several machines."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from ._store import Store
from ._trial import Trial

Told = Callable[[str], object]


class Engine(StrEnum):
    """Who runs trials."""

    local = "local"
    ray = "ray"


@dataclass
class RunSettings:
    """Where trials run.

    - `data`: the folder of data sets. `store`: the folder of results.
    - `workers`: processes at once; 0 runs in this one. `devices`: dealt out in turn.
    - `threads`: of torch in each process; by default the cores, shared out.
    - `stop_after`: seconds after which no trial is begun that may not finish in time.
    - `engine`: local processes, or Ray beyond one machine.
    - `together`: train small models that differ only in seed, weight and the like as one.
    """

    data: str | os.PathLike[str] | None
    store: str | os.PathLike[str]
    workers: int = 0
    devices: Sequence[str] = ("cpu",)
    threads: int | None = None
    stop_after: float | None = None
    engine: Engine = Engine.local
    together: bool = False
    began: float = field(default_factory=time.monotonic)


def run_trials(
    trials: Iterable[Trial],
    settings: RunSettings,
    tell: Told | None = None,
    pool: ProcessPoolExecutor | None = None,
) -> dict[str, dict[str, Any]]:
    """Run the trials that are not in the store yet, and return the rows of all that are now.

    - `tell`: is given a line for every finished trial. `pool`: processes to use, of `processes`.

    Every finished trial is on disk before its process begins another, so an interruption loses
    no more than what is running, and running the same trials again goes on from there.
    """
    tell = tell or (lambda line: print(line, file=sys.stderr, flush=True))
    wanted = list(dict.fromkeys(trials))
    done = Store(settings.store).rows()
    left = [trial for trial in wanted if trial.identity not in done]
    if len(left) < len(wanted):
        tell(f"{len(wanted) - len(left)} of {len(wanted)} trials are in the store already.")
    pace = Pace(settings, total=len(left))
    if settings.together:
        left = _run_together(left, settings, pace, tell)
    if settings.engine == Engine.ray:
        from ._ray import run_on_ray

        run_on_ray(left, settings, pace, tell)
    elif settings.workers > 0 and left:
        with nullcontext(pool) if pool else processes(settings) as workers:
            _run_in_processes(left, settings, pace, tell, workers)
    else:
        for trial in left:
            if pace.is_too_late(trial):
                break
            tell(pace.after(_run_one(trial, settings, settings.devices[0])))
    if pace.left_out:
        tell(f"{pace.total - pace.done} trials were left for another time. Run the same again.")
    rows = Store(settings.store).rows()
    return {trial.identity: rows[trial.identity] for trial in wanted if trial.identity in rows}


class Pace:
    """How fast trials finish, and so how long the rest will take."""

    def __init__(self, settings: RunSettings, total: int) -> None:
        self.settings, self.total, self.done, self.left_out = settings, total, 0, False
        self._began = time.monotonic()
        self._per_epoch: dict[tuple[str, str], float] = {}

    def after(self, row: dict[str, Any]) -> str:
        """Take note of a finished trial, and say so with the time left."""
        self.done += 1
        trial = Trial.from_dict(row["trial"])
        pair, pace = (trial.data, trial.model), row["seconds"] / trial.epochs
        # Of procedures that differ, the slowest.
        self._per_epoch[pair] = max(pace, self._per_epoch.get(pair, 0.0))
        rest = (time.monotonic() - self._began) / self.done * (self.total - self.done)
        return f"{self.done} of {self.total}, {_minutes(rest)} left: {trial}: {_result(row)}"

    def is_too_late(self, trial: Trial) -> bool:
        """Whether a trial would probably not finish before `stop_after`."""
        if self.settings.stop_after is None:
            return False
        seconds = self._per_epoch.get((trial.data, trial.model), 0.0) * trial.epochs * 1.2
        spent = time.monotonic() - self.settings.began
        late = spent + seconds > self.settings.stop_after
        self.left_out = self.left_out or late
        return late


def _run_together(
    trials: Sequence[Trial], settings: RunSettings, pace: Pace, tell: Told
) -> list[Trial]:
    """Run what can be trained as one, and return the rest."""
    from ._together import groups_of, run_together

    groups, rest = groups_of(trials)
    for group in groups:
        if pace.is_too_late(group[0]):
            break
        data = None if settings.data is None else Path(settings.data)
        for row in run_together(group, data, Store(settings.store), device=settings.devices[0]):
            tell(pace.after(row))
    return rest


def processes(settings: RunSettings) -> ProcessPoolExecutor:
    """Worker processes, spawned: a forked one cannot use CUDA and may inherit a lock."""
    threads = settings.threads or max(1, (os.cpu_count() or 1) // settings.workers)
    return ProcessPoolExecutor(settings.workers, get_context("spawn"), _start_worker, (threads,))


def _run_in_processes(
    trials: Sequence[Trial],
    settings: RunSettings,
    pace: Pace,
    tell: Told,
    pool: ProcessPoolExecutor,
) -> None:
    running: dict[Future[dict[str, Any]], str] = {}
    waiting = list(reversed(trials))
    free = [settings.devices[i % len(settings.devices)] for i in range(settings.workers)]
    try:
        while waiting or running:
            while waiting and free:
                if pace.is_too_late(waiting[-1]):
                    waiting.clear()
                    break
                device = free.pop()
                running[pool.submit(_run_one, waiting.pop(), settings, device)] = device
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for each in finished:
                free.append(running.pop(each))
                tell(pace.after(each.result()))
    except BrokenProcessPool as wrong:
        raise ChildProcessError(
            f"a worker process died, after {pace.done} of {pace.total} trials; perhaps it was "
            "killed for want of memory. What was finished is kept: run the same again, with "
            "fewer workers."
        ) from wrong


def _start_worker(threads: int) -> None:
    torch.set_num_threads(threads)


def _run_one(trial: Trial, settings: RunSettings, device: str) -> dict[str, Any]:
    from ._run_trial import run_trial

    if device.startswith("cuda"):
        torch.backends.cudnn.benchmark = True
    data = None if settings.data is None else Path(settings.data)
    return run_trial(trial, data, Store(settings.store), device=device)


def _result(row: dict[str, Any]) -> str:
    if "error" in row:
        return str(row["error"])
    split = "test" if "test" in row else "validation"
    figures = row[split]["none"]
    return (
        f"accuracy {figures['accuracy']:.2%}, ECE {figures['ece20']:.2%} on {split} data, "
        f"{row['seconds']:.0f} s"
    )


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
