"""Which of two models knows better when it is right, where nothing else is known of them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._checks import check_weights
from ..measures._binned import as_counts
from ..predictions import Predictions
from ..scores import nll
from . import _inputs as inputs
from ._arrays import Numbers
from ._comparison import COMPARED
from ._differences import Comparison
from ._judged import Scores, judged_events
from ._lots import Lots
from ._named import BINS, OF_EVENTS
from ._settings import check_draws, check_settings
from ._together import differences


@torch.no_grad()
def compare_events(
    first: tuple[Any, Any],
    second: tuple[Any, Any],
    *,
    criteria: Sequence[str] = tuple(COMPARED),
    weights: Numbers | None = None,
    bins: int = BINS,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """`compare` where only "how sure" and "was it right" are known of the answers of two models.

    - `first`, `second`: `(confidence, outcome)` on the same samples in the same order. Each model
      has its own outcomes: whether its own answer was right.
    - `criteria`: names, of `accuracy`, `nll`, `brier` and the errors that `evaluate_events` has.
    - `weights`: how much each sample counts. `bins`: of every binned error.
    - `draws`, `level`, `seed`: as in `compare`.

    Gives the same `Comparison`.

    >>> rng = torch.Generator().manual_seed(0)
    >>> sure = 0.5 + 0.5 * torch.rand(500, generator=rng)
    >>> right = torch.bernoulli(sure, generator=rng)
    >>> found = compare_events((sure.sqrt(), right), (sure, right), draws=200)
    >>> found["ece"].low > 0
    True
    """
    bins, draws, level, seed = check_settings(bins, draws, level, seed)
    check_draws(draws, level)
    _check_names(criteria)
    models = [_events(name, pair) for name, pair in (("first", first), ("second", second))]
    (sure, _), (other, _) = models
    if len(sure) != len(other):
        raise ValueError(
            f"first and second must hold the same samples; got {len(sure)} and {len(other)} events."
        )
    inputs.check_enough(n := len(sure))
    counted = inputs.as_weights(weights, sure)
    check_weights(counted, sure)
    if counted is not None:
        counting = counted > 0
        models = [(confidence[counting], right[counting]) for confidence, right in models]
        counted = as_counts(counted[counting])
        inputs.check_enough(len(counted), " that count")
    mass = torch.ones_like(models[0][0], dtype=torch.float64) if counted is None else counted
    lots = Lots.of(mass)
    one, two = (
        judged_events(*model, _scores(*model), mass, counted, lots, criteria, bins=bins, seed=seed)
        for model in models
    )
    rows = differences(
        {name: (one[name], two[name]) for name in criteria},
        mass,
        lots,
        draws=draws,
        level=level,
        seed=seed,
        precision=max(torch.finfo(confidence.dtype).eps for confidence, _ in models),
    )
    return Comparison(rows, n=n, draws=draws, level=level)


def _check_names(criteria: Sequence[str]) -> None:
    for name in [criteria] if isinstance(criteria, str) else criteria:
        if name not in OF_EVENTS or isinstance(criteria, str):
            raise ValueError(
                f"criteria must be a list of names, each one of {', '.join(OF_EVENTS)}, where only "
                f"events are known; got {name!r}."
            )


def _events(name: str, pair: tuple[Any, Any]) -> tuple[Tensor, Tensor]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(
            f"{name} must be a pair (confidence, outcome); got {type(pair).__name__}. For logits "
            "or probabilities of classes call compare."
        )
    sure, right = (each.cpu() for each in inputs.as_events(*pair))
    sure = sure.float() if sure.dtype in (torch.float16, torch.bfloat16) else sure
    return sure, right.to(sure.dtype)


def _scores(sure: Tensor, right: Tensor) -> Scores:
    chance = Predictions.from_probabilities(sure, right.long())
    return {
        "accuracy": (right.double(), 1.0),
        "nll": (nll.per_sample(chance).double(), torch.inf),
        "brier": ((right - sure).double().square(), 1.0),
    }
