"""The published corrupted test sets, for those who have them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .._samples import Samples
from ._folders import read_image_folders


def read_cifar_c(folder: Path, name: str, severity: int) -> Samples:
    """CIFAR-10-C or CIFAR-100-C as released: an array for each corruption, one after another the
    test set at each of five severities.

    - `folder`: holds `labels.npy` and files such as `fog.npy`.

    Where it is not to be had, `calibrant.lab.corruptions.corrupt` makes its like.

    Hendrycks and Dietterich, ICLR 2019. <https://zenodo.org/records/2535967>
    """
    _check_severity(severity)
    images, labels = _array(folder / f"{name}.npy"), _array(folder / "labels.npy")
    if images.ndim != 4 or images.dtype != np.uint8 or images.shape[3] != 3 or len(images) % 5:
        raise ValueError(
            f"{folder / name}.npy must hold five times as many images as the test set, bytes of "
            f"shape (n, 32, 32, 3); got {images.dtype} of shape {images.shape}."
        )
    if labels.shape != (len(images),):
        raise ValueError(
            f"labels.npy must hold one label for each of {len(images)} images; got shape "
            f"{labels.shape}."
        )
    n = len(images) // 5
    here = slice((severity - 1) * n, severity * n)
    pixels = torch.from_numpy(np.ascontiguousarray(images[here].transpose(0, 3, 1, 2)))
    truth: Tensor = torch.from_numpy(labels[here].astype(np.int64))
    return Samples(pixels, truth)


def read_imagenet_c(
    folder: Path, name: str, severity: int, classes: Sequence[str] | None = None
) -> Samples:
    """ImageNet-C as released: a folder for each corruption, in it one for each severity, in it
    one for each class.

    - `classes`: which of them, in the order of their labels; by default all.
    """
    _check_severity(severity)
    return read_image_folders(folder / name / str(severity), classes, side=224)


def _check_severity(severity: int) -> None:
    if severity not in range(1, 6):
        raise ValueError(f"severity must be 1, 2, 3, 4 or 5; got {severity!r}.")


def _array(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} must be there; it is not.")
    try:
        stored: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] = np.load(
            path, mmap_mode="r", allow_pickle=False
        )
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} must hold an array; could not be read: {error}.") from error
    return stored
