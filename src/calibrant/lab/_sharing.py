"""Trials dealt out to many machines, and their rows handed round, by a database they share."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from ._store import Store
from ._trial import Trial

# Seconds between signs of life, and after how many without one a machine counts as dead.
BEAT = 10.0
DEAD = 6 * BEAT


class Shared:
    """Which trials are whose, in a study of Optuna's that every machine writes to.

    - `optuna`: the module. `storage`: of a database. `name`: of the study.

    A trial belongs to whoever adds it first: the database numbers what is added under a lock, so
    first means the same to all. While it runs its owner gives signs of life; once they stop,
    somebody else may take it. A finished trial carries its row, and its value is its seconds, so
    that every machine ends with all rows in a store of its own.

    Used as a context: signs of life end with it, and what is not finished is given back.
    """

    def __init__(self, optuna: Any, storage: Any, name: str) -> None:
        self._optuna, self._storage = optuna, storage
        self._states = optuna.trial.TrialState
        self._study = optuna.create_study(
            study_name=f"{name}/trials", storage=storage, load_if_exists=True
        )
        self._id = storage.get_study_id_from_name(f"{name}/trials")
        self._mine: dict[str, int] = {}
        self._seen: dict[int, tuple[Any, float]] = {}
        self._over = threading.Event()
        self._pulse = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Shared":
        self._pulse.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        wrong: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._pulse.join()
        for identity in list(self._mine):
            self.finish(identity, None)

    def take(self, trials: Sequence[Trial], at_most: int) -> list[Trial]:
        """The first few that nobody runs or has finished; from now on they are ours."""
        self._bury()
        taken = self._owners()
        ours: list[Trial] = []
        for trial in trials:
            if len(ours) == at_most:
                break
            if trial.identity in taken:
                continue
            template = self._optuna.trial.create_trial(
                state=self._states.RUNNING,
                user_attrs={"identity": trial.identity, "trial": str(trial)},
            )
            place = self._storage.create_new_trial(self._id, template)
            if self._owners()[trial.identity] == place:
                self._mine[trial.identity] = place
                ours.append(trial)
            else:  # somebody was quicker
                self._end(place, self._states.FAIL)
        return ours

    def finish(self, identity: str, row: Mapping[str, Any] | None) -> None:
        """Hand the row of a trial of ours to the others, or the trial back to them."""
        place = self._mine.pop(identity)
        if row is None:
            self._end(place, self._states.FAIL)
            return
        try:
            self._storage.set_trial_user_attr(place, "row", dict(row))
        except self._optuna.exceptions.UpdateFinishedTrialError:
            return  # we were thought dead, and somebody else has it now
        self._end(place, self._states.COMPLETE, [row["seconds"]])

    def fetch(self, store: Store) -> None:
        """Rows that other machines have finished, into our store."""
        known = store.rows()
        for each in self._study.get_trials(deepcopy=False, states=[self._states.COMPLETE]):
            if each.user_attrs["identity"] not in known:
                store.append(each.user_attrs["row"])

    def _owners(self) -> dict[str, int]:
        """Of each trial that is being run or finished, who was first."""
        live = (self._states.RUNNING, self._states.COMPLETE)
        owners: dict[str, int] = {}
        for each in self._study.get_trials(deepcopy=False, states=live):  # in order of number
            owners.setdefault(each.user_attrs["identity"], each._trial_id)
        return owners

    def _end(self, place: int, state: Any, values: list[float] | None = None) -> None:
        # Unless somebody else has ended it.
        with suppress(self._optuna.exceptions.UpdateFinishedTrialError):
            self._storage.set_trial_state_values(place, state, values)

    def _bury(self) -> None:
        """Free what machines left that have given no sign of life for a while, by our clock."""
        now = time.monotonic()
        for each in self._study.get_trials(deepcopy=False, states=[self._states.RUNNING]):
            sign = each.user_attrs.get("alive")
            last, since = self._seen.get(each._trial_id, (None, now))
            if sign != last or each._trial_id not in self._seen:
                self._seen[each._trial_id] = (sign, now)
            elif now - since > DEAD:
                self._end(each._trial_id, self._states.FAIL)

    def _beat(self) -> None:
        count, wrong = 0, self._optuna.exceptions
        while not self._over.wait(BEAT):
            count += 1
            for place in list(self._mine.values()):
                # It may be finished between two beats, and a server may be away for a while.
                with suppress(wrong.UpdateFinishedTrialError, wrong.StorageInternalError):
                    self._storage.set_trial_user_attr(place, "alive", count)
