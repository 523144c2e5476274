"""The loop that every procedure shares: epochs, steps, checkpoints, the best epoch."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from ._checkpoint import Checkpoint, check_one_file, check_same_run
from ._history import Epoch, History
from ._identity import told_of
from ._interleave import Interleaved
from ._keeper import Keeper
from ._loaders import check_same_lengths, check_workers
from ._lr_schedule import Every, LearningRate
from ._parallel import gathered, is_first, is_sharded
from ._preconditions import check_count
from ._progress import progress_bar
from ._random import random_state, restore_random_state
from ._step import Part, Step
from ._validation import Validation
from ._weight import Weight


class Loop:
    """A run: its parts, and its place in the data.

    - `procedure`: its name, which a checkpoint must share.
    - `draws`: what each step is trained on.
    - `parts_of`: the forward passes of a step, given its batches.
    - `criteria`: what is descended, by the name it has in a sentence. A run that goes on must have
      the same, and what they know, if they are modules, is kept.
    - `after_step`: what the procedure does once a step has been taken.
    """

    def __init__(
        self,
        procedure: str,
        step: Step,
        draws: Interleaved,
        parts_of: Callable[[Any, Any], Sequence[Part]],
        *,
        criteria: Mapping[str, Any],
        weight: Weight | None = None,
        after_step: Callable[[int], None] = lambda step: None,
        lr_schedule: LRScheduler | None,
        lr_every: Every,
        validation: Validation | None,
        checkpoint: str | os.PathLike[str] | None,
        checkpoint_every: int | None,
    ) -> None:
        self.lr = LearningRate(lr_schedule, lr_every, validated=validation is not None)
        check_count("checkpoint_every", checkpoint_every)
        if is_sharded(step.model) and not (checkpoint is None and validation is None):
            raise ValueError(
                "checkpoint and validation_loader must be None for a model in shards, whose "
                "weights no process has; got one of them. Keep the weights with "
                "torch.distributed.checkpoint, from after_epoch."
            )
        self.procedure, self.step, self.draws, self.parts_of = procedure, step, draws, parts_of
        self.criteria, self.weight, self.after_step = criteria, weight, after_step
        if checkpoint is not None:
            for stream in draws.streams:
                check_workers(stream.loader)
        if validation is not None:
            validation.check(step.together)
        self.validation = validation
        self.keeper = None if validation is None else Keeper(validation.selection)
        self.checkpoint = None if checkpoint is None else Checkpoint(checkpoint)
        self.checkpoint_every = checkpoint_every
        self.history = History()
        self.steps = 0
        self.sums: dict[str, tuple[float, int]] = {}

    @property
    def model(self) -> nn.Module:
        """What is trained."""
        return self.step.model

    def run(
        self, epochs: int, progress: bool | None, after_epoch: Callable[[Epoch], object] | None
    ) -> History:
        """Train until `epochs` epochs are done, from the checkpoint if there is one."""
        check_count("epochs", epochs)
        self._resume(epochs)
        with progress_bar(self._steps_of(epochs), self.steps, progress) as show:
            while len(self.history.epochs) < epochs:
                number = len(self.history.epochs)
                check_same_lengths(self.draws.lengths, self.step.together)
                for batch, held_out in self.draws:
                    at = f"step {self.steps} in epoch {number}"
                    values = self.step(self.parts_of(batch, held_out), at)
                    self.after_step(self.steps)
                    self.steps += 1
                    self._add(values)
                    self.lr.after_step()
                    if self.checkpoint_every and self.steps % self.checkpoint_every == 0:
                        self._write()
                    shown = "fit" if "fit" in values else "calibration"
                    show(f"epoch {number}, {shown} {values[shown]:.3f}")
                self._finish_epoch(number)
                self.lr.after_epoch(self.history.epochs[-1])
                if after_epoch is not None:
                    after_epoch(self.history.epochs[-1])
                self._write()
        return self._chosen()

    def _add(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            total, count = self.sums.get(name, (0.0, 0))
            self.sums[name] = (total + value, count + 1)

    def _finish_epoch(self, number: int) -> None:
        means = {name: total / count for name, (total, count) in self.sums.items()}
        self.sums = {}
        weight = None if self.weight is None else self.weight.value
        judged = {}
        if self.validation is not None:
            accuracy, error = self.validation.measure(self.model, number)
            judged = {"accuracy": accuracy, "error": error}
        self.history.epochs.append(Epoch(number, **means, weight=weight, **judged))
        if self.keeper is not None:
            self.keeper.keep(self.history.epochs, self.model)

    def _chosen(self) -> History:
        self.history.best = self.history.epochs[-1]
        if self.keeper is not None:
            self.history.best = self.keeper.restore_best(self.history.epochs, self.model)
            self.history.rule = str(self.keeper.selection)
        return self.history

    def _steps_of(self, epochs: int) -> int | None:
        try:
            return epochs * len(self.draws)
        except TypeError:  # a loader that does not know its length
            return None

    def _keepers(self) -> dict[str, Any]:
        """Everything with a state of its own, by the name it has in a checkpoint."""
        own = {
            "model": self.model,
            "optimiser": self.step.optimiser,
            "scaler": self.step.scaler,
            "lr_schedule": self.lr.schedule,
            "weight": self.weight,
        }
        keepers = {name: keeper for name, keeper in own.items() if keeper is not None}
        return keepers | self._modules()

    def _modules(self) -> dict[str, nn.Module]:
        """Modules that are trained or consulted, and what else the optimiser moves."""
        modules = {name: own for name, own in self.criteria.items() if isinstance(own, nn.Module)}
        models = {id(each) for each in self.model.parameters()}
        moved = (each for group in self.step.optimiser.param_groups for each in group["params"])
        others = nn.ParameterList(each for each in moved if id(each) not in models)
        return {"model": self.model, "other parameters": others} | modules

    def _write(self) -> None:
        if self.checkpoint is None:
            return
        ranks = gathered(
            {"draws": self.draws.state_dict(), "random": random_state()}, self.step.together
        )
        if not self.step.together or is_first():
            self.checkpoint.write(
                {
                    "run": self._told(),
                    **{name: keeper.state_dict() for name, keeper in self._keepers().items()},
                    "steps": self.steps,
                    "sums": self.sums,
                    "epochs": [asdict(epoch) for epoch in self.history.epochs],
                    "kept": {} if self.keeper is None else self.keeper.kept,
                    "ranks": ranks,
                }
            )

    def _told(self) -> dict[str, Any]:
        return told_of(
            self.procedure, self.step, self.criteria, self.weight, self.lr, self.validation
        )

    def _resume(self, epochs: int) -> None:
        if self.checkpoint is None:
            return
        state = self.checkpoint.read()
        check_one_file(None if state is None else state["steps"], self.step.together)
        if state is None:
            return
        check_same_run(state, self._told(), self._modules())
        begun = len(state["epochs"]) + bool(state["sums"])
        if epochs < begun:
            raise ValueError(
                f"epochs must count those the checkpoint has begun, {begun}; got {epochs}. "
                f"Pass epochs={begun} or more, or name another file to begin anew."
            )
        for name, keeper in self._keepers().items():
            keeper.load_state_dict(state[name])
        self.steps = state["steps"]
        self.sums = {name: (total, count) for name, (total, count) in state["sums"].items()}
        self.history.epochs = [Epoch(**epoch) for epoch in state["epochs"]]
        if self.keeper is not None:
            self.keeper.kept = state["kept"]
        place = state["ranks"][dist.get_rank() if self.step.together else 0]
        self.draws.load_state_dict(place["draws"])
        restore_random_state(place["random"])
