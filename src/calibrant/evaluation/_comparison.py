"""Which of two models is better, and could it be chance?"""

from collections.abc import Mapping
from math import isclose, isnan

import torch
from numpy import ndarray
from torch import Tensor

from .._checks import check_callable, check_weights
from ..criteria import Criterion
from ..measures import MEASURES
from ..measures._binned import as_counts
from ..measures._precision import widened
from ..predictions import Predictions
from ..scores import SCORES
from . import _inputs as inputs
from ._arrays import Numbers, tensor
from ._as_predictions import as_predictions
from ._differences import Comparison
from ._judged import judged
from ._lots import Lots
from ._settings import check_draws, check_settings
from ._together import differences

COMPARED: dict[str, Criterion] = {
    **{name: SCORES[name] for name in ("accuracy", "nll", "brier")},
    **{name: MEASURES[name] for name in ("ece", "ks_error", "esd")},
}
"""What is compared unless something else is asked for."""


@torch.no_grad()
def compare(
    first: Tensor | ndarray,
    second: Tensor | ndarray,
    labels: Tensor | ndarray,
    *,
    criteria: Mapping[str, Criterion] = COMPARED,
    probabilities: bool = False,
    weights: Numbers | None = None,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    r"""Differences between two models judged on the same labels, with intervals and p-values.

    Both are resampled together: a draw gives every sample a multinomial count, the same for
    both models, so that what is hard for both cancels. With $\Delta$ the difference and
    $\Delta^*$ its resamples, $\Delta^* - \Delta$ stands for the error of $\Delta$:

    - interval: $2 \Delta$ less the quantiles of $\Delta^*$ (the basic bootstrap).
    - p-value, two-sided: the smallest $1 - \mathrm{level}$ at which the interval leaves out zero,
      so that the two never contradict each other; no smaller than $2 / (1 + \mathrm{draws})$, and
      draws that could not tell the level are refused.

    That is right where bias is small beside spread, as it is for scores. Errors of calibration are
    biased or skewed by an amount that depends on the truth, so for all that `evaluate` has, in any
    number of bins (`ece`, `mce`, `label_binned_ece`, `debiased_ece`, `sweep_ece`, `smooth_ece`,
    `ks_error`, `esd`, `mmce`), the truth of one model is moved along the ray of
    docs/decisions/intervals.md until $\Delta$ is a surprise. Near calibration such an interval is
    wide even for two models that are nearly one. For rows by class (`class_wise_ece`,
    `marginal_ece`, `per_class_ece`) it holds the differences of whatever the intervals of the two
    models hold, each of half the errors; what is hard for both does not cancel there, nor all of
    it for `mce`. Any other criterion gets the basic bootstrap, also one that is biased upwards,
    such as `kde_ece` or `soft_binned_ece`: near calibration do not believe it.

    Where $\Delta$ is zero, or no more than rounding, the p-value is 1 and the interval holds zero;
    of a model and itself it holds nothing else.

    It takes:

    - `first`, `second`: logits `(n, classes)`, or probabilities if `probabilities` says so.
    - `criteria`: by name; any criterion that honours `predictions.weights`. One that ignores them
      is refused.
    - `weights`: how much each sample counts, as in `evaluate`.
    - `draws`: resamples. Beyond 16,384 samples these are dealt at random into 4,096 lots that are
      drawn whole, so that more take hardly longer. Criteria that are neither scores nor rows of
      `evaluate`, such as your own, judge every sample in every draw, which is slow.

    The p-values are not corrected for the number of criteria. How often the intervals hold the
    truth is recorded in benchmarks/README.md.

    >>> rng = torch.Generator().manual_seed(0)
    >>> logits = torch.randn(500, 3, generator=rng)
    >>> labels = torch.multinomial(logits.softmax(1), 1, generator=rng)[:, 0]
    >>> print(compare(3 * logits, logits, labels, draws=200))
    criterion   first    second  difference     low    high  p-value
    accuracy   0.6000    0.6000      0.0000  0.0000  0.0000   1.0000
    nll        1.1625    0.8463      0.3161  0.2160  0.4095   0.0100
    brier      0.5866    0.5067      0.0799  0.0491  0.1073   0.0100
    ece        0.2221    0.0632      0.1589  0.1478  0.2224   0.0100
    ks_error   0.2221    0.0190      0.2032  0.1985  0.2857   0.0100
    esd        0.0161  -0.00018      0.0163  0.0104  0.0244   0.0100

    Efron & Tibshirani, "An Introduction to the Bootstrap", 1993; Davison & Hinkley, "Bootstrap
    Methods and their Application", 1997, section 5.2.
    """
    if not isinstance(criteria, Mapping):
        raise TypeError(
            "criteria must be a dictionary of criteria by name; got "
            f"{type(criteria).__name__}. Pass {{name: CRITERIA[name] for name in ...}}."
        )
    for name, criterion in criteria.items():
        if not isinstance(name, str):
            raise TypeError(
                f"criteria must have names that are text; got {name!r}. Pass "
                "{str(name): criterion for name, criterion in criteria.items()}."
            )
        check_callable("a criterion", criterion)
    _, draws, level, seed = check_settings(15, draws, level, seed)
    check_draws(draws, level)
    named = {"first": first, "second": second}
    tables = [tensor(name, table) for name, table in named.items()]
    if tables[0].shape != tables[1].shape:
        raise ValueError(
            "first and second must have one shape, the same samples and classes; got "
            f"{tuple(tables[0].shape)} and {tuple(tables[1].shape)}."
        )
    tables, precision = _in_one_type(tables)
    indices = inputs.class_indices(labels, tables[0].device)
    models = [
        as_predictions(table, indices, probabilities=probabilities, name=name)
        for name, table in zip(named, tables, strict=True)
    ]
    inputs.check_enough(n := len(models[0]))
    counted = inputs.as_weights(weights, tables[0])
    check_weights(counted, tables[0])
    if counted is not None:
        models = [_weighed(model, counted) for model in models]
        inputs.check_enough(len(models[0]), " that count")
    for name, criterion in criteria.items():
        _check_weighs(name, criterion, models[0])
    mass = models[0].weights
    if mass is None:
        (mass,) = widened(torch.ones(n, device=tables[0].device))
    lots = Lots.of(mass)
    one, other = (judged(model, criteria, mass, lots, seed) for model in models)
    pairs = {name: (one[name], other[name]) for name in criteria}
    rows = differences(pairs, mass, lots, draws=draws, level=level, seed=seed, precision=precision)
    return Comparison(rows, n=n, draws=draws, level=level)


def _weighed(predictions: Predictions, weights: Tensor) -> Predictions:
    """Those that count; drawn, the others could be all that is."""
    counting = weights.nonzero()[:, 0]
    return predictions._some(counting, as_counts(weights[counting]))


def _in_one_type(tables: list[Tensor]) -> tuple[list[Tensor], float]:
    """In the wider of their types, so that the same numbers in two types are the same model.

    With the precision of the narrower, though nothing is computed in less than float32.
    """
    if not all(table.is_floating_point() for table in tables):
        return tables, 0.0
    wider = torch.promote_types(tables[0].dtype, tables[1].dtype)
    types = (torch.promote_types(table.dtype, torch.float32) for table in tables)
    return [table.to(wider) for table in tables], max(torch.finfo(x).eps for x in types)


def _check_weighs(name: str, criterion: Criterion, predictions: Predictions) -> None:
    """A criterion that leaves weights aside would be the same in every resample.

    Asked of half of the samples: they alone, and beside others that count nothing.
    """
    if any(criterion == known for known in (SCORES | MEASURES).values()):
        return
    n, device = len(predictions), predictions.labels.device
    half = torch.arange(0, n, 2, device=device)
    counted = torch.zeros(n, dtype=predictions.dtype, device=device)
    counted[half] = 1
    everyone = predictions._some(slice(None), None)
    found = criterion(everyone)
    if not isinstance(found, Tensor) or found.ndim:
        shape = f" of shape {tuple(found.shape)}" if isinstance(found, Tensor) else ""
        raise TypeError(
            f"criteria must return one number as a tensor; {name!r} returned "
            f"{type(found).__name__}{shape}. Return torch.as_tensor(number), or a mean."
        )
    of_all = float(found)
    alone, among = (
        float(criterion(some))
        for some in (everyone._some(half, None), everyone.reweighted(counted))
    )
    aside = among == of_all != alone  # however small the numbers are
    if aside or not (isclose(alone, among, rel_tol=1e-3, abs_tol=1e-6) or isnan(alone)):
        raise ValueError(
            f"criteria must count each sample by its weight; {name!r} gives {alone:.4g} to half of "
            f"the samples, and {among:.4g} to all with the others at weight zero. Lift a measure, "
            "as top_label(ece) does, or pass it weights=predictions.weights."
        )
