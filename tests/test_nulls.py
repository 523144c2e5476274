"""Tests of calibration alarm as often as they should, and no oftener."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from forecasts import Forecasts, as_tensors, calibrated, forecasts
from hypothesis import assume, given, settings
from scipy import stats  # type: ignore[import-untyped]
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions, esd, ks_error
from calibrant.evaluation import _null_laws as laws
from calibrant.evaluation._nulls import calibration_tests


def running_gaps(confidence: Tensor, outcome: Tensor) -> list[float]:
    """Zero, and the sum of gaps at or below each confidence."""
    gaps = outcome - confidence
    return [0.0, *(gaps[confidence <= c].sum().item() for c in confidence.unique())]


@given(forecasts(min_size=3))
@settings(max_examples=30)
def test_statistics_are_their_definitions(drawn: Forecasts) -> None:
    confidence, outcome = as_tensors(drawn)
    assume(bool(((confidence > 0) & (confidence < 1)).any()))
    found = calibration_tests((confidence, outcome), draws=1)
    sums = running_gaps(confidence, outcome)
    n = len(confidence)
    assert found.ks.statistic == pytest.approx(ks_error(confidence, outcome).item())
    assert found.kuiper.statistic == pytest.approx((max(sums) - min(sums)) / n)
    assert found.esd.statistic == pytest.approx(esd(confidence, outcome).item())
    # Spiegelhalter's Z is the Brier score, centred and scaled as calibration has it.
    score = (outcome - confidence).square().sum()
    expected = (confidence * (1 - confidence)).sum()
    variance = ((1 - 2 * confidence).square() * confidence * (1 - confidence)).sum().item()
    if variance > 1e-20:
        z = ((score - expected) / variance**0.5).item()
        assert found.spiegelhalter.statistic == pytest.approx(z, abs=1e-9)
        assert found.spiegelhalter.p_value == pytest.approx(2 * stats.norm.sf(abs(z)))


def test_p_values_are_exact_where_every_outcome_can_be_listed() -> None:
    confidence = torch.tensor([0.2, 0.7, 0.7, 0.7, 0.9], dtype=torch.float64)
    outcome = torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    every = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 5)
    chance = torch.where(every == 1, confidence, 1 - confidence).prod(dim=1)
    draws = 40_000
    found = calibration_tests((confidence, outcome), draws=draws).to_dict()

    def kuiper(y: Tensor) -> float:
        sums = running_gaps(confidence, y)
        return max(sums) - min(sums)

    statistics: dict[str, Callable[[Tensor], float]] = {
        "ks": lambda y: ks_error(confidence, y).item(),
        "kuiper": kuiper,
        "esd": lambda y: esd(confidence, y).item(),
    }
    for name, statistic in statistics.items():
        values = torch.tensor([statistic(y) for y in every])
        exact = chance[values >= statistic(outcome) - 1e-9].sum().item()
        error = (exact * (1 - exact) / draws) ** 0.5
        assert 0.01 < exact < 0.99, name
        assert abs(found[name]["p_value"] - exact) < 4 * error + 1 / draws, name


@pytest.mark.parametrize("tied", [False, True])
def test_draws_are_the_statistics_of_coins(tied: bool, rng: torch.Generator) -> None:
    confidence, _ = calibrated((60,), rng)
    confidence = (confidence * 10).round() / 10 if tied else confidence
    null = laws.draw_null(confidence.numpy(), draws=20_000, seed=1)
    gaps = torch.bernoulli(confidence.expand(5_000, -1), generator=rng) - confidence
    # Row i sums the others at or below sample i: the definition, for all outcomes at once.
    others = ((confidence <= confidence[:, None]) & ~torch.eye(60, dtype=torch.bool)).double()
    squares = (gaps @ others.T).square() - gaps.square() @ others.T
    slow = (squares.mean(dim=1) / (59 * 58)).numpy()
    assert stats.ks_2samp(null.esd, slow).pvalue > 1e-4
    assert abs(null.esd.mean()) < 4 * null.esd.std() / len(null.esd) ** 0.5
    sums = gaps @ (confidence <= confidence[:, None]).double().T / 60
    high, low = sums.amax(1).clamp(min=0), sums.amin(1).clamp(max=0)
    for drawn, oracle in ((null.ks, sums.abs().amax(1)), (null.kuiper, high - low)):
        # Sums of tied samples are a lattice: shares at a few levels rather than a distance.
        for level in oracle.quantile(torch.tensor([0.1, 0.5, 0.9, 0.99]).double()).tolist():
            share = (oracle >= level - 1e-9).double().mean().item()
            error = (share * (1 - share) * (1 / 5_000 + 1 / 20_000)) ** 0.5
            assert abs((drawn >= level - 1e-9).mean() - share) < 4 * error


def test_neighbours_drawn_together_give_the_same_null(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = 4 * torch.randn(3_000, 10, generator=torch.Generator().manual_seed(5))
    confidence = logits.softmax(1).amax(1).double().numpy()
    exact = laws.draw_null(confidence, draws=4_000, seed=2).esd
    monkeypatch.setattr(laws, "EXACT_UP_TO", 1_000)
    monkeypatch.setattr(laws, "RUNS", 300)
    chance, tied = laws._ties(np.sort(confidence))
    assert len(chance) <= 300
    assert (chance * tied).sum() == pytest.approx(confidence.sum())
    merged = laws.draw_null(confidence, draws=4_000, seed=3).esd
    assert stats.ks_2samp(exact, merged).pvalue > 1e-4
    # Four standard errors of the ratio of two standard deviations of skewed draws.
    spread = exact.std() / merged.std()
    kurtosis = stats.kurtosis(exact, fisher=False)
    assert abs(spread - 1) < 4 * ((kurtosis - 1) / 4 * 2 / 4_000) ** 0.5


def test_memory_in_blocks_does_not_change_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    confidence = np.linspace(0.1, 0.9, 50)
    whole = laws.draw_null(confidence, draws=7, seed=0)
    monkeypatch.setattr(laws, "_AT_ONCE", 100)
    for drawn, in_blocks in zip(whole, laws.draw_null(confidence, draws=7, seed=0), strict=True):
        np.testing.assert_allclose(in_blocks, drawn, atol=1e-12)


@pytest.mark.parametrize("x", [0.3, 0.8, 0.999, 1.0, 1.4, 2.0, 2.6])
def test_laws_of_the_limit_are_those_of_brownian_motion(x: float) -> None:
    """Both series of each law, at lengths where neither may be cut short."""
    tail = stats.norm.sf
    many = np.arange(2_000)
    supremum = 4 * ((-1.0) ** many * tail((2 * many + 1) * x)).sum()
    over_range = 8 * ((-1.0) ** many * (many + 1) * tail((many + 1) * x)).sum()
    assert laws.beyond_supremum(x) == pytest.approx(supremum, rel=1e-9)
    assert laws.beyond_range(x) == pytest.approx(over_range, rel=1e-9)


def test_laws_of_the_limit_agree_with_draws_at_many_samples() -> None:
    confidence = np.linspace(0.001, 0.999, 5_000)
    scale = 5_000 / np.sqrt((confidence * (1 - confidence)).sum())
    null = laws.draw_null(confidence, draws=4_000, seed=4)
    for law, drawn in ((laws.beyond_supremum, null.ks), (laws.beyond_range, null.kuiper)):
        share = np.mean([law(x * scale) <= 0.1 for x in drawn])
        # A motion watched 5,000 times falls short of its extremes by about 0.6 / sqrt(5,000).
        assert abs(share - 0.1) < 4 * (0.1 * 0.9 / 4_000) ** 0.5 + 0.005


def test_nothing_is_beyond_the_impossible() -> None:
    assert laws.beyond_supremum(0.0) == laws.beyond_range(0.0) == 1.0


def test_false_alarms_are_as_frequent_as_the_level(rng: torch.Generator) -> None:
    confidence, _ = calibrated((80,), rng)
    outcomes = torch.bernoulli(confidence.expand(200, -1), generator=rng)
    found = [calibration_tests((confidence, y), draws=199).to_dict() for y in outcomes]
    for name in ("ks", "kuiper", "spiegelhalter", "esd"):
        alarms = np.mean([each[name]["p_value"] <= 0.1 for each in found])
        # The null is itself drawn: 199 draws blur its quantile as much as 200 trials the share.
        assert abs(alarms - 0.1) < 4 * (2 * 0.1 * 0.9 / 200) ** 0.5, name


def test_many_samples_use_the_laws_of_the_limit(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((20_000,), rng)
    found = calibration_tests((confidence, outcome), draws=100)
    scale = (confidence * (1 - confidence)).sum().sqrt().item() / 20_000
    supremum, over_range = found.ks.statistic / scale, found.kuiper.statistic / scale
    assert found.ks.p_value == pytest.approx(laws.beyond_supremum(supremum))
    assert found.kuiper.p_value == pytest.approx(laws.beyond_range(over_range))
    over_confident = calibration_tests((confidence.sqrt(), outcome), draws=100)
    assert over_confident.ks.p_value < 1e-100
    assert over_confident.esd.p_value == 1 / 101


@pytest.mark.parametrize("n", [16_384, 16_385, 20_000])
def test_few_expected_misses_are_no_brownian_motion(n: int) -> None:
    """One miss where 0.08 are expected is no rare event, however many are sure."""
    confidence = 1 - np.linspace(1e-7, 1e-5, n)
    outcome = np.ones(n)
    outcome[n // 2] = 0
    tests = calibration_tests((confidence, outcome), draws=2000)
    for test in (tests.ks, tests.kuiper):
        assert 0.01 < test.p_value < 0.2


def test_predictions_are_judged_by_their_top_label(predictions: Predictions) -> None:
    pair = predictions.confidence, predictions.correct
    assert calibration_tests(predictions, draws=50) == calibration_tests(pair, draws=50)


def test_one_half_is_nothing_to_spiegelhalter() -> None:
    found = calibration_tests((torch.full((9,), 0.5), torch.ones(9)), draws=9)
    assert (found.spiegelhalter.statistic, found.spiegelhalter.p_value) == (0.0, 1.0)
    assert found.ks.p_value < 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("confidence", "outcome"),
    [([1, 1, 1, 1], [1, 0, 1, 0]), ([0, 0, 1, 1, 0], [0, 1, 1, 0, 1]), ([0] * 9, [1] * 9)],
)
def test_a_certainty_that_was_contradicted_is_impossible(
    confidence: list[int], outcome: list[int], dtype: torch.dtype
) -> None:
    found = calibration_tests((torch.tensor(confidence, dtype=dtype), outcome), draws=20)
    for name, test in found.to_dict().items():
        if isinstance(test, dict):
            assert (test["statistic"] != 0, test["p_value"]) == (True, 0.0), name
    assert found.spiegelhalter.statistic == float("inf")


def test_a_single_miss_of_a_certainty_is_impossible_to_all_but_esd() -> None:
    """ESD is made of pairs of gaps, of which there is none."""
    outcome = torch.ones(1000)
    outcome[17] = 0
    found = calibration_tests((torch.ones(1000), outcome), draws=20)
    assert found.ks.p_value == found.kuiper.p_value == found.spiegelhalter.p_value == 0
    assert (found.esd.statistic, found.esd.p_value) == (0, 1)


def test_certainties_beside_coins_are_contradicted_by_their_number() -> None:
    """One miss among many coins may be a 1 that was rounded; many misses are none."""
    confidence = torch.cat([torch.full((500,), 0.5), torch.ones(500)])
    outcome = torch.cat([torch.arange(500) % 2, torch.ones(500)])
    for misses, least, most in ((1, 0.5, 1), (100, 1 / 201, 1 / 201)):
        outcome[-misses:] = 0
        found = calibration_tests((confidence, outcome), draws=200)
        for test in (found.ks, found.kuiper, found.esd):
            assert least <= test.p_value <= most
        # To Spiegelhalter's Z a half says nothing, so that only the certainties are left.
        assert (found.spiegelhalter.statistic, found.spiegelhalter.p_value) == (float("inf"), 0)


def test_order_of_samples_is_irrelevant(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((100,), rng)
    shuffled = torch.randperm(100, generator=rng)
    one = calibration_tests((confidence, outcome), draws=200)
    other = calibration_tests((confidence[shuffled], outcome[shuffled]), draws=200)
    for name in ("ks", "kuiper", "spiegelhalter", "esd"):
        a, b = getattr(one, name), getattr(other, name)
        assert_close(torch.tensor(a.statistic), torch.tensor(b.statistic))
        assert a.p_value == pytest.approx(b.p_value)


@pytest.mark.parametrize(
    ("confidence", "outcome", "sentence"),
    [
        ([0.5, 0.6], [1, 0], "at least three samples .* got 2 samples"),
        ([1.0, 1.0, 0.0], [1, 1, 0], "a confidence between 0 and 1"),
        ([0.5, 1.6], [1, 0], r"confidence must lie between 0 and 1; got 1\.6 in row 1"),
        ([0.5, float("nan")], [1, 0], r"confidence must hold numbers; got NaN in row 1"),
        ([0.5, 0.6], [1, 2], "outcome must be 0 or 1"),
        ([0.5, 0.6], [1], r"one entry per confidence, 2 in all; got shape \(1,\)"),
        ([], [], "at least one event; got none"),
        ([1, 0, 1], [0, 1, 1], r"confidence must be floating point.* got torch\.int64"),
    ],
)
def test_bad_forecasts_are_refused(
    confidence: list[float], outcome: list[int], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        calibration_tests((confidence, outcome))


def test_bad_settings_and_kinds_are_refused(predictions: Predictions) -> None:
    with pytest.raises(ValueError, match=r"draws must be .*, at least 1; got 0\. Usual is 10,000"):
        calibration_tests(predictions, draws=0)
    with pytest.raises(ValueError, match=r"seed must be a whole number from 0 .* got -1"):
        calibration_tests(predictions, seed=-1)
    weighted = predictions.reweighted(torch.ones(len(predictions)))
    with pytest.raises(ValueError, match="must not have weights"):
        calibration_tests(weighted)


def test_prints_a_row_for_each_test(predictions: Predictions) -> None:
    lines = str(calibration_tests(predictions, draws=9)).splitlines()
    names = [line.split()[0] for line in lines]
    assert names == ["test", "ks", "kuiper", "spiegelhalter", "esd"]
    assert max(map(len, lines)) <= 80
