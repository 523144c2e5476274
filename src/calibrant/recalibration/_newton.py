"""Newton's method for a smooth convex problem that is known only by its products."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

# A finite optimum is left alone by Newton's step; an infinite one is approached by steps that
# move a logit by about one each time, however small the gradient has become.
_STILL_MOVING = 0.05
_PATIENCE = 4
# From here on gradients are taken carefully: the rounding of a fast one might hide the end.
_CLOSE = 1e-5
# A gradient as small as this is an optimum for every purpose.
ENOUGH = 1e-6
# The stand-in for the Hessian is made anew at these steps; later the point hardly moves.
_FRESH = (1, 2, 3, 5, 8, 13, 21, 34)


@runtime_checkable
class Convex(Protocol):
    """What is asked of a problem. Every point and every gradient has one shape."""

    tolerance: float  # norm of the gradient at which to stop
    bounded: bool  # whether a finite optimum is certain

    def at(self, point: Tensor, *, careful: bool) -> tuple[float, Tensor]:
        """Value and gradient; to the last digit where `careful`."""

    def curvature(self, point: Tensor) -> Callable[[Tensor], Tensor]:
        """The product of the Hessian at a point with any direction."""

    def preconditioner(self, point: Tensor) -> Callable[[Tensor], Tensor]:
        """A cheap positive stand-in for the inverse of the Hessian."""

    def reach(self, step: Tensor) -> float:
        """The most that a step changes any logit."""


@dataclass(frozen=True)
class Optimum:
    """Where the search ended, after how many steps, and whether the gradient vanished there."""

    point: Tensor
    iterations: int
    converged: bool


def minimise(problem: Convex, start: Tensor, *, most: int = 200) -> Optimum | None:
    """Least value of a convex problem, from `start`; None where it has no finite optimum.

    Each step solves Newton's equation by preconditioned conjugate gradients, the more exactly
    the nearer the end, and is shortened until the value falls. On a convex problem a slope that
    is still downhill at the end of a step says so too, which rounding cannot spoil.
    """
    point, careful, runaway = start.clone(), False, 0
    value, gradient = problem.at(point, careful=careful)
    precondition = problem.preconditioner(point)
    for iteration in range(most):
        norm = gradient.norm().item()
        if norm <= _CLOSE and not careful:
            careful = True
            value, gradient = problem.at(point, careful=True)
            norm = gradient.norm().item()
        arrived = norm <= problem.tolerance
        if norm == 0 or (arrived and problem.bounded):
            return Optimum(point, iteration, True)
        if iteration in _FRESH:
            precondition = problem.preconditioner(point)
        accuracy = 1e-2 if arrived else min(0.1, 3 * norm**0.5)
        step = _conjugate_gradients(problem.curvature(point), precondition, -gradient, accuracy)
        if arrived:
            if problem.reach(step) < _STILL_MOVING:
                return Optimum(point, iteration, True)
            runaway += 1
            if runaway == _PATIENCE:
                return None
        found = _line_search(problem, point, value, gradient, step, careful)
        if found is None and careful:
            return Optimum(point, iteration, norm < ENOUGH)
        if found is None:
            careful = True
            value, gradient = problem.at(point, careful=True)
        else:
            point, value, gradient = found
    return Optimum(point, most, bool(gradient.norm() < ENOUGH))


def _line_search(
    problem: Convex, point: Tensor, value: float, gradient: Tensor, step: Tensor, careful: bool
) -> tuple[Tensor, float, Tensor] | None:
    """The longest of shrinking steps that descends; None where rounding hides any descent."""
    slope, length = torch.sum(gradient * step).item(), 1.0
    for _ in range(30):
        there = point + length * step
        new_value, new_gradient = problem.at(there, careful=careful)
        new_slope = torch.sum(new_gradient * step).item()
        if new_value <= value + 1e-4 * length * slope or slope <= new_slope <= 0:
            return there, new_value, new_gradient
        # The zero of a straight line through both slopes, kept between a tenth and a half.
        guess = slope / (slope - new_slope) if new_slope > 0 else 0.5
        length *= min(max(guess, 0.1), 0.5)
    return None


def _conjugate_gradients(
    product: Callable[[Tensor], Tensor],
    precondition: Callable[[Tensor], Tensor],
    target: Tensor,
    accuracy: float,
) -> Tensor:
    """Solve `product(x) = target` until the residual is `accuracy` of what it was."""
    x, residual = torch.zeros_like(target), target.clone()
    z = precondition(residual)
    direction, agreement = z, torch.sum(residual * z)
    goal = accuracy**2 * agreement
    for _ in range(min(target.numel(), 200)):
        bent = product(direction)
        bend = torch.sum(direction * bent)
        if not bool(bend > 0):  # flat to the last digit: nothing to gain here
            break
        length = agreement / bend
        x += length * direction
        residual -= length * bent
        z = precondition(residual)
        previous, agreement = agreement, torch.sum(residual * z)
        if bool(agreement <= goal):
            break
        direction = z + (agreement / previous) * direction
    return x if bool(x.any()) else z
