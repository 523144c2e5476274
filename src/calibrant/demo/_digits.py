"""Real images, offline: scikit-learn's digits, each seen through noise of its own."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

NOISE = 0.3  # standard deviation, where pixels run from 0 to 1
FOLDS, SLICE, BATCH = 3, 0.1, 64
_SEED = 2024


@dataclass(frozen=True)
class Fold:
    """One split: what is fitted, two slices kept from it, and images nobody has seen.

    - `slice_`: on which calibration is judged while training.
    - `validation`: to which a temperature is fitted afterwards.
    """

    majority: TensorDataset
    slice_: TensorDataset
    validation: TensorDataset
    test: TensorDataset

    @property
    def everything(self) -> TensorDataset:
        """Majority and slice together, for training that keeps nothing back."""
        both = zip(self.majority.tensors, self.slice_.tensors, strict=True)
        return TensorDataset(*map(torch.cat, both))


def folds() -> Iterator[Fold]:
    """Splits in which every image is a test image once. The noise is drawn once, too."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as missing:
        raise ImportError("the demo needs scikit-learn: pip install 'calibrant[demo]'") from missing
    pixels, digits = load_digits(return_X_y=True)
    fixed = torch.Generator().manual_seed(_SEED)
    images = torch.from_numpy(pixels).float() / 16
    images += NOISE * torch.randn(images.shape, generator=fixed)
    labels = torch.from_numpy(digits).long()
    parts = torch.randperm(len(images), generator=fixed).chunk(FOLDS)
    for k, test in enumerate(parts):
        rest = torch.cat([part for j, part in enumerate(parts) if j != k])
        kept = round(SLICE * len(rest))
        chosen = rest.split([len(rest) - 2 * kept, kept, kept])
        yield Fold(*(TensorDataset(images[own], labels[own]) for own in (*chosen, test)))


def batches(samples: TensorDataset) -> DataLoader[tuple[Tensor, ...]]:
    """Shuffled batches, each read at once and not image by image."""
    order = BatchSampler(RandomSampler(samples), BATCH, drop_last=False)
    return DataLoader(samples, sampler=order, batch_size=None)
