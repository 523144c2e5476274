"""Trials on a Ray cluster; rows come back and are written here, so one disk holds them all."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._store import Store
from ._trial import Trial

if TYPE_CHECKING:
    from ._pace import Pace
    from ._runner import RunSettings


def run_on_ray(
    trials: Sequence[Trial],
    settings: "RunSettings",
    pace: "Pace",
    tell: Callable[[str], object],
) -> None:
    """Run trials on every machine of the cluster, as many at once as there are workers.

    A cluster that runs already is joined (`ray start`, or `RAY_ADDRESS`); otherwise one is
    started here. Every machine must find the data in the same folder. A trial begins only once
    the row of the one before it in its place is on disk.
    """
    ray = _ray()
    gpus = 1 if any(device.startswith("cuda") for device in settings.devices) else 0
    started = not ray.is_initialized()
    if started:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        remote = ray.remote(num_cpus=settings.threads or 1, num_gpus=gpus)(_run_elsewhere)
        store, waiting = Store(settings.store), list(trials)
        running: list[Any] = []
        data = None if settings.data is None else str(settings.data)
        while waiting or running:
            while waiting and len(running) < max(1, settings.workers):
                trial = pace.next_of(waiting)
                if trial is None:
                    waiting.clear()
                    break
                running.append(remote.remote(trial.to_dict(), data, gpus, settings.threads or 1))
            if not running:
                break
            finished, running = ray.wait(running, num_returns=1)
            rows, choices = ray.get(finished[0])
            for choice in choices:
                store.choose(choice.pop("identity"), choice)
            for row in rows:
                store.append(row)
                tell(pace.after(row))
    finally:
        if started:
            ray.shutdown()


def _run_elsewhere(
    trial: dict[str, Any], data: str | None, gpus: int, threads: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A trial with a store of its own, of which everything is sent back."""
    import tempfile
    from pathlib import Path

    import torch

    from ._run_trial import run_trial
    from ._store import read_lines

    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        place = None if data is None else Path(data)
        row = run_trial(
            Trial.from_dict(trial), place, Store(folder), device="cuda" if gpus else "cpu"
        )
        return [row], read_lines(Path(folder) / "selections.jsonl")


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as missing:
        raise ImportError("--engine ray needs Ray: pip install 'calibrant[ray]'") from missing
