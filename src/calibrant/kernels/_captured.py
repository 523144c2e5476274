"""A whole objective of small batches as one launch: a captured CUDA graph."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from .._checks import check_callable, is_transforming
from . import _switch

# Beyond this a pass over the logits takes longer than the launches that are saved.
_MOST_LOGITS = 2**24
# Each keeps memory of its own; the last batch of an epoch may have a shape of its own.
_MOST_KINDS = 8
# Kinds whose calls are counted: lengths of texts have no end.
_MOST_COUNTED = 256
_WARM_UP = 3

Objective = Callable[..., Tensor]


def captured(objective: Objective) -> nn.Module:
    """The same objective, its launches on a GPU recorded once and replayed as one.

    At the size of a training batch an objective costs what Python takes to launch its operators.
    Here value and gradient by the logits are captured as a CUDA graph when a shape is first seen;
    afterwards a call copies its tensors in, replays it and copies the value out, whatever the
    objective. The gradient stays in the graph until it is asked for; where calls are outstanding
    together, all but the last are replayed once more.

    - `objective`: called `(logits, labels)`. Settings are read when a shape is captured; the
      `weight` of a `Penalised` may change later.

    A `Penalised` of this package's criteria needs no such call: it captures what it sees often.
    This is for the rest: objectives with parts of your own, and batches of more than a million
    logits. What else they do, such as printing, is done when a shape is captured and no more.

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
        self.replays = Replays()

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Those pickled by earlier versions have no replays.
        super().__setstate__({"replays": Replays()} | state)  # type: ignore[no-untyped-call]

    def forward(self, logits: Tensor, *others: Any, **named: Any) -> Tensor:
        """The objective of one batch; what is named, or is no tensor, is not captured."""
        if named or not all(isinstance(x, Tensor) for x in others):
            value: Tensor = self.objective(logits, *others, **named)
            return value
        weight = getattr(self.objective, "weight", None)
        price = id(weight) if isinstance(weight, Tensor) else weight
        return self.replays.computed(self.objective, (price,), logits, *others)


class Replays:
    """The graphs of one objective, by kind of batch.

    - `patience`: calls of a kind before it is captured, which takes as long as some calls.
    - `most`: logits of a batch that is captured.
    """

    def __init__(self, patience: int = 0, most: int = _MOST_LOGITS) -> None:
        self.patience, self.most = patience, most
        self.graphs: dict[Hashable, _Graph | None] = {}
        self._calls: Counter[Hashable] = Counter()
        self._one_at_a_time = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # Graphs belong to this process and to this object.
        return Replays, (self.patience, self.most)

    def computed(
        self, objective: Objective, settings: tuple[Hashable, ...], logits: Tensor, *others: Tensor
    ) -> Tensor:
        """The objective of one batch, which `settings` and its tensors alone decide."""
        if not 0 < logits.numel() <= self.most or not _can_be_captured(logits, *others):
            return objective(logits, *others)
        graph = self._graph(objective, (*settings, *_kind_of(logits, *others)), logits, *others)
        if graph is None:
            return objective(logits, *others)
        value: Tensor = _Replayed.apply(logits, (graph, objective, others))  # type: ignore[no-untyped-call]
        return value

    def _graph(self, objective: Objective, kind: Hashable, *tensors: Tensor) -> "_Graph | None":
        if (known := self.graphs.get(kind)) is not None:
            return known
        # Threads of one process may share an objective, and captures must not meet.
        with self._one_at_a_time:
            if kind not in self.graphs:
                if len(self.graphs) == _MOST_KINDS or self._calls[kind] < self.patience:
                    self._count(kind)
                    return None
                self.graphs[kind] = _graph_of(objective, *tensors)
            return self.graphs[kind]

    def _count(self, kind: Hashable) -> None:
        if len(self._calls) > _MOST_COUNTED:
            self._calls.clear()
        self._calls[kind] += 1


def _kind_of(*tensors: Tensor) -> tuple[Hashable, ...]:
    """Whatever a graph depends on besides the numbers in its tensors."""
    return (
        *[(x.shape, x.dtype, x.device) for x in tensors],
        torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda"),
        _switch._choice,
        _stream_of(tensors[0]),
    )


def _stream_of(x: Tensor) -> int:
    """Streams run side by side, and a graph has room for one batch."""
    # `torch.cuda.current_stream` makes an object, for as long as a launch takes.
    return torch._C._cuda_getCurrentRawStream(x.device.index) if x.is_cuda else 0


@dataclass
class _Graph:
    graph: Any
    inputs: list[Tensor]
    value: Tensor
    gradient: Tensor
    turn: int = 0
    one_at_a_time: Lock = field(default_factory=Lock)

    def replayed(self, tensors: Iterable[Tensor]) -> tuple[Tensor, int]:
        """The value, and the turn in which the gradient is that of these tensors."""
        with self.one_at_a_time:
            self._replay(tensors)
            return self.value.clone(), self.turn

    def gradient_of(self, turn: int, tensors: Iterable[Tensor], upstream: Tensor) -> Tensor:
        """That of a turn, replayed once more if others came after it."""
        with self.one_at_a_time:
            if turn != self.turn:
                self._replay(tensors)
            return upstream * self.gradient

    def _replay(self, tensors: Iterable[Tensor]) -> None:
        for room, given in zip(self.inputs, tensors, strict=True):
            room.copy_(given)
        self.graph.replay()
        self.turn += 1


def _can_be_captured(logits: Tensor, *others: Tensor) -> bool:
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return False
    for other in others:
        if other.requires_grad:
            return False
    return (
        logits.requires_grad
        and not is_transforming()
        and not _switch.recording.here
        and _on_a_gpu(logits)
    )


def _on_a_gpu(logits: Tensor) -> bool:
    return logits.is_cuda and not torch.cuda.is_current_stream_capturing()


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
    _switch.recording.here = True
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
        _switch.recording.here = False
        here.wait_stream(aside)
    return _Graph(graph, [x.detach() for x in inputs], value, gradient)


class _Replayed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, call: tuple[_Graph, Objective, tuple[Tensor, ...]]
    ) -> Tensor:
        graph, objective, others = call
        value, turn = graph.replayed((logits, *others))
        ctx.call = graph, objective, turn
        ctx.save_for_backward(logits, *others)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        graph, objective, turn = ctx.call
        tensors = ctx.saved_tensors
        if torch.is_grad_enabled():
            # Somebody differentiates the gradient: it is derived anew, where it is recorded.
            logits, *others = tensors

            def plain(z: Tensor) -> Tensor:
                value: Tensor = objective(z, *others)
                return value

            (by_logits,) = torch.func.vjp(plain, logits)[1](upstream)
            return by_logits, None
        return graph.gradient_of(turn, tensors, upstream), None
