"""Long columns of events, some read after others, so that none is converted or copied whole."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._checks import HALF, all_up_to, check_event_values, numbers_of
from ._blocks import only_values, unrecorded

Vector = NDArray[Any]

# Some vectors of this length stay in the cache together. One thread reads all of them: each step
# is over before another has got its turn.
PART = 2**14


class Part(NamedTuple):
    """Some events: confidence in float32 or float64, outcomes of any type, weights in float64.

    - `inside`: whether every confidence is known to lie between 0 and 1.
    """

    confidence: Vector
    outcome: Vector
    weights: Vector | None
    inside: bool


class Events:
    """Events in plain memory, of which only values are asked: read by parts, as often as one likes.

    - `read`: gives those of a slice, which may be overwritten when it is called again.
    - `n`: how many there are.
    - `dtype`: what type their confidence was given in. `weighted`: whether they have weights.
    """

    def __init__(
        self, read: Callable[[slice], Part], n: int, *, dtype: torch.dtype, weighted: bool
    ) -> None:
        self._read, self._n, self.dtype, self.weighted = read, n, dtype, weighted

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Part]:
        return self.by(PART)

    def by(self, some: int) -> Iterator[Part]:
        """So many at a time, and no more than make a part."""
        for start in range(0, self._n, some):
            yield self._read(slice(start, min(start + some, self._n)))

    @property
    def narrow(self) -> bool:
        """Whether the confidence was given in half precision."""
        return self.dtype in HALF


def events_of(confidence: Tensor, outcome: Tensor, weights: Tensor | None) -> Events | None:
    """Vectors as events; none where definitions must compute.

    Values are looked at while they are read. Only where some part is not plainly between 0 and 1
    are all asked how far off they are, once, which ends in a sentence if that is too far.
    """
    sure, came = vector_of(confidence), vector_of(outcome)
    counts = None if weights is None else vector_of(weights)
    if sure is None or came is None or (counts is None) != (weights is None):
        return None

    @cache
    def check() -> None:
        check_event_values(confidence, outcome)

    def read(part: slice) -> Part:
        given, happened = sure[part], came[part]
        own = None if counts is None else counts[part].astype(np.float64, copy=False)
        inside = all_up_to(1, given)
        if not (inside and all_up_to(1, happened)):
            check()
        return Part(given, happened, own, inside)

    return Events(read, len(sure), dtype=confidence.dtype, weighted=counts is not None)


def vector_of(x: Tensor) -> Vector | None:
    """As NumPy has it, which has no half precision worth the name; none if more than values are."""
    if x.dtype in HALF:
        return numbers_of(x.float()) if unrecorded(x) else None
    return numbers_of(x) if only_values(x) else None
