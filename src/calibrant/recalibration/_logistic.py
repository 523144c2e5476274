"""Logistic regression on two or three features, to the last digit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

# As in Newton's method for all classes: steps that go on moving a score by this much where the
# slope has vanished lead to infinity.
_STILL_MOVING = 0.05
_PATIENCE = 4
_FLAT = 1e-11


@dataclass(frozen=True)
class Logistic:
    r"""Mean log-loss of targets $t$ under $\sigma(x \theta)$, and a pull towards a centre.

    $$F(\theta) = \frac{\sum_i \omega_i (\log(1 + e^{u_i}) - t_i u_i)}{\sum_i \omega_i}
      + \frac{\rho}{2} \lVert \theta - \theta_0 \rVert^2, \qquad u = x \theta$$
    """

    features: Floats
    targets: Floats
    weights: Floats
    ridge: float
    centre: Floats

    def value(self, theta: Floats) -> float:
        """$F$ at a point."""
        u = self.features @ theta
        off = theta - self.centre
        loss = np.logaddexp(0, u) - self.targets * u
        return float(self.weights @ loss / self.weights.sum() + 0.5 * self.ridge * off @ off)

    def slopes(self, theta: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian at a point."""
        share = self.weights / self.weights.sum()
        chance = _sigmoid(self.features @ theta)
        gradient = self.features.T @ (share * (chance - self.targets))
        bend = (share * chance * (1 - chance))[:, None] * self.features
        eye = np.eye(len(theta))
        return (
            gradient + self.ridge * (theta - self.centre),
            self.features.T @ bend + self.ridge * eye,
        )

    def without(self, dropped: list[int]) -> "Logistic":
        """The same with some coefficients held at zero."""
        kept = [k for k in range(len(self.centre)) if k not in dropped]
        return Logistic(
            self.features[:, kept], self.targets, self.weights, self.ridge, self.centre[kept]
        )


def fit_logistic(problem: Logistic, most: int = 200) -> tuple[Floats, int] | None:
    """The optimum and how many steps it took; None where it is infinitely far away."""
    theta, runaway = problem.centre.copy(), 0
    value = problem.value(theta)
    for iteration in range(most):
        gradient, hessian = problem.slopes(theta)
        step = -_solve(hessian, gradient)
        slope = float(gradient @ step)
        if np.linalg.norm(gradient) <= _FLAT or slope >= 0:
            if np.abs(problem.features @ step).max() < _STILL_MOVING:
                return theta, iteration
            runaway += 1
            if runaway == _PATIENCE:
                return None
        # Near the end the gain is less than the rounding of the value, which must not forbid it.
        length, slack = 1.0, 1e-14 * (1 + abs(value))
        while (new := problem.value(theta + length * step)) > value + 1e-4 * length * slope + slack:
            length *= 0.5
        theta, value = theta + length * step, new
    return None


def _solve(hessian: Floats, gradient: Floats) -> Floats:
    # A feature that never varies has no slope and no bend, and stays where it is.
    sizes, axes = np.linalg.eigh(hessian)
    kept = sizes > 1e-14 * sizes[-1]
    inverse = np.where(kept, 1 / np.where(kept, sizes, 1), 0)
    step: Floats = axes @ (inverse * (axes.T @ gradient))
    return step


def _sigmoid(u: Floats) -> Floats:
    chance: Floats = np.exp(-np.logaddexp(0, -u))
    return chance
