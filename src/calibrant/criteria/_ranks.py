"""The criterion of the whole batch, when the batch is spread over processes."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ..predictions import Predictions
from ._lifts import Criterion


def across_ranks(criterion: Criterion) -> Criterion:
    """Judge the global batch under `torch.distributed`, not each rank's share of it.

    Calibration is a property of a batch, not of samples, so the mean of local values is not
    the global value. Every rank gets the value of the whole batch, and after
    `DistributedDataParallel` has averaged them the gradients are those of one process that saw
    it all, also when ranks hold unequal numbers of samples. Wrap the fit as well
    (`across_ranks(nll)`) if they do.

    Only the statistics the criterion reads are exchanged, such as one confidence and one
    outcome per sample; logits never are. (`class_wise` reads a chance per class.)

    Without a process group, or with one process, it is the criterion itself. Every rank must
    call it, in the same order. The exchange is not part of a compiled graph.
    """

    @wraps(criterion)
    def of_all(predictions: Predictions) -> Tensor:
        if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
            return criterion(predictions)
        return criterion(_Gathered(predictions))

    return of_all


class _Gathered(Predictions):
    """Predictions of all ranks, each statistic fetched when a criterion first reads it."""

    _parts = (*Predictions._parts, "_local", "_counts")
    _local: Predictions
    _counts: list[int]

    def __init__(self, local: Predictions) -> None:
        own = torch.tensor([len(local)], device=local.labels.device)
        counts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(counts, own)
        parts: dict[str, Any] = {
            "_local": local,
            "_counts": [int(count) for count in counts],
            "_derived": {},
            "labels_per_sample": local.labels_per_sample,
            # The number of classes without a row of logits: reading further must fail.
            "logits": local.logits[:0],
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)
        weights = None if local.weights is None else self.of_all_ranks(local.weights)
        object.__setattr__(self, "labels", self.of_all_ranks(local.labels))
        object.__setattr__(self, "weights", weights)

    def _read(self, name: object, compute: Callable[[], Tensor]) -> Tensor:
        if name not in self._derived:
            local = (
                getattr(self._local, name)
                if isinstance(name, str)
                else self._local.soft_rank(name[1])  # type: ignore[index]
            )
            self._derived[name] = self.of_all_ranks(local)
        return self._derived[name]

    def mean_of(self, per_sample: Callable[[Predictions], Tensor]) -> Tensor:
        return super().mean_of(lambda _: self.of_all_ranks(per_sample(self._local)))

    def of_all_ranks(self, rows: Tensor) -> Tensor:
        gathered: Tensor = _Gather.apply(rows, self._counts)  # type: ignore[no-untyped-call]
        return gathered


class _Gather(torch.autograd.Function):
    """Rows of all ranks, in the order of ranks; differentiable in one's own."""

    @staticmethod
    def forward(local: Tensor, counts: list[int]) -> Tensor:
        padded = local.new_zeros(max(counts), *local.shape[1:])
        padded[: len(local)] = local
        everyone = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(everyone, padded)
        return torch.cat([rows[:n] for rows, n in zip(everyone, counts, strict=True)])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, list[int]], output: Tensor) -> None:
        ctx.counts = inputs[1]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        # Each rank holds the gradient of the same global value by its own rows. Their sum over
        # ranks is what one process would get, and the averaging that follows divides by ranks.
        own = upstream.split(ctx.counts)[dist.get_rank()]
        return own * len(ctx.counts), None

    @staticmethod
    def vmap(*_: Any) -> Any:
        """Lifts map over weights, never over the statistics that are exchanged."""
        raise NotImplementedError("statistics of all ranks cannot be mapped over")
