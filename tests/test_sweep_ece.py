from itertools import pairwise
from typing import Any

import pytest
import torch
from forecasts import Forecasts, as_tensors, calibrated, forecasts
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from calibrant.measures._binned import Binning
from calibrant.measures._sweep import monotone_bins, sweep_ece

every_binning = pytest.mark.parametrize("binning", ["mass", "width"])


def bins_by_definition(confidence: Tensor, bins: int, binning: str) -> list[int]:
    """The bin of each sample, by counting."""
    c, n = confidence.tolist(), len(confidence)
    if binning == "mass":
        return [sum(other < x for other in c) * bins // n for x in c]
    edges = [torch.tensor(j, dtype=confidence.dtype).div(bins).item() for j in range(1, bins)]
    return [sum(edge < x for edge in edges) for x in c]


def rises(bin_of: list[int], outcome: Tensor) -> bool:
    filled = sorted(set(bin_of))
    members = [[y for b, y in zip(bin_of, outcome.tolist(), strict=True) if b == j] for j in filled]
    means = [sum(ys) / len(ys) for ys in members]
    return all(low <= high for low, high in pairwise(means))


def sweep_by_definition(
    confidence: Tensor, outcome: Tensor, *, norm: float = 2, binning: str = "mass"
) -> Tensor:
    """Try one number of bins after the other, and bin every sample anew for each."""
    n, chosen = len(confidence), [0] * len(confidence)
    for bins in range(1, n):
        bin_of = bins_by_definition(confidence, bins, binning)
        if not rises(bin_of, outcome):
            break
        chosen = bin_of
    value = 0.0
    for j in set(chosen):
        members = torch.tensor([b == j for b in chosen])
        gap = (outcome[members].mean() - confidence[members].mean()).abs()
        value += (members.double().mean() * gap**norm).item()
    return torch.tensor(value ** (1 / norm), dtype=confidence.dtype)


@given(forecasts(max_size=25), st.sampled_from(["mass", "width"]), st.sampled_from([1.0, 2.0, 3.0]))
def test_agrees_with_its_definition(drawn: Forecasts, binning: Binning, norm: float) -> None:
    confidence, outcome = as_tensors(drawn)
    expected = sweep_by_definition(confidence, outcome, norm=norm, binning=binning)
    assert_close(sweep_ece(confidence, outcome, norm=norm, binning=binning), expected)


@every_binning
@pytest.mark.parametrize("power", [0.2, 1.0, 5.0])
def test_agrees_with_its_definition_on_more_samples(
    power: float, binning: Binning, rng: torch.Generator
) -> None:
    for _ in range(4):
        confidence, _ = calibrated((120,), rng)
        # A steep curve: zeros, a little disorder, then ones.
        steep = torch.sigmoid(60 * power * (confidence - 0.5))
        outcome = torch.bernoulli(steep, generator=rng)
        expected = sweep_by_definition(confidence, outcome, binning=binning)
        assert_close(sweep_ece(confidence, outcome, binning=binning), expected)


@every_binning
def test_looks_everywhere_between_the_first_and_the_last_disorder(
    binning: Binning, rng: torch.Generator
) -> None:
    """Large ties leave bins empty, so the bin to compare with may be far away."""
    for _ in range(25):
        ties = torch.randint(1, 9, (8,), generator=rng)
        distinct = torch.rand(8, generator=rng, dtype=torch.float64).sort().values
        last = 1 - 0.02 * torch.rand(14, generator=rng, dtype=torch.float64).sort().values
        confidence = torch.cat([distinct.repeat_interleave(ties), last])
        outcome = (torch.arange(len(confidence)) >= 12).double()
        wrong = torch.randint(len(confidence), (3,), generator=rng)
        outcome[wrong] = 1 - outcome[wrong]
        expected = sweep_by_definition(confidence, outcome, binning=binning)
        assert_close(sweep_ece(confidence, outcome, binning=binning), expected)


def test_a_drop_behind_a_large_tie_is_seen() -> None:
    # Half of eight right, one wrong, all right: the wrong one must be alone to be noticed, and
    # by then there are empty bins in front of it.
    confidence = torch.tensor([0.2] * 8 + [0.61 + 0.01 * i for i in range(24)])
    outcome = torch.tensor([0.0, 1.0] * 4 + [0.0] + [1.0] * 23)
    assert_close(sweep_ece(confidence, outcome), sweep_by_definition(confidence, outcome))


@pytest.mark.parametrize(
    ("binning", "norm", "value"),
    [
        ("mass", 1, 0.19733541558998224),
        ("mass", 2, 0.19733541558998224),
        ("width", 1, 0.19733541558998224),
        ("width", 2, 0.201859476276125),
    ],
)
def test_agrees_with_the_authors_code(binning: Binning, norm: float, value: float) -> None:
    # Case small_n8_c3 of the golden values.
    logits = torch.tensor(
        [
            [-0.7900390625, -2.0341796875, 0.603515625],
            [0.744140625, -0.3095703125, 0.3671875],
            [1.7099609375, 1.060546875, 0.7080078125],
            [0.6875, -0.86328125, 0.9638671875],
            [-1.6484375, -0.33203125, -0.4375],
            [-1.728515625, -0.1103515625, 1.6435546875],
            [-0.33984375, -1.2080078125, -0.0908203125],
            [0.853515625, 0.193359375, -0.0029296875],
        ],
        dtype=torch.float64,
    )
    confidence, predicted = logits.softmax(dim=1).max(dim=1)
    correct = (predicted == torch.tensor([1, 2, 1, 2, 2, 0, 2, 0])).double()
    ours = sweep_ece(confidence, correct, norm=norm, binning=binning)
    assert_close(ours.item(), value, rtol=1e-9, atol=1e-12)


@every_binning
def test_rising_outcomes_get_one_bin_fewer_than_samples(binning: Binning) -> None:
    confidence = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)
    for outcome in (torch.ones(50), torch.zeros(50), (confidence > 0.4).float()):
        bin_of = monotone_bins(confidence, outcome.double(), None, binning)
        assert bin_of.tolist() == bins_by_definition(confidence, 49, binning)


def test_ranks_are_divided_without_rounding() -> None:
    # 3 * (1 / 3) and the like: every rank of every small number of samples.
    for n in range(3, 40):
        confidence = torch.arange(n, dtype=torch.float64) / n
        bin_of = monotone_bins(confidence, torch.ones(n, dtype=torch.float64), None, "mass")
        assert bin_of.tolist() == [r * (n - 1) // n for r in range(n)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_edges_are_rounded_in_the_dtype_of_the_confidence(dtype: torch.dtype) -> None:
    n = 41
    confidence = (torch.arange(n).to(dtype) / (n - 1)).to(dtype)  # exactly the edges of n - 1 bins
    bin_of = monotone_bins(confidence, torch.ones(n, dtype=dtype), None, "width")
    assert bin_of.tolist() == [0, *range(n - 1)]


@every_binning
def test_a_sample_of_weight_zero_might_as_well_be_absent(
    binning: Binning, rng: torch.Generator
) -> None:
    confidence, outcome = calibrated((40,), rng)
    mask = torch.rand(40, generator=rng) < 0.6
    masked = sweep_ece(confidence, outcome, binning=binning, weights=mask.double())
    assert_close(masked, sweep_ece(confidence[mask], outcome[mask], binning=binning))


@every_binning
def test_weights_count_samples_and_only_by_proportion(
    binning: Binning, rng: torch.Generator
) -> None:
    confidence, outcome = calibrated((40,), rng)
    times = torch.randint(1, 4, (40,), generator=rng)
    repeated = sweep_ece(
        confidence.repeat_interleave(times), outcome.repeat_interleave(times), binning=binning
    )
    for scale in (1.0, 0.1, 1 / 3):
        weights = scale * times.double()
        assert_close(sweep_ece(confidence, outcome, binning=binning, weights=weights), repeated)


@pytest.mark.parametrize("n", [8, 12, 24, 36])
def test_weights_all_alike_are_no_weights(n: int, rng: torch.Generator) -> None:
    """Sums of tenths are inexact; neither ranks nor equal accuracies may notice."""
    confidence = torch.arange(n, dtype=torch.float64) / n
    regular = (torch.arange(n) % 2).double()
    noisy = torch.bernoulli(confidence, generator=rng)
    tenths = torch.full_like(confidence, 0.1)
    for outcome in (regular, noisy, (confidence > 0.5).double()):
        plain = monotone_bins(confidence, outcome, None, "mass")
        assert monotone_bins(confidence, outcome, tenths, "mass").tolist() == plain.tolist()


@every_binning
def test_order_of_samples_is_irrelevant(binning: Binning, rng: torch.Generator) -> None:
    confidence, outcome = calibrated((60,), rng)
    tied = (10 * confidence).round() / 10
    shuffle = torch.randperm(60, generator=rng)
    assert_close(
        sweep_ece(tied[shuffle], outcome[shuffle], binning=binning),
        sweep_ece(tied, outcome, binning=binning),
    )


def test_gradients_by_both_arguments_are_slopes(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((12,), rng)
    soft = outcome * 0.8 + 0.1 * torch.rand(12, generator=rng, dtype=torch.float64)
    assert torch.autograd.gradcheck(sweep_ece, (confidence.requires_grad_(), soft.requires_grad_()))


@every_binning
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("confidence", "outcome"),
    [
        ([0.3], [1.0]),
        ([0.0, 1.0], [1.0, 0.0]),
        ([0.7, 0.7, 0.7], [1.0, 0.0, 1.0]),
        ([1.0, 1.0, 1 - 6e-8], [1.0, 1.0, 0.0]),
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
        ([0.0, 0.5, 0.9, 1.0], [0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_value_and_gradient_are_finite_at_the_edges(
    confidence: list[float], outcome: list[float], binning: Binning, dtype: torch.dtype
) -> None:
    c = torch.tensor(confidence, dtype=dtype, requires_grad=True)
    y = torch.tensor(outcome, dtype=dtype)
    value = sweep_ece(c, y, binning=binning)
    value.backward()
    assert value.dtype == dtype
    assert_close(value.detach(), sweep_by_definition(c.detach(), y, binning=binning))
    assert c.grad is not None
    assert c.grad.isfinite().all()


def test_is_zero_on_the_graph_when_no_sample_counts() -> None:
    for count in (0, 3):
        confidence = torch.rand(count).requires_grad_()
        value = sweep_ece(confidence, torch.ones(count), weights=torch.zeros(count))
        value.backward()
        assert value == 0
        assert_close(confidence.grad, torch.zeros(count))


def test_transforms_are_loops(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((3, 20), rng)
    masks = (torch.rand(3, 20, generator=rng) < 0.7).double()
    pairs = list(zip(confidence, outcome, strict=True))
    assert_close(
        torch.vmap(sweep_ece)(confidence, outcome), torch.stack([sweep_ece(*p) for p in pairs])
    )
    loop = [torch.func.grad(sweep_ece)(*p) for p in pairs]
    assert_close(torch.vmap(torch.func.grad(sweep_ece))(confidence, outcome), torch.stack(loop))
    kept = [sweep_ece(confidence[0][m > 0], outcome[0][m > 0]) for m in masks]
    masked = torch.vmap(lambda m: sweep_ece(confidence[0], outcome[0], weights=m))(masks)
    assert_close(masked, torch.stack(kept))


def test_the_operator_keeps_the_promises_it_makes_to_the_compiler(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((20,), rng)
    for weights in (None, torch.ones_like(confidence)):
        for binning in ("mass", "width"):
            torch.library.opcheck(monotone_bins, (confidence, outcome, weights, binning))


def test_almost_sorted_outcomes_do_not_take_quadratic_time() -> None:
    """Two samples out of order among 200,000: a bin for every four has to be tried."""
    n = 200_000
    confidence = torch.arange(n, dtype=torch.float64) / n
    outcome = (confidence >= 0.5).double()
    outcome[n // 2 - 1], outcome[n // 2] = 1, 0
    bin_of = monotone_bins(confidence, outcome, None, "mass")
    assert bin_of.max() > n // 4


@pytest.mark.parametrize("settings", [{"norm": 0.5}, {"binning": "depth"}])
def test_refuses_settings_that_mean_nothing(
    settings: dict[str, Any], unchecked_types: None
) -> None:
    with pytest.raises(ValueError, match="must be"):
        sweep_ece(torch.rand(3), torch.ones(3), **settings)
