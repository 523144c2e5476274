"""Trials on a Ray cluster; rows come back and are written here, so one disk holds them all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._writing import written_whole
from ._store import Store
from ._trial import Trial

if TYPE_CHECKING:
    from ._pace import Pace
    from ._runner import RunSettings


@contextmanager
def cluster() -> Iterator[Any]:
    """Ray, with a cluster for as long as this lasts: starting one takes many seconds.

    One that runs already is joined (`ray start`, or `RAY_ADDRESS`); otherwise one is started here
    and ends with it. Within another such context it is that context's.
    """
    ray = _ray()
    started = not ray.is_initialized()
    if started:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()


def run_on_ray(
    trials: Sequence[Trial],
    settings: "RunSettings",
    pace: "Pace",
    tell: Callable[[str], object],
) -> None:
    """Run trials on every machine of the cluster, as many at once as there are workers.

    Every machine must find the data in the same folder, and draws the same splits from them. A
    trial begins only once the row of the one before it in its place is on disk.
    """
    gpus = 1 if any(device.startswith("cuda") for device in settings.devices) else 0
    with cluster() as ray:
        remote = ray.remote(num_cpus=settings.threads or 1, num_gpus=gpus)(_run_elsewhere)
        store, waiting = Store(settings.store), list(trials)
        running: list[Any] = []
        data = None if settings.data is None else str(Path(settings.data).absolute())
        while waiting or running:
            while waiting and len(running) < max(1, settings.workers):
                trial = pace.next_of(waiting)
                if trial is None:
                    waiting.clear()
                    break
                kept = _splits(store, f"{trial.data}-seed-{trial.seed}.*")
                running.append(
                    remote.remote(trial.to_dict(), data, gpus, settings.threads or 1, kept)
                )
            if not running:
                break
            finished, running = ray.wait(running, num_returns=1)
            rows, choices, drawn = _answer(ray, finished[0], pace)
            _keep(store, drawn)
            for choice in choices:
                store.choose(choice.pop("identity"), choice)
            for row in rows:
                store.append(row)
                tell(pace.after(row))


def _answer(ray: Any, finished: Any, pace: "Pace") -> Any:
    """What a trial sent back, or its own error instead of Ray's pages about it."""
    try:
        return ray.get(finished)
    except ray.exceptions.RayTaskError as wrong:
        raise wrong.cause from wrong
    except ray.exceptions.RayError as wrong:
        raise ChildProcessError(
            f"a worker of the cluster died, after {pace.done} of {pace.total} trials: "
            f"{str(wrong).splitlines()[0].rstrip('.')}. What was finished is kept: run the same "
            "again."
        ) from wrong


def _run_elsewhere(
    trial: dict[str, Any], data: str | None, gpus: int, threads: int, kept: dict[str, bytes]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, bytes]]:
    """A trial with a store of its own, of which everything is sent back.

    - `kept`: files of splits that have been drawn already.
    """
    import tempfile

    import torch

    from ._run_trial import run_trial
    from ._store import read_lines

    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        place, store = None if data is None else Path(data), Store(folder)
        _keep(store, kept)
        row = run_trial(Trial.from_dict(trial), place, store, device="cuda" if gpus else "cpu")
        return [row], read_lines(Path(folder) / "selections.jsonl"), _splits(store, "*")


def _splits(store: Store, names: str) -> dict[str, bytes]:
    """Files of splits by name."""
    return {path.name: path.read_bytes() for path in store.splits.glob(names)}


def _keep(store: Store, drawn: Mapping[str, bytes]) -> None:
    """Write files of splits; two machines that drew one differently have different data."""
    for name, content in drawn.items():
        path = store.splits / name
        if not path.exists():
            store.splits.mkdir(exist_ok=True)
            with written_whole(path) as file:
                file.write(content)
        elif path.read_bytes() != content:
            raise ValueError(
                f"every machine must have the same data; two drew {name} differently from theirs. "
                "Copy the data sets from one to the others, and name another store."
            )


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as missing:
        raise ImportError("--engine ray needs Ray: pip install 'calibrant[ray]'") from missing
