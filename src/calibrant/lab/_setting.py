"""A setting of a trial that is tuned: its grid, its value, and the trial with another."""

from typing import Any

from ._study import Budget, Stage
from ._trial import Trial


def on_validation(trial: Trial) -> Trial:
    """The trial that settings are compared by: it never opens the test split."""
    return trial.but(seed=0, judged_on="validation", recalibrators=(), shift=(), history_every=None)


def grid_of(stage: Stage, budget: Budget) -> tuple[float, ...]:
    """The values to try: the paper's, or the budget's shorter list."""
    return budget.grids.get(stage.setting, stage.values)


def with_setting(trial: Trial, setting: str, value: Any) -> Trial:
    """The trial with one setting changed, which may be an argument of a part of it."""
    name, dot, argument = setting.partition(".")
    if not dot:
        return trial.but(**{name: value})
    return trial.but(**{name: {**getattr(trial, name), argument: value}})


def setting_of(trial: Trial, setting: str) -> Any:
    """The value of a setting."""
    name, dot, argument = setting.partition(".")
    return getattr(trial, name)[argument] if dot else getattr(trial, name)
