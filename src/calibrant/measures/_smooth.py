"""Calibration error under a kernel that chooses its own width."""

from collections.abc import Callable
from math import pi

import torch
from jaxtyping import Float
from torch import Tensor

from .._tables import Events
from ..criteria import BY_PARTS
from ._events import of_events
from ._precision import widened
from ._smooth_value import fixed_point, remaining_of

# The gaps are kept as _COARSE * _FINE cosine waves, and seen at as many points of [0, 1].
_COARSE = _FINE = 64
_POINTS = _COARSE * _FINE
_NARROWEST = 2 / _POINTS
# Widths tried at once, and how often: together they narrow the search 4,096 times.
_TRIED, _ROUNDS = 15, 3


@of_events
def smooth_ece(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Smooth calibration error: no bins, and no width to choose.

    The gaps $Y - C$ are smoothed over [0, 1] by a Gaussian that is reflected at both ends,
    and what remains of them is added up. The wider the Gaussian the less remains; the value
    is where the two are equal:

    $$\mathrm{smECE} = \sigma^*, \qquad
      \int_0^1 \Bigl|\frac1n \sum_i K_{\sigma^*}(t, C_i)\,(Y_i - C_i)\Bigr|\,dt = \sigma^*$$

    - `confidence`: probability given to each event, $C$.
    - `outcome`: whether it happened, $Y$.
    - `weights`: how much each sample counts; weight two is the sample twice.

    Continuous in the confidences, as no binned error is. One sample is enough: the value is
    then its gap. When every gap is zero so are the value and its gradient. The gradient is
    that of the fixed point, width and all; second derivatives take the width as given.

    The integral is taken on 4,096 points. Where it depends on the width, a value above 0.005
    is right to one part in ten thousand, one above 0.0005 to one in a hundred. The Gaussian is
    never narrower than 0.0005, so opposite gaps closer together may cancel: a smaller value
    is then too low, never too high.

    Takes $O(n)$ time and memory, and on top of it some twenty milliseconds whatever $n$ is; one
    or two where no gradient is recorded.

    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> smooth_ece(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.0963)

    Błasiok & Nakkiran, "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing",
    2023. <https://arxiv.org/abs/2309.12236>
    """
    position, happened = widened(confidence, outcome)
    counted = torch.ones_like(position) if weights is None else weights.to(position.dtype)
    total = counted.sum()
    gap = counted * (happened - position) / torch.where(total > 0, total, 1)
    waves = _Waves(position)
    strength = waves.of(_deposit(position, gap))

    def remaining(strength: Tensor, width: Tensor) -> Tensor:
        return _integral_of_size(waves.seen(_smoothed(strength, width)))

    def newton(strength: Tensor, width: Tensor) -> Tensor:
        nudge = 1e-4 * width.clamp(min=_NARROWEST)
        near = torch.stack([width - nudge, width + nudge])
        narrower, wider = torch.vmap(lambda width: remaining(fixed, width))(near)
        slope: Tensor = ((wider - narrower) / (2 * nudge)).clamp(max=0)
        return width + (remaining(strength, width) - width) / (1 - slope)

    fixed = strength.detach()
    low, step = torch.zeros_like(total), gap.detach().abs().sum()
    for _ in range(_ROUNDS):
        step = step / (_TRIED + 1)
        tried = low + step * torch.arange(1, _TRIED + 1, device=low.device)
        too_narrow = torch.vmap(lambda width: remaining(fixed, width) > width)(tried)
        low = low + step * too_narrow.sum()
    # The last step has the gradient of the fixed point: the slope is no part of the graph.
    value = newton(strength, newton(fixed, low + step / 2))
    return value.to(confidence.dtype)


def _by_parts(events: Events) -> Float[Tensor, ""]:
    """The same where only the value is asked: fast transforms, and a search that ends by itself."""
    value = fixed_point(events, points=_POINTS, narrowest=_NARROWEST)
    return torch.tensor(value, dtype=events.dtype, device="cpu")


BY_PARTS[smooth_ece] = _by_parts


def remaining_of_rows(strength: Float[Tensor, "rows coarse fine"]) -> Callable[[Tensor], Tensor]:
    """What remains of many strengths, each at its width, by fast transforms in plain memory."""
    sums = strength.flatten(start_dim=1) / 2
    sums[:, 0] *= 2  # of which a density has one, and of all other waves two

    def remaining(width: Tensor) -> Tensor:
        widths = width.clamp(min=_NARROWEST).numpy(force=True)
        return torch.from_numpy(remaining_of(sums.numpy(force=True), widths))

    return remaining


def _deposit(position: Tensor, mass: Tensor) -> Float[Tensor, " points"]:
    """The masses on the grid, each spread over four points by a cubic spline.

    To fourth order the spline is a Gaussian of variance a third of the spacing squared,
    wherever the sample lies, so it counts as part of the smoothing.
    """
    place = (position * _POINTS - 0.5).clamp(-1, _POINTS)
    below = place.detach().floor()
    u = place - below
    near, far = 1 - u, u
    spline = (
        near**3 / 6,
        2 / 3 - far**2 * (1 + near) / 2,
        2 / 3 - near**2 * (1 + far) / 2,
        far**3 / 6,
    )
    grid = torch.zeros(_POINTS, dtype=mass.dtype, device=mass.device)
    for offset, share in enumerate(spline, start=-1):
        point = below.long() + offset
        reflected = torch.where(point < 0, -1 - point, point)
        reflected = torch.where(point >= _POINTS, 2 * _POINTS - 1 - point, reflected)
        grid = grid.index_add(0, reflected.clamp(0, _POINTS - 1), share * mass)
    return grid


def _smoothed(strength: Tensor, width: Tensor) -> Tensor:
    """Waves after the heat equation has run until a point is a Gaussian of this width."""
    variance = width.clamp(min=_NARROWEST) ** 2 - 1 / (3 * _POINTS**2)
    frequency = torch.arange(_POINTS, dtype=strength.dtype, device=strength.device)
    # Waves below 1e-43 are left there: numbers too small to be normal make processors crawl.
    kept = torch.exp(-(variance * (pi * frequency).square() / 2).clamp(max=100))
    return strength * kept.reshape(_COARSE, _FINE)


def _integral_of_size(density: Float[Tensor, " points"]) -> Tensor:
    """Integral of |density| over [0, 1], straight between points, exact where it changes sign."""
    left, right = density[:-1], density[1:]
    both = left.abs() + right.abs()
    crosses = left * right < 0
    # Two triangles instead of a trapezium.
    triangles = (left.square() + right.square()) / torch.where(crosses, both, 1)
    ends = (density[0].abs() + density[-1].abs()) / 2
    return (torch.where(crosses, triangles, both).sum() / 2 + ends) / _POINTS


class _Waves:
    r"""Cosine waves $\cos(\pi k t)$ at $t = (m + 1/2) / 4096$: from the points, and back.

    With $k = 64 k_1 + k_0$ and $m = 128 m_0 + m_1$ the phase falls into three parts, each of
    two indices, so two small matrix products do the work of a large one. (The same as a fast
    Fourier transform, without complex numbers, which compilers do not take.)
    """

    def __init__(self, like: Tensor) -> None:
        def numbers(count: int) -> Tensor:
            return torch.arange(count, dtype=like.dtype, device=like.device)

        k, m0 = numbers(_FINE), numbers(_POINTS // (2 * _COARSE))
        m1 = numbers(2 * _COARSE) + 0.5
        coarse = pi * k[:, None] * m1 / _COARSE
        twist = coarse / _FINE
        fine = 2 * pi * k[:, None] * m0 / _FINE
        self.coarse, self.twist, self.fine = (
            (phase.cos(), phase.sin()) for phase in (coarse, twist, fine)
        )

    def of(self, points: Float[Tensor, " points"]) -> Float[Tensor, "coarse fine"]:
        """Strength of each wave in masses on the grid, as coefficients of their density."""
        grid = points.reshape(-1, 2 * _COARSE)
        real, imaginary = self._turn(self.fine[0] @ grid, self.fine[1] @ grid)
        strength = self.coarse[0] @ real.T - self.coarse[1] @ imaginary.T
        constant = torch.zeros_like(strength)
        constant[0, 0] = 1
        return (2 - constant) * strength

    def seen(self, strength: Float[Tensor, "coarse fine"]) -> Float[Tensor, " points"]:
        """Sum of the waves at every point."""
        real, imaginary = self._turn(strength.T @ self.coarse[0], strength.T @ self.coarse[1])
        return (self.fine[0].T @ real - self.fine[1].T @ imaginary).reshape(-1)

    def _turn(self, real: Tensor, imaginary: Tensor) -> tuple[Tensor, Tensor]:
        cosine, sine = self.twist
        return real * cosine - imaginary * sine, real * sine + imaginary * cosine
