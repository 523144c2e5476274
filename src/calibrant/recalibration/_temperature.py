"""One temperature for all logits."""

import math
from dataclasses import replace
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
# Logarithm of the likelihood over that of equal chances, which logits that say nothing of the
# labels exceed one time in twenty: half of what chi-square of one degree does.
_BY_CHANCE = 1.92


class TemperatureScaling(Recalibrator):
    r"""Divide the logits by one number: $z \mapsto z / T$.

    With `objective="nll"`, $T$ minimises the negative log-likelihood, which is convex in
    $\beta = 1/T$: Newton's method kept inside a bracket finds it from anywhere, at any scale of
    the logits, and there is no step size to choose. Where no finite $T$ is best, `fit` says so;
    where the best hardly beats equal chances, `report_.message` does.

    - `objective`: what the temperature minimises on the fitting set. `"nll"`; `"sb_ece"`, the
      label-binned soft error of the paper (TS-SB-ECE); `"ece"`, over 15 hard bins (TS-HB-ECE);
      the name of any criterion in `SCORES` or `MEASURES`; or a criterion. All but the first are
      scanned, since they have several minima: soft ones then by gradient, hard ones by ever
      finer grids. Where one score is given per sample they judge the likelier of its two sides,
      although the report judges the chance of 1: that is often best when one half throughout.

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
            beta, found = search(criterion_of(self.objective), predictions, math.log(beta))
            outcome = replace(found, message=outcome.message)
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
        solved, _, _ = _newton(part, log_beta)
        log_beta = log_beta if solved is None else solved
    found, value, steps = _newton(whole, log_beta)
    if found is None:
        _, slope, _ = whole.around(math.exp(log_beta))
        raise _no_solution("T = 0" if slope < 0 else "T = infinity", predictions)
    gain = math.log(predictions.classes) - value
    outcome = Outcome(converged=True, iterations=steps, message=_doubt(whole, gain, found))
    return math.exp(found), outcome


def _doubt(whole: Scaled, gain: float, log_beta: float) -> str:
    """A sentence where the logits, scaled at best, may as well be all alike.

    - `gain`: of the mean log-likelihood over that of equal chances.
    """
    # Unequal weights count as fewer samples, whatever their scale.
    samples = 1 / float(whole.share.square().sum())
    if samples * gain > _BY_CHANCE:
        return ""
    return (
        f"At the likeliest temperature, {math.exp(-log_beta):.3g}, these logits tell no more of "
        f"the labels than equal chances would, as far as {len(whole)} samples show. See whether "
        "the labels belong to these rows and count the classes alike."
    )


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
    _, slope, curvature = part.around(0.0)
    spread = math.sqrt(max(curvature, 1e-300))
    return math.log(max(-slope / spread, 1e-3) / spread)


def _strides(n: int) -> list[int]:
    """Take every how-manieth row, for parts of 512 rows, of eight times as many, and so on."""
    sizes = [_FIRST_ROWS * _GROWTH**k for k in range(8)]
    return [n // rows for rows in sizes if rows * _GROWTH <= n]


def _newton(part: Scaled, log_beta: float) -> tuple[float | None, float, int]:
    """Where the slope is zero, if anywhere near; the value there; and how many passes it took."""
    low, high, first = -math.inf, math.inf, log_beta
    value, steps = math.nan, 0
    while abs(log_beta - first) < _FURTHEST:
        value, slope, curvature = part.around(math.exp(log_beta))
        steps += 1
        if slope > 0:
            high = log_beta
        else:
            low = log_beta
        better = _step(log_beta, slope, curvature)
        if not low < better < high:
            better = (low + high) / 2
        if abs(better - log_beta) < _SMALL_STEP:
            return better, value, steps
        log_beta = better
    return None, value, steps


def _step(log_beta: float, slope: float, curvature: float) -> float:
    """Newton's step in the inverse temperature, no longer than a few factors of e."""
    share = 1 - slope / (curvature * math.exp(log_beta)) if curvature > 0 else 0.0
    toward = -math.copysign(_LONG_STEP, slope)
    if share <= 0:
        return log_beta + toward
    return log_beta + min(max(math.log(share), -_LONG_STEP), _LONG_STEP)
