"""Images made worse in a named way, to a named degree, always the same."""

import hashlib

import torch
from torch import Tensor

from ._catalogue import CORRUPTIONS, SIDE

# Enough to keep a device busy, few enough for the intermediate arrays of any corruption.
CHUNK = 1_000


@torch.no_grad()
def corrupt(images: Tensor, name: str, severity: int, *, seed: int = 0) -> Tensor:
    """CIFAR images as CIFAR-C has them, made on the fly.

    - `images`: bytes of shape (n, 3, 32, 32), on any device.
    - `name`: one of `CORRUPTIONS`.
    - `severity`: 1 to 5.
    - `seed`: of what is random. Random numbers are drawn on the CPU, so that they are the same
      on every device.

    Algorithms and constants are those of CIFAR-C, which are milder than ImageNet-C's. It is not
    that data set byte for byte: the random numbers are others; motion blur, distances and
    Canny's edges are written anew; and the ice of `frost` is drawn, since the photographs used
    there cannot be shipped. Compare models with each other on it, not with published numbers on
    CIFAR-10-C.

    >>> image = torch.full((1, 3, 32, 32), 100, dtype=torch.uint8)
    >>> corrupt(image, "brightness", 5).unique()
    tensor([176], dtype=torch.uint8)

    Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
    Perturbations", ICLR 2019. <https://github.com/hendrycks/robustness>
    """
    if name not in CORRUPTIONS:
        raise ValueError(f"name must be one of {', '.join(CORRUPTIONS)}; got {name!r}.")
    if severity not in range(1, 6):
        raise ValueError(f"severity must be 1, 2, 3, 4 or 5; got {severity!r}.")
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1:] != (3, SIDE, SIDE):
        raise ValueError(
            f"images must be bytes of shape (n, 3, {SIDE}, {SIDE}), as CIFAR's are and for which "
            f"the constants were made; got {images.dtype} of shape {tuple(images.shape)}."
        )
    if len(images) == 0:
        return images.clone()
    corruption = CORRUPTIONS[name]
    constants = corruption.constants[severity - 1]
    digest = hashlib.sha256(f"{seed} {name} {severity}".encode()).digest()
    draws = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
    worse = [
        corruption.apply(part.float(), draws, *constants).clamp(0, 255).byte()
        for part in images.split(CHUNK)
    ]
    return torch.cat(worse)
