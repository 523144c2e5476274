"""What meta-learning may learn: small families of regularisers, each with its coefficients."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..predictions import Predictions

Coefficients = dict[str, Tensor]
"""What is learnt, by name."""


class MetaKnowledge(ABC):
    """A regulariser with coefficients: the interface of everything that can be meta-learnt.

    An instance holds settings only. The coefficients are made by `start`, kept and learnt by
    `MetaRegulariser`, and given back to `penalty`.
    """

    @abstractmethod
    def start(self, parameters: Mapping[str, Tensor]) -> Coefficients:
        """The coefficients to begin with, for a classifier with these parameters."""

    @abstractmethod
    def penalty(
        self, coefficients: Coefficients, parameters: Mapping[str, Tensor], predictions: Predictions
    ) -> Tensor:
        """What training pays on top of its fit; differentiable in all three."""

    @property
    def limits(self) -> tuple[float, float]:
        """Between which coefficients are kept: everything, unless told otherwise."""
        return float("-inf"), float("inf")


@dataclass(frozen=True)
class _Shrinkage(MetaKnowledge):
    initial: float = 0.0
    lowest: float = 0.0

    @property
    def limits(self) -> tuple[float, float]:
        """From `lowest` upwards."""
        return self.lowest, float("inf")


class WeightL2(_Shrinkage):
    r"""A coefficient for each weight and bias of the classifier, $\sum_j \omega_j \phi_j^2$.

    - `initial`: where they begin.
    - `lowest`: below which none may go. The released code has no such limit, `float("-inf")`. A
      coefficient below zero pays its weight to grow, without end unless the fit is stronger: it
      is there, where the fit is summed over 128 samples, and often is not where it is a mean.

    >>> parameters = dict(torch.nn.Linear(4, 3).named_parameters())
    >>> {name: tuple(part.shape) for name, part in WeightL2().start(parameters).items()}
    {'weight': (3, 4), 'bias': (3,)}

    Bohdal et al., "Meta-Calibration", ICML workshop 2021, section 2.3.
    """

    def start(self, parameters: Mapping[str, Tensor]) -> Coefficients:
        """One for each entry of each parameter."""
        return {name: torch.full_like(own, self.initial) for name, own in parameters.items()}

    def penalty(
        self, coefficients: Coefficients, parameters: Mapping[str, Tensor], predictions: Predictions
    ) -> Tensor:
        """Each squared entry times its coefficient, summed."""
        return _sum((coefficients[name] * own.square()).sum() for name, own in parameters.items())


class UnitL2(_Shrinkage):
    r"""A coefficient for each class, $\sum_k \omega_k (\lVert W_k \rVert^2 + b_k^2)$.

    - `initial`, `lowest`: as in `WeightL2`.

    >>> UnitL2(initial=0.1).start(dict(torch.nn.Linear(4, 3).named_parameters()))
    {'unit': tensor([0.1000, 0.1000, 0.1000])}
    """

    def start(self, parameters: Mapping[str, Tensor]) -> Coefficients:
        """One for each row of the parameters."""
        like = next(iter(parameters.values()))
        return {"unit": like.new_full((_units(parameters),), self.initial)}

    def penalty(
        self, coefficients: Coefficients, parameters: Mapping[str, Tensor], predictions: Predictions
    ) -> Tensor:
        """Each row's sum of squares times its coefficient, summed."""
        rows = (own.reshape(len(own), -1) for own in parameters.values())
        return _sum(coefficients["unit"] @ own.square().sum(dim=1) for own in rows)


class WeightDecay(_Shrinkage):
    r"""One number for the whole classifier, $\omega \lVert \phi \rVert^2$.

    An optimiser's `weight_decay` stands for half the square: this is twice as strong at the
    same number.

    - `initial`, `lowest`: as in `WeightL2`.

    >>> WeightDecay(initial=5e-4).start(dict(torch.nn.Linear(4, 3).named_parameters()))
    {'decay': tensor(0.0005)}
    """

    def start(self, parameters: Mapping[str, Tensor]) -> Coefficients:
        """A single number."""
        return {"decay": next(iter(parameters.values())).new_tensor(self.initial)}

    def penalty(
        self, coefficients: Coefficients, parameters: Mapping[str, Tensor], predictions: Predictions
    ) -> Tensor:
        """The sum of squares times the number."""
        return coefficients["decay"] * _sum(own.square().sum() for own in parameters.values())


@dataclass(frozen=True)
class ClassSmoothing(MetaKnowledge):
    r"""How much to smooth the label of each class, between 0 and `highest`.

    $$\frac1n \sum_i \epsilon_{y_i} \Bigl(\log p_{y_i} - \frac1C \sum_j \log p_j\Bigr)$$

    on top of the likelihood is `label_smoothing` with an $\epsilon$ for each true class.

    - `initial`: where they begin, one number or one for each class.
    - `highest`: beyond which none may go; the released code's is 0.5.

    >>> ClassSmoothing(initial=[0.1, 0.2]).start(dict(torch.nn.Linear(4, 2).named_parameters()))
    {'smoothing': tensor([0.1000, 0.2000])}
    """

    initial: float | Sequence[float] = 0.0
    highest: float = 0.5

    def start(self, parameters: Mapping[str, Tensor]) -> Coefficients:
        """One for each class."""
        classes = _units(parameters)
        like = next(iter(parameters.values()))
        initial = torch.as_tensor(self.initial, dtype=like.dtype, device=like.device)
        if initial.ndim > 0 and initial.shape != (classes,):
            raise ValueError(
                f"initial must hold one smoothing for each class of the classifier, {classes} in "
                f"all; got {len(initial)}. One number serves every class: initial=0.05."
            )
        if not bool(((initial >= 0) & (initial <= self.highest)).all()) or self.highest >= 1:
            raise ValueError(
                f"smoothing must lie between 0 and highest, itself below 1; got "
                f"{initial.tolist()} and {self.highest}. Usual is 0.05."
            )
        return {"smoothing": initial.expand(classes).clone()}

    def penalty(
        self, coefficients: Coefficients, parameters: Mapping[str, Tensor], predictions: Predictions
    ) -> Tensor:
        """The mean over samples of what smoothing their label adds to the likelihood."""
        smoothing = coefficients["smoothing"]
        if len(smoothing) != predictions.classes:
            raise ValueError(
                f"predictions must have the {len(smoothing)} classes that are smoothed; got "
                f"{predictions.classes}. Make the regulariser from the layer that gives the logits."
            )
        return predictions.mean_of(
            lambda each: smoothing[each.labels] * (each.true_log_prob - each.mean_log_prob)
        )

    @property
    def limits(self) -> tuple[float, float]:
        """Between 0 and `highest`."""
        return 0.0, self.highest


def _sum(terms: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(terms)).sum()


def _units(parameters: Mapping[str, Tensor]) -> int:
    """The classes of a classifier whose parameters have a row for each."""
    rows = {own.shape[0] if own.ndim else 0 for own in parameters.values()}
    if len(rows) != 1 or 0 in rows:
        shapes = {name: tuple(own.shape) for name, own in parameters.items()}
        raise ValueError(
            "classifier must have a row for each class in all its parameters, as a Linear or a "
            f"convolution has; got {shapes}. Name that layer, or learn WeightL2 or WeightDecay."
        )
    return rows.pop()
