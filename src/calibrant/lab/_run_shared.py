"""Run a study together with other machines."""

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from ._diverged import error_of
from ._plan import Plan, Rows, plan
from ._run_choices import write_choices
from ._runner import Engine, RunSettings, Told, run_trials
from ._setting import grid_of, setting_of
from ._sharing import Shared
from ._store import Store
from ._study import Budget, Study
from ._trial import Trial
from ._tuning import Tuner

# Seconds between looks at what others have finished.
PATIENCE = 1.0


def run_shared(
    name: str,
    study: Study,
    budget: Budget,
    settings: RunSettings,
    url: str,
    pool: ProcessPoolExecutor | None,
    tell: Told | None,
) -> Plan:
    """Run trials that nobody else does, and wait for the rest.

    Each machine has a store of its own, or all have one on a disk they share. Either way every
    one of them holds all rows in the end, and makes the same choices from them.
    """
    store, tuner = Store(settings.store), Tuner(url)
    with Shared(tuner.optuna, tuner.storage, name) as shared:
        while True:
            shared.fetch(store)
            current = plan(name, study, budget, store.rows())
            write_choices(store, current)
            if not current.missing:
                return current
            ours = shared.take(current.missing, _at_once(settings, current))
            if not ours:
                if _is_late(settings):
                    return current
                time.sleep(PATIENCE)
                continue
            run_trials(ours, settings, tell, pool)
            rows = store.rows()
            for trial in ours:
                shared.finish(trial.identity, rows.get(trial.identity))
            _record(tuner, name, study, budget, current, ours, rows)
            if not any(trial.identity in rows for trial in ours):  # out of time
                return current


def _at_once(settings: RunSettings, current: Plan) -> int:
    """As many as there are processes, so that others find work too."""
    if settings.together or settings.engine == Engine.ray:
        return len(current.missing)
    return max(1, settings.workers)


def _is_late(settings: RunSettings) -> bool:
    spent = time.monotonic() - settings.began
    return settings.stop_after is not None and spent > settings.stop_after


def _record(
    tuner: Tuner,
    name: str,
    study: Study,
    budget: Budget,
    current: Plan,
    ours: Sequence[Trial],
    rows: Rows,
) -> None:
    """What came of the values of a grid that were tried here."""
    assert study.rule is not None or not current.tuning
    for (data, label, setting), tried in current.tuning.items():
        stage = next(each for each in study.arms[label].stages if each.setting == setting)
        for trial in tried:
            if trial in ours and trial.identity in rows and study.rule is not None:
                row = rows[trial.identity]
                tuner.record(
                    f"{name}/{data}/{label}/{setting}",
                    setting,
                    grid_of(stage, budget),
                    setting_of(trial, setting),
                    row["validation"]["none"] if error_of(row) is None else None,
                    study.rule.column,
                )
