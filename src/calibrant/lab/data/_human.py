"""What people said CIFAR-10's test images show: a truth that is not always one class."""

import io
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ._files import found

FILE = "cifar10/human-labels.npz"


def has_human_labels(folder: Path) -> bool:
    """Whether what people said lies in the folder; nothing of it is read."""
    return _file(folder) is not None


def read_human_labels(folder: Path) -> Tensor:
    """The share of people who gave each class to each test image, of shape (10,000, 10).

    From `human-labels.npz`, with how many of about fifty people chose each class in `counts`,
    one row for each test image in the official order; or from `cifar10h-probs.npy` or
    `cifar10h-counts.npy` as the authors release them.

    Peterson et al., "Human Uncertainty Makes Classification More Robust", ICCV 2019.
    """
    path = _file(folder)
    if path is None:
        raise FileNotFoundError(
            f"{folder / FILE} must be there for human labels; it is not. Put there "
            "cifar10h-probs.npy from https://github.com/jcpeterson/cifar-10h"
        )
    return _shares(path)


def _file(folder: Path) -> Path | None:
    for name in (FILE, "cifar10h-counts.npy", "cifar10h-probs.npy"):
        with suppress(FileNotFoundError):
            return found(folder, name)
    return None


def _shares(path: Path) -> Tensor:
    try:
        stored = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
        counts = stored["counts"] if isinstance(stored, np.lib.npyio.NpzFile) else stored
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} must hold an array of counts; could not be read: {error}."
        ) from error
    said = torch.from_numpy(np.asarray(counts, dtype=np.float64))
    if said.ndim != 2 or said.shape[1] != 10 or (said < 0).any() or (said.sum(dim=1) <= 0).any():
        raise ValueError(
            f"{path} must hold a row of ten counts for each image, not all zero; got shape "
            f"{tuple(said.shape)}."
        )
    return said / said.sum(dim=1, keepdim=True)
