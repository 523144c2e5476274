"""Of several methods, the one that does best on held-out predictions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..predictions import Predictions
from ..scores import Score, brier, nll
from ._ensemble import EnsembleTemperatureScaling
from ._folds import fold_index
from ._identity import Identity
from ._judged import cross_fitted, fresh
from ._recalibrator import Recalibrator
from ._report import Outcome
from ._temperature import TemperatureScaling

_PROPER: dict[str, Score[[]]] = {"nll": nll, "brier": brier}


class BestOf(Recalibrator):
    """Try several methods and keep the best, or change nothing where none helps.

    Each candidate is fitted to all parts of the samples but one and judged on that one, in turn,
    by a proper score, which rewards calibration and sharpness together. The best is kept, fitted
    to all samples, when it gains more than one standard error of its gain; otherwise the logits
    stay as they are. `report_.message` says which and why.

    - `candidates`: recalibrators, whose settings are used and which stay as they are; if not
      given, temperature scaling and its ensemble.
    - `score`: `"nll"` or `"brier"`.
    - `folds`: in how many parts to judge.

    A candidate that refuses the predictions is passed over, and named.

    >>> rng = torch.Generator().manual_seed(0)
    >>> logits = torch.randn(2_000, 5, generator=rng)
    >>> labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    >>> BestOf().fit(logits, labels).best_
    Identity()
    >>> BestOf([TemperatureScaling()]).fit(3 * logits, labels).best_
    TemperatureScaling()
    """

    learnt: ClassVar[tuple[str, ...]] = ("chosen_",)

    chosen_: Tensor
    best_: Recalibrator

    def __init__(
        self,
        candidates: Sequence[Recalibrator] | None = None,
        *,
        score: str = "nll",
        folds: int = 5,
    ) -> None:
        super().__init__()
        self.candidates = candidates
        self.score = score
        self.folds = folds

    def _fit(self, predictions: Predictions) -> Outcome:
        if self.score not in _PROPER:
            raise ValueError(f"score must be nll or brier, which are proper; got {self.score!r}.")
        before = _PROPER[self.score].per_sample(predictions).double()
        contest = _Contest(before, predictions.weights)
        refused = []
        part = fold_index(predictions, self.folds)  # the same for all of them
        for candidate in self._candidates():
            name = repr(candidate)
            try:
                held_out = cross_fitted(candidate, predictions, part)
                contest.enter(name, _PROPER[self.score].per_sample(held_out).double())
            except ValueError as refusal:
                contest.enter(name, None)
                refused.append(f"{name} was passed over: {refusal}")
        chosen, reason = contest.verdict(self.score)
        best = self._made(chosen)
        outcome = best._fit(predictions)
        self.best_ = best
        self._learn(chosen_=torch.tensor(chosen, device=predictions.logits.device))
        said = [reason, outcome.message, *refused]
        return Outcome(outcome.converged, outcome.iterations, " ".join(filter(None, said)))

    def _candidates(self) -> Sequence[Recalibrator]:
        if self.candidates is None:
            return (TemperatureScaling(), EnsembleTemperatureScaling())
        strange = [c for c in self.candidates if not isinstance(c, Recalibrator)]
        if strange:
            raise TypeError(
                f"candidates must be recalibrators; got {strange[0]!r}. "
                "For a name pass RECALIBRATORS[name]()."
            )
        return self.candidates

    def _made(self, chosen: int) -> Recalibrator:
        """The candidate of that place, having learnt nothing; -1 is the identity."""
        return Identity() if chosen < 0 else fresh(self._candidates()[chosen])

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        return self.best_._transform(logits)

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *rest: Any, **more: Any
    ) -> None:
        chosen = state_dict.get(prefix + "chosen_")
        if chosen is not None:
            self.best_ = self._made(int(chosen))
        super()._load_from_state_dict(state_dict, prefix, *rest, **more)


class _Contest:
    """Scores of the candidates, sample by sample, against those of the logits as they are."""

    def __init__(self, before: Float[Tensor, " n"], weights: Float[Tensor, " n"] | None) -> None:
        self.before = before
        self.counts = torch.ones_like(before) if weights is None else weights.to(before)
        self.gains: list[tuple[str, float, float]] = []

    def enter(self, name: str, after: Float[Tensor, " n"] | None) -> None:
        """A candidate's mean gain and its standard error; without scores it cannot win."""
        if after is None or not bool(after.isfinite().all()):
            self.gains.append((name, -math.inf, 0.0))
            return
        total = self.counts.sum()
        gain = self.before - after
        mean = self.counts @ gain / total
        error = (self.counts @ (gain - mean).square()).sqrt() / total
        self.gains.append((name, mean.item(), error.item()))

    def verdict(self, score: str) -> tuple[int, str]:
        """Which candidate, -1 for none, and why."""
        chosen = max(range(len(self.gains)), key=lambda k: self.gains[k][1], default=-1)
        start = (self.counts @ self.before / self.counts.sum()).item()
        if chosen < 0:
            return -1, "Nothing was tried."
        name, gain, error = self.gains[chosen]
        if gain > error:
            return chosen, f"Chose {name}: {score} {start - gain:.4f} held out, from {start:.4f}."
        if math.isinf(gain):
            return -1, "Changed nothing: no candidate could be fitted."
        return -1, (
            f"Changed nothing: {name}, the best, gains {gain:.2g} of {score} {start:.4f} held "
            f"out, with a standard error of {error:.2g}."
        )
