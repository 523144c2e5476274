"""Searches by Optuna, in a journal file or, for many machines, in a PostgreSQL database."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from ._database import is_database, open_database
from ._diverged import error_of
from ._journal_lock import JournalLock
from ._setting import with_setting
from ._trial import Trial

# Beside a failed trial of a search: why.
_DIVERGED = "diverged"


class Tuner:
    """Which value of a setting is tried next, and what came of it.

    - `storage`: the path of a journal file, or the URL of a database such as
      `postgresql://user@host/name`, which many machines may share.

    The journal serves to look at a search, as with optuna-dashboard, and to share it. What is
    chosen in the end follows from the rows of the store and the paper's rule.
    """

    def __init__(self, storage: str | os.PathLike[str]) -> None:
        self.optuna = _optuna()
        self._shared = is_database(storage)
        if self._shared:
            self.storage = open_database(self.optuna, str(storage))
        else:
            journal: Any = import_module("optuna.storages.journal")
            path = Path(storage).absolute()
            backend = journal.JournalFileBackend(str(path), JournalLock(path))
            self.storage = self.optuna.storages.JournalStorage(backend)

    def ask(self, search: str, setting: str, values: Sequence[float]) -> dict[float, int]:
        """The values of a grid that have no result yet, each with the number of its trial."""
        study = self._grid(search, setting, values)
        self._give_up_interrupted(study)
        states = self.optuna.trial.TrialState
        told = study.get_trials()
        # Complete, or being run by somebody else.
        taken = {each.params.get(setting) for each in told if each.state != states.FAIL}
        tried = {each.params.get(setting) for each in told}
        asked: dict[float, int] = {}
        # What was never tried is the sampler's to deal out; what failed is asked for by name.
        for value in [None] * len(set(values) - tried) + sorted((set(values) & tried) - taken):
            if value is not None:
                study.enqueue_trial({setting: value})
            with self._unless_ended():
                trial = study.ask()
                asked[trial.suggest_categorical(setting, list(values))] = trial.number
        return asked

    def tell(
        self,
        search: str,
        setting: str,
        values: Sequence[float],
        number: int,
        figures: Mapping[str, float] | None,
        column: str,
    ) -> None:
        """What came of a trial: its figures on validation data, or nothing if it diverged."""
        study = self._grid(search, setting, values)
        with self._unless_ended():
            if figures is None:
                study.tell(number, state=self.optuna.trial.TrialState.FAIL, skip_if_finished=True)
                return
            known = {each.number: each._trial_id for each in study.get_trials(deepcopy=False)}
            study._storage.set_trial_user_attr(known[number], "accuracy", figures["accuracy"])
            study.tell(number, figures[column], skip_if_finished=True)

    def record(
        self,
        search: str,
        setting: str,
        values: Sequence[float],
        value: float,
        figures: Mapping[str, float] | None,
        column: str,
    ) -> None:
        """A value that was tried without being asked for, since another machine dealt it out."""
        optuna, given = self.optuna, list(values)
        self._grid(search, setting, values).add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState["FAIL" if figures is None else "COMPLETE"],
                value=None if figures is None else figures[column],
                params={setting: value},
                distributions={setting: optuna.distributions.CategoricalDistribution(given)},
                user_attrs={} if figures is None else {"accuracy": figures["accuracy"]},
            )
        )

    def search(
        self,
        name: str,
        trial: Trial,
        setting: str,
        span: tuple[float, float],
        run: Callable[[Trial], Mapping[str, Any]],
        *,
        trials: int,
        column: str,
        seed: int = 0,
    ) -> list[tuple[float, Mapping[str, Any]]]:
        """Look for the best value between two bounds, on a logarithmic scale; all that were tried.

        - `run`: runs a trial and returns its row. `column`: the error to be low.

        A trial that diverges counts as one of them; Optuna is told that it failed, and it is left
        out of the answer.
        """
        study = self.optuna.create_study(
            study_name=name,
            storage=self.storage,
            sampler=self.optuna.samplers.TPESampler(seed=seed),
            load_if_exists=True,
        )
        self._give_up_interrupted(study)
        states = self.optuna.trial.TrialState
        tried: list[tuple[float, Mapping[str, Any]]] = []
        while sum(map(self._has_ended, study.get_trials())) < trials:
            asked = study.ask()
            value = asked.suggest_float(setting, *span, log=True)
            row = run(with_setting(trial, setting, value))
            wrong = error_of(row)
            if wrong is not None:
                asked.set_user_attr(_DIVERGED, wrong)
                study.tell(asked, state=states.FAIL)
                continue
            study.tell(asked, row["validation"]["none"][column])
            tried.append((value, row))
        return tried

    def _has_ended(self, told: Any) -> bool:
        """With a figure, or without since it diverged; not one that a kill interrupted."""
        complete = self.optuna.trial.TrialState.COMPLETE
        return bool(told.state == complete or _DIVERGED in told.user_attrs)

    def _grid(self, search: str, setting: str, values: Sequence[float]) -> Any:
        class Grid(self.optuna.samplers.GridSampler):  # type: ignore[misc, name-defined]
            def after_trial(self, *_: Any) -> None:
                """The sampler would stop a loop of Optuna's once all is tried; ours ends itself."""

        return self.optuna.create_study(
            study_name=search,
            storage=self.storage,
            sampler=Grid({setting: list(values)}),
            load_if_exists=True,
        )

    def _give_up_interrupted(self, study: Any) -> None:
        """Trials that a kill left running in a journal of our own.

        If another process is at them after all, its figures are in the rows of the store, and the
        journal has them from whoever ends the trial that is asked for in their place.
        """
        if self._shared:
            return
        states = self.optuna.trial.TrialState
        for each in study.get_trials(states=[states.RUNNING]):
            with self._unless_ended():
                study.tell(each.number, state=states.FAIL, skip_if_finished=True)

    def _unless_ended(self) -> AbstractContextManager[None]:
        """Another process of the same store may end a trial at any moment; then it is ended."""
        return suppress(self.optuna.exceptions.UpdateFinishedTrialError)


def _optuna() -> Any:
    try:
        optuna: Any = import_module("optuna")
    except ImportError as missing:
        raise ImportError("tuning needs Optuna: pip install 'calibrant[lab]'") from missing
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
