"""Which of several models to keep: the papers' rule."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, isnan
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..criteria import Criterion, name_of, top_label
from ..measures import ece


@runtime_checkable
class Candidate(Protocol):
    """A model to choose or not: its accuracy and calibration error on validation data."""

    @property
    def accuracy(self) -> Any:
        """Share of predictions that are right."""

    @property
    def error(self) -> Any:
        """Calibration error, the lower the better."""


Chosen = TypeVar("Chosen", bound=Candidate)


def select(
    candidates: Iterable[Chosen],
    baseline: float | None = None,
    *,
    margin: float = 0.015,
    relative: bool = False,
) -> Chosen:
    """The lowest calibration error among candidates that lose less than `margin` of accuracy.

    - `candidates`: things with an `accuracy` and an `error`, both on validation data: settings
      of a grid, epochs of a run.
    - `baseline`: the accuracy they are held against, such as that of plain training; without
      one, the highest accuracy among them.
    - `margin`: how much accuracy may be given up, less than 0.015 in the ESD paper and less than
      0.01 in the soft-calibration paper, which has the best candidate for a baseline.
    - `relative`: whether that is a share of the baseline. By default it is a difference: at a
      baseline of 80%, a margin of 0.015 allows all above 78.5%, and above 78.8% if relative.

    Of equal errors the more accurate wins, then the first. What is not a number is worse than any
    number. `ValueError` if all lose too much.

    >>> from types import SimpleNamespace as Run
    >>> runs = [Run(accuracy=0.80, error=0.09), Run(accuracy=0.79, error=0.04),
    ...         Run(accuracy=0.70, error=0.01)]
    >>> select(runs, baseline=0.80)
    namespace(accuracy=0.79, error=0.04)

    Yoon et al., "ESD", ICLR 2023, section 5.2; Karandikar et al., "Soft Calibration Objectives
    for Neural Networks", NeurIPS 2021, appendix G.
    """
    rule = Selection(margin=margin, relative=relative, baseline=baseline)
    all_of_them = list(candidates)
    if not all_of_them:
        raise ValueError("candidates must hold at least one to choose; got none.")
    best = max(map(_accuracy, all_of_them))
    if best == -inf:
        raise ValueError(
            "some candidate must have an accuracy that is a number; got nan for all "
            f"{len(all_of_them)}. Check the validation data for missing values."
        )
    allowed = rule.allowed(all_of_them)
    if not allowed:
        raise ValueError(
            f"some candidate must keep an accuracy above {rule.least(all_of_them):.4f}; got "
            f"{len(all_of_them)}, at best {best:.4f}. Widen margin, or keep the baseline."
        )
    return min(allowed, key=_by_error)


@dataclass(frozen=True)
class Selection:
    """The same rule for the epochs of one run, with the measure it judges them by.

    - `measure`: the calibration error of an epoch, ECE over 15 bins of equal width by default.
    - `margin`, `relative`, `baseline`: as in `select`; without a baseline an epoch is held
      against the most accurate one.

    When every epoch falls short of a baseline, the most accurate one is kept.

    >>> print(Selection(margin=0.01, relative=True))
    lowest TopLabel(ece) of all epochs that lose less than 1% of accuracy relative to the best one
    """

    measure: Criterion = field(default_factory=partial(top_label, ece))
    margin: float = 0.015
    relative: bool = False
    baseline: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.margin <= 1:
            raise ValueError(
                f"margin must lie between 0 and 1; got {self.margin!r}. The ESD paper gives up "
                "less than 0.015, the soft-calibration paper less than 0.01."
            )
        if self.baseline is not None and not 0 <= self.baseline <= 1:
            raise ValueError(
                f"baseline must be an accuracy between 0 and 1; got {self.baseline!r}. "
                "Pass a fraction: 92% is 0.92."
            )

    def __str__(self) -> str:
        baseline = self.baseline
        against = "the best one" if baseline is None else f"a baseline of {baseline:g}"
        lost = f"{100 * self.margin:g}{'%' if self.relative else ' points'} of accuracy"
        how = "relative to" if self.relative else "to"
        measure = name_of(self.measure)
        return f"lowest {measure} of all epochs that lose less than {lost} {how} {against}"

    def least(self, candidates: Sequence[Candidate]) -> float:
        """The accuracy a candidate must be above."""
        best = max(map(_accuracy, candidates), default=0.0)
        baseline = best if self.baseline is None else self.baseline
        return baseline * (1 - self.margin) if self.relative else baseline - self.margin

    def allowed(self, candidates: Sequence[Chosen]) -> list[Chosen]:
        """The candidates that keep enough accuracy."""
        least = self.least(candidates)
        # The hair keeps a loss of exactly the margin out, whichever way it is rounded.
        return [each for each in candidates if _accuracy(each) > least + 1e-9]

    def best(self, epochs: Sequence[Chosen]) -> Chosen:
        """The epoch to keep."""
        allowed = self.allowed(epochs)
        if allowed:
            return min(allowed, key=_by_error)
        return min(epochs, key=lambda each: _by_error(each)[::-1])

    def possible(self, epochs: Sequence[Chosen]) -> list[Chosen]:
        """The epochs that may yet turn out best, whatever later epochs are like.

        As the best accuracy rises, the choice may fall back on an earlier epoch that is more
        accurate, but never on one that another beats in both.
        """
        front: list[Chosen] = []
        for each in sorted(epochs, key=_by_error):  # the sort is stable: first come, first kept
            if not front or _accuracy(each) > _accuracy(front[-1]):
                front.append(each)
        return self.allowed(front) or front[-1:]


def _by_error(candidate: Candidate) -> tuple[float, float]:
    error = float(candidate.error)
    return inf if isnan(error) else error, -_accuracy(candidate)


def _accuracy(candidate: Candidate) -> float:
    accuracy = float(candidate.accuracy)
    return -inf if isnan(accuracy) else accuracy
