"""Both forms must compute one function before either is timed."""

import torch
from cases import MEASURES, Call, Case
from torch import Tensor

TOLERANCE = 1e-9


def assert_agreement(device: str) -> None:
    """Values and gradients of both forms, in float64 at n = 300, a third of it tied."""
    for measure, forms in MEASURES.items():
        case = Case(measure, 300, classes=10 if measure == "dece" else 0)
        leaf, target = case.inputs(seed=300, device=device, dtype=torch.float64)
        if not case.classes:
            with torch.no_grad():
                leaf[:100] = (10 * leaf[:100]).round() / 10
        value, gradient = _value_and_gradient(forms["ours"], leaf, target)
        reference, by_definition = _value_and_gradient(forms["quadratic"], leaf, target)
        for name, got, expected in (
            ("value", value, reference),
            ("gradient", gradient, by_definition),
        ):
            error = ((got - expected).norm() / expected.norm()).item()
            if not error <= TOLERANCE:
                raise AssertionError(
                    f"{measure}: the {name}s of the two forms differ by {error:.1e} of their "
                    f"size; at most {TOLERANCE:.0e} is rounding. Nothing was timed."
                )


def _value_and_gradient(call: Call, leaf: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    value = call(leaf, target)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient
