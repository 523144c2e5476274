"""Criteria that are rows of `evaluate`, whatever their bins: from a name, and back."""

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from typing import Any, NamedTuple

from ..criteria import Criterion, class_wise, per_class, top_label
from ..criteria._lifts import Lift
from ..measures import (
    MEASURES,
    debiased_ece,
    ece,
    esd,
    ks_error,
    label_binned_ece,
    mce,
    mmce,
    smooth_ece,
    sweep_ece,
)
from ..scores import SCORES

BINS = 15
BY_CLASS = ("class_wise_ece", "marginal_ece", "per_class_ece")

_ROOT_MEAN_SQUARE = partial(ece, norm=2, binning="mass")
# Everything with bins takes how many by keyword.
_BINNED: dict[str, Callable[[int], Criterion]] = {
    "ece": lambda bins: top_label(partial(ece, bins=bins)),
    "ece_l2": lambda bins: top_label(partial(ece, bins=bins, norm=2)),
    "mce": lambda bins: top_label(partial(mce, bins=bins)),
    "ece_mass": lambda bins: top_label(partial(ece, bins=bins, binning="mass")),
    "ece_mass_l2": lambda bins: top_label(partial(_ROOT_MEAN_SQUARE, bins=bins)),
    "label_binned_ece": lambda bins: top_label(partial(label_binned_ece, bins=bins)),
    "debiased_ece": lambda bins: top_label(partial(debiased_ece, bins=bins)),
    "class_wise_ece": lambda bins: class_wise(partial(ece, bins=bins)),
    "marginal_ece": lambda bins: class_wise(partial(_ROOT_MEAN_SQUARE, bins=bins), norm=2),
    "per_class_ece": lambda bins: per_class(partial(ece, bins=bins)),
}
_WITHOUT_BINS: dict[str, Criterion] = {
    measure.__name__: top_label(measure) for measure in (sweep_ece, smooth_ece, ks_error, esd, mmce)
}

ROWS = (*_BINNED, *_WITHOUT_BINS)
"""Errors that `evaluate` has, and draws along rays of truths."""

_SCORES = ("accuracy", "nll", "brier")
FAST = (*_SCORES, *ROWS)
"""What takes hardly longer of many samples."""

OF_EVENTS = tuple(name for name in FAST if name not in BY_CLASS)
"""What can be told where only confidence and outcome are known."""

NAMES = (*dict.fromkeys((*SCORES, *MEASURES, *ROWS)),)
"""All that `named` knows."""


class Known(NamedTuple):
    """The row that a criterion is, and in how many bins."""

    row: str
    bins: int = BINS


def named(name: str, bins: int = BINS) -> Criterion:
    """The criterion of a row, or of the catalogue.

    >>> named("ece_l2", 30)
    TopLabel(partial(ece, bins=30, norm=2))
    """
    catalogue = SCORES | MEASURES
    if name in _BINNED and (bins != BINS or name not in catalogue):
        return _BINNED[name](bins)
    return catalogue[name]


def known(criterion: Criterion) -> Known | None:
    """Which row it is, however it was written; nothing where it is none.

    >>> known(top_label(partial(ece, norm=2, bins=30)))
    Known(row='ece_l2', bins=30)
    >>> known(top_label(partial(mmce, bandwidth=0.1)))
    """
    told = _told(criterion)
    if told is None:
        return None
    bins = told[1].get("bins")
    if bins is None:
        return next((Known(row) for row, one in _WITHOUT_BINS.items() if _told(one) == told), None)
    rows = (row for row, build in _BINNED.items() if _told(build(bins)) == told)
    return next((Known(row, bins) for row in rows), None)


def _told(criterion: object) -> tuple[tuple[object, ...], dict[str, Any]] | None:
    """How it is lifted, from which measure, and every setting, also those that were left out."""
    if not isinstance(criterion, Lift):
        return None
    measure = criterion.inner
    bound = measure if isinstance(measure, partial) else partial(measure)
    if bound.args:
        return None
    given = {name: setting for name, setting in vars(criterion).items() if name != "inner"}
    try:
        parameters = signature(bound.func).parameters.values()
    except (TypeError, ValueError):  # a function that does not say what it takes
        return None
    defaults = {p.name: p.default for p in parameters if p.default is not Parameter.empty}
    how = (type(criterion), *given.values(), bound.func)
    return how, defaults | bound.keywords
