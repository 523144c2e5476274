"""Which study, which part of it, and on which devices."""

from dataclasses import replace

import torch

from .._checks import did_you_mean
from ..lab import STUDIES, Plan, Study
from ..lab._to_come import to_come
from ._named import check_named


def study_called(name: str) -> Study:
    """The study of that name, or a sentence on which there are."""
    if name not in STUDIES:
        raise ValueError(
            f"NAME must be a study; got {name!r}. There are {', '.join(STUDIES)}."
            f"{did_you_mean(name, STUDIES)}"
        )
    return STUDIES[name]


def study_at(name: str, budget: str, only: list[str] | None = None) -> Study:
    """The study of that name with one of its budgets, cut down to some data sets."""
    study = study_called(name)
    if not study.budgets:
        raise ValueError(
            f"{name} draws functions and trains nothing; draw it: calibrant study render {name} "
            "--results FOLDER"
        )
    if budget not in study.budgets:
        there, near = ", ".join(study.budgets), did_you_mean(budget, study.budgets)
        raise ValueError(f"--budget must be one of the study's: {there}; got {budget!r}.{near}")
    if not only:
        return study
    whole = study.budgets[budget]
    pairs = tuple(pair for pair in whole.pairs if pair[0] in only)
    unknown = sorted(set(only) - {data for data, _ in whole.pairs})
    if unknown:
        check_named("--data-set", unknown[0], [data for data, _ in whole.pairs])
    return replace(study, budgets={**study.budgets, budget: replace(whole, pairs=pairs)})


def devices(given: str | None) -> tuple[str, ...]:
    """Those that were named, or the GPU if there is one."""
    if given is None:
        given = "cuda" if torch.cuda.is_available() else "cpu"
    names = tuple(given.split(","))
    for name in names:
        try:
            torch.empty(0, device=name)
        except (RuntimeError, AssertionError) as wrong:
            raise ValueError(
                f"device must be one that this machine has, such as cpu; got {name!r}. "
                "See calibrant doctor."
            ) from wrong
    return names


def trials(study: Study, budget: str) -> int:
    """How many trials there are in all: every value of every grid, the baseline, the finals."""
    return to_come(study, study.budgets[budget], Plan())
