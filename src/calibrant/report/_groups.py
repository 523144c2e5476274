"""The same question for each group of samples, or for each severity of a shift."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from .._checks import check_not_masked
from ..evaluation import Estimate, calibration_tests
from ..evaluation._arrays import Numbers
from ..evaluation._groups import parted
from ._models import Told, named
from ._rows import few_rows_of
from ._settings import Settings

# The most groups that can be read, and the fewest samples that can be judged.
MOST_GROUPS, FEWEST = 40, 20


@dataclass(frozen=True)
class Group:
    """One group: how many samples, its rows by name, and Holm's p-value over all groups.

    - `rows`: empty where there are too few samples to judge.
    - `p_value`: of Kuiper's test, corrected for the number of groups; none where it has none.
    """

    name: str
    count: int
    rows: Mapping[str, Estimate]
    p_value: float | None


def groups_of(told: Told, names: Numbers, settings: Settings) -> list[Group]:
    """Every group with its numbers, the largest first."""
    found = [
        _group(told, name, torch.from_numpy(own), settings)
        for name, own in parted(names, len(told)).items()
    ]
    found.sort(key=lambda one: -one.count)
    return _corrected(found[:MOST_GROUPS])


def severities_of(told: Told, severity: Numbers, settings: Settings) -> list[Group]:
    """Every severity with its numbers, from none to the worst."""
    check_not_masked("severity", severity)
    given = severity.cpu().numpy() if isinstance(severity, Tensor) else np.asarray(severity)
    try:
        numbers = given.astype(float)
    except (TypeError, ValueError) as wrong:
        raise ValueError(
            "severity must hold a number per sample, 0 where nothing was shifted; got text. "
            "For names pass groups."
        ) from wrong
    if not np.isfinite(numbers).all():
        raise ValueError("severity must be finite for every sample; got NaN or infinity.")
    spelt = np.array([f"{x:g}" for x in numbers.reshape(-1)]).reshape(numbers.shape)
    found = groups_of(told, spelt, settings)
    return sorted(found, key=lambda one: float(one.name))


def _group(told: Told, name: str, own: Tensor, settings: Settings) -> Group:
    some = told.some(own)
    if len(own) < FEWEST or not bool(some.mass.any()):
        return Group(named(name), len(own), {}, None)
    return Group(named(name), len(own), few_rows_of(some, settings), _p_value(some, settings.seed))


def _p_value(some: Told, seed: int) -> float | None:
    if some.weights is not None:  # tests are for samples that count alike
        return None
    try:
        events = (some.confidence, some.outcome)
        return calibration_tests(events, draws=2000, seed=seed).kuiper.p_value
    except ValueError:  # every confidence zero or one, and kept
        return None


def _corrected(groups: list[Group]) -> list[Group]:
    """Holm's correction: the k-th smallest of m p-values is multiplied by m - k + 1."""
    tested = sorted((k for k in range(len(groups)) if groups[k].p_value is not None),
                    key=lambda k: groups[k].p_value or 0.0)  # fmt: skip
    found, so_far = list(groups), 0.0
    for place, k in enumerate(tested):
        so_far = max(so_far, min(1.0, (groups[k].p_value or 0.0) * (len(tested) - place)))
        found[k] = replace(groups[k], p_value=so_far)
    return found
