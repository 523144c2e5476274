"""Measure predictions: every score and measure at once, with intervals."""

from collections.abc import Callable

import torch
from torch import Tensor

from .._checks import check_weights, widest
from ..measures._binned import as_counts
from ..measures._precision import widened
from ..predictions import Predictions
from ..scores import nll
from . import _inputs as inputs
from ._arrays import Numbers, tensor
from ._as_predictions import as_predictions
from ._estimates import estimates
from ._evaluation import Evaluation
from ._groups import members
from ._lots import Lots, mean_drawn
from ._rows import Row, rows_of_events, rows_of_predictions
from ._settings import check_draws, check_settings

Rows = Callable[[Tensor | slice], dict[str, Row]]


def evaluate(
    logits: Numbers,
    labels: Numbers,
    *,
    probabilities: bool = False,
    weights: Numbers | None = None,
    groups: Numbers | None = None,
    bins: int = 15,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Every score and measure of some predictions, each with an interval for its true value.

    - `logits`: `(n, classes)`, a torch tensor on any device or a NumPy array. With
      `probabilities=True`, rows of probabilities, or `(n,)` chances of class 1. Rows may
      miss a sum of 1 by up to 0.01, and a probability may exceed 1 by 0.001, as rounding leaves
      them; the numbers are taken as given.
    - `labels`: the index of the true class of each sample.
    - `weights`: how much each sample counts; those a resample draws are multiplied by it. Only
      proportions matter, except to `debiased_ece`, for which whole numbers are counts.
    - `groups`: a name or number per sample; each group is evaluated on its own as well, and is
      found under `str(name)`.
    - `bins`: of every binned measure.
    - `draws`: number of resamples; slow rows use fewer, as their `draws` shows. A 95% interval
      needs at least 39; some hundreds make its ends steady. Beyond 16,384 samples neighbours are
      drawn together, so that time hardly grows.
    - `level`: of the intervals. `seed`: the same seed gives the same intervals.

    The values are those of the criteria of the same names. The intervals are for what the
    whole population would give: estimates that are biased upwards, such as `ece`, are
    corrected for it, so a value may lie above its own interval, and an interval that begins at
    zero means that the model may be calibrated. See docs/decisions/intervals.md.

    >>> rng = torch.Generator().manual_seed(0)
    >>> logits = 2 * torch.randn(500, 3, generator=rng)
    >>> labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    >>> evaluation = evaluate(3 * logits, labels, draws=100)
    >>> evaluation["ece"].value > evaluation["ece"].low > 0.05
    True
    """
    bins, draws, level, seed = check_settings(bins, draws, level, seed)
    check_draws(draws, level)
    told = tensor("logits", logits)
    indices = inputs.class_indices(labels, told.device)
    predictions = as_predictions(told, indices, probabilities=probabilities)
    inputs.check_enough(len(predictions))
    counted = inputs.as_weights(weights, told)
    check_weights(counted, told)

    def rows(own: Tensor | slice) -> dict[str, Row]:
        weighed = _weights(counted, own)
        some = predictions._some(own, weighed)
        return rows_of_predictions(some, _or_ones(weighed, told, len(some)), bins)

    return _evaluation(rows, counted, told, groups, draws, level, seed, bins)


def evaluate_events(
    confidence: Numbers,
    outcome: Numbers,
    *,
    weights: Numbers | None = None,
    groups: Numbers | None = None,
    bins: int = 15,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """The same where only "how sure" and "was it right" are known: language models, agents, logs.

    - `confidence`: between 0 and 1, one per event; what rounding leaves beyond, at most 0.001,
      counts as 0 or 1. `outcome`: 0 or 1, or booleans.
    - `weights`, `groups`, `bins`, `draws`, `level`, `seed`: as in `evaluate`.

    Here `accuracy` is the share of events that happened, `brier` the mean squared gap, half of
    the two-class score, and `nll` the logarithmic loss of the chance given to what happened; no
    chance at all counts as the smallest normal number of its type, a loss of 87.3 in float32 (and
    in half precision) and of 708.4 in float64.

    >>> evaluation = evaluate_events([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1], draws=50)
    >>> evaluation["accuracy"].value
    0.75
    """
    bins, draws, level, seed = check_settings(bins, draws, level, seed)
    check_draws(draws, level)
    sure, right = inputs.as_events(confidence, outcome)
    inputs.check_enough(len(sure))
    sure = sure.float() if sure.dtype in (torch.float16, torch.bfloat16) else sure
    right = right.to(sure.dtype)
    counted = inputs.as_weights(weights, sure)
    check_weights(counted, sure)

    def rows(own: Tensor | slice) -> dict[str, Row]:
        chance, happened = sure[own], right[own]
        weighed = _weights(counted, own)
        everyone = _or_ones(weighed, sure, len(chance))
        told = Predictions.from_probabilities(chance, happened.long(), weights=weighed)
        scores = {
            "accuracy": happened,
            "nll": nll.per_sample(told),
            "brier": (happened - chance).square(),
            "mean_confidence": chance,
        }
        lots = Lots.of(everyone)
        means = {name: _mean(told, values, lots) for name, values in scores.items()}
        return means | rows_of_events(chance, happened, everyone, weighed, bins, crowded=True)

    return _evaluation(rows, counted, sure, groups, draws, level, seed, bins)


def _evaluation(
    rows: Rows,
    counted: Tensor | None,
    like: Tensor,
    groups: Numbers | None,
    draws: int,
    level: float,
    seed: int,
    bins: int,
) -> Evaluation:
    def one(own: Tensor | slice, n: int) -> Evaluation:
        # Drawn, those that do not count could be all that is.
        some, counting = _counting(counted, own, n)
        everyone = _or_ones(_weights(counted, some), like, counting)
        found = estimates(rows(some), everyone, draws=draws, level=level, seed=seed)
        return Evaluation(found, n, settings)

    settings = {"bins": bins, "draws": draws, "level": level, "seed": seed}
    parts = {} if groups is None else members(groups, len(like), counted)
    whole = one(slice(None), len(like))
    each = {
        name: one(torch.as_tensor(own, device=like.device), len(own)) for name, own in parts.items()
    }
    return Evaluation(whole.rows, whole.n, settings, each)


def _counting(counted: Tensor | None, own: Tensor | slice, n: int) -> tuple[Tensor | slice, int]:
    """Those of some samples that have a weight, and how many they are."""
    if counted is None or bool((counted[own] > 0).all()):
        return own, n
    some = torch.arange(len(counted), device=counted.device)[own]
    some = some[counted[some] > 0]
    inputs.check_enough(len(some), " that count")
    return some, len(some)


def _weights(counted: Tensor | None, own: Tensor | slice) -> Tensor | None:
    return None if counted is None else as_counts(counted[own])


def _or_ones(weighed: Tensor | None, like: Tensor, n: int) -> Tensor:
    if weighed is not None:
        return weighed
    return torch.ones(n, dtype=widest(like.device), device=like.device)


def _mean(told: Predictions, values: Tensor, lots: Lots | None) -> Row:
    (wide,) = widened(values)
    return Row(lambda: told.mean_of(lambda _: wide), mean_drawn(wide, lots))
