"""CIFAR-10 and CIFAR-100 in their binary version: rows of label bytes and 3,072 pixels."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from .._samples import Samples
from ._files import contents, found

PIXELS = 3 * 32 * 32


def read_cifar(folder: Path, names: Sequence[str], *, classes: int, label_bytes: int) -> Samples:
    """Images and labels of some files, in their order.

    - `names`: of the files, relative to the folder.
    - `label_bytes`: before the pixels of each image, of which the last is the label: 1 for
      CIFAR-10; 2 for CIFAR-100, where the first is the coarse label.

    Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009.
    <https://www.cs.toronto.edu/~kriz/cifar.html>
    """
    rows = np.concatenate([_rows(found(folder, name), label_bytes, classes) for name in names])
    images = torch.from_numpy(rows[:, label_bytes:].reshape(-1, 3, 32, 32))
    return Samples(images, torch.from_numpy(rows[:, label_bytes - 1].astype(np.int64)))


def _rows(path: Path, label_bytes: int, classes: int) -> npt.NDArray[np.uint8]:
    stored = np.frombuffer(contents(path), dtype=np.uint8)
    row = label_bytes + PIXELS
    if len(stored) == 0 or len(stored) % row:
        raise ValueError(
            f"{path} must hold whole images of {row} bytes, {label_bytes} for labels and {PIXELS} "
            f"for pixels; got {len(stored)} bytes. It is damaged, or not the binary version of "
            "CIFAR; fetch it again."
        )
    rows = stored.reshape(-1, row)
    labels = rows[:, label_bytes - 1]
    if labels.max() >= classes:
        raise ValueError(
            f"{path} must hold labels from 0 to {classes - 1}; got {labels.max()} for image "
            f"{labels.argmax()}. It is damaged, or of another data set."
        )
    return rows
