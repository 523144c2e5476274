"""A whole objective of small batches as one launch: a captured CUDA graph."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .._checks import check_callable, is_transformed
from . import _switch

# Beyond this a pass over the logits takes longer than the launches that are saved.
_MOST_LOGITS = 2**24
# Each keeps memory of its own; the last batch of an epoch may have a shape of its own.
_MOST_SHAPES = 8
_WARM_UP = 3

Objective = Callable[..., Tensor]


def captured(objective: Objective) -> nn.Module:
    """The same objective, its launches on a GPU recorded once and replayed as one.

    At the size of a training batch an objective costs what Python takes to launch its operators.
    Here value and gradient by the logits are captured as a CUDA graph when a shape is first seen;
    afterwards a call copies its tensors in, replays it and copies the two out, whatever the
    objective. Nothing of a call lives in the graph, so that calls may be outstanding together.

    - `objective`: called `(logits, labels)`, such as `Penalised`. Settings are read when a shape is
      captured; the `weight` of a `Penalised` may change later.

    Up to eight shapes are captured, of up to 16 million logits. Everything else takes the objective
    as it is: other devices, calls without a gradient, compilers, function transforms, a capture of
    your own, and objectives that cannot be captured, such as those with `ignore_index` or
    `across_ranks`, which wait for the device. Second derivatives are those of the objective.

    >>> import torch
    >>> from calibrant import Penalised, esd, kernels, nll, top_label
    >>> objective = kernels.captured(Penalised(nll, top_label(esd), weight=0.5))
    >>> objective(torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 0, 0]))
    tensor(0.4817)
    """
    return _Captured(check_callable("objective", objective))


class _Captured(nn.Module):
    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self.objective = objective
        self._graphs: dict[Hashable, _Graph | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        # A graph belongs to this process and to this object.
        return self.__dict__ | {"_graphs": {}}

    def forward(self, logits: Tensor, *others: Tensor) -> Tensor:
        """The objective of one batch."""
        if not _can_be_captured(logits, *others):
            return self.objective(logits, *others)
        key = self._key(logits, *others)
        if key not in self._graphs:
            if len(self._graphs) == _MOST_SHAPES:
                return self.objective(logits, *others)
            self._graphs[key] = _graph_of(self.objective, logits, *others)
        graph = self._graphs[key]
        if graph is None:
            return self.objective(logits, *others)
        value: Tensor = _Replayed.apply(logits, graph, self.objective, *others)  # type: ignore[no-untyped-call]
        return value

    def _key(self, *tensors: Tensor) -> Hashable:
        """Whatever a graph depends on besides the numbers in its tensors."""
        weight = getattr(self.objective, "weight", None)
        return (
            tuple((x.shape, x.dtype, x.device) for x in tensors),
            torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda"),
            _switch._choice,
            id(weight) if isinstance(weight, Tensor) else weight,
        )


@dataclass(frozen=True)
class _Graph:
    graph: Any
    inputs: list[Tensor]
    value: Tensor
    gradient: Tensor

    def replayed(self, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        for room, given in zip(self.inputs, tensors, strict=True):
            room.copy_(given)
        self.graph.replay()
        return self.value.clone(), self.gradient.clone()


def _can_be_captured(logits: Tensor, *others: Tensor) -> bool:
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return False
    return (
        logits.is_cuda
        and logits.requires_grad
        and 0 < logits.numel() <= _MOST_LOGITS
        and not any(x.requires_grad for x in others)
        and not any(is_transformed(x) for x in (logits, *others))
        and not torch.cuda.is_current_stream_capturing()
    )


def _graph_of(objective: Objective, *tensors: Tensor) -> _Graph | None:
    """Value and gradient as a graph, or nothing where they cannot be captured."""
    inputs = [x.detach().clone() for x in tensors]
    inputs[0].requires_grad_()

    def both() -> tuple[Tensor, Tensor]:
        value = objective(*inputs)
        (gradient,) = torch.autograd.grad(value, inputs[0])
        return value.detach(), gradient

    here = torch.cuda.current_stream(inputs[0].device)
    aside = torch.cuda.Stream(inputs[0].device)
    aside.wait_stream(here)
    try:
        with torch.cuda.device(inputs[0].device), torch.cuda.stream(aside):
            for _ in range(_WARM_UP):
                both()
            graph = torch.cuda.CUDAGraph()
            # Other threads, such as one that loads data, may use the device meanwhile.
            with torch.cuda.graph(graph, stream=aside, capture_error_mode="thread_local"):
                value, gradient = both()
    except RuntimeError:
        # It waits for the device, or needs a call that no graph can hold.
        return None
    finally:
        here.wait_stream(aside)
    return _Graph(graph, [x.detach() for x in inputs], value, gradient)


class _Replayed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, graph: _Graph, objective: Objective, *others: Tensor
    ) -> Tensor:
        value, gradient = graph.replayed(logits, *others)
        ctx.objective = objective
        ctx.save_for_backward(logits, gradient, *others)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        logits, gradient, *others = ctx.saved_tensors
        nothing = (None,) * (2 + len(others))
        if torch.is_grad_enabled():
            # Somebody differentiates the gradient: it is derived anew, where it is recorded.
            def plain(z: Tensor) -> Tensor:
                value: Tensor = ctx.objective(z, *others)
                return value

            (by_logits,) = torch.func.vjp(plain, logits)[1](upstream)
            return by_logits, *nothing
        return (upstream * gradient).to(logits.dtype), *nothing
