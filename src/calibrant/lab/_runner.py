"""Run many trials: in this process, in several, or on several machines."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import torch

from ._circumstances import name_of
from ._pace import Pace
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

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ValueError(
                f"workers must be 0 or more; got {self.workers}. 0 runs trials in this process."
            )
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads must be 1 or more; got {self.threads}. Or leave it out.")


def run_trials(
    trials: Iterable[Trial],
    settings: RunSettings,
    tell: Told | None = None,
    pool: ProcessPoolExecutor | None = None,
    later: int = 0,
) -> dict[str, dict[str, Any]]:
    """Run the trials that are not in the store yet, and return the rows of all that are now.

    - `tell`: is given a line for every finished trial, with the time that is left.
    - `pool`: processes to use, of `processes`. `later`: trials that will follow these.

    Every finished trial is on disk before its process begins another, so an interruption loses
    no more than what is running, and running the same trials again goes on from there.
    """
    tell = tell or (lambda line: print(line, file=sys.stderr, flush=True))
    wanted = list(dict.fromkeys(trials))
    done = Store(settings.store).rows()
    left = [trial for trial in wanted if trial.identity not in done]
    if len(left) < len(wanted):
        tell(f"{len(wanted) - len(left)} of {len(wanted)} trials are in the store already.")
    pace = Pace(settings.stop_after, settings.began, total=len(left), later=later)
    _recall(pace, done.values(), settings)
    if settings.together:
        left = _run_together(left, settings, pace, tell)
    if settings.engine == Engine.ray:
        from ._ray import run_on_ray

        run_on_ray(left, settings, pace, tell)
    elif settings.workers > 0 and left:
        with nullcontext(pool) if pool else processes(settings) as workers:
            _run_in_processes(left, settings, pace, tell, workers)
    else:
        while (trial := pace.next_of(left)) is not None:
            tell(pace.after(_run_one(trial, settings, settings.devices[0])))
    if pace.done < pace.total:
        tell(f"{pace.total - pace.done} trials were left for another time. Run the same again.")
    rows = Store(settings.store).rows()
    return {trial.identity: rows[trial.identity] for trial in wanted if trial.identity in rows}


def _recall(pace: Pace, rows: Iterable[Mapping[str, Any]], settings: RunSettings) -> None:
    """Teach the pace what the store knows of such devices as these."""
    if settings.stop_after is None:
        return
    ours: set[str] | None = None  # those of a cluster are known by its rows alone
    if settings.engine == Engine.local:
        ours = {name_of(torch.device(each)) for each in settings.devices}
    for row in rows:
        elsewhere = ours is not None and row.get("device", next(iter(ours))) not in ours
        if not elsewhere and {"trial", "seconds"} <= row.keys():
            with suppress(ValueError, TypeError):  # a trial of another version is no guide
                pace.learn(row, row.get("together", 1))


def _run_together(
    trials: Sequence[Trial], settings: RunSettings, pace: Pace, tell: Told
) -> list[Trial]:
    """Run what can be trained as one, and return the rest."""
    from ._together import groups_of, run_together

    groups, rest = groups_of(trials)
    for group in groups:
        if not pace.fits(*group):
            continue
        data = None if settings.data is None else Path(settings.data)
        for row in run_together(group, data, Store(settings.store), device=settings.devices[0]):
            tell(pace.after(row, len(group)))
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
    waiting = list(trials)
    free = [settings.devices[i % len(settings.devices)] for i in range(settings.workers)]
    try:
        while waiting or running:
            while waiting and free:
                trial = pace.next_of(waiting)
                if trial is None:
                    waiting.clear()
                    break
                device = free.pop()
                running[pool.submit(_run_one, trial, settings, device)] = device
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
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed cannot end its workers, which would wait for work for ever."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run_one(trial: Trial, settings: RunSettings, device: str) -> dict[str, Any]:
    from ._run_trial import run_trial

    if device.startswith("cuda"):
        torch.backends.cudnn.benchmark = True
    data = None if settings.data is None else Path(settings.data)
    return run_trial(trial, data, Store(settings.store), device=device)
