"""Coefficients that are learnt by what a simulated step with them does to held-out calibration."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from ..criteria import Criterion
from ..measures import dece
from ..objectives import check_criterion
from ..predictions import Predictions
from ..scores import nll
from ._meta_classifier import trained_parameters
from ._meta_knowledge import Coefficients, MetaKnowledge, WeightL2
from ._meta_simulation import Batch, Parameters, SimulatedStep
from ._parallel import of_all_ranks

MetaOptimiser = Callable[[Iterable[Tensor]], Optimizer]
"""Coefficients in, what descends by them out."""

ADAM: MetaOptimiser = partial(Adam, lr=1e-3)
"""As in the paper."""


class MetaRegulariser:
    r"""A regulariser of the classifier layer, learnt while the network trains.

    One step of the classifier is simulated, with features held fixed, and the coefficients
    $\omega$ are moved to where that step would have led to less miscalibration of other data:

    $$\phi'(\omega) = \phi - \alpha\, \nabla_\phi \bigl(\mathrm{fit}(\phi; D_\text{train})
      + R_\omega(\phi)\bigr), \qquad
      \omega \leftarrow \omega - \mathrm{Adam}\bigl(\nabla_\omega\,
      \mathrm{objective}(\phi'(\omega); D_\text{meta})\bigr)$$

    For people who own their loop; `fit_meta` is the loop. In each step call `update` with the
    features of a training batch and of a meta batch, then add `penalty` to the training loss.
    Neither the parameters of the network nor their gradients are touched.

    - `classifier`: the layer that turns features into logits.
    - `knowledge`: what is learnt: `WeightL2()`, `UnitL2()`, `WeightDecay()`, `ClassSmoothing()`.
    - `fit`: what training descends, without the regulariser.
    - `objective`: what the coefficients descend, such as `dece` or `top_label(esd)`.
    - `optimiser`: makes the optimiser of the coefficients; Adam at 0.001 as in the paper.
    - `together`: whether several processes train the model, under `DistributedDataParallel`. Then
      both criteria are taken of the batches of all of them and every process learns the same.
    - `class_dim`, `ignore_index`: as in `Penalised`.

    The cost is two forward and three backward passes of the classifier layer alone. The fit is
    differentiated twice, so it must be made of torch operators (all of this package's are).

    >>> _ = torch.manual_seed(0)
    >>> body, head = nn.Sequential(nn.Linear(2, 8), nn.Tanh()), nn.Linear(8, 2)
    >>> meta = MetaRegulariser(head)
    >>> optimiser = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    >>> inputs = torch.randn(128, 2)
    >>> labels = (inputs.sum(dim=1) + torch.randn(128) > 0).long()
    >>> for _ in range(3):
    ...     features = body(inputs[:64])
    ...     with torch.no_grad():
    ...         held_out = body(inputs[64:])
    ...     loss = meta.update((features, labels[:64]), (held_out, labels[64:]), lr=0.1)
    ...     predictions = Predictions(head(features), labels[:64])
    ...     optimiser.zero_grad()
    ...     (nll(predictions) + meta.penalty(predictions)).backward()
    ...     optimiser.step()
    >>> meta
    MetaRegulariser(WeightL2(initial=0.0, lowest=0.0), 18 coefficients from 0 to 0.003)

    Bohdal, Yang & Hospedales, "Meta-Calibration: Meta-Learning of Model Calibration Using
    Differentiable Expected Calibration Error", ICML workshop 2021, algorithm 1.
    """

    def __init__(
        self,
        classifier: nn.Module,
        knowledge: MetaKnowledge | None = None,
        *,
        fit: Criterion = nll,
        objective: Criterion = dece,
        optimiser: MetaOptimiser = ADAM,
        together: bool = False,
        class_dim: int | None = None,
        ignore_index: int | None = None,
    ) -> None:
        self.knowledge = WeightL2() if knowledge is None else knowledge
        if not isinstance(self.knowledge, MetaKnowledge):
            raise TypeError(
                "knowledge must be a MetaKnowledge, such as WeightL2() or ClassSmoothing(); "
                f"got {self.knowledge!r}."
            )
        self._simulated = SimulatedStep(
            classifier,
            self.knowledge,
            fit=of_all_ranks(check_criterion("fit", fit), together),
            objective=of_all_ranks(check_criterion("objective", objective), together),
            together=together,
            class_dim=class_dim,
            ignore_index=ignore_index,
        )
        self._parameters: Parameters = {**trained_parameters(classifier)}
        detached = {name: own.detach() for name, own in self._parameters.items()}
        self.coefficients = self.knowledge.start(detached)
        self.optimiser = optimiser(list(self.coefficients.values()))

    def penalty(self, predictions: Predictions) -> Tensor:
        """What the training loss of these predictions pays now; a criterion."""
        return self._simulated.penalty(self.coefficients, self._parameters, predictions)

    def update(self, batch: Batch, meta_batch: Batch, *, lr: float | Tensor) -> Tensor:
        """Learn from one training batch and one meta batch, each features and labels.

        - `lr`: of the simulated step; that of the optimiser of the network.

        Returns the meta-objective after the simulated step. One that is not finite, or whose
        gradient is not, is refused and nothing is learnt from it.
        """
        loss, gradients = self.gradient(batch, meta_batch, lr=lr)
        told = watched_value(loss, gradients)
        if not bool(told.isfinite()):
            raise FloatingPointError(
                "the meta-objective and its gradient must be finite; got "
                f"{loss.item():g} as its value. The coefficients are as they were. Check the "
                "features for missing values, or lower the learning rate."
            )
        self.descend(gradients)
        return loss

    def meta_loss(self, batch: Batch, meta_batch: Batch, *, lr: float | Tensor) -> Tensor:
        """The meta-objective after one simulated step, on the graph of all it depends on.

        Descended together with the training loss it is the leak of the released code, which
        adds its gradient by the network to that of the fit. Take it before `update`, as that
        code does.
        """
        # The graph keeps these as they are, whatever is learnt before it is gone through.
        now = {name: own.clone() for name, own in self.coefficients.items()}
        return self._simulated.loss(now, self._parameters, batch, meta_batch, lr)

    def gradient(
        self, batch: Batch, meta_batch: Batch, *, lr: float | Tensor
    ) -> tuple[Tensor, Coefficients]:
        """The meta-objective after one simulated step, and its gradient by the coefficients."""
        return self._simulated.gradient(self.coefficients, self._parameters, batch, meta_batch, lr)

    @torch.no_grad()
    def descend(self, gradients: Coefficients) -> None:
        """Move the coefficients by the step that their optimiser makes of a gradient."""
        for name, own in self.coefficients.items():
            own.grad = gradients[name]
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        for own in self.coefficients.values():
            own.clamp_(*self.knowledge.limits)

    def state_dict(self) -> dict[str, Any]:
        """The coefficients and the state of their optimiser."""
        return {
            "knowledge": repr(self.knowledge),
            "coefficients": self.coefficients,
            "optimiser": self.optimiser.state_dict(),
        }

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        kept = state["coefficients"]
        shapes = {name: tuple(part.shape) for name, part in kept.items()}
        ours = {name: tuple(part.shape) for name, part in self.coefficients.items()}
        if shapes != ours:
            raise ValueError(
                f"state must hold coefficients of the shapes {ours}; got {shapes}. It belongs to "
                f"{state['knowledge']} of another classifier."
            )
        self.optimiser.load_state_dict(state["optimiser"])
        for name, own in self.coefficients.items():
            own.copy_(kept[name])

    def __repr__(self) -> str:
        entries = torch.cat([own.detach().flatten() for own in self.coefficients.values()])
        low, high = (extreme.item() for extreme in entries.aminmax())
        span = f"{len(entries)} coefficients from {low:.1g} to {high:.1g}"
        return f"{type(self).__name__}({self.knowledge}, {span})"


def watched_value(loss: Tensor, gradients: Coefficients) -> Tensor:
    """The loss, or not a number where its gradient is not finite."""
    finite = torch.stack([part.isfinite().all() for part in gradients.values()]).all()
    return torch.where(finite, loss, torch.nan)
