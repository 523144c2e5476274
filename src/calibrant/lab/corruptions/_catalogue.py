"""The corruptions of CIFAR-C with their constants, from the mildest to the most severe."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from . import _blur, _colour, _digital, _noise, _spatter, _weather

SIDE = 32


@dataclass(frozen=True)
class Corruption:
    """A way in which images go wrong.

    - `apply`: given images from 0 to 255 as floats, a generator, and the constants.
    - `constants`: for each of the five severities.
    - `extra`: whether it is one of the four that CIFAR-C keeps apart, to choose settings by.
    """

    apply: Callable[..., Tensor]
    constants: tuple[tuple[Any, ...], ...]
    extra: bool = False


def _each(*constants: float) -> tuple[tuple[float], ...]:
    return tuple((each,) for each in constants)


CORRUPTIONS: dict[str, Corruption] = {
    "gaussian_noise": Corruption(_noise.gaussian_noise, _each(0.04, 0.06, 0.08, 0.09, 0.10)),
    "shot_noise": Corruption(_noise.shot_noise, _each(500, 250, 100, 75, 50)),
    "impulse_noise": Corruption(_noise.impulse_noise, _each(0.01, 0.02, 0.03, 0.05, 0.07)),
    "defocus_blur": Corruption(
        _blur.defocus, ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1))
    ),
    "glass_blur": Corruption(
        _blur.glass, ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2))
    ),
    "motion_blur": Corruption(_blur.motion, ((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5))),
    "zoom_blur": Corruption(_blur.zoom, _each(1.06, 1.11, 1.16, 1.21, 1.26)),
    "snow": Corruption(
        _weather.snow,
        (
            (0.1, 0.2, 1.0, 0.6, 8, 3.0, 0.95),
            (0.1, 0.2, 1.0, 0.5, 10, 4.0, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12.0, 0.8),
        ),
    ),
    "frost": Corruption(
        _weather.frost, ((1.0, 0.2), (1.0, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))
    ),
    "fog": Corruption(_weather.fog, ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))),
    "brightness": Corruption(_colour.brightness, _each(0.05, 0.1, 0.15, 0.2, 0.3)),
    "contrast": Corruption(_colour.contrast, _each(0.75, 0.5, 0.4, 0.3, 0.15)),
    "elastic_transform": Corruption(
        _digital.elastic_transform,
        tuple(
            (SIDE * strength, SIDE * sigma, SIDE * shear)
            for strength, sigma, shear in (
                (0.0, 0.0, 0.08),
                (0.05, 0.2, 0.07),
                (0.08, 0.06, 0.06),
                (0.1, 0.04, 0.05),
                (0.1, 0.03, 0.03),
            )
        ),
    ),
    "pixelate": Corruption(_digital.pixelate, _each(0.95, 0.9, 0.85, 0.75, 0.65)),
    "jpeg_compression": Corruption(_digital.jpeg_compression, ((80,), (65,), (58,), (50,), (40,))),
    "speckle_noise": Corruption(
        _noise.speckle_noise, _each(0.06, 0.1, 0.12, 0.16, 0.2), extra=True
    ),
    "gaussian_blur": Corruption(_blur.gaussian, _each(0.4, 0.6, 0.7, 0.8, 1.0), extra=True),
    "spatter": Corruption(
        _spatter.spatter,
        (
            (0.62, 0.1, 0.7, 0.7, 0.5, False),
            (0.65, 0.1, 0.8, 0.7, 0.5, False),
            (0.65, 0.3, 1.0, 0.69, 0.5, False),
            (0.65, 0.1, 0.7, 0.69, 0.6, True),
            (0.65, 0.1, 0.5, 0.68, 0.6, True),
        ),
        extra=True,
    ),
    "saturate": Corruption(
        _colour.saturate, ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)), extra=True
    ),
}
