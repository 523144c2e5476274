"""An objective of all micro-batches of a step together, inside transformers' Trainer."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ..training._accumulation import Share, logit_gradients
from ..training._batches import Forward
from ..training._parallel import is_parallel, objective_of_all_ranks
from ..training._random import restore_random_state
from ._loss_function import Objective, nothing


class WholeObjective:
    """Takes the two passes of `accumulate` apart, for Trainer itself goes through the second."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.begin([])

    def begin(self, micro_batches: Sequence[Any]) -> None:
        """Remember the micro-batches of a step."""
        self._batches: list[Any] = list(micro_batches)
        self._shares: list[Share] = []

    def go_through(self, model: nn.Module, forward: Forward) -> None:
        """The first pass over the micro-batches of a step, if there are several.

        Not before the step begins: a resumed run restores its generators once it has its batches.
        """
        batches, self._batches = self._batches, []
        if len(batches) > 1:
            loss, self._shares = logit_gradients(
                model.train(), batches, self.objective, forward=forward
            )
            self._share_of_loss = loss / len(batches)

    def next_share(self, model: nn.Module) -> Share | None:
        """What the next micro-batch has of the whole; to be asked for before its forward pass."""
        if not (self._shares and model.training):
            return None
        share = self._shares.pop(0)
        restore_random_state(share.random)
        return share

    def loss(self, model: nn.Module, logits: Tensor, labels: Tensor, share: Share | None) -> Tensor:
        """One micro-batch's share of the loss, with its gradient; all of it where it is alone."""
        if share is not None:
            sent = (logits * share.gradient).sum()  # has the gradient of the whole, by these logits
            return sent - sent.detach() + self._share_of_loss
        together = is_parallel(model)
        # Beside other processes it must ask them, whatever it has itself.
        if len(labels) == 0 and not together:
            return nothing(logits)
        judged: Tensor = objective_of_all_ranks(self.objective, together)(logits, labels)
        return judged
