"""Images in folders, one folder to a class, as ImageNet comes."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._samples import Samples
from ._files import found, text
from ._imagenet100 import CLASSES as USUAL

CLASSES = "imagenet100/classes.txt"
ENDINGS = {".jpeg", ".jpg", ".png", ".bmp", ".webp"}


def read_image_folders(
    root: Path, classes: Sequence[str] | None = None, side: int = 256
) -> Samples:
    """Every image below a folder, as bytes of `side` by `side`.

    - `root`: holds one folder for each class, such as `n01440764`.
    - `classes`: which of them to take, in the order of their labels; by default all, in
      alphabetical order.
    - `side`: the shorter side is resized to it, and the middle is kept. Random crops of 224 are
      then cut on the device.

    Everything is decoded once and kept in memory: ImageNet-100 takes 26 GB at 256.
    """
    pillow = _pillow()
    if not root.is_dir():
        raise FileNotFoundError(f"{root} must be a folder of folders of images; there is none.")
    names = sorted(each.name for each in root.iterdir() if each.is_dir())
    missing = sorted(set(classes or ()) - set(names))
    if missing or not names:
        raise ValueError(
            f"{root} must hold a folder for each class; got {len(names)} and none for "
            f"{missing[0] if missing else 'any'}."
        )
    paths, labels = [], []
    for label, name in enumerate(classes or names):
        images = sorted(each for each in (root / name).rglob("*") if _is_image(each))
        if not images:
            raise ValueError(f"{root / name} must hold images; got none.")
        paths += images
        labels += [label] * len(images)
    inputs = torch.empty(len(paths), 3, side, side, dtype=torch.uint8)

    def fill(place: int) -> None:
        inputs[place] = _decoded(pillow, paths[place], side)

    with ThreadPoolExecutor() as pool:  # Pillow lets other threads run while it decodes
        list(pool.map(fill, range(len(paths))))
    return Samples(inputs, torch.tensor(labels))


def imagenet100(folder: Path) -> tuple[Path, list[str]]:
    """The folder of ImageNet-100, which may be the one that is given, and its classes.

    Those in its `classes.txt`, where there is one.
    """
    try:
        path = found(folder, CLASSES).absolute()
    except FileNotFoundError:
        place = folder.absolute()
        return place if place.name == "imagenet100" else place / "imagenet100", list(USUAL)
    return path.parent, read_class_list(path)


def read_class_list(path: Path) -> list[str]:
    """Names of class folders, the first word of each line."""
    names = [line.split()[0] for line in text(path).splitlines() if line.strip()]
    if len(set(names)) != len(names) or not names:
        raise ValueError(
            f"{path} must name each class once; got {len(names)} lines and {len(set(names))} names."
        )
    return names


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS and path.is_file()


def _decoded(pillow: Any, path: Path, side: int) -> Tensor:
    try:
        with pillow.open(path) as file:
            image = file.convert("RGB")
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} must be an image; could not be read: {error}.") from error
    shorter = min(image.size)
    size = tuple(max(side, round(length * side / shorter)) for length in image.size)
    left, top = ((length - side) // 2 for length in size)
    small = image.resize(size, pillow.Resampling.BILINEAR)
    cut = small.crop((left, top, left + side, top + side))
    return torch.from_numpy(np.asarray(cut).copy()).permute(2, 0, 1)


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError as missing:
        raise ImportError(
            "images in folders need Pillow: pip install 'calibrant[images]'"
        ) from missing
