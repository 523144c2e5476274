"""Statistics of rows on the CPU, where gradients are asked: some rows at a time, both ways."""

from functools import partial

import torch
from torch import Tensor

from .._checks import is_plain
from ..predictions import RowKernels
from . import _switch
from ._cpu_node import CHANNELS, channels, soft_rank, statistic
from ._stand_ins import stands_in
from ._table import KEPT

# Below this tables of log-probabilities stay in the cache, and torch operators, which need no
# Python on the way back, are done first.
_WORTH_IT = 2**20

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _takes(logits: Tensor) -> bool:
    """Whether these are worth blocks, and a gradient is recorded on plain memory of the CPU."""
    return (
        _switch._choice != "definition"
        and logits.numel() >= _WORTH_IT
        and logits.requires_grad
        and torch.is_grad_enabled()
        and logits.dtype in _FLOATS
        and is_plain(logits)
        and not stands_in(logits)
    )


ON_CPU_GRAPH = RowKernels(
    _takes,
    channels,
    soft_rank,
    on_request={name: partial(statistic, name) for name in (*KEPT, "predicted")},
    mark=CHANNELS["confidence"],
)
"""Each statistic when it is asked for."""
