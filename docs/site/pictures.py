"""A picture of each measure: what it says of predictions that boast more and more."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from calibrant import Criterion, Predictions

# How much the logits of a calibrated model are multiplied by.
BOASTS = (0.4, 0.55, 0.75, 1.0, 1.35, 1.8, 2.5)
_FEW, _TIMES, _MANY, _CLASSES = 200, 12, 2_000, 4
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 540, 300, 70, 12, 16, 52


def world(n: int, times: int) -> list[tuple[Tensor, Tensor]]:
    """Samples of logits with labels drawn from their own probabilities."""
    rng = torch.Generator().manual_seed(7)
    found = []
    for _ in range(times):
        logits = 2 * torch.randn(n, _CLASSES, generator=rng, dtype=torch.float64)
        found.append((logits, torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]))
    return found


@torch.no_grad()
def values(criterion: Criterion, samples: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Of every sample at every boast."""
    return torch.stack(
        [
            torch.stack([criterion(Predictions(boast * z, y)) for z, y in samples])
            for boast in BOASTS
        ]
    )


def drawn(name: str, criterion: Criterion) -> str:
    """The picture as an SVG element, in the colours of the page."""
    few = values(criterion, world(_FEW, _TIMES))
    many = values(criterion, world(_MANY, 1))[:, 0]
    low, high = few.amin(dim=1), few.amax(dim=1)
    bottom = min(low.min().item(), many.min().item(), 0.0)
    top = max(high.max().item(), many.max().item()) * 1.05 or 1.0
    x = _scale(torch.tensor(BOASTS).log().tolist(), _LEFT, _WIDTH - _RIGHT)
    at = _to(bottom, top)
    mean = few.mean(dim=1)
    band = _points(x, at, high) + " " + _points(x[::-1], at, low.flip(0))
    right = x[BOASTS.index(1.0)]
    said = (
        f"{name} of {_FEW} predictions: {mean[3]:.3g} on average when calibrated, "
        f"{mean[-1]:.3g} when the logits are multiplied by {BOASTS[-1]}"
    )
    parts = [
        f'<line class="right" x1="{right:.0f}" x2="{right:.0f}" y1="{_TOP}" '
        f'y2="{_HEIGHT - _BOTTOM}"/>',
        f'<polygon class="band" points="{band}"/>',
        f'<polyline class="mean" points="{_points(x, at, mean)}"/>',
        f'<polyline class="many" points="{_points(x, at, many)}"/>',
        *_axes(x, at, bottom, top),
    ]
    return (
        f'<div class="picture"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{said}">{"".join(parts)}</svg></div>'
    )


def _axes(x: Sequence[float], at: Callable[[float], float], bottom: float, top: float) -> list[str]:
    floor = _HEIGHT - _BOTTOM
    zero = f"{at(0):.1f}"
    parts = [f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{zero}" y2="{zero}"/>']
    for place, boast in zip(x, BOASTS, strict=True):
        parts.append(f'<text x="{place:.0f}" y="{floor + 18}" text-anchor="middle">{boast}</text>')
    ticks = {0.0, top / 1.05} | ({bottom} if bottom < -0.1 * top else set())
    for tick in ticks:
        parts.append(
            f'<text x="{_LEFT - 8}" y="{at(tick) + 4:.0f}" text-anchor="end">{tick:.2g}</text>'
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    label = "logits of a calibrated model, multiplied by"
    return [
        *parts,
        f'<text x="{middle:.0f}" y="{_HEIGHT - 12}" text-anchor="middle">{label}</text>',
    ]


def _scale(numbers: Sequence[float], first: float, last: float) -> list[float]:
    low, high = min(numbers), max(numbers)
    return [first + (n - low) / (high - low) * (last - first) for n in numbers]


def _to(bottom: float, top: float) -> Callable[[float], float]:
    return lambda value: _TOP + (top - value) / (top - bottom) * (_HEIGHT - _TOP - _BOTTOM)


def _points(x: Sequence[float], at: Callable[[float], float], y: Tensor) -> str:
    return " ".join(f"{place:.1f},{at(v):.1f}" for place, v in zip(x, y.tolist(), strict=True))
