"""One simulated step of the classifier layer, and what it does to held-out data."""

from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.func import functional_call, grad, vjp

from ..criteria import Criterion
from ..predictions import Predictions
from ._batches import as_predictions
from ._meta_knowledge import Coefficients, MetaKnowledge
from ._parallel import of_all_ranks
from ._sound_loss import check_on_graph

Batch = tuple[Tensor, Tensor]
"""What the classifier is given for some samples, and their labels."""

Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class SimulatedStep:
    r"""The map from coefficients to a meta-objective, through one step of gradient descent.

    $$\omega \mapsto \mathrm{objective}\bigl(\phi - \alpha\, \nabla_\phi
      (\mathrm{fit} + R_\omega)(\phi; D_\text{train});\; D_\text{meta}\bigr)$$

    The arguments are those of `MetaRegulariser`; `parameters` are $\phi$ and `lr` is $\alpha$.
    """

    classifier: nn.Module
    knowledge: MetaKnowledge
    fit: Criterion
    objective: Criterion
    together: bool
    class_dim: int | None
    ignore_index: int | None

    def loss(
        self,
        coefficients: Coefficients,
        parameters: Parameters,
        batch: Batch,
        meta_batch: Batch,
        lr: float | Tensor,
    ) -> Tensor:
        """The meta-objective after the step, on the graph of everything it is given."""
        with _full_precision(parameters):
            slope = self._slope(coefficients, parameters, batch)
            stepped = {name: own - lr * slope[name] for name, own in parameters.items()}
            return self.objective(self._predict(stepped, meta_batch))

    def gradient(
        self,
        coefficients: Coefficients,
        parameters: Parameters,
        batch: Batch,
        meta_batch: Batch,
        lr: float | Tensor,
    ) -> tuple[Tensor, Coefficients]:
        """The meta-objective after the step, and its gradient by the coefficients alone.

        The chain rule, factor by factor: with several processes each factor is averaged over
        them before the next, so that it is that of one process with all the samples.
        """
        own = {name: each.detach() for name, each in parameters.items()}
        batch, meta_batch = (batch[0].detach(), batch[1]), (meta_batch[0].detach(), meta_batch[1])
        with torch.enable_grad(), _full_precision(parameters):
            slope, pull_back, *_ = vjp(lambda now: self._slope(now, own, batch), coefficients)
            slope = self._mean_over_ranks(slope)
            stepped = {name: (own[name] - lr * slope[name]).requires_grad_() for name in own}
            # Plain autograd here, not a transform: the kernels may compute, and it is faster.
            loss = self.objective(self._predict(stepped, meta_batch))
            check_on_graph(loss)
            slopes = torch.autograd.grad(loss, list(stepped.values()))
            by_parameters = self._mean_over_ranks(dict(zip(stepped, slopes, strict=True)))
            (gradients,) = pull_back({name: -lr * by_parameters[name] for name in own})
        return loss.detach(), self._mean_over_ranks(gradients)

    def penalty(
        self, coefficients: Coefficients, parameters: Parameters, predictions: Predictions
    ) -> Tensor:
        """What training pays on top of its fit, of the samples of all processes."""
        price = partial(self.knowledge.penalty, coefficients, parameters)
        return of_all_ranks(price, self.together)(predictions)

    def _slope(
        self, coefficients: Coefficients, parameters: Parameters, batch: Batch
    ) -> Parameters:
        """The gradient, by the parameters, of what training descends."""

        def regularised(parameters: Parameters) -> Tensor:
            predictions = self._predict(parameters, batch)
            return self.fit(predictions) + self.penalty(coefficients, parameters, predictions)

        slope: Parameters = grad(regularised)(parameters)
        return slope

    def _predict(self, parameters: Parameters, batch: Batch) -> Predictions:
        features, labels = batch
        features = features.to(next(iter(parameters.values())).dtype)
        logits = functional_call(self.classifier, parameters, (features,))
        return as_predictions(logits, labels, self.class_dim, self.ignore_index)

    def _mean_over_ranks(self, parts: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.together:
            parts = {name: part.detach().clone() for name, part in parts.items()}
            for part in parts.values():
                dist.all_reduce(part)
                part /= dist.get_world_size()
        return parts


def _full_precision(parameters: Parameters) -> torch.autocast:
    # Second derivatives underflow in half precision, and one layer is not worth it.
    return torch.autocast(next(iter(parameters.values())).device.type, enabled=False)
