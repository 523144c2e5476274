"""Rows of events scatter as outcomes do that are drawn anew, above all where samples are few."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.distributions import Binomial
from torch.testing import assert_close

from calibrant.evaluation._bin_rays import OfBins
from calibrant.evaluation._coins import Coins
from calibrant.evaluation._estimates import estimates
from calibrant.evaluation._interval import inverted
from calibrant.evaluation._resampled import AlongRay
from calibrant.evaluation._rows import Row, rows_of_events
from calibrant.evaluation._thinned import thinned
from calibrant.measures._binned import Binning, as_counts, assign_bins

OF_GAPS = (
    *("ece", "ece_l2", "mce", "ece_mass", "ece_mass_l2", "label_binned_ece", "debiased_ece"),
    *("sweep_ece", "smooth_ece", "ks_error", "esd", "mmce"),
)
OF_BINS = ("ece", "ece_l2", "ece_mass", "ece_mass_l2", "label_binned_ece", "debiased_ece")


pytestmark = pytest.mark.usefixtures("one_thread")


def rows_of(confidence: Tensor, outcome: Tensor, weights: Tensor | None = None) -> dict[str, Row]:
    own = torch.ones(len(confidence)).double() if weights is None else weights
    rows = rows_of_events(confidence, outcome, own, weights, 15)
    return {name: rows[name] for name in OF_GAPS}


def along_ray(row: Row) -> AlongRay:
    assert isinstance(row.resampled, AlongRay)
    return row.resampled


def of_bins(row: Row) -> OfBins:
    assert isinstance(row.resampled, OfBins)
    return row.resampled


@pytest.mark.parametrize("kind", ["plain", "counted", "weighted"])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", [name for name in OF_GAPS if name != "sweep_ece"])
def test_outcomes_drawn_anew_give_what_the_measure_says_of_them(
    name: str, tied: bool, kind: str, rng: torch.Generator
) -> None:
    """A sweep keeps its bins, and is tested along its ray."""
    confidence = torch.rand(50, generator=rng, dtype=torch.float64)
    confidence = (8 * confidence).round() / 8 if tied else confidence
    weights = {
        "plain": None,
        "counted": torch.randint(3, (50,), generator=rng).double(),
        "weighted": as_counts(0.2 + torch.rand(50, generator=rng, dtype=torch.float64)),
    }[kind]
    outcome = torch.bernoulli(confidence, generator=rng)
    drawn = torch.bernoulli(confidence.expand(5, -1), generator=rng)
    found = along_ray(rows_of(confidence, outcome, weights)[name]).of_gaps(drawn - confidence)
    one_by_one = [rows_of(confidence, other, weights)[name].value() for other in drawn]
    assert_close(found, torch.stack(one_by_one))


def test_coins_are_independent_and_fall_as_often_as_they_say() -> None:
    chance = torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0])
    gaps = Coins(chance, seed=0).gaps(40_000)
    happened = gaps + chance.double()
    assert_close(happened, happened.round(), atol=1e-7, rtol=0)
    error = 4 * 0.5 / 200
    assert_close(happened.mean(dim=0), chance.double(), atol=error, rtol=0)
    assert_close(happened.T.cov(), (chance * (1 - chance)).double().diag(), atol=error, rtol=0)
    assert (happened[:, 0] == 0).all()
    assert (happened[:, 4] == 1).all()


def test_coins_are_the_same_in_blocks_of_any_size() -> None:
    coins, others = (Coins(torch.rand(13), seed=4) for _ in range(2))
    others = Coins(coins._chance.float(), seed=4)
    assert_close(torch.cat([coins.gaps(5), coins.gaps(6)]), others.gaps(11))


CALIBRATED: dict[str, Callable[[int, torch.Generator], Tensor]] = {
    "between a half and one": lambda n, rng: 0.5 + 0.5 * torch.rand(n, generator=rng).double(),
    "of events": lambda n, rng: torch.rand(n, generator=rng).double(),
    "near one": lambda n, rng: (
        (4 * torch.randn(n, 10, generator=rng).double()).softmax(dim=1).amax(dim=1)
    ),
    "all the same": lambda n, _: torch.full((n,), 0.8),
    "in tenths": lambda n, rng: torch.randint(5, 10, (n,), generator=rng) / 10,
}


@pytest.mark.parametrize(
    ("confidences", "n"), list(zip(CALIBRATED, (20, 20, 10, 10, 10), strict=True))
)
def test_intervals_of_few_samples_of_calibrated_models_begin_at_zero(
    confidences: str, n: int
) -> None:
    """Resampled rows called up to nine in ten of them miscalibrated; two or three in 100 may be."""
    times, alarms = 30, dict.fromkeys(OF_GAPS, 0)
    quick = [name for name in OF_GAPS if name != "smooth_ece"]
    for seed in range(times):
        rng = torch.Generator().manual_seed(1000 * n + seed)
        confidence = CALIBRATED[confidences](n, rng)
        outcome = torch.bernoulli(confidence, generator=rng)
        rows, ones = rows_of(confidence, outcome), torch.ones(n).double()
        chosen = {name: rows[name] for name in quick}
        found = estimates(chosen, ones, draws=79, level=0.95, seed=seed)
        for name, one in found.items():
            # What is left at a truth of zero, of forecasts within a bin, is no alarm.
            left = along_ray(rows[name]).truths(torch.zeros(1).double()).min()
            alarms[name] += one.low > max(left.item(), 0) + 1e-8
    # Binomial with p = 0.025: the mean is 0.75, and more than five are beyond four standard errors.
    assert max(alarms.values()) <= 5, alarms


@pytest.mark.parametrize("name", OF_BINS)
def test_along_a_ray_bins_have_the_outcomes_of_its_truth(name: str) -> None:
    """Against the measure of coins with the chances of that truth, drawn sample by sample."""
    n, times = 40, 3000
    rng = torch.Generator().manual_seed(8)
    # Chances of a bin are alike, so that counts of it are binomial.
    confidence = torch.randint(1, 10, (n,), generator=rng).double() / 10 + 0.01
    outcome = torch.bernoulli(confidence.square(), generator=rng)
    ray = of_bins(rows_of(confidence, outcome)[name])
    scales = torch.tensor([0.0, 0.5, 2.0], dtype=torch.float64)
    drawn = ray.drawn(Coins(confidence, seed=1).gaps(times))
    found = ray.along(drawn, scales, seed=3)
    binning: Binning = "width" if name in ("ece", "ece_l2", "label_binned_ece") else "mass"
    cell = assign_bins(confidence, bins=15, binning=binning)
    shape = ray.events.shape
    for k, gap in enumerate((shape.sparse, shape.even.abs())):
        for place, scale in enumerate(scales):
            mean = torch.stack([gap[cell == b].mean() for b in cell])
            sure = torch.stack([confidence[cell == b].mean() for b in cell])
            mean = torch.where(sure < 0.5, mean, -mean) if k else mean
            truth = (sure + scale * mean).clamp(0, 1)
            other = torch.bernoulli(truth.expand(times, -1), generator=rng)
            slowly = ray.of_gaps(other - confidence)
            error = 4 * (2 * slowly.var() / times).sqrt().item()
            assert found[:, k, place].mean().item() == pytest.approx(
                slowly.mean().item(), abs=max(error, 1e-9)
            )
            assert found[:, k, place].std().item() == pytest.approx(
                slowly.std().item(), rel=4 * 0.03, abs=1e-9
            )


@pytest.mark.parametrize("name", OF_BINS)
def test_truths_of_bins_end_where_chances_do(name: str) -> None:
    rng = torch.Generator().manual_seed(9)
    confidence = torch.rand(60, generator=rng, dtype=torch.float64)
    ray = of_bins(rows_of(confidence, torch.bernoulli(confidence, generator=rng))[name])
    scales = torch.tensor([0.0, 0.5, 1e6], dtype=torch.float64)
    truths = ray.truths(scales)
    if name != "label_binned_ece":
        assert_close(truths[:, 0], torch.zeros(2).double(), atol=1e-9, rtol=0)
    assert (truths.diff(dim=1) > 0).all()
    # Far along the even ray chances above a half are zero, and others one.
    last = ray.of_gaps(((confidence < 0.5).double() - confidence)[None])
    if name == "ece":
        assert truths[1, 2].item() == pytest.approx(last.item(), abs=0.02)
    assert truths.max() <= 1


def test_both_rays_of_bins_tell_where_an_interval_begins() -> None:
    """Of few samples the even truth may be the harder: its outcomes scatter more."""
    rng = torch.Generator().manual_seed(2)
    lowest = set()
    for _ in range(20):
        confidence = 0.8 + 0.2 * torch.rand(20, generator=rng, dtype=torch.float64)
        outcome = torch.bernoulli(confidence - 0.4, generator=rng)
        row = rows_of(confidence, outcome)["ece_mass_l2"]
        ray, value = of_bins(row), row.value().item()
        scales = ray.scales_like(confidence)
        drawn = ray.drawn(Coins(confidence, seed=1).gaps(100))
        rays, truths = ray.along(drawn, scales, 0), ray.truths(scales)
        ends = [inverted(value, *pair, 0.95) for pair in zip(rays.unbind(1), truths, strict=True)]
        low, high = ray.ends(value, rays, truths, 0.95)
        assert low == min(one for one, _ in ends)
        assert high == max(one for _, one in ends)
        if ends[0][0] != ends[1][0]:
            lowest.add(ends[0][0] < ends[1][0])
    assert lowest == {False, True}


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("hundredths", [60, 83])
def test_a_draw_that_repeats_what_was_seen_ties_with_it_in_any_precision(
    hundredths: int, kind: torch.dtype
) -> None:
    """One confidence: what is seen has few values, and the largest that may be chance is one."""
    chance, names = hundredths / 100, ("ece", "ece_mass_l2", "ks_error", "mmce")
    times = Binomial(20, torch.tensor(chance).double())
    apart = (torch.arange(21) / 20 - chance).abs()
    law = times.log_prob(torch.arange(21).double()).exp()
    for right in range(21):
        beyond = law[apart > apart[right] + 1e-6].sum().item()
        reached = beyond + law[(apart - apart[right]).abs() < 1e-6].sum().item()
        if not (beyond < 0.018 and reached > 0.035):
            continue  # too near a border for a thousand draws to tell
        confidence = torch.full((20,), chance, dtype=kind)
        rows = rows_of(confidence, (torch.arange(20) < right).to(kind))
        chosen, ones = {name: rows[name] for name in names}, torch.ones(20).double()
        found = estimates(chosen, ones, draws=1000, level=0.95, seed=0)
        # As large a value is seen more than 25 times in 1000, a larger one less often.
        assert {name: one.low for name, one in found.items()} == dict.fromkeys(names, 0)


def test_a_bin_has_as_many_samples_as_its_weights_amount_to() -> None:
    confidence = torch.tensor([0.31, 0.32, 0.33, 0.9, 0.91, 0.05]).double()
    weights = torch.tensor([2.0, 2.0, 2.0, 1.0, 0.0, 0.0]).double()
    for unit in (1.0, 1e-200, 1e200):
        ray = of_bins(
            rows_of_events(confidence, confidence.round(), unit * weights, None, 15)["ece"]
        )
        count = ray.fixed_bins().count
        assert count[4] == 3  # 0.31 to 0.33
        assert (count.sum() - count[4]).item() == 14


def test_hits_that_rise_come_from_misses_and_those_that_fall_stay_hits() -> None:
    hits = torch.tensor([[30.0, 30.0]]).double().expand(50, -1)
    count, chance = torch.full((2,), 100.0).double(), torch.full((2,), 0.3).double()
    truth = torch.tensor([0.2, -0.2]).double()
    scales = torch.tensor([0.0, 1.0, 5.0]).double()
    rng = torch.Generator().manual_seed(0)
    rates = torch.stack(list(thinned(hits, count, chance, truth, scales, rng)))
    assert_close(rates[0], hits / 100)
    assert (rates[:, :, 0].diff(dim=0) > 0).all()
    assert (rates[:, :, 1].diff(dim=0) < 0).all()
    assert_close(rates[2], torch.tensor([1.0, 0.0]).double().expand(50, -1))
    # Seventy misses, of which five sevenths stay: fifty.
    error = 4 * math.sqrt(70 * 5 / 7 * 2 / 7) / 100 / math.sqrt(50)
    assert rates[1, :, 0].mean().item() == pytest.approx(0.5, abs=error)
