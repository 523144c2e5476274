"""One step of the optimiser: every loss backwards in turn, checked, clipped, taken."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import Optimizer

from ._batch_norm import Buffers
from ._batches import precision
from ._parallel import has_flat_shards, is_parallel, unsynchronised
from ._preconditions import device_of
from ._sound_loss import check_finite, check_on_graph

Part = Callable[[], tuple[Tensor, Mapping[str, Tensor]]]
"""A forward pass: the loss to descend, and the values to report by name."""


class Step:
    """How a step is taken; called with the forward passes whose losses it adds up.

    Each loss goes backwards before the next forward pass, so that only one graph is in memory
    and processes exchange gradients once, at the last.

    A loss or a gradient that is not finite stops training before the optimiser sees it, and
    running statistics are put back to before the step. In float16 a gradient may overflow: the
    scaler leaves out such a step and lowers its scale.

    - `taught`: what forward passes teach, with `state_dict` and `load_state_dict`: a step that
      fails has taught it nothing.
    """

    def __init__(
        self,
        model: nn.Module,
        optimiser: Optimizer,
        *,
        autocast: torch.dtype | None,
        clip: float | None,
        taught: Sequence[Any] = (),
    ) -> None:
        if not (autocast is None or isinstance(autocast, torch.dtype)):
            raise TypeError(
                f"autocast must be torch.bfloat16, torch.float16 or None; got {autocast!r}."
            )
        if clip is not None and not clip > 0:
            raise ValueError(f"clip must be above 0, a norm of the gradient; got {clip!r}.")
        if clip is not None and has_flat_shards(model):
            raise ValueError(
                "clip must be None under FullyShardedDataParallel, each of whose processes knows "
                f"the norm of its own shards alone; got {clip!r}. Use fully_shard instead."
            )
        self.model, self.optimiser, self.clip = model, optimiser, clip
        self.autocast, self.taught = autocast, taught
        self.device = device_of(model)
        self.together = is_parallel(model)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=autocast == torch.float16)
        self._buffers = Buffers(model)
        self._parameters = [p for group in optimiser.param_groups for p in group["params"]]

    def __call__(self, parts: Sequence[Part], at: str) -> dict[str, float]:
        """Take the step and return the value of each loss; `at` says when, should it fail."""
        self._buffers.keep()
        known = [deepcopy(each.state_dict()) for each in self.taught]
        self.optimiser.zero_grad(set_to_none=True)
        values: dict[str, Tensor] = {}
        try:
            for part in parts:
                last = part is parts[-1]
                with nullcontext() if last else unsynchronised(self.model):
                    with precision(self.device, self.autocast):
                        loss, told = part()
                    check_on_graph(loss)
                    self.scaler.scale(loss).backward()
                values |= told
            self.scaler.unscale_(self.optimiser)
            gradients = [each.grad for each in self._parameters if each.grad is not None]
            norm = get_total_norm(gradients)
            numbers = self._numbers(values, norm)
            self._check_finite(numbers, at)
        except BaseException:
            self._buffers.restore()
            for each, before in zip(self.taught, known, strict=True):
                each.load_state_dict(before)
            self.optimiser.zero_grad(set_to_none=True)
            raise
        if self.clip is not None:
            clip_grads_with_norm_(self._parameters, self.clip, norm)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        return {name: numbers[name] for name in values}

    def _numbers(self, values: Mapping[str, Tensor], norm: Tensor) -> dict[str, float]:
        """Every value and the gradient's norm, fetched from the device at once."""
        if hasattr(norm, "full_tensor"):  # shards of several processes
            norm = norm.full_tensor()
        rows = [*values.values(), norm]
        fetched = torch.stack([row.detach().double() for row in rows]).tolist()
        return dict(zip([*values, "gradient"], fetched, strict=True))

    def _check_finite(self, numbers: Mapping[str, float], at: str) -> None:
        watched = dict(numbers)
        if self.scaler.is_enabled():
            del watched["gradient"]
        check_finite(watched, at, together=self.together, device=self.device)
