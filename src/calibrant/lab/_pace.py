"""How fast trials finish, how long the rest will take, and which may still begin."""

import time
from collections.abc import Mapping
from typing import Any

from ._diverged import error_of
from ._trial import Trial


class Pace:
    """Of a run of `total` trials, which ends `stop_after` seconds after it `began`, if ever.

    - `later`: trials that follow once these are done, which the time left includes.
    """

    def __init__(self, stop_after: float | None, began: float, total: int, later: int = 0) -> None:
        self.stop_after, self.began, self.total, self.later = stop_after, began, total, later
        self.done = 0
        self._entered = time.monotonic()
        self._per_epoch: dict[tuple[str, ...], float] = {}

    def learn(self, row: Mapping[str, Any], together: int = 1) -> None:
        """Take note of how long a finished trial took, alone or as one of some `together`."""
        if error_of(row) is not None:  # it ended early, and tells nothing of those that do not
            return
        trial = Trial.from_dict(row["trial"])
        kind, pace = _kind(trial, together), row["seconds"] / trial.epochs
        # The last of a kind is the best guess at the next; of an unknown kind, the slowest is.
        self._per_epoch[kind] = pace
        self._per_epoch[kind[:3]] = max(pace, self._per_epoch.get(kind[:3], 0.0))

    def after(self, row: Mapping[str, Any], together: int = 1) -> str:
        """Learn from a trial that has just finished, and say so with the time left."""
        self.done += 1
        self.learn(row, together)
        trial = Trial.from_dict(row["trial"])
        left = self.total - self.done + self.later
        rest = (time.monotonic() - self._entered) / self.done * left
        then = f" and {self.later} to come" if self.later else ""
        return f"{self.done} of {self.total}{then}, {duration(rest)} left: {trial}: {_result(row)}"

    def next_of(self, waiting: list[Trial]) -> Trial | None:
        """Take the first trial from the list that will probably finish in time, if one will."""
        for place, trial in enumerate(waiting):
            if self.fits(trial):
                return waiting.pop(place)
        return None

    def fits(self, *trials: Trial) -> bool:
        """Whether a trial, or several trained as one, will probably finish in time from now."""
        if self.stop_after is None:
            return True
        seconds = 1.1 * sum(self._share(trial, len(trials)) for trial in trials)
        return time.monotonic() - self.began + seconds <= self.stop_after

    def _share(self, trial: Trial, together: int) -> float:
        """The seconds of one trial; where several are trained as one, its share of theirs."""
        kind = _kind(trial, together)
        slowest = self._per_epoch.get(kind[:3], 0.0)
        return trial.epochs * self._per_epoch.get(kind, slowest)


def _kind(trial: Trial, together: int) -> tuple[str, ...]:
    """What the time of an epoch depends on most."""
    how = "together" if together > 1 else "alone"
    return trial.data, trial.model, how, trial.procedure, "leak" if trial.leak else ""


def _result(row: Mapping[str, Any]) -> str:
    wrong = error_of(row)
    if wrong is not None:
        return wrong
    split = "test" if "test" in row else "validation"
    figures = row[split]["none"]
    return (
        f"accuracy {figures['accuracy']:.2%}, ECE {figures['ece20']:.2%} on {split} data, "
        f"{duration(row['seconds'])}"
    )


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(0.0321), duration(12.3), duration(340.0)
    ('32 ms', '12 s', '6 min')
    """
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
