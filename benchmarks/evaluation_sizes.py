"""At which sizes quantities are measured, and the least work that could do."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from rivals import Data
from torch import Tensor

_MIB = 2**20
_BLOCK = 2**17  # numbers: half a megabyte


@dataclass(frozen=True)
class Size:
    """How many samples and classes; one class stands for the chance of the second of two."""

    name: str
    n: int
    classes: int

    @property
    def binary(self) -> bool:
        """Whether only the chance of class 1 is given."""
        return self.classes == 1

    @property
    def numbers(self) -> int:
        """Numbers in the table."""
        return self.n * self.classes

    @property
    def mib(self) -> float:
        """What the table and its labels take."""
        return (4 * self.numbers + 8 * self.n) / _MIB

    def data(self) -> Data:
        """Over-confident predictions in float32, the same at each call."""
        generator = torch.Generator().manual_seed(self.n + self.classes)
        if self.binary:
            chance = torch.rand(self.n, generator=generator)
            labels = torch.bernoulli(0.1 + 0.8 * chance, generator=generator).long()
            return Data(chance, labels, chance.logit())
        logits = torch.empty(self.n, self.classes).normal_(0, 4, generator=generator)
        probs, labels = torch.empty_like(logits), torch.empty(self.n, dtype=torch.long)
        rows = max(1, _BLOCK // self.classes)
        for start in range(0, self.n, rows):
            part = slice(start, start + rows)
            torch.softmax(logits[part], dim=1, out=probs[part])
            truth = (logits[part] / 1.5).softmax(dim=1)
            labels[part] = torch.multinomial(truth, 1, generator=generator)[:, 0]
        return Data(probs, labels, logits)


SIZES = (
    Size("10k by 10", 10_000, 10),
    Size("50k by 1000", 50_000, 1_000),
    Size("1M by 100", 1_000_000, 100),
    Size("1M binary", 1_000_000, 1),
)


def _largest(data: Data) -> float:
    return float(data.probs.amax(dim=-1).view(-1)[0])


def _read(data: Data) -> float:
    return float(data.probs.sum())


def _log_sum_exp(data: Data) -> float:
    """One pass in blocks that stay in the cache, in room that is reused."""
    n, classes = data.logits.shape
    rows = max(1, torch.get_num_threads() * _BLOCK // classes)
    found, room = torch.empty(n), torch.empty(rows, classes)
    for start in range(0, n, rows):
        block: Tensor = data.logits[start : start + rows]
        largest = block.amax(dim=1, keepdim=True)
        shifted = torch.sub(block, largest, out=room[: len(block)])
        torch.sum(shifted.exp_(), dim=1, out=found[start : start + rows])
        found[start : start + rows].log_().add_(largest[:, 0])
    return float(found[0])


FLOORS: dict[str, Callable[[Data], float]] = {
    "read": _read,
    "top-label ECE": _largest,
    "top-label ECE of logits": _log_sum_exp,
}
