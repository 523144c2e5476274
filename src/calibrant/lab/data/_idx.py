"""MNIST and its kin in the idx format: a magic number, the sizes, the bytes."""

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from .._samples import Samples
from ._files import contents, found


def read_idx_pair(folder: Path, images: str, labels: str, *, classes: int) -> Samples:
    """Images with one channel, and their labels.

    - `images`, `labels`: names of the two files, relative to the folder.

    LeCun et al., "Gradient-Based Learning Applied to Document Recognition", 1998.
    """
    pixels, truth = read_idx(found(folder, images), 3), read_idx(found(folder, labels), 1)
    if len(pixels) != len(truth):
        raise ValueError(
            f"{images} and {labels} must hold as many images as labels; got {len(pixels)} and "
            f"{len(truth)}. They are of different splits."
        )
    if len(truth) and truth.max() >= classes:
        raise ValueError(
            f"{labels} must hold labels from 0 to {classes - 1}; got {truth.max()} for image "
            f"{truth.argmax()}. It is damaged, or of another data set."
        )
    return Samples(torch.from_numpy(pixels[:, None]), torch.from_numpy(truth.astype(np.int64)))


def read_idx(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """An array of bytes with so many dimensions.

    The file begins with two zero bytes, a byte that says the type of the numbers (8 for bytes)
    and one that says how many dimensions follow, each in four bytes, the highest first.
    """
    stored = contents(path)
    magic = bytes([0, 0, 8, dimensions])
    head = 4 * (1 + dimensions)
    if stored[:4] != magic or len(stored) < head:
        raise ValueError(
            f"{path} must begin with the bytes {magic.hex(' ')}, as an idx file of {dimensions} "
            f"dimensions does; got {stored[:4].hex(' ') or 'nothing'}. It is another kind of file."
        )
    shape = struct.unpack(f">{dimensions}I", stored[4:head])
    size = int(np.prod(shape, dtype=np.int64))
    if len(stored) - head != size:
        raise ValueError(
            f"{path} must hold {size} bytes after its head, by the sizes {shape} in it; got "
            f"{len(stored) - head}. It is damaged; fetch it again."
        )
    return np.frombuffer(stored, dtype=np.uint8, offset=head).reshape(shape).copy()
