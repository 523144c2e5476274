"""What a fit says of itself: harm, doubt, and every word of it."""

import math

import pytest
import torch
from torch import Tensor

import calibrant as cal
from calibrant.recalibration import (
    BestOf,
    EnsembleTemperatureScaling,
    FitReport,
    HistogramBinning,
    Identity,
    PlattScaling,
    Recalibrator,
    TemperatureScaling,
    as_logits,
)
from calibrant.recalibration._judged import _harm


def calibrated(rng: torch.Generator, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    logits = scale * torch.randn(400, 3, generator=rng, dtype=torch.float64)
    return logits, torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]


def test_zeros_of_votes_ruin_a_sigmoid_and_it_says_so(rng: torch.Generator) -> None:
    logits, labels = calibrated(rng, scale=4)
    votes = (100 * logits.softmax(dim=1)).round() / 100  # as a forest of 100 trees gives them
    votes[torch.arange(400), votes.argmax(dim=1)] += 1 - votes.sum(dim=1)
    report = PlattScaling().fit(as_logits(votes), labels).report_
    assert f"worse than no map: nll {report.nll_after:.4f} held out, from" in report.message
    assert report.message in " ".join(str(report).split())
    cured = PlattScaling().fit(as_logits(votes, smallest=1e-3), labels).report_
    assert cured.nll_after == pytest.approx(cured.nll_before, abs=0.02)


def votes_of_ten(rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Nine forecasts for all samples, and timid ones."""
    chance = torch.randint(1, 10, (4_000,), generator=rng).double() / 10
    happened = torch.rand(4_000, generator=rng).double() < (1.4 * chance.logit()).sigmoid()
    return torch.stack([1 - chance, chance], dim=1), happened.long()


@pytest.mark.parametrize("method", [TemperatureScaling(), HistogramBinning(bins=10)], ids=repr)
def test_coarse_forecasts_are_judged_as_on_fresh_samples(
    method: Recalibrator, rng: torch.Generator
) -> None:
    chances, labels = votes_of_ten(rng)
    method.fit(*votes_of_ten(rng), probabilities=True, folds=0)
    told = method.predict_proba(chances, probabilities=True)
    expected = cal.nll(cal.Predictions.from_probabilities(told, labels)).item()
    report = method.fit(chances, labels, probabilities=True).report_
    assert report.folds == 5
    assert report.nll_after == pytest.approx(expected, abs=2e-3)
    shuffle = torch.randperm(len(labels), generator=rng)
    again = method.fit(chances[shuffle], labels[shuffle], probabilities=True).report_
    assert again.nll_after == pytest.approx(report.nll_after, abs=1e-9)


@pytest.mark.parametrize("candidate", [TemperatureScaling(), HistogramBinning(bins=10)], ids=repr)
def test_coarse_forecasts_can_be_improved(candidate: Recalibrator, rng: torch.Generator) -> None:
    best = BestOf([candidate]).fit(*votes_of_ten(rng), probabilities=True)
    assert not isinstance(best.best_, Identity)


def test_parts_of_coarse_forecasts_differ_as_samples_do(rng: torch.Generator) -> None:
    """Were every forecast spread evenly, held-out parts would be what was fitted."""
    chances, labels = votes_of_ten(rng)
    fitted = HistogramBinning(bins=10).fit(chances[:300], labels[:300], probabilities=True)
    told = fitted.predict_proba(chances[:300], probabilities=True)
    seen = cal.nll(cal.Predictions.from_probabilities(told, labels[:300])).item()
    assert fitted.report_.nll_after is not None
    assert fitted.report_.nll_after > seen + 0.01


def test_harm_is_what_exceeds_its_standard_error(rng: torch.Generator) -> None:
    logits, labels = calibrated(rng)
    before = cal.Predictions(logits, labels)
    for scale in (0.6, 0.9, 0.97, 1.0, 1.03, 1.1, 2.0):
        after = cal.Predictions(scale * logits, labels)
        rise = cal.nll.per_sample(after) - cal.nll.per_sample(before)
        harmful = bool(rise.mean() > rise.std(correction=0) / math.sqrt(400))
        assert bool(_harm(before, after)) == harmful
    lost = logits.clone()
    lost[0, labels[0]] = -math.inf
    assert "nll inf held out" in _harm(before, cal.Predictions(lost, labels))


def test_harm_counts_weights(rng: torch.Generator) -> None:
    logits, labels = calibrated(rng)
    counts = torch.where(logits.argmax(dim=1) == labels, 1.0, 0.0).double()
    bold = [cal.Predictions(scale * logits, labels, weights=counts) for scale in (1.0, 2.0)]
    assert _harm(*bold) == ""  # right all along: the bolder the better
    assert _harm(*(cal.Predictions(each.logits, labels) for each in bold)) != ""


def test_a_map_that_helps_or_changes_nothing_is_not_called_worse(rng: torch.Generator) -> None:
    logits, labels = calibrated(rng)
    assert Identity().fit(logits, labels).report_.message == ""
    assert TemperatureScaling().fit(3 * logits, labels).report_.message == ""
    assert "worse than no map" in HistogramBinning(bins=60).fit(logits, labels).report_.message


@pytest.mark.parametrize(
    "method",
    [TemperatureScaling(), TemperatureScaling("sb_ece"), EnsembleTemperatureScaling()],
    ids=repr,
)
def test_logits_that_say_nothing_of_the_labels_are_doubted(
    method: Recalibrator, rng: torch.Generator
) -> None:
    logits, labels = calibrated(rng, scale=5)
    strangers = labels[torch.randperm(400, generator=rng)]
    # The shuffle is turned until the likeliest temperature is finite, by chance alone.
    turns = (strangers.roll(k) for k in range(400))
    lucky = next(turn for turn in turns if 0.2 < _lead(logits, turn) < 0.35)
    fitted = method.fit(logits, lucky, folds=0)
    assert "these logits tell no more of the labels than equal chances" in fitted.report_.message
    assert fitted.fit(logits, labels, folds=0).report_.message == ""


def _lead(logits: Tensor, labels: Tensor) -> float:
    """How much higher the logit of the label is than the others, on average."""
    return (logits.gather(1, labels[:, None])[:, 0] - logits.mean(dim=1)).mean().item()


def test_doubt_goes_by_the_likelihood_ratio_and_not_by_the_scale_of_weights(
    rng: torch.Generator,
) -> None:
    logits, labels = calibrated(rng, scale=0.3)
    doubted, trusted = 0, 0
    for n in range(20, 401, 20):
        own = logits[:n], labels[:n]
        if _lead(*own) <= 0:
            continue
        fitted = TemperatureScaling().fit(*own, folds=0)
        after = cal.nll(cal.Predictions(fitted.transform(own[0]), own[1])).item()
        by_chance = n * (math.log(3) - after) <= 1.92
        doubted, trusted = doubted + by_chance, trusted + (not by_chance)
        for weights in (None, torch.full((n,), 1e-6), torch.full((n,), 1e6)):
            said = TemperatureScaling().fit(*own, weights=weights, folds=0).report_.message
            assert bool(said) == by_chance
        nearly_absent = torch.where(torch.arange(400) < n, 1.0, 1e-12)
        whole = TemperatureScaling().fit(logits, labels, weights=nearly_absent, folds=0)
        assert bool(whole.report_.message) == by_chance
    assert doubted
    assert trusted


def test_best_of_hands_on_the_doubt_of_its_choice(rng: torch.Generator) -> None:
    logits, labels = calibrated(rng, scale=5)
    turns = (labels.roll(k) for k in range(1, 400))
    lucky = next(turn for turn in turns if 0.2 < _lead(logits, turn) < 0.35)
    chosen = BestOf([TemperatureScaling()]).fit(logits, lucky, folds=0)
    assert chosen.chosen_ == 0
    assert "these logits tell no more of the labels" in chosen.report_.message


def test_no_word_of_a_report_is_lost() -> None:
    long = f"BestOf(candidates=[{', '.join(['TemperatureScaling()'] * 9)}])"
    report = FitReport(long, 539, 10, True, 85, "word " * 40, 5, 0.4, 0.1, 0.2, 0.01)
    lines = str(report).splitlines()
    assert all(len(line) <= 80 for line in lines)
    words = " ".join(str(report).split())
    assert f"{long}: 539 samples, 10 classes; converged in 85 iterations on 5" in words
    unbroken = FitReport("x" * 100, 5, 2, True, 0)
    assert str(unbroken) == f"{'x' * 100}:\n5 samples, 2 classes; converged"
