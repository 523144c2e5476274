"""The best epoch of a run in Lightning, also of one that was interrupted."""

from functools import cache
from importlib import import_module
from typing import Any

from torch import nn

from ..training._history import Epoch
from ..training._keeper import Keeper
from ..training._selection import Selection
from ._kept_epochs import judged_epochs
from ._lightning_package import package_of


def best_epoch(
    owner: object,
    selection: Selection | None = None,
    *,
    accuracy: str = "val_accuracy",
    error: str = "val_error",
) -> Any:
    """A callback that leaves the model with the weights of the epoch the rule chooses.

    - `owner`: your module or trainer, which says whose callback to make.
    - `selection`: the rule; its `measure` is not used, since your module measures.
    - `accuracy`, `error`: what your validation step logs them as.

    Every `trainer.fit` begins anew, unless it goes on from a checkpoint. Afterwards `best` is the
    epoch that was chosen.
    """
    return _made(package_of(owner), selection or Selection(), accuracy, error)


def _made(package: str, selection: Selection, accuracy: str, error: str) -> Any:
    return _kind(package)(package, selection, accuracy, error)


@cache
def _kind(package: str) -> Any:
    return type("BestEpoch", (_BestEpoch, import_module(package).Callback), {})


class _BestEpoch:
    def __init__(self, package: str, selection: Selection, accuracy: str, error: str) -> None:
        self.package, self.selection = package, selection
        self.names = (accuracy, error)
        self._begin()

    def _begin(self) -> None:
        self.keeper, self.epochs = Keeper(self.selection), list[Epoch]()
        self.best: Epoch | None = None

    def __reduce__(self) -> Any:
        # Its class is made when it is asked for, so a process that is spawned makes it again.
        return _made, (self.package, self.selection, *self.names), vars(self)

    def setup(self, trainer: Any, pl_module: nn.Module, stage: str) -> None:
        """A run begins; one that goes on from a checkpoint is told of it after this."""
        if stage == "fit":
            self._begin()

    def on_validation_end(self, trainer: Any, pl_module: nn.Module) -> None:
        """Take note of an epoch; `trainer.validate` by itself is none."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        missing = [name for name in self.names if name not in trainer.callback_metrics]
        if missing:
            raise ValueError(
                f"the validation step must log {' and '.join(self.names)}; "
                f"got no {missing[0]}. Name what it logs: best_epoch(..., accuracy=..., error=...)."
            )
        right, wrong = (float(trainer.callback_metrics[name]) for name in self.names)
        number = len(self.epochs)
        self.epochs.append(Epoch(number, float("nan"), accuracy=right, error=wrong))
        self.keeper.keep(self.epochs, pl_module)

    def on_train_end(self, trainer: Any, pl_module: nn.Module) -> None:
        """Put back the best."""
        if self.epochs:
            self.best = self.keeper.restore_best(self.epochs, pl_module)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep."""
        judged = [(epoch.accuracy, epoch.error) for epoch in self.epochs]
        return {"epochs": judged, "kept": self.keeper.kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what a checkpoint kept."""
        self.epochs = judged_epochs(state["epochs"])
        self.keeper.kept = state["kept"]
