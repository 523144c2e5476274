"""Who computes: the kernels or the definitions."""

import os
from importlib.util import find_spec
from threading import local
from types import TracebackType
from typing import Literal, get_args

import torch
from torch import Tensor

from ._stand_ins import stands_in

Choice = Literal["auto", "fused", "definition"]

_choice: Choice = "auto"
_in_place = False


class use:
    """Say who computes row statistics and measures: the kernels or the definitions.

    - `"auto"`: kernels where they are faster. On CUDA: of rows from 16 million logits on, of
      measures up to 65,536 samples, and of both in a graph; a `Penalised` of this package's
      criteria replays small batches as `captured` does. On a CPU: of rows, some at a time, from
      one million logits on where gradients are recorded, and from 32,768 on where only values are
      asked. Else the definitions. The default.
    - `"fused"`: kernels of CUDA at any size; a tensor elsewhere is refused with a sentence.
    - `"definition"`: the definitions in torch operators, everywhere.

    - `in_place`: where kernels compute, write the gradient of the logits over the logits, which
      saves as much memory as they take. Legal when the objective is the last to read them, and
      goes backward once: afterwards they hold their gradient. Where torch can see that somebody
      else needs them it refuses, as after any change in place; who reads them without a graph
      (an accuracy after `backward()`) is not seen. A leaf, which is nobody's output, and a view
      that repeats memory are refused. Where definitions compute, small batches among them, and in
      compiled graphs, which plan their own memory, nothing is written over.

    Called, it holds from then on; in a `with` statement, until its end. It concerns the whole
    process. Second derivatives and function transforms such as `vmap` always take the
    definitions. A gradient is computed by whoever computed its value. Kernels keep the logits for
    it, where some definitions keep their logarithms of probabilities: logits that are changed in
    place before `backward()` are refused by torch. On a CPU the room of the gradient is made with
    the value, and holds the probabilities until then.

    >>> import torch
    >>> from calibrant import Predictions, kernels, nll
    >>> with kernels.use("definition"):
    ...     nll(Predictions(torch.zeros(2, 4), torch.tensor([0, 3])))
    tensor(1.3863)
    """

    def __init__(self, choice: Choice, *, in_place: bool = False) -> None:
        global _choice, _in_place
        if choice not in get_args(Choice):
            raise ValueError(
                f'choice must be "auto", "fused" or "definition"; got {choice!r}. '
                'The default is "auto".'
            )
        if choice == "fused" and find_spec("triton") is None:
            raise ValueError(
                'kernels.use("fused") needs Triton, which is not installed. '
                "pip install calibrant[kernels]"
            )
        self._own, self._before = (choice, in_place), (_choice, _in_place)
        _choice, _in_place = self._own
        self._holds = True

    def __enter__(self) -> None:
        global _choice, _in_place
        if not self._holds:  # a second time
            self._before = _choice, _in_place
            _choice, _in_place = self._own
            self._holds = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        global _choice, _in_place
        _choice, _in_place = self._before
        self._holds = False


class _Recording(local):
    """Whether this thread captures a graph: an objective may hold another."""

    here = False


recording = _Recording()


def as_it_is() -> bool:
    """Whether nobody has said who computes, so that a graph may be replayed instead."""
    return _choice == "auto" and not _in_place


def in_place(logits: Tensor) -> bool:
    """Whether the gradient of these logits is to be written over them, if it may be."""
    if not (_in_place and logits.requires_grad):
        return False
    shared = any(s == 0 and n > 1 for s, n in zip(logits.stride(), logits.shape, strict=True))
    if logits.is_leaf or shared:
        raise ValueError(
            "in_place writes the gradient over the logits, which must be the output of a network "
            f"and have memory of their own; got {'an expanded view' if shared else 'a leaf'}. "
            'Use kernels.use("auto").'
        )
    return True


def interpreted() -> bool:
    """Whether Triton interprets its kernels, as it does for tests on a CPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def in_charge(x: Tensor, least: int = 1) -> bool:
    """Whether kernels compute on `x`; `least` is the size from which they are faster."""
    if _choice == "definition" or x.numel() == 0:
        return False
    # What counts against kernels at small sizes are their launches, and a graph has none.
    if _choice == "auto" and not (x.is_cuda and (x.numel() >= least or recording.here)):
        return False
    if torch.compiler.is_compiling():
        plain = True
    else:
        # Stand-ins of transforms, of other subclasses and dual numbers hold no plain memory.
        plain = type(x) in (Tensor, torch.nn.Parameter) and not stands_in(x)
    if plain and not x.is_cuda and not interpreted():
        raise ValueError(
            f'kernels run on CUDA, and kernels.use("fused") asks for them; got a tensor on '
            f'{x.device}. Move it there, or kernels.use("auto").'
        )
    return plain and x.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
