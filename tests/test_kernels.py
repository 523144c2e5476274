"""Kernels against the definitions. They need a GPU; without one these tests are skipped."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import esd
from calibrant.measures._handwritten import TWINS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

# What a sum of so many float32 products may be off by; float64 as for any other maths.
TOLERANCE = {torch.float32: (1e-5, 1e-7), torch.float64: (1e-7, 1e-12)}


def value_and_gradients(confidence: Tensor, outcome: Tensor) -> tuple[Tensor, ...]:
    c, y = confidence.clone().requires_grad_(), outcome.clone().requires_grad_()
    value = -2.5 * esd(c, y)
    return value.detach(), *torch.autograd.grad(value, (c, y))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("n", [3, 4, 41, 64, 65, 512, 1271, 4096])
@pytest.mark.parametrize("distinct", [1, 5, 10**6])
def test_esd_of_pairs_agrees_with_its_definition(
    n: int, dtype: torch.dtype, distinct: int, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ties = torch.randint(distinct + 1, (n,), generator=rng) / distinct
    confidence, outcome = ties.to("cuda", dtype), torch.bernoulli(ties, generator=rng)
    outcome = outcome.to("cuda", dtype)
    twin = value_and_gradients(confidence, outcome)
    monkeypatch.setattr("calibrant.measures._handwritten.TWINS", {})
    definition = value_and_gradients(confidence.double(), outcome.double())
    rtol, atol = TOLERANCE[dtype]
    for ours, truth in zip(twin, definition, strict=True):
        assert_close(ours.double(), truth, rtol=rtol, atol=atol)


def test_the_twin_is_in_charge_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    for definition, twin in TWINS.items():

        def spy(c: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            called.append(len(c))
            return twin.with_gradient(c, y)  # noqa: B023

        monkeypatch.setitem(TWINS, definition, type(twin)(spy, twin.up_to))
    for n in (10, 4097):
        esd(torch.rand(n, device="cuda", requires_grad=True), torch.ones(n, device="cuda"))
    assert called == [10]
