"""Handwritten digits through noise: a data set that trains in a second and needs no download."""

from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from .data import Samples, Splits
from .data._splitting import split_indices

NOISE = 0.35  # standard deviation, where pixels run from 0 to 1
TEST, VALIDATION = 400, 200


def digits(seed: int, split_folder: Path | None = None) -> Splits[Samples]:
    """The 1,797 digits of scikit-learn, each with noise of its own, drawn once.

    - `seed`: which of the 1,397 that are not test images are for validation.
    - `split_folder`: where that is kept, as for `load`.

    >>> splits = digits(seed=0)
    >>> len(splits.train), len(splits.validation), len(splits.test())
    (1197, 200, 400)
    """
    images, labels = _noisy()
    shuffled = torch.randperm(len(labels), generator=Generator().manual_seed(0))
    test, rest = shuffled[:TEST], shuffled[TEST:]
    train, validation = split_indices(
        labels[rest], VALIDATION, dataset="digits", seed=seed, folder=split_folder
    )
    everything = Samples(images, labels)
    return Splits(
        train=everything[rest[train]],
        validation=everything[rest[validation]],
        test=lambda: everything[test],
        classes=10,
    )


def _noisy() -> tuple[Tensor, Tensor]:
    try:
        datasets: Any = import_module("sklearn.datasets")
    except ImportError as missing:
        raise ImportError(
            "the digits need scikit-learn: pip install 'calibrant[sklearn]'"
        ) from missing
    pixels, labels = datasets.load_digits(return_X_y=True)
    images = torch.from_numpy(pixels).float().reshape(-1, 1, 8, 8) / 16
    noise = torch.randn(images.shape, generator=Generator().manual_seed(0))
    return images + NOISE * noise, torch.from_numpy(labels).long()
