"""Run a study: tune, write down what was chosen, train the finals, test them."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ._database import is_database
from ._diverged import error_of
from ._plan import Plan, plan
from ._run_choices import write_choices
from ._runner import Engine, RunSettings, processes, run_trials
from ._setting import grid_of, setting_of
from ._store import Store
from ._study import Budget, Study
from ._to_come import to_come
from ._trial import Trial

Tell = Callable[[str], object]


def run_study(
    name: str,
    study: Study,
    budget: Budget,
    settings: RunSettings,
    *,
    storage: str | os.PathLike[str] | None = None,
    tell: Tell | None = None,
) -> Plan:
    """Run what is missing until nothing is, or until `settings.stop_after`; again to go on.

    - `storage`: of the searches, by default a journal beside the rows, where Optuna is installed.
      The URL of a database, such as `postgresql://user@host/name`, also deals the trials out to
      all machines that run the study with it, and hands their rows round.

    Settings are compared by trials that never open the test split. What the rule chose is
    written to the store before any trial that is tested begins.
    """
    store = Store(settings.store)
    with _workers(settings) as pool:
        if storage is not None and is_database(storage):
            from ._run_shared import run_shared  # Optuna, which not every machine has

            return run_shared(name, study, budget, settings, str(storage), pool, tell)
        untold = storage is None and not _has_optuna()
        while True:
            current = plan(name, study, budget, store.rows())
            if untold and _open_stages(current):
                untold = False
                if tell is not None:
                    tell("Without Optuna no journal of searches is kept: rows say all that counts.")
            write_choices(store, current)
            if not current.missing:
                return current
            before = len(store.rows())
            searches = _asked(name, study, budget, current, settings, storage)
            later = to_come(study, budget, current)
            run_trials(current.missing, settings, tell, pool, later)
            for search in searches:
                search.finish(store.rows())
            if len(store.rows()) == before:  # out of time
                return current


@contextmanager
def _workers(settings: RunSettings) -> Iterator[ProcessPoolExecutor | None]:
    """One set of processes, or one cluster, for all rounds: starting them takes seconds."""
    if settings.engine == Engine.ray:
        from ._ray import cluster  # Ray, which not every machine has

        with cluster():
            yield None
    elif settings.workers == 0:
        yield None
    else:
        with processes(settings) as pool:
            yield pool


def _has_optuna() -> bool:
    """Whether somebody is there to keep a journal, from which nothing is chosen anyway."""
    return find_spec("optuna") is not None


def _open_stages(current: Plan) -> dict[tuple[str, str, str], list[Trial]]:
    """What is searched now."""
    wanted = set(current.missing)
    return {key: trials for key, trials in current.tuning.items() if wanted.intersection(trials)}


class _Search:
    """One stage in the journal: asked before its trials run, told afterwards."""

    def __init__(
        self, tuner: Any, name: str, setting: str, values: tuple[float, ...], trials: list[Trial]
    ) -> None:
        self.tuner, self.name, self.setting, self.values = tuner, name, setting, values
        self.numbers = tuner.ask(name, setting, values)
        self.trials = trials
        self.column = "ece20"

    def finish(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        for trial in self.trials:
            value = setting_of(trial, self.setting)
            row = rows.get(trial.identity)
            if row is None or value not in self.numbers:
                continue
            figures = row["validation"]["none"] if error_of(row) is None else None
            place = (self.name, self.setting, self.values, self.numbers[value])
            self.tuner.tell(*place, figures, self.column)


def _asked(
    name: str,
    study: Study,
    budget: Budget,
    current: Plan,
    settings: RunSettings,
    storage: str | os.PathLike[str] | None,
) -> list[_Search]:
    open_stages = _open_stages(current)
    if not open_stages or (storage is None and not _has_optuna()):
        return []
    from ._tuning import Tuner

    tuner = Tuner(storage or Path(settings.store) / "optuna.journal")
    searches = []
    for (data, label, setting), trials in open_stages.items():
        stage = next(each for each in study.arms[label].stages if each.setting == setting)
        search = _Search(
            tuner, f"{name}/{data}/{label}/{setting}", setting, grid_of(stage, budget), trials
        )
        assert study.rule is not None
        search.column = study.rule.column
        searches.append(search)
    return searches
