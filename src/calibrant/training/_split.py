"""Keep a slice of the training set from the likelihood, to judge calibration on."""

from collections.abc import Sequence
from operator import index
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, Subset


def split_for_calibration(
    dataset: Dataset[Any] | Sequence[Any],
    fraction: float = 0.1,
    *,
    seed: int,
    labels: Tensor | Sequence[int] | None = None,
) -> tuple[Subset[Any], Subset[Any]]:
    """The majority of a data set, to fit, and a held-out slice, to judge calibration on.

    A network that has memorised its training samples looks calibrated on them, so calibration
    must be judged on others. The ESD paper keeps a tenth.

    - `dataset`: anything with a length, indexed from 0.
    - `fraction`: of it that is held out, rounded to whole samples.
    - `seed`: which slice; the same seed gives the same one.
    - `labels`: the class of every sample, for a slice in which each class has its share.

    Both parts read the same data set, so augmentation meant for training applies to both, as
    in the authors' code.

    >>> from torch.utils.data import TensorDataset
    >>> _ = torch.manual_seed(0)
    >>> digits = TensorDataset(torch.randn(50, 4), torch.arange(50) % 2)
    >>> majority, held_out = split_for_calibration(digits, 0.2, seed=0, labels=digits.tensors[1])
    >>> len(majority), len(held_out), sum(int(label) for _, label in held_out)
    (40, 10, 5)
    """
    n = len(dataset)  # type: ignore[arg-type]
    held_out = round(fraction * n)
    if not 0 < fraction < 1 or not 0 < held_out < n:
        raise ValueError(
            f"fraction must leave samples on both sides; got {fraction!r} of {n} samples. "
            "The papers hold out 0.1."
        )
    shuffled = torch.randperm(n, generator=torch.Generator().manual_seed(_whole(seed)))
    if labels is not None:
        shuffled = _spread(shuffled, torch.as_tensor(labels), n)
    majority = shuffled[held_out:]
    indexed: Any = dataset
    return Subset(indexed, majority.tolist()), Subset(indexed, shuffled[:held_out].tolist())


def _whole(seed: int) -> int:
    try:
        return index(seed)  # NumPy's whole numbers are welcome too
    except TypeError:
        raise TypeError(f"seed must be a whole number; got {seed!r}.") from None


def _spread(shuffled: Tensor, labels: Tensor, n: int) -> Tensor:
    """The same samples in an order of which every beginning has each class's share, nearly."""
    if labels.shape != (n,):
        raise ValueError(
            f"labels must hold one class per sample, {n} in all; got shape {tuple(labels.shape)}."
        )
    quantile = torch.empty(n, dtype=torch.float64)
    for label in labels.unique():
        members = shuffled[labels[shuffled] == label]
        # Where in its class a sample stands, between 0 and 1: classes are merged by it.
        quantile[members] = (torch.arange(len(members)) + 0.5).double() / len(members)
    return shuffled[quantile[shuffled].argsort(stable=True)]
