"""Resampling all at once is resampling one by one."""

from dataclasses import astuple, replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.testing import assert_close

from calibrant import Predictions
from calibrant.evaluation import _bin_totals, _sweep_draws, _weights
from calibrant.evaluation._bin_totals import by_width
from calibrant.evaluation._coins import Coins
from calibrant.evaluation._estimates import estimates
from calibrant.evaluation._interval import inverted, middle, percentile
from calibrant.evaluation._largest_draws import LargestGapDraws
from calibrant.evaluation._resampled import AlongRay, Events, Mean, OfWeights
from calibrant.evaluation._rows import Row, rows_of_events, rows_of_predictions
from calibrant.evaluation._shape import Shape, ShapeName, shape_of
from calibrant.evaluation._sweep_draws import SweepDraws
from calibrant.evaluation._weights import multinomial_weights
from calibrant.measures._binned import as_counts, assign_bins
from calibrant.measures._sweep import monotone_bins

N, CLASSES = 120, 4


pytestmark = pytest.mark.usefixtures("one_thread")


def sample(*, tied: bool, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Over-confident logits, on a coarse grid where ties are wanted."""
    rng = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(N, CLASSES, generator=rng, dtype=torch.float64)
    logits = logits.round() if tied else logits
    labels = torch.multinomial((logits / 1.5).softmax(dim=1), 1, generator=rng)[:, 0]
    return logits, labels


# Rows by class draw labels anew instead: test_class_draws.py.
EVERY = rows_of_predictions(Predictions(*sample(tied=True)), torch.ones(N).double(), 15)
ROWS = [name for name, row in EVERY.items() if isinstance(row.resampled, OfWeights)]


@pytest.fixture(
    scope="module", params=["distinct", "tied", "tied and counted", "tied and weighted"]
)
def world(request: pytest.FixtureRequest) -> tuple[Tensor, Tensor, Tensor]:
    logits, labels = sample(tied=request.param != "distinct")
    weights, rng = torch.ones(N, dtype=torch.float64), torch.Generator().manual_seed(1)
    if request.param == "tied and counted":
        weights = torch.randint(4, (N,), generator=rng).double()
    if request.param == "tied and weighted":
        weights = as_counts(torch.rand(N, generator=rng, dtype=torch.float64))
    return logits, labels, weights


OF_EQUAL_MASS = ("ece_mass", "ece_mass_l2", "debiased_ece")


def of_weights(logits: Tensor, labels: Tensor, base: Tensor, name: str) -> tuple[Row, OfWeights]:
    row = rows_of_predictions(Predictions(logits, labels, weights=base), base, 15)[name]
    assert isinstance(row.resampled, OfWeights)
    return row, row.resampled


@pytest.mark.parametrize("name", [name for name in ROWS if name not in OF_EQUAL_MASS])
def test_each_resample_is_the_measure_s_own_weighted_form(
    name: str, world: tuple[Tensor, Tensor, Tensor]
) -> None:
    logits, labels, base = world
    _, resampled = of_weights(logits, labels, base, name)
    (weights,) = multinomial_weights(base, 4, seed=3)
    one_by_one = [
        rows_of_predictions(Predictions(logits, labels, weights=own), own, 15)[name].value()
        for own in weights
    ]
    assert_close(resampled.draw(weights), torch.stack(one_by_one))


def squares_in_bins(confidence: Tensor, outcome: Tensor, base: Tensor, own: Tensor) -> list[Tensor]:
    """Size of the gap, its square and the latter without noise: sums over the sample's own bins."""
    bin_of = assign_bins(confidence, bins=15, binning="mass", weights=base)
    size, square, debiased = torch.zeros(3, dtype=torch.float64)
    for b in range(15):
        inside = own * (bin_of == b)
        share, count = inside.sum() / own.sum(), inside.sum()
        if count == 0:
            continue
        mean = (inside * (outcome - confidence)).sum() / count
        rate = (inside * outcome).sum() / count
        size += share * mean.abs()
        square += share * mean.square()
        if count > 1 + 1e-9:
            debiased += share * (mean.square() - rate * (1 - rate) / (count - 1))
    return [size, square, debiased.clamp(min=0)]


def test_resamples_of_equal_mass_keep_the_bins_of_the_sample(
    world: tuple[Tensor, Tensor, Tensor],
) -> None:
    logits, labels, base = world
    predictions = Predictions(logits, labels, weights=base)
    (weights,) = multinomial_weights(base, 4, seed=3)
    for k, own in enumerate(weights):
        sums = squares_in_bins(predictions.confidence, predictions.correct, base, own)
        slowly = {
            "ece_mass": sums[0],
            "ece_mass_l2": sums[1].sqrt(),
            "debiased_ece": sums[2].sqrt(),
        }
        for name in OF_EQUAL_MASS:
            _, resampled = of_weights(logits, labels, base, name)
            assert_close(resampled.draw(weights)[k], slowly[name])


@pytest.mark.parametrize("name", ROWS)
def test_a_resample_that_is_the_sample_gives_the_value(
    name: str, world: tuple[Tensor, Tensor, Tensor]
) -> None:
    logits, labels, base = world
    row, resampled = of_weights(logits, labels, base, name)
    assert_close(resampled.draw(base[None])[0], row.value())


ALONG_RAY = [name for name, row in EVERY.items() if isinstance(row.resampled, AlongRay)]


@pytest.mark.parametrize("name", [name for name in ALONG_RAY if name != "mce"])
def test_moving_to_the_observed_gaps_changes_nothing(name: str) -> None:
    """Where the expected gap is the observed one, scale one is the plain resample."""
    logits, labels = sample(tied=True)
    ones = torch.ones(N, dtype=torch.float64)
    resampled = rows_of_predictions(Predictions(logits, labels), ones, 15)[name].resampled
    assert isinstance(resampled, AlongRay)
    (weights,) = multinomial_weights(ones, 4, seed=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "calibrant.evaluation._resampled.shape_of",
            lambda confidence, gap, _: Shape(gap, gap, gap, gap),
        )
        observed = rows_of_predictions(Predictions(logits, labels), ones, 15)[name].resampled
        observed = observed.own if isinstance(observed, SweepDraws) else observed
        assert isinstance(observed, AlongRay)
        moved = observed.moved(weights, torch.ones(1, dtype=torch.float64))[:, 0]
    back = observed._noise if name == "esd" else 0  # type: ignore[attr-defined]
    assert_close(moved - back, observed.draw(weights))


def test_the_largest_gap_is_moved_by_counts_drawn_anew() -> None:
    """One sample in the lowest bin, many in the highest, none between."""
    confidence = torch.cat([torch.tensor([0.05]), torch.full((400,), 0.95)]).double()
    outcome = torch.cat([torch.tensor([1.0]), (torch.arange(400) % 2).float()]).double()
    weights = torch.ones(401, dtype=torch.float64)
    events = Events.of(confidence, outcome, weights)
    draws = LargestGapDraws(events, by_width(events, 10), bins=10)
    scales = torch.tensor([0.0, 1.0], dtype=torch.float64)
    # The gap of the many is beyond doubt; that of the one may be chance, but stands out too.
    assert_close(draws.truth(scales), torch.tensor([0.0, 0.95], dtype=torch.float64))
    calm, moved = draws.moved(torch.ones(20_000, 401, dtype=torch.float64), scales).unbind(1)
    # A calibrated model: the one is right one time in twenty, and the many are off by little.
    assert (calm > 0.9).double().mean().item() == pytest.approx(0.05, abs=0.005)
    assert calm[calm < 0.9].max() < 0.1
    assert_close(moved, torch.full_like(moved, 0.95))


@pytest.mark.parametrize("hundredths", range(21, 33))
def test_a_largest_gap_that_may_be_chance_is_so_in_any_precision(hundredths: int) -> None:
    """One sample in a bin of its own is right, as it would be one time in four."""
    rest = torch.full((60,), 0.75)
    confidence = torch.cat([torch.tensor([hundredths / 100]), rest])
    outcome = torch.cat([torch.ones(1), (torch.arange(60) % 4 > 0).float()])
    ones = torch.ones(61, dtype=torch.float64)
    single, double = (
        estimates({"mce": rows["mce"]}, ones, draws=200, level=0.95, seed=0)["mce"]
        for rows in (
            rows_of_events(confidence.to(kind), outcome.to(kind), ones, None, 15)
            for kind in (torch.float32, torch.float64)
        )
    )
    assert single.low == double.low == 0
    assert single.high == pytest.approx(double.high, rel=1e-6)


def test_no_samples_have_no_largest_gap() -> None:
    none = torch.zeros(0, dtype=torch.float64)
    events = Events.of(none, none, none)
    draws = LargestGapDraws(events, by_width(events, 10), bins=10)
    scales = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert_close(draws.truth(scales), torch.zeros(2).double())
    assert_close(draws.moved(torch.zeros(3, 0).double(), scales), torch.zeros(3, 2).double())


def test_the_largest_gap_is_no_smaller_than_a_typical_one() -> None:
    """One sample in a bin of its own might be chance; the many that are off are not."""
    rng = torch.Generator().manual_seed(0)
    confidence = torch.cat([torch.tensor([0.05]), 0.9 + 0.1 * torch.rand(800, generator=rng)])
    outcome = torch.cat([torch.tensor([1.0]), (torch.arange(800) % 5 > 0).float()]).double()
    ones = torch.ones(801, dtype=torch.float64)
    rows = rows_of_events(confidence.double(), outcome, ones, None, 15)
    chosen = {name: rows[name] for name in ("mce", "ece_l2")}
    found = estimates(chosen, ones, draws=200, level=0.95, seed=0)
    assert found["mce"].low == pytest.approx(found["ece_l2"].low)
    assert found["mce"].low > 0.1


def test_a_largest_gap_has_its_own_ray_and_one_of_the_shape_alone() -> None:
    rng = torch.Generator().manual_seed(3)
    confidence = torch.rand(300, generator=rng, dtype=torch.float64)
    outcome = torch.bernoulli(confidence.square(), generator=rng)
    events = Events.of(confidence, outcome, torch.ones(300).double())
    draws = LargestGapDraws(events, by_width(events, 10), bins=10)
    scales = torch.tensor([0.0, 1.0], dtype=torch.float64)
    bin_of = (confidence * 10 - 1e-12).long()
    shape, rise = (
        torch.stack([x[bin_of == k].mean() for k in range(10)])
        for x in (events.shape.expected, confidence)
    )
    alone = ((rise + shape).clamp(0, 1) - rise).abs().max()
    truths = draws.truths(scales)
    assert_close(truths[:2, 1], torch.stack([draws.truth(scales)[1], alone]))
    assert truths[0, 1] > truths[1, 1]
    rays = draws.along(draws.drawn(events.gap.expand(4000, -1)), scales, seed=0)
    for k, gap in enumerate((draws._filled("expected", True)[2], shape)):
        size = torch.bincount(bin_of).double()
        chance = (rise + gap).clamp(0, 1)
        hits = torch.binomial(size.expand(4000, -1), chance.expand(4000, -1), rng)
        slowly = (hits / size - rise).abs().amax(dim=1)
        error = 4 * (2 * slowly.var() / 4000).sqrt().item()
        assert rays[:, k, 1].mean().item() == pytest.approx(slowly.mean().item(), abs=error)
    value = draws._seen
    (low, high), alike = (inverted(value, rays[:, k], truths[k], 0.95) for k in range(2))
    typical = draws.typical.draw(events.weights[None]).item()
    least, _ = draws.typical.ends(typical, rays[:, 2:], truths[2:], 0.95)
    ends = draws.ends(value, rays, truths, 0.95)
    assert ends == (max(min(low, alike[0]), least), max(high, alike[1]))


def test_a_sweep_keeps_its_bins_along_the_ray_where_accuracies_rise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_sweep_draws, "_FEWEST", 0.0)
    confidence, outcome = torch.rand(2, 60, generator=torch.Generator().manual_seed(4)).double()
    outcome = (outcome < confidence).double()
    ones = torch.ones(60, dtype=torch.float64)
    events = Events.of(confidence, outcome, ones)
    (weights,) = multinomial_weights(ones, 12, seed=5)
    scales = (0.0, 1.0, 2.0)
    found = SweepDraws(events).moved(weights, torch.tensor(scales).double(), "even")
    bins = monotone_bins(confidence, outcome, ones, "mass")
    for row, each in zip(weights, found, strict=True):
        for scale, value in zip(scales, each, strict=True):
            square, rates = 0.0, []
            for k in range(int(bins.max()) + 1):
                own = bins == k
                moved = row * events.gap - events.gap + scale * events.shape.even
                gap, mass = moved[own].sum() / 60, row[own].sum() / 60
                square += (gap**2 / mass).item()
                rates.append(((row * confidence)[own].sum() / 60 + gap) / mass)
            if rates == sorted(rates):
                assert value.item() == pytest.approx(square**0.5)
            else:
                assert value.isnan()
    assert 0 < found.isnan().sum() < found.numel()
    # Where hardly any rises, all count.
    monkeypatch.setattr(_sweep_draws, "_FEWEST", 1.1)
    every = SweepDraws(events).moved(weights, torch.tensor(scales).double(), "even")
    assert every.isfinite().all()
    assert_close(every[found.isfinite()], found[found.isfinite()])


def test_a_sweep_passes_over_bins_that_ties_leave_empty() -> None:
    """Of three confidences there are three bins at most, and accuracies may rise over all."""
    confidence = torch.tensor([0.2, 0.5, 0.8], dtype=torch.float64).repeat_interleave(40)
    outcome = (torch.arange(120) % 40 < torch.tensor([8, 12, 30]).repeat_interleave(40)).double()
    ones = torch.ones(120, dtype=torch.float64)
    sweep = SweepDraws(Events.of(confidence, outcome, ones))
    assert_close(sweep.own.binned.own.mass, torch.full((1, 3), 1 / 3).double())
    rates = torch.tensor([[8.0, 12.0, 30.0], [12.0, 8.0, 30.0]], dtype=torch.float64) / 40
    gap = (rates - confidence[::40]) / 3
    rising, falling = sweep.of_totals(replace(sweep.own.binned.own, gap=gap, hits=rates / 3))
    assert rising.item() == pytest.approx((gap[0].square() * 3).sum().sqrt().item())
    assert falling.isnan()


@pytest.mark.parametrize("name", ALONG_RAY)
def test_without_noise_a_truth_rises_from_zero_with_its_scale(name: str) -> None:
    logits, labels = sample(tied=False)
    ones = torch.ones(N, dtype=torch.float64)
    resampled = rows_of_predictions(Predictions(logits, labels), ones, 15)[name].resampled
    assert isinstance(resampled, AlongRay)
    truth = resampled.truth(torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64))
    if name != "label_binned_ece":
        assert_close(truth[0], torch.zeros_like(truth[0]), atol=1e-4, rtol=0)
    assert truth[0] < truth[1] < truth[2]


def test_weights_are_counts_of_draws_with_replacement_times_the_weights_given() -> None:
    base = torch.tensor([1.0, 2.0, 0.5, 0.0], dtype=torch.float64)
    (weights,) = multinomial_weights(base, 4_000, seed=0)
    counts = weights[:, :3] / base[:3]
    assert_close(counts, counts.round())
    assert (weights[:, 3] == 0).all()
    # Multinomial with n = 4: mean 1, variance 3/4, covariance -1/4.
    error = 4 / 4_000**0.5
    assert_close(counts.mean(dim=0), torch.ones(3).double(), atol=error, rtol=0)
    expected = torch.full((3, 3), -0.25).double() + torch.eye(3).double()
    assert_close(counts.T.cov(), expected, atol=2 * error, rtol=0)


def test_blocks_are_bounded_and_hold_every_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_weights, "_AT_ONCE", 70)
    blocks = list(multinomial_weights(torch.ones(10).double(), 23, seed=0))
    assert [len(block) for block in blocks] == [7, 7, 7, 2]
    assert_close(torch.cat(blocks).sum(dim=1), torch.full((23,), 10.0).double())


def test_the_size_of_a_block_does_not_change_what_a_row_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logits, labels = sample(tied=True)
    predictions, ones = Predictions(logits, labels), torch.ones(N).double()
    rows = rows_of_predictions(predictions, ones, 15)
    chosen = {name: rows[name] for name in ("ece", "ece_mass", "debiased_ece", "ks_error")}
    monkeypatch.setattr(_weights, "_AT_ONCE", 2**22)
    whole = estimates(chosen, ones, draws=40, level=0.9, seed=0)
    monkeypatch.setattr(
        "calibrant.evaluation._estimates.multinomial_weights",
        lambda weights, draws, seed: next(iter(multinomial_weights(weights, draws, seed))).split(7),
    )
    # To the last bit or nearly: matrix products of other shapes add in another order.
    for name, estimate in estimates(chosen, ones, draws=40, level=0.9, seed=0).items():
        assert astuple(estimate) == pytest.approx(astuple(whole[name]), rel=1e-12, abs=1e-15)


def test_a_mean_of_what_is_infinite_is_so_where_it_is_drawn() -> None:
    endless = Mean(torch.tensor([1.0, 2.0, torch.inf], dtype=torch.float64))
    weights = torch.tensor([[1.0, 2.0, 0.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    assert_close(endless.draw(weights), torch.tensor([5 / 3, torch.inf], dtype=torch.float64))


def test_where_zeros_would_be_too_many_rows_are_added_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logits, labels = sample(tied=True)
    ones = torch.ones(N).double()
    found = []
    for most in (_bin_totals._MOST_ZEROS, 0):
        monkeypatch.setattr(_bin_totals, "_MOST_ZEROS", most)
        monkeypatch.setattr(torch.nn.functional, "one_hot", watched := Mock(wraps=one_hot))
        rows = rows_of_predictions(Predictions(logits, labels), ones, 15)
        chosen = {name: rows[name] for name in ("ece", "mce", "per_class_ece")}
        found.append(estimates(chosen, ones, draws=40, level=0.9, seed=0))
        assert watched.called == (most > 0)
    for name, estimate in found[0].items():
        assert astuple(found[1][name]) == pytest.approx(astuple(estimate), rel=1e-9, abs=1e-12)


def test_percentiles_are_the_middle_of_the_draws() -> None:
    assert percentile(torch.arange(1.0, 100.0).flip(0), 0.9) == (5.0, 95.0)
    assert percentile(torch.arange(5.0), 0.9) == (0.0, 4.0)
    endless = torch.tensor([1.0, 2.0, torch.inf, torch.inf, torch.inf])
    assert percentile(endless, 0.1) == (2.0 + torch.inf, torch.inf)
    drawn = torch.randn(137, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = np.quantile(drawn, [0.025, 0.975], method="weibull")
    assert percentile(drawn, 0.95) == pytest.approx(tuple(expected))


def test_another_draw_lies_in_the_middle_as_often_as_it_says(rng: torch.Generator) -> None:
    drawn = torch.rand(100, 20_000, generator=rng, dtype=torch.float64)
    low, high = middle(drawn, 0.95)
    # The chance that a further draw lies between is the length, as these are uniform.
    assert (high - low).mean().item() == pytest.approx(0.95, abs=0.001)


def test_inversion_of_a_pure_shift_is_the_estimate_plus_and_minus_the_spread() -> None:
    noise = torch.linspace(-1, 1, 2001, dtype=torch.float64)[1:-1]
    scales = torch.tensor([0.0, 1.0, 2.0, 4.0], dtype=torch.float64)
    truth = 10 * scales
    low, high = inverted(15.0, noise[:, None] + truth, truth, 0.9)
    assert low == pytest.approx(14.1)
    assert high == pytest.approx(15.9)


def test_inversion_begins_at_zero_where_a_perfect_model_would_not_be_surprising() -> None:
    noise = torch.linspace(0, 1, 1001, dtype=torch.float64)[1:-1]
    scales = torch.tensor([0.0, 1.0], dtype=torch.float64)
    low, high = inverted(0.9, noise[:, None] + scales, scales, 0.95)
    assert low == 0
    assert high == pytest.approx(0.9 - 0.025)


def test_a_lucky_value_says_no_more_than_a_lucky_perfect_model_s() -> None:
    noise = torch.linspace(0, 1, 1001, dtype=torch.float64)[1:-1]
    scales = torch.tensor([0.0, 1.0], dtype=torch.float64)
    low, high = inverted(0.001, noise[:, None] + scales, scales, 0.95)
    assert low == 0
    assert high == pytest.approx(0.16 - 0.025, abs=1e-3)


def test_resamples_that_say_nothing_are_left_out() -> None:
    noise = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    truth = torch.tensor([0.0, 10.0, 20.0], dtype=torch.float64)
    moved = noise[:, None] + truth
    silent = torch.full_like(moved, torch.nan)
    for value in (15.0, -0.9):  # the second is lucky for a perfect model
        both = torch.cat([moved, silent])
        assert inverted(value, both, truth, 0.9) == inverted(value, moved, truth, 0.9)


def test_expected_gaps_keep_a_real_bump_and_drop_noise(rng: torch.Generator) -> None:
    confidence = torch.rand(4_000, generator=rng, dtype=torch.float64)
    noise = 0.4 * torch.randn(4_000, generator=rng, dtype=torch.float64)
    bump = 0.5 * (6.28 * confidence).sin()
    ones = torch.ones(4_000, dtype=torch.float64)
    dropped, kept = (shape_of(confidence, gap, ones) for gap in (noise, bump + noise))
    assert dropped.expected.square().mean() < 0.2 * noise.square().mean()
    assert (kept.expected * bump).mean() / bump.square().mean() > 0.9


def test_a_mean_within_its_noise_is_put_at_its_standard_error() -> None:
    confidence = torch.linspace(0, 1, 400, dtype=torch.float64)
    gap = torch.tensor([1.0, -1.0] * 200, dtype=torch.float64) + 0.001
    found = shape_of(confidence, gap, torch.ones(400, dtype=torch.float64))
    # The standard error of the mean of 400 gaps of size one.
    assert_close(found.expected.mean(), torch.tensor(1 / 20).double(), atol=1e-3, rtol=0)
    certain = shape_of(confidence, gap + 1, torch.ones(400, dtype=torch.float64))
    assert_close(certain.expected.mean(), (gap + 1).mean())


def of_bins(events: Events, cell: Tensor) -> tuple[list[float], list[float], list[float]]:
    """Of each bin its samples, its mean gap, and that gap's standard error."""
    count, gap, error = [], [], []
    for k in range(15):
        own = cell == k
        chance = events.confidence[own] * (1 - events.confidence[own])
        count.append(own.sum().item())
        gap.append(events.gap[own].mean().item())
        error.append(max(events.gap[own].square().sum(), chance.sum()).item() ** 0.5 / count[-1])
    return count, gap, error


GAPS = ["none", "one bin", "slope", "large"]


def gapped(kind: str, seed: int) -> tuple[Events, Tensor]:
    """Events of 900 confidences, and their bins of equal mass."""
    rng = torch.Generator().manual_seed(seed)
    confidence = torch.rand(900, generator=rng, dtype=torch.float64)
    chance = {
        "none": confidence,
        "one bin": torch.where((confidence > 0.4) & (confidence < 0.47), 0.95, confidence),
        "slope": 0.3 + 0.4 * confidence,
        "large": 1 - confidence,
    }[kind]
    outcome = torch.bernoulli(chance, generator=rng)
    events = Events.of(confidence, outcome, torch.ones(900, dtype=torch.float64))
    return events, assign_bins(confidence, bins=15, binning="mass")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", GAPS)
def test_a_sparse_truth_leaves_what_noise_would(kind: str, seed: int) -> None:
    events, cell = gapped(kind, seed)
    _, gap, error = of_bins(events, cell)
    sizes = [abs(g) / e for g, e in zip(gap, error, strict=True)]
    low, high = 0.0, sorted(sizes)[-2]
    for _ in range(60):
        middle = (low + high) / 2
        enough = sum(min(z, middle) ** 2 for z in sizes) > 15 + 30**0.5
        low, high = (low, middle) if enough else (middle, high)
    factor = max(sizes) / (max(sizes) - low)
    slowly = [g * max(0.0, 1 - low / z) * factor for g, z in zip(gap, sizes, strict=True)]
    assert_close(events.shape.sparse, torch.tensor(slowly, dtype=torch.float64)[cell])
    bins = sum(abs(g) > 1e-9 for g in slowly)
    if kind == "one bin":
        assert bins < 8
    if kind == "none" and sum(z**2 for z in sizes) < 15 + 30**0.5:
        assert bins == 1
    if kind == "large":
        assert bins > 10


@pytest.mark.parametrize("kind", GAPS)
def test_an_even_truth_is_off_by_as_many_standard_errors_everywhere(kind: str) -> None:
    events, cell = gapped(kind, 0)
    count, gap, error = of_bins(events, cell)
    squares = [(g / e) ** 2 for g, e in zip(gap, error, strict=True)]
    size = max(1.0, (sum(squares) / 15) ** 0.5)
    for k in range(15):
        side = 1 if events.shape.expected[cell == k].sum() >= 0 else -1
        slowly = torch.full((int(count[k]),), side * size * error[k], dtype=torch.float64)
        assert_close(events.shape.even[cell == k], slowly)


def of_two_signs(across: float) -> tuple[Tensor, Tensor]:
    """Below 0.3 events happen more often than they should, above it less often."""
    rng = torch.Generator().manual_seed(0)
    confidence = torch.rand(3000, generator=rng, dtype=torch.float64)
    chance = torch.where(confidence < 0.3, confidence + across * confidence, 0.8 * confidence)
    return confidence, torch.bernoulli(chance, generator=rng)


@pytest.mark.parametrize(("across", "believed"), [(0.1, False), (0.4, True)])
def test_a_leaning_truth_has_gaps_of_the_other_sign_only_beyond_doubt(
    across: float, believed: bool
) -> None:
    confidence, outcome = of_two_signs(across)
    events = Events.of(confidence, outcome, torch.ones(3000, dtype=torch.float64))
    shape, cell = events.shape, assign_bins(confidence, bins=15, binning="mass")
    count, gap, error = of_bins(events, cell)
    other = [k for k in range(15) if shape.even[cell == k].sum() > 0]
    assert 0 < len(other) < 8
    together = sum(count[k] * gap[k] for k in other)
    noise = sum((count[k] * error[k]) ** 2 for k in other) ** 0.5
    assert (together > 3 * noise) == believed
    assert_close(shape.leaning, shape.even if believed else -shape.even.abs())


def test_shapes_of_nothing_are_nothing() -> None:
    sure = torch.ones(5, dtype=torch.float64)
    for shape in shape_of(sure, torch.zeros(5).double(), sure):
        assert_close(shape, torch.zeros(5).double())


RUNNING = ("smooth_ece", "ks_error", "esd", "mmce")


@pytest.mark.parametrize("name", RUNNING)
def test_the_ends_of_an_interval_come_from_rays_of_their_own(name: str) -> None:
    confidence, outcome = of_two_signs(0.1)
    ones = torch.ones(len(confidence), dtype=torch.float64)
    row = rows_of_events(confidence, outcome, ones, None, 15)[name]
    (weights,) = multinomial_weights(ones, 60, seed=1)
    ray = row.resampled
    assert isinstance(ray, AlongRay)
    gaps = Coins(ray.events.confidence, seed=2).gaps(60)
    scales, value = ray.scales_like(ones), row.value().item()
    rays, truths = ray.rays(weights, scales, gaps), ray.truths(scales)
    assert not torch.equal(ray.events.shape.leaning, ray.events.shape.even)
    shapes: list[ShapeName] = ["sparse", "leaning" if name == "ks_error" else "even"]
    if name != "smooth_ece":
        shapes.append("expected")
    each = []
    for shape in shapes:
        moved = ray.moved(weights, scales, shape)
        moved[:, 0] = ray.of_gaps(gaps)  # at zero the model is calibrated
        each.append(inverted(value, moved, ray.truth(scales, shape), 0.9))
    assert_close(truths, torch.stack([ray.truth(scales, shape) for shape in shapes]))
    highest = max(high for _, high in each)
    assert ray.ends(value, rays, truths, 0.9) == pytest.approx((each[0][0], highest))


def test_intervals_of_events_hold_the_truth_about_as_often_as_they_say() -> None:
    """The full study is benchmarks/coverage.py; this is its smallest relative."""
    rng = torch.Generator().manual_seed(5)
    ones = torch.ones(400, dtype=torch.float64)
    held = {"ece": 0, "ks_error": 0, "esd": 0}
    # Chances are the square of the confidence: on [0, 1] the gaps add up to 1/2 - 1/3.
    truths = {"ece": 1 / 6, "ks_error": 1 / 6, "esd": 1 / 63 - 1 / 18 + 1 / 20}
    times = 40
    for k in range(times):
        confidence = torch.rand(400, generator=rng, dtype=torch.float64)
        outcome = torch.bernoulli(confidence.square(), generator=rng)
        rows = rows_of_events(confidence, outcome, ones, None, 15)
        found = estimates({name: rows[name] for name in held}, ones, draws=100, level=0.95, seed=k)
        for name, truth in truths.items():
            held[name] += found[name].low <= truth <= found[name].high
    # Binomial with p = 0.95: four standard errors below is 0.81.
    assert min(held.values()) >= 0.81 * times, held
