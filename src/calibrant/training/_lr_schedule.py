"""When the learning rate moves: after steps, after epochs, or when epochs no longer improve."""

from typing import Any, Literal

from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from ._history import Epoch

Every = Literal["epoch", "step"]


class LearningRate:
    """A schedule of torch's, or none, stepped when its time has come.

    `ReduceLROnPlateau` is told, after each epoch, the calibration error on the validation data,
    or the accuracy if it waits for a maximum.
    """

    def __init__(self, schedule: LRScheduler | None, every: Every, *, validated: bool) -> None:
        if every not in ("epoch", "step"):
            raise ValueError(f"lr_every must be 'epoch' or 'step'; got {every!r}.")
        if isinstance(schedule, ReduceLROnPlateau) and not (validated and every == "epoch"):
            raise ValueError(
                "ReduceLROnPlateau must come with a validation_loader, whose figures it waits "
                f"for, and with lr_every='epoch'; got {'one' if validated else 'none'} and "
                f"{every!r}."
            )
        self.schedule, self.every = schedule, every

    @property
    def kind(self) -> str | None:
        """The class of the schedule, by name."""
        return None if self.schedule is None else type(self.schedule).__name__

    def after_step(self) -> None:
        """A step has been taken."""
        if self.schedule is not None and self.every == "step":
            self.schedule.step()

    def after_epoch(self, epoch: Epoch) -> None:
        """An epoch has been judged."""
        schedule: Any = self.schedule
        if isinstance(schedule, ReduceLROnPlateau):
            schedule.step(epoch.accuracy if schedule.mode == "max" else epoch.error)
        elif schedule is not None and self.every == "epoch":
            schedule.step()
