"""A small run with everything that has a state: dropout, BatchNorm, shuffling, schedules."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import calibrant as cal

CALIBRATION = cal.top_label(cal.rooted(cal.esd_naive))


def samples(n: int, seed: int = 0) -> TensorDataset:
    """Three classes told apart by noisy inputs."""
    seeded = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3
    inputs = torch.randn(n, 5, generator=seeded)
    inputs[torch.arange(n), labels] += 1.0
    return TensorDataset(inputs, labels)


class Augmented(Dataset[tuple[Tensor, Tensor]]):
    """The same samples with noise from two global generators, drawn at every reading."""

    def __init__(self, data: TensorDataset) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        inputs, label = self.data[index]
        return inputs + 0.1 * torch.randn(5) + 0.1 * float(np.random.randn()), label


def network(*, batch_norm: bool = True, dropout: float = 0.2) -> nn.Module:
    torch.manual_seed(7)
    normalise = nn.BatchNorm1d(8) if batch_norm else nn.Identity()
    return nn.Sequential(
        nn.Linear(5, 8), normalise, nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 3)
    )


class GrowingWeight:
    """A weight that changes with what it is told."""

    def __init__(self) -> None:
        self.value = 0.5
        self.told: list[cal.training.CalibrationStatistics] = []

    def update(self, statistics: cal.training.CalibrationStatistics) -> None:
        self.told.append(statistics)
        self.value += 0.01 * float(statistics.calibration)

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = state["value"]


def loader(data: Dataset[Any], batch_size: int = 12, **settings: Any) -> DataLoader[Any]:
    return DataLoader(data, batch_size=batch_size, shuffle=True, **settings)


def same(left: Any, right: Any) -> bool:
    """Equal to the last bit, through dictionaries and lists."""
    if isinstance(left, Tensor):
        return torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


class Interrupted(Exception):
    """What the power cut of a test raises."""


class FailingAfter:
    """A loader that fails once a given number of batches have been read from it."""

    def __init__(self, inner: DataLoader[Any], batches: int) -> None:
        self.inner, self.left = inner, batches

    @property
    def sampler(self) -> Any:
        return self.inner.sampler

    @property
    def batch_sampler(self) -> Any:
        return self.inner.batch_sampler

    @property
    def generator(self) -> Any:
        return self.inner.generator

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.inner:
            if self.left == 0:
                raise Interrupted
            self.left -= 1
            yield batch
