"""One temperature for all logits."""

import math
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from ..criteria import Criterion
from ..predictions import Predictions
from ._recalibrator import Recalibrator
from ._report import Outcome
from ._scaled import Scaled
from ._search import criterion_of, search

# Steps of the logarithm of the temperature below this end the search; the error that the last
# step leaves is of the order of its square.
_SMALL_STEP = 1e-5
# Longest step, and how far from the first guess a solution may lie, in factors of e.
_LONG_STEP = 3.0
_FURTHEST = 18.0
# Rows of the parts on which the search is started.
_FIRST_ROWS = 512
_GROWTH = 8


class TemperatureScaling(Recalibrator):
    r"""Divide the logits by one number: $z \mapsto z / T$.

    With `objective="nll"`, $T$ minimises the negative log-likelihood, which is convex in
    $\beta = 1/T$: Newton's method kept inside a bracket finds it from anywhere, at any scale of
    the logits, and there is no step size to choose. Where no finite $T$ is best, `fit` says so.

    - `objective`: what the temperature minimises on the fitting set. `"nll"`; `"sb_ece"`, the
      label-binned soft error of the paper (TS-SB-ECE); `"ece"`, over 15 hard bins (TS-HB-ECE);
      the name of any criterion in `SCORES` or `MEASURES`; or a criterion. All but the first are
      scanned, since they have several minima: soft ones then by gradient, hard ones by ever
      finer grids.

    The search takes a handful of passes over the logits and no memory of their size.

    >>> import torch
    >>> rng = torch.Generator().manual_seed(0)
    >>> logits = torch.randn(2_000, 5, generator=rng)
    >>> labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    >>> scaling = TemperatureScaling().fit(3 * logits, labels)
    >>> round(scaling.temperature_.item(), 2)
    3.01

    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, section 4.2; Karandikar et
    al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021, section 5.2.
    """

    learnt: ClassVar[tuple[str, ...]] = ("temperature_",)
    keeps_order: ClassVar[bool] = True
    contains_identity: ClassVar[bool] = True

    temperature_: Tensor

    def __init__(self, objective: str | Criterion = "nll") -> None:
        super().__init__()
        self.objective = objective

    def _fit(self, predictions: Predictions) -> Outcome:
        beta, outcome = likeliest(predictions)
        if self.objective != "nll":
            # Where no temperature is likeliest, the other objectives run away with it.
            beta, outcome = search(criterion_of(self.objective), predictions, math.log(beta))
        self._learn(temperature_=1 / beta)
        return outcome

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        return logits / self.temperature_.to(logits.dtype)


def likeliest(predictions: Predictions) -> tuple[float, Outcome]:
    """The inverse temperature of the greatest likelihood, or a sentence on why there is none."""
    whole = Scaled(predictions)
    if bool((whole.lag == 0).all()):
        if bool((predictions.logits.amin(dim=1) == whole.top).all()):
            raise ValueError(
                "logits must differ between classes for a temperature to matter; got "
                f"{len(whole)} rows of one number each."
            )
        raise _no_solution("T = 0", predictions)
    # The whole starts from the solution of a part, and that from a smaller part's.
    parts = [Scaled(predictions, every) for every in _strides(len(whole))]
    log_beta = _first_guess((parts or [whole])[0])
    for part in parts:
        solved, _ = _newton(part, log_beta)
        log_beta = log_beta if solved is None else solved
    found, steps = _newton(whole, log_beta)
    if found is None:
        slope, _ = whole.slope(math.exp(log_beta))
        raise _no_solution("T = 0" if slope < 0 else "T = infinity", predictions)
    return math.exp(found), Outcome(converged=True, iterations=steps)


def _no_solution(end: str, predictions: Predictions) -> ValueError:
    remedy = (
        "fit on held-out data the model has not been trained on."
        if end == "T = 0"
        else "see whether the labels belong to these rows and count the classes alike."
    )
    return ValueError(
        "no finite temperature fits these predictions: the likelihood keeps rising "
        f"towards {end}. Accuracy is {predictions.correct.mean():.1%} on {len(predictions)} "
        f"samples; {remedy}"
    )


def _first_guess(part: Scaled) -> float:
    """Newton's step from T = infinity, which is right in scale whatever the logits are."""
    slope, curvature = part.slope(0.0)
    spread = math.sqrt(max(curvature, 1e-300))
    return math.log(max(-slope / spread, 1e-3) / spread)


def _strides(n: int) -> list[int]:
    """Take every how-manieth row, for parts of 512 rows, of eight times as many, and so on."""
    sizes = [_FIRST_ROWS * _GROWTH**k for k in range(8)]
    return [n // rows for rows in sizes if rows * _GROWTH <= n]


def _newton(part: Scaled, log_beta: float) -> tuple[float | None, int]:
    """Where the slope is zero, if anywhere near, and the number of passes it took."""
    low, high, first = -math.inf, math.inf, log_beta
    steps = 0
    while abs(log_beta - first) < _FURTHEST:
        slope, curvature = part.slope(math.exp(log_beta))
        steps += 1
        if slope > 0:
            high = log_beta
        else:
            low = log_beta
        better = _step(log_beta, slope, curvature)
        if not low < better < high:
            better = (low + high) / 2
        if abs(better - log_beta) < _SMALL_STEP:
            return better, steps
        log_beta = better
    return None, steps


def _step(log_beta: float, slope: float, curvature: float) -> float:
    """Newton's step in the inverse temperature, no longer than a few factors of e."""
    share = 1 - slope / (curvature * math.exp(log_beta)) if curvature > 0 else 0.0
    toward = -math.copysign(_LONG_STEP, slope)
    if share <= 0:
        return log_beta + toward
    return log_beta + min(max(math.log(share), -_LONG_STEP), _LONG_STEP)
