"""Train many small models as one: a grid of weights and seeds for little more than one run.

Parameters of all models are stacked, and one vectorised pass computes every model's loss. On a
GPU a small network leaves most of the device idle, so this costs hardly more than one of them.
"""

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ._ensemble import Ensemble
from ._run_trial import Run
from ._store import Store
from ._task import Task, open_task
from ._trial import Trial

# Networks without running statistics or dropout, small enough for one to leave a GPU idle.
SMALL = ("lenet5", "mlp")


def groups_of(trials: Sequence[Trial]) -> tuple[list[list[Trial]], list[Trial]]:
    """Trials that differ only in seed, weight and what they are judged on; and all others.

    >>> base = Trial("mnist", "lenet5", procedure="interleaved", calibration="esd", weight=1.0)
    >>> groups, rest = groups_of([base, base.but(weight=2), base.but(seed=1), base.but(lr=0.1)])
    >>> [len(group) for group in groups], len(rest)
    ([3], 1)
    """
    found: dict[Trial, list[Trial]] = {}
    rest = []
    for trial in trials:
        if _fits(trial):
            alike = trial.but(
                seed=0,
                weight=None if trial.weight is None else 0.0,
                judged_on="test",
                recalibrators=(),
                shift=(),
            )
            found.setdefault(alike, []).append(trial)
        else:
            rest.append(trial)
    rest += [group[0] for group in found.values() if len(group) == 1]
    return [group for group in found.values() if len(group) > 1], rest


def _fits(trial: Trial) -> bool:
    return (
        trial.model in SMALL
        and trial.procedure in ("plain", "joint", "interleaved")
        and trial.weight != "adaptive"
        and trial.calibration_groups is None
        and trial.clip is None
        and trial.precision == "float32"
        and trial.history_every is None
        and not trial.model_settings.get("dropout")
    )


def run_together(
    trials: Sequence[Trial],
    folder: str | os.PathLike[str] | None,
    store: Store,
    *,
    device: torch.device | str = "cpu",
    task: Task | None = None,
) -> Iterator[dict[str, Any]]:
    """Train a group of `groups_of` at once; the rows of all, each in the store when it is yielded.

    Every model sees the batches it would see alone, so its row is the same up to rounding. Only
    `seconds` is the group's, shared out among as many as `together` says. To a kill the whole
    group is one run.
    """
    began = time.monotonic()
    runs = [
        Run(trial, task or open_task(trial, folder, store.splits), store, device)
        for trial in trials
    ]
    histories = Ensemble(runs).train()
    share = (time.monotonic() - began) / len(runs)
    for run, history in zip(runs, histories, strict=True):
        run.began = time.monotonic() - share
        try:
            if history is None:
                raise FloatingPointError("the loss must be finite; it was not. Lower the rate.")
            figures = run.finish(history)
        except FloatingPointError as wrong:
            figures = {"error": str(wrong)}
        yield run.record(figures | {"together": len(runs)})
