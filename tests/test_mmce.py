import pytest
import torch
from forecasts import Forecasts, as_tensors, forecasts
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from calibrant import mmce, weighted_mmce

BANDWIDTHS = [0.4, 0.05, 0.002, 1e-3, 1e-5]


def kernel_form(place: Tensor, charge: Tensor, bandwidth: float) -> Tensor:
    """The double sum over pairs."""
    kernel = torch.exp(-(place[:, None] - place).abs() / bandwidth)
    return charge @ kernel @ charge


def mmce_squared(confidence: Tensor, outcome: Tensor, bandwidth: float) -> Tensor:
    return kernel_form(confidence, (outcome - confidence) / len(confidence), bandwidth)


def weighted_mmce_squared(confidence: Tensor, outcome: Tensor, bandwidth: float) -> Tensor:
    """Kumar et al.'s three sums: over pairs of wrong, of right, and of one each."""
    total = torch.zeros((), dtype=confidence.dtype)
    right, wrong = outcome == 1, outcome == 0
    m, k = int(right.sum()), int(wrong.sum())
    for i in range(len(confidence)):
        for j in range(len(confidence)):
            kernel = torch.exp(-(confidence[i] - confidence[j]).abs() / bandwidth)
            a = (1 - confidence[i]) / m if right[i] else -confidence[i] / k
            b = (1 - confidence[j]) / m if right[j] else -confidence[j] / k
            total = total + a * b * kernel
    return total


@given(forecasts(), st.sampled_from(BANDWIDTHS))
def test_agrees_with_the_double_sum_in_value_and_gradient(
    drawn: Forecasts, bandwidth: float
) -> None:
    confidence, outcome = as_tensors(drawn)
    c = confidence.clone().requires_grad_()
    ours = mmce(c, outcome, bandwidth=bandwidth).square()
    definition = mmce_squared(c, outcome, bandwidth)
    assert_close(ours, definition, atol=1e-14, rtol=1e-7)
    if definition > 1e-9:
        assert_close(torch.autograd.grad(ours, c), torch.autograd.grad(definition, c))


@given(forecasts(min_size=2, max_size=9), st.sampled_from(BANDWIDTHS))
def test_the_weighted_form_agrees_with_the_sums_over_kinds(
    drawn: Forecasts, bandwidth: float
) -> None:
    confidence, outcome = as_tensors(drawn)
    c = confidence.clone().requires_grad_()
    ours = weighted_mmce(c, outcome, bandwidth=bandwidth).square()
    definition = weighted_mmce_squared(c, outcome, bandwidth)
    assert_close(ours, definition, atol=1e-14, rtol=1e-7)
    if definition > 1e-9:
        assert_close(torch.autograd.grad(ours, c), torch.autograd.grad(definition, c))


@pytest.mark.parametrize("bandwidth", [0.4, 0.05, 0.03, 0.01, 0.0018, 1e-3])
def test_no_digits_are_lost_in_the_prefix_sums(bandwidth: float, rng: torch.Generator) -> None:
    place = torch.rand(2_000, generator=rng, dtype=torch.float64)
    outcome = torch.bernoulli(place, generator=rng)
    place = place.requires_grad_()
    ours, truth = (
        mmce(place, outcome, bandwidth=bandwidth).square(),
        mmce_squared(place, outcome, bandwidth),
    )
    assert_close(ours, truth, rtol=1e-10, atol=0)
    assert_close(
        *torch.autograd.grad(ours, place), *torch.autograd.grad(truth, place), rtol=1e-7, atol=1e-12
    )


def test_gradient_flows_through_the_outcome_too(rng: torch.Generator) -> None:
    confidence = torch.rand(10, generator=rng, dtype=torch.float64).requires_grad_()
    outcome = torch.rand(10, generator=rng, dtype=torch.float64).requires_grad_()
    for measure in (mmce, weighted_mmce):
        assert torch.autograd.gradcheck(measure, (confidence, outcome))


def test_the_weighted_form_of_one_kind_alone_is_the_plain_form(rng: torch.Generator) -> None:
    confidence = torch.rand(10, generator=rng)
    for outcome in (torch.ones(10), torch.zeros(10)):
        assert_close(weighted_mmce(confidence, outcome), mmce(confidence, outcome))


def test_a_bandwidth_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bandwidth must be positive and finite; got 0"):
        mmce(torch.rand(3), torch.ones(3), bandwidth=0)
