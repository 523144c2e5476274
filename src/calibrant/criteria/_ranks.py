"""The criterion of the whole batch, when the batch is spread over processes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .._checks import check_callable
from ..predictions import Predictions
from ._lifts import Criterion, Lift


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
    return _AcrossRanks(check_callable("criterion", criterion))


@dataclass(frozen=True, repr=False)
class _AcrossRanks(Lift):
    inner: Criterion

    def __call__(self, predictions: Predictions, /) -> Tensor:
        if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
            return self.inner(predictions)
        return self.inner(_Gathered(predictions))


class _Gathered(Predictions):
    """Predictions of all ranks, each statistic fetched when a criterion first reads it."""

    _parts = ("labels", "weights", "labels_per_sample", "_derived", "_local", "_counts")
    _local: Predictions
    _counts: list[int]

    def __init__(self, local: Predictions) -> None:
        own = torch.tensor([len(local), local.weights is not None], device=local.labels.device)
        everyone = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, own)
        counts, weighted = zip(*(rank.tolist() for rank in everyone), strict=True)
        if len(set(weighted)) > 1:
            raise ValueError(
                "weights must be given on every rank or on none; "
                f"got them on {sum(weighted)} of {len(weighted)}."
            )
        parts: dict[str, Any] = {
            "_local": local,
            "_counts": list(counts),
            "_derived": {},
            "labels_per_sample": local.labels_per_sample,
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)
        weights = None if local.weights is None else self.of_all_ranks(local.weights)
        object.__setattr__(self, "labels", self.of_all_ranks(local.labels))
        object.__setattr__(self, "weights", weights)

    @property
    def logits(self) -> Tensor:
        raise RuntimeError(
            "across_ranks never exchanges logits, and this criterion reads them. "
            "Let it read probs or a statistic of each row, such as confidence."
        )

    @property
    def classes(self) -> int:
        return self._local.classes

    def _read(self, name: object, compute: Callable[[], Tensor]) -> Tensor:
        def gathered() -> Tensor:
            if isinstance(name, tuple):
                return self.of_all_ranks(self._local.soft_rank(name[1]))
            return self.of_all_ranks(getattr(self._local, str(name)))

        return super()._read(name, gathered)

    def probs_in_blocks(self) -> None:
        """Never: what all ranks hold is exchanged whole."""
        return

    def mean_of(
        self,
        per_sample: Callable[[Predictions], Tensor],
        *,
        row_by_row: bool = False,
        share: bool = False,
    ) -> Tensor:
        return super().mean_of(lambda _: self.of_all_ranks(per_sample(self._local)), share=share)

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
