import math

import pytest
import torch
from forecasts import calibrated
from torch import Tensor
from torch.testing import assert_close

from calibrant.measures._smooth import smooth_ece


def smooth_ece_by_definition(
    confidence: Tensor, outcome: Tensor, *, points: int = 2_001, mirrors: int = 3
) -> Tensor:
    """Explicit mirror images of every sample, many points, and plain bisection."""
    t = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    gap = (outcome - confidence) / len(confidence)
    rooms = range(-mirrors, mirrors + 1)
    images = torch.stack([2 * k + side * confidence for k in rooms for side in (-1, 1)])

    def remaining(width: float) -> float:
        away = (t[:, None, None] - images) / width
        kernel = torch.exp(-(away**2) / 2).sum(dim=1) / (width * math.sqrt(2 * math.pi))
        return (kernel @ gap).abs().mean().item()

    low, high = 0.0, 1.0
    for _ in range(26):
        middle = (low + high) / 2
        low, high = (middle, high) if remaining(middle) > middle else (low, middle)
    return torch.tensor(low, dtype=torch.float64)


def gradient(confidence: Tensor, outcome: Tensor) -> Tensor:
    leaf = confidence.clone().requires_grad_()
    return torch.autograd.grad(smooth_ece(leaf, outcome), leaf)[0]


@pytest.mark.parametrize("n", [2, 5, 30])
def test_agrees_with_its_definition(n: int, rng: torch.Generator) -> None:
    confidence, outcome = calibrated((n,), rng)
    expected = smooth_ece_by_definition(confidence, outcome)
    assert_close(smooth_ece(confidence, outcome), expected, rtol=1e-4, atol=0)


def test_mirrors_samples_at_both_ends() -> None:
    confidence = torch.tensor([0.0, 0.01, 0.04, 0.97, 1.0], dtype=torch.float64)
    outcome = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    expected = smooth_ece_by_definition(confidence, outcome)
    assert_close(smooth_ece(confidence, outcome), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize(("scale", "rtol"), [(1e-2, 1e-4), (1e-3, 1e-2), (5e-4, 1e-2)])
def test_small_values_are_as_precise_as_the_docstring_says(scale: float, rtol: float) -> None:
    # Neighbours with opposite gaps, so that the width of the kernel matters.
    confidence = torch.tensor([0.5, 0.501, 0.503, 0.506, 0.7, 0.71], dtype=torch.float64)
    sign = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    outcome = confidence + scale * sign * torch.tensor([1.0, 2.0, 3.0, 1.0, 2.0, 2.0])
    expected = smooth_ece_by_definition(confidence, outcome, points=20_001, mirrors=0)
    assert 0.3 * scale < expected < 3 * scale
    assert_close(smooth_ece(confidence, outcome), expected, rtol=rtol, atol=0)


def test_below_the_resolution_the_value_is_too_low_and_never_too_high() -> None:
    confidence = torch.tensor([0.5, 0.5001], dtype=torch.float64)
    value = smooth_ece(confidence, confidence + torch.tensor([4e-5, -4e-5]))
    assert 0 < value < 4e-5


def test_is_the_mean_gap_when_every_gap_has_one_sign(rng: torch.Generator) -> None:
    confidence, _ = calibrated((50,), rng)
    for outcome in (torch.zeros_like(confidence), torch.ones_like(confidence)):
        gap = (outcome - confidence).mean().abs()
        assert_close(smooth_ece(confidence, outcome), gap)
        assert_close(smooth_ece(confidence, confidence + 1e-4), gap / gap * 1e-4)


def test_gradient_is_that_of_the_fixed_point(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((8,), rng)
    soft = outcome * 0.8 + 0.1
    confidence.requires_grad_(), soft.requires_grad_()
    assert torch.autograd.gradcheck(smooth_ece, (confidence, soft), fast_mode=True)


def test_gradient_agrees_with_differences_of_the_definition(rng: torch.Generator) -> None:
    # Gaps of either sign in turn: the gradient depends on where exactly the sign changes.
    confidence = torch.tensor([0.12, 0.35, 0.5, 0.62, 0.8, 0.9], dtype=torch.float64)
    outcome = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0, 1.0], dtype=torch.float64)
    nudge = 1e-3 * torch.rand(6, generator=rng, dtype=torch.float64)
    above, below = (
        smooth_ece_by_definition(confidence + side * nudge, outcome, points=10_001)
        for side in (1, -1)
    )
    assert_close(gradient(confidence, outcome) @ nudge, (above - below) / 2, rtol=5e-4, atol=0)


def test_a_longer_search_changes_nothing(
    rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value is far below the first guess, the mean of all gaps without their signs."""
    confidence, outcome = calibrated((50_000,), rng)
    value = smooth_ece(confidence, outcome)
    monkeypatch.setattr("calibrant.measures._smooth._ROUNDS", 8)
    assert_close(value, smooth_ece(confidence, outcome), rtol=1e-9, atol=0)


def test_happening_and_not_happening_are_alike_up_to_the_very_ends() -> None:
    confidence = torch.tensor([0.0, 5e-5, 3e-4, 0.002, 0.4], dtype=torch.float64)
    outcome = confidence + 0.0009 * torch.tensor([1.0, -1.0, -1.0, 1.0, 0.5])
    assert_close(smooth_ece(1 - confidence, 1 - outcome), smooth_ece(confidence, outcome))


def test_is_zero_with_a_zero_gradient_when_every_gap_is_zero() -> None:
    right = torch.ones(5, dtype=torch.float64)
    assert smooth_ece(right, right) == 0
    assert_close(gradient(right, right), torch.zeros_like(right))


def test_weights_count_samples(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((12,), rng)
    times = torch.tensor([0, 1, 2, 1, 0, 3, 1, 1, 2, 0, 1, 1])
    repeated = smooth_ece(confidence.repeat_interleave(times), outcome.repeat_interleave(times))
    for scale in (1.0, 0.01):
        weighted = smooth_ece(confidence, outcome, weights=scale * times.double())
        assert_close(weighted, repeated)


def test_order_of_samples_is_irrelevant(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((30,), rng)
    assert_close(smooth_ece(confidence.flip(0), outcome.flip(0)), smooth_ece(confidence, outcome))


def test_moves_little_when_a_confidence_moves_little() -> None:
    confidence = torch.tensor([0.5, 0.5], dtype=torch.float64)
    outcome = torch.tensor([0.0, 1.0], dtype=torch.float64)
    apart = confidence + torch.tensor([-1e-7, 1e-7])
    assert smooth_ece(confidence, outcome) < 1e-12
    assert smooth_ece(apart, outcome) < 2e-3  # where binned errors jump to a half


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("confidence", "outcome"),
    [
        ([0.3], [1.0]),
        ([0.0], [1.0]),
        ([1.0], [0.0]),
        ([0.0, 1.0], [1.0, 0.0]),
        ([0.7, 0.7, 0.7], [1.0, 0.0, 1.0]),
        ([1.0, 1.0, 1 - 6e-8], [1.0, 1.0, 0.0]),
        ([0.0, 1.0, 1.0], [0.0, 1.0, 1.0]),
        ([0.5, 0.5], [0.0, 1.0]),
    ],
)
def test_value_and_gradient_are_finite_at_the_edges(
    confidence: list[float], outcome: list[float], dtype: torch.dtype
) -> None:
    c, y = torch.tensor(confidence, dtype=dtype), torch.tensor(outcome, dtype=dtype)
    value = smooth_ece(c, y)
    assert value.dtype == dtype
    assert (y - c).mean().abs() - 1e-6 <= value <= (y - c).abs().mean() + 1e-6
    assert gradient(c, y).isfinite().all()


def test_is_zero_on_the_graph_when_no_sample_counts() -> None:
    confidence = torch.tensor([0.2, 0.9], requires_grad=True)
    value = smooth_ece(confidence, torch.ones(2), weights=torch.zeros(2))
    value.backward()
    assert value == 0
    assert_close(confidence.grad, torch.zeros(2))


def test_transforms_are_loops(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((2, 8), rng)
    masks = (torch.rand(2, 8, generator=rng) < 0.7).double()
    pairs = list(zip(confidence, outcome, strict=True))
    assert_close(
        torch.vmap(smooth_ece)(confidence, outcome), torch.stack([smooth_ece(*p) for p in pairs])
    )
    assert_close(
        torch.vmap(torch.func.grad(smooth_ece))(confidence, outcome),
        torch.stack([gradient(*p) for p in pairs]),
    )
    kept = [smooth_ece(confidence[0][m > 0], outcome[0][m > 0]) for m in masks]
    masked = torch.vmap(lambda m: smooth_ece(confidence[0], outcome[0], weights=m))(masks)
    assert_close(masked, torch.stack(kept))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 50, 40_000])
def test_value_alone_is_that_on_the_graph(n: int, weighted: bool, rng: torch.Generator) -> None:
    uniform = torch.rand(n, generator=rng, dtype=torch.float64)
    weights = torch.rand(n, generator=rng, dtype=torch.float64) if weighted else None
    # Spread out and a little beyond, on a coarse grid with both ends, and crowded at one end.
    beyond = 1.001 * uniform - 0.0005
    for confidence in (uniform, beyond, (10 * uniform).round() / 10, 1 - uniform**8 / 1e3):
        drawn = torch.bernoulli(confidence.clamp(0, 1) ** 2, generator=rng)
        for outcome in (drawn, (confidence > 0.5).double()):
            leaf = confidence.clone().requires_grad_()
            on_graph = smooth_ece(leaf, outcome, weights=weights).detach()
            assert_close(smooth_ece(confidence, outcome, weights=weights), on_graph)
