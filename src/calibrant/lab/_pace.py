"""How fast trials finish, how long the rest will take, and which may still begin."""

import time
from typing import Any

from ._trial import Trial


class Pace:
    """Of a run of `total` trials, which ends `stop_after` seconds after it `began`, if ever."""

    def __init__(self, stop_after: float | None, began: float, total: int) -> None:
        self.stop_after, self.began, self.total, self.done = stop_after, began, total, 0
        self._entered = time.monotonic()
        self._per_epoch: dict[tuple[str, ...], float] = {}

    def after(self, row: dict[str, Any]) -> str:
        """Take note of a finished trial, and say so with the time left."""
        self.done += 1
        trial = Trial.from_dict(row["trial"])
        kind, pace = _kind(trial), row["seconds"] / trial.epochs
        # The last of a kind is the best guess at the next; of an unknown kind, the slowest is.
        self._per_epoch[kind] = pace
        self._per_epoch[kind[:2]] = max(pace, self._per_epoch.get(kind[:2], 0.0))
        rest = (time.monotonic() - self._entered) / self.done * (self.total - self.done)
        return f"{self.done} of {self.total}, {_minutes(rest)} left: {trial}: {_result(row)}"

    def next_of(self, waiting: list[Trial]) -> Trial | None:
        """Take the first trial from the list that will probably finish in time, if one will."""
        for place, trial in enumerate(waiting):
            if self.fits(trial):
                return waiting.pop(place)
        return None

    def fits(self, trial: Trial) -> bool:
        """Whether a trial that begins now will probably finish in time."""
        if self.stop_after is None:
            return True
        kind = _kind(trial)
        slowest = self._per_epoch.get(kind[:2], 0.0)
        seconds = 1.1 * trial.epochs * self._per_epoch.get(kind, slowest)
        return time.monotonic() - self.began + seconds <= self.stop_after


def _kind(trial: Trial) -> tuple[str, ...]:
    """What the time of an epoch depends on most."""
    return trial.data, trial.model, trial.procedure, "leak" if trial.leak else ""


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
