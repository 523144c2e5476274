from typing import Any

import numpy as np
import pytest
import torch
from forecasts import Forecasts, as_tensors, forecasts
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from calibrant import Measure, debiased_ece, ece, label_binned_ece, mce
from calibrant._tables import PART, events_of
from calibrant.measures import _order
from calibrant.measures._binned import assign_bins, width_edges
from calibrant.measures._mass_bins import mass_totals
from calibrant.measures._order import Ascending
from calibrant.measures._width_bins import MOST_BINS


def members(confidence: Tensor, bins: int, binning: str) -> list[Tensor]:
    """Samples of each bin, by looking at one bin after the other."""
    if binning == "width":
        parts = [(confidence > j / bins) & (confidence <= (j + 1) / bins) for j in range(bins)]
        parts[0] |= confidence == 0
        return parts
    lowest_rank = (confidence[:, None] > confidence).sum(dim=1)
    return [(lowest_rank * bins) // len(confidence) == j for j in range(bins)]


def bin_gaps(
    confidence: Tensor, outcome: Tensor, bins: int, binning: str
) -> list[tuple[int, Tensor]]:
    return [
        (int(part.sum()), (outcome[part].mean() - confidence[part].mean()).abs())
        for part in members(confidence, bins, binning)
        if part.any()
    ]


both_binnings = pytest.mark.parametrize("binning", ["width", "mass"])


@both_binnings
@given(drawn=forecasts(), bins=st.integers(1, 20), norm=st.sampled_from([1, 2, 3]))
def test_ece_agrees_with_its_definition(
    binning: str, drawn: Forecasts, bins: int, norm: int
) -> None:
    confidence, outcome = as_tensors(drawn)
    gaps = bin_gaps(confidence, outcome, bins, binning)
    expected = sum(size * gap**norm for size, gap in gaps) / len(confidence)
    ours = ece(confidence, outcome, bins=bins, norm=norm, binning=binning)  # type: ignore[arg-type]
    assert_close(ours, torch.as_tensor(expected) ** (1 / norm), atol=1e-9, rtol=1e-7)


@both_binnings
@given(drawn=forecasts(), bins=st.integers(1, 20))
def test_mce_is_the_largest_gap_of_a_bin(binning: str, drawn: Forecasts, bins: int) -> None:
    confidence, outcome = as_tensors(drawn)
    expected = max(gap for _, gap in bin_gaps(confidence, outcome, bins, binning))
    assert_close(mce(confidence, outcome, bins=bins, binning=binning), expected)  # type: ignore[arg-type]


@both_binnings
@given(drawn=forecasts(), bins=st.integers(1, 20), norm=st.sampled_from([1, 2]))
def test_label_binned_agrees_with_its_definition_and_is_never_below_binned(
    binning: str, drawn: Forecasts, bins: int, norm: int
) -> None:
    confidence, outcome = as_tensors(drawn)
    total = torch.zeros((), dtype=torch.float64)
    for part in members(confidence, bins, binning):
        if part.any():
            total += (outcome[part].mean() - confidence[part]).abs().pow(norm).sum()
    expected = (total / len(confidence)) ** (1 / norm)
    settings = {"bins": bins, "norm": norm, "binning": binning}
    ours = label_binned_ece(confidence, outcome, **settings)  # type: ignore[arg-type]
    assert_close(ours, expected, atol=1e-9, rtol=1e-7)
    assert ours >= ece(confidence, outcome, **settings) - 1e-9  # type: ignore[arg-type]


@given(drawn=forecasts(), bins=st.integers(1, 6))
def test_debiased_agrees_with_its_definition(drawn: Forecasts, bins: int) -> None:
    confidence, outcome = as_tensors(drawn)
    total = 0.0
    for part in members(confidence, bins, "mass"):
        size = int(part.sum())
        if size > 1:
            mean, forecast = outcome[part].mean().item(), confidence[part].mean().item()
            total += size * ((mean - forecast) ** 2 - mean * (1 - mean) / (size - 1))
    expected = max(0.0, total / len(confidence)) ** 0.5
    assert debiased_ece(confidence, outcome, bins=bins).item() == pytest.approx(expected, abs=1e-8)


def sorted_totals(confidence: Tensor, outcome: Tensor, bins: int) -> tuple[Tensor, ...] | None:
    events = events_of(confidence, outcome, None)
    assert events is not None
    return mass_totals(events, bins)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bins", [1, 2, 15, 100, 3000])
@pytest.mark.parametrize("ties", [None, 40, 3])
def test_many_forecasts_are_sorted_into_the_same_bins_of_equal_mass(
    dtype: torch.dtype, bins: int, ties: int | None, rng: torch.Generator
) -> None:
    """A graph takes the way of definitions, plain memory that of one sort."""
    confidence = torch.rand(2049, generator=rng, dtype=dtype)
    confidence = confidence if ties is None else (confidence * ties).round() / ties
    confidence[confidence == 0] *= -1
    outcome = torch.bernoulli(confidence.abs(), generator=rng)
    on_graph = confidence.clone().requires_grad_()
    assert (sorted_totals(confidence, outcome, bins) is None) == (bins > 1000)
    settings: dict[str, Any] = {"bins": bins, "binning": "mass"}
    for measure in (ece, mce, debiased_ece):
        expected = measure(on_graph, outcome, **settings).detach()
        assert_close(measure(confidence, outcome, **settings), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("odd", [0.5, -0.0005, 1.0005])
def test_outcomes_between_zero_and_one_count_in_bins_of_equal_mass(
    odd: float, rng: torch.Generator
) -> None:
    confidence = torch.rand(2000, generator=rng, dtype=torch.float64)
    for outcome in (torch.full_like(confidence, odd), torch.bernoulli(confidence, generator=rng)):
        outcome[7] = odd
        assert sorted_totals(confidence, outcome, 15) is None
        on_graph = confidence.clone().requires_grad_()
        expected = ece(on_graph, outcome, binning="mass").detach()
        assert_close(ece(confidence, outcome, binning="mass"), expected)


@pytest.mark.parametrize("odd", [-0.0005, 1.0005])
def test_a_confidence_just_outside_is_sorted_where_it_belongs(
    odd: float, rng: torch.Generator
) -> None:
    confidence = torch.rand(2000, generator=rng, dtype=torch.float64)
    confidence[[5, 900]] = odd
    outcome = torch.bernoulli(confidence.clamp(0, 1), generator=rng)
    expected = ece(confidence.clone().requires_grad_(), outcome, binning="mass").detach()
    assert_close(ece(confidence, outcome, binning="mass"), expected)


@pytest.mark.parametrize("bins", [1, 3])
def test_bins_of_equal_mass_may_be_larger_than_what_is_added_at_once(
    bins: int, rng: torch.Generator
) -> None:
    confidence = torch.rand(3 * PART + 5, generator=rng, dtype=torch.float64)
    outcome = torch.bernoulli(confidence.sqrt(), generator=rng)
    expected = ece(confidence.clone().requires_grad_(), outcome, bins=bins, binning="mass")
    assert_close(ece(confidence, outcome, bins=bins, binning="mass"), expected.detach())


def test_debiasing_removes_most_of_the_bias(rng: torch.Generator) -> None:
    confidence = torch.rand(500, 300, generator=rng, dtype=torch.float64)
    outcome = torch.bernoulli(confidence, generator=rng)
    plain = torch.vmap(lambda c, y: ece(c, y, norm=2, binning="mass"))(confidence, outcome)
    debiased = torch.vmap(debiased_ece)(confidence, outcome)
    assert debiased.square().mean() < 0.3 * plain.square().mean()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bins", [1, 2, 7, 10, 15, 20, 100])
def test_an_edge_belongs_to_the_bin_below_it(bins: int, dtype: torch.dtype) -> None:
    edges = torch.tensor([j / bins for j in range(bins + 1)], dtype=dtype)
    expected = [0, *range(bins)]
    assert assign_bins(edges, bins=bins, binning="width").tolist() == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "bins", [1, 2, 3, 7, 10, 13, 15, 20, 25, 33, 100, 999, 4_096, MOST_BINS, 2**22]
)
def test_bins_by_arithmetic_are_those_of_a_search(
    bins: int, dtype: torch.dtype, rng: torch.Generator
) -> None:
    edges = width_edges(bins, dtype, torch.device("cpu"))
    ends = torch.tensor([0.0, 1e-42, 1e-30, 0.5, 1.0], dtype=dtype)
    near = [edges, *(torch.nextafter(edges, torch.tensor(end, dtype=dtype)) for end in (0.0, 1.0))]
    inside = torch.cat([ends, *near, torch.rand(5_000, generator=rng, dtype=dtype)])
    odd = torch.tensor([-0.0, -5e-4, 1.0005, torch.nan], dtype=dtype)
    for x in (inside, torch.cat([inside, odd]), torch.rand(5_000, generator=rng, dtype=dtype)):
        assert assign_bins(x, bins=bins, binning="width").equal(torch.bucketize(x, edges))


def test_confidence_one_is_in_the_last_bin_with_its_neighbours() -> None:
    """A bin of its own for it, as in torchmetrics 1.9, would give 0.525 here."""
    confidence, outcome = torch.tensor([1.0, 0.95]), torch.tensor([0.0, 1.0])
    assert ece(confidence, outcome, bins=10).item() == pytest.approx(0.475)


def test_equal_mass_bins_hold_equal_numbers_when_nothing_is_tied(rng: torch.Generator) -> None:
    confidence = torch.rand(105, generator=rng)
    counts = assign_bins(confidence, bins=15, binning="mass").bincount()
    assert counts.tolist() == [7] * 15


def test_sums_do_not_stick_at_two_to_the_twenty_fourth() -> None:
    """In float32 a count stops growing at 16,777,216 and the error of this set vanishes."""
    confidence = torch.full((17_000_000,), 0.7)
    assert ece(confidence, torch.ones(17_000_000)).item() == pytest.approx(0.3, abs=1e-6)


def test_gradient_flows_through_confidences_and_not_through_bins() -> None:
    confidence = torch.tensor([0.55, 0.58, 0.95], requires_grad=True)
    ece(confidence, torch.tensor([0.0, 0.0, 1.0]), bins=10).backward()
    assert_close(confidence.grad, torch.tensor([1.0, 1.0, -1.0]) / 3)


def test_agrees_with_numpy_histograms(rng: torch.Generator) -> None:
    confidence = torch.rand(1_000, generator=rng, dtype=torch.float64)
    outcome = torch.bernoulli(confidence, generator=rng)
    gap, _ = np.histogram(confidence, bins=15, range=(0, 1), weights=outcome - confidence)
    assert ece(confidence, outcome).item() == pytest.approx(np.abs(gap).sum() / 1_000)


def test_an_unknown_binning_is_refused(unchecked_types: None) -> None:
    with pytest.raises(ValueError, match=r'binning must be "width" or "mass"; got \'size\''):
        ece(torch.rand(3), torch.ones(3), binning="size")  # type: ignore[arg-type]


@pytest.mark.parametrize("distinct", [1, 3, 1_000, 10**9])
def test_ties_are_found_alike_among_few_and_among_many(
    distinct: int, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ascending = Ascending.of(torch.randint(distinct, (500,), generator=rng).double())
    few = ascending.first_tied, ascending.last_tied
    monkeypatch.setattr(_order, "_MANY", 0)
    assert_close((ascending.first_tied, ascending.last_tied), few)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_few_and_many_are_sorted_alike(
    dtype: torch.dtype, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = torch.randint(-99, 99, (500,), generator=rng).to(dtype) / 7
    given[[3, 77]], given[78] = torch.nan, torch.inf
    few = Ascending.of(given)
    monkeypatch.setattr(_order, "_MANY", 0)
    many = Ascending.of(given)
    assert_close(many.values, few.values, rtol=0, atol=0, equal_nan=True)
    assert_close(given[many.source], many.values, rtol=0, atol=0, equal_nan=True)
    assert_close(many.unsort(many.values), given, rtol=0, atol=0, equal_nan=True)
    assert many.source.unique().equal(torch.arange(500))


def test_debiased_weights_are_counts_that_need_not_be_whole() -> None:
    confidence, outcome = torch.tensor([0.9, 0.9]).double(), torch.tensor([0.0, 0.0]).double()
    weights = torch.tensor([0.6, 0.6]).double()
    value = debiased_ece(confidence, outcome, bins=1, weights=weights)
    assert_close(value, torch.tensor(0.9).double())


@pytest.mark.parametrize("binning", ["width", "mass"])
@pytest.mark.parametrize("scale", [1e-300, 1 / 60, 0.1, 0.7, 2.5, 999.9])
def test_weights_that_are_no_counts_are_proportions_to_the_debiased_error(
    binning: str, scale: float, rng: torch.Generator
) -> None:
    confidence = torch.rand(60, generator=rng, dtype=torch.float64)
    outcome = torch.bernoulli(confidence**3, generator=rng)
    settings: dict[str, Any] = {"bins": 40, "binning": binning}  # many bins of a single sample
    expected = debiased_ece(confidence, outcome, **settings)
    assert expected > 0.05
    alike = torch.full((60,), scale, dtype=torch.float64)
    assert_close(debiased_ece(confidence, outcome, **settings, weights=alike), expected)
    absent = torch.cat([alike, torch.zeros(5, dtype=torch.float64)])
    more = torch.cat([confidence, confidence[:5]]), torch.cat([outcome, 1 - outcome[:5]])
    assert_close(debiased_ece(*more, **settings, weights=absent), expected)


def test_weights_of_any_unit_have_one_debiased_error(rng: torch.Generator) -> None:
    confidence = torch.rand(60, generator=rng, dtype=torch.float64)
    outcome = torch.bernoulli(confidence**3, generator=rng)
    weights = torch.rand(60, generator=rng, dtype=torch.float64)
    expected = debiased_ece(confidence, outcome, weights=weights)
    for scale in (1e-3, 7.3, 1e4):
        assert_close(debiased_ece(confidence, outcome, weights=scale * weights), expected)


@pytest.mark.parametrize("measure", [ece, mce])
def test_what_lies_a_little_below_zero_is_in_the_first_bin(measure: Measure) -> None:
    confidence = torch.full((3_000,), 0.95)
    outcome = torch.ones(3_000)
    for place in (5, 8):
        below = confidence.clone()
        below[place] = -0.0005
        at_zero = below.clamp(min=0)
        assert_close(measure(below, outcome), measure(at_zero, outcome), atol=1e-3, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_falls_into_the_bins_of_the_same_numbers(
    dtype: torch.dtype, rng: torch.Generator
) -> None:
    confidence = torch.cat([torch.arange(1, 15) / 15, torch.rand(200, generator=rng)]).to(dtype)
    narrow = assign_bins(confidence, bins=15, binning="width")
    assert_close(narrow, assign_bins(confidence.float(), bins=15, binning="width"))
