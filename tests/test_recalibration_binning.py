"""Histogram binning, BBQ and scaling-binning against their definitions, bin by bin."""

from math import exp, lgamma

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant.recalibration import BBQ, HistogramBinning, PlattScaling, ScalingBinning
from calibrant.recalibration._bbq import numbers_of_bins


@pytest.fixture
def binary(rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Scores on a grid, so that some are tied."""
    scores = (20 * torch.randn(120, generator=rng, dtype=torch.float64)).round() / 10
    labels = torch.bernoulli((0.5 * scores).sigmoid(), generator=rng).long()
    return scores, labels, torch.randint(1, 4, (120,), generator=rng).double()


def bins_by_definition(scores: Tensor, weights: Tensor, bins: int) -> list[Tensor]:
    """Members of each bin: a sample goes where the middle of its tied samples' weight lies."""
    middle = torch.tensor(
        [
            (weights[scores < s].sum() + weights[scores == s].sum() / 2) / weights.sum()
            for s in scores
        ]
    )
    members = [(middle * bins).floor() == b for b in range(bins)]
    return [inside for inside in members if inside.any()]


def test_histogram_gives_the_share_in_each_bin(binary: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, labels, weights = binary
    fitted = HistogramBinning(bins=7).fit(scores, labels, weights=weights, folds=0)
    found = fitted.predict_proba(scores)
    for inside in bins_by_definition(scores, weights, 7):
        n = weights[inside].sum()
        share = (weights * labels)[inside].sum() / n
        share = share.clamp(1 / (2 * (n + 2)), 1 - 1 / (2 * (n + 2)))
        assert_close(found[inside], share.expand(int(inside.sum())))


def test_bins_meet_half_way_between_samples() -> None:
    scores = torch.tensor([0.0, 1.0, 3.0, 4.0], dtype=torch.float64)
    fitted = HistogramBinning(bins=2).fit(
        scores.repeat(2), torch.tensor([0, 0, 1, 1, 1, 0, 0, 1]), folds=0
    )
    assert fitted.steps_.tolist() == [[2.0]]
    found = fitted.predict_proba(torch.tensor([1.99, 2.01], dtype=torch.float64))
    assert_close(found, torch.tensor([0.25, 0.75], dtype=torch.float64))


def test_turning_the_scale_round_turns_the_bins_round(
    binary: tuple[Tensor, Tensor, Tensor],
) -> None:
    scores, labels, _ = binary
    for method in (HistogramBinning(bins=7), BBQ(), ScalingBinning(bins=7)):
        there = method.fit(scores, labels, folds=0).predict_proba(scores)
        back = method.fit(-scores, 1 - labels, folds=0).predict_proba(-scores)
        assert_close(there, 1 - back)


def test_bins_of_equal_width_are_open_below_and_an_empty_one_gives_its_middle() -> None:
    chances = torch.tensor([0.1, 0.25, 0.3, 0.9, 0.95, 0.99], dtype=torch.float64)
    fitted = HistogramBinning(bins=4, equal_mass=False).fit(
        chances.logit(), torch.tensor([0, 1, 0, 1, 1, 0]), folds=0
    )
    asked = torch.tensor([0.2, 0.25 - 1e-9, 0.4, 0.6, 0.8], dtype=torch.float64).logit()
    expected = torch.tensor([0.5, 0.5, 1 / (2 * 3), 0.625, 2 / 3], dtype=torch.float64)
    assert_close(fitted.predict_proba(asked), expected)


def bbq_by_definition(scores: Tensor, labels: Tensor, weights: Tensor, prior: float) -> Tensor:
    """Evidence and level of every model, bin by bin; then the mean by evidence."""
    logs, curves = [], []
    for bins in numbers_of_bins(float(weights.sum()), len(scores[weights > 0].unique())):
        members = bins_by_definition(scores, weights, bins)
        log, curve = 0.0, torch.empty_like(scores)
        for k, inside in enumerate(members):
            left = right = None
            if k > 0:
                left = (scores[members[k - 1]].max() + scores[inside].min()) / 2
            if k + 1 < len(members):
                right = (scores[inside].max() + scores[members[k + 1]].min()) / 2
            low = 0.0 if left is None else left.sigmoid().item()
            high = 1.0 if right is None else right.sigmoid().item()
            alpha = prior / len(members) * (low + high) / 2
            beta = prior / len(members) * (1 - (low + high) / 2)
            m = (weights * labels)[inside].sum().item()
            n = (weights * (1 - labels))[inside].sum().item()
            log += lgamma(alpha + beta) - lgamma(m + n + alpha + beta)
            log += lgamma(m + alpha) - lgamma(alpha) + lgamma(n + beta) - lgamma(beta)
            curve[inside] = (m + alpha) / (m + n + alpha + beta)
        logs.append(log)
        curves.append(curve)
    evidence = [exp(log - max(logs)) for log in logs]
    return torch.tensor(evidence).double() @ torch.stack(curves) / sum(evidence)


@pytest.mark.parametrize("prior", [2.0, 10.0])
def test_bbq_is_the_mean_of_all_models_by_evidence(
    prior: float, binary: tuple[Tensor, Tensor, Tensor]
) -> None:
    scores, labels, weights = (part[:60] for part in binary)
    fitted = BBQ(prior_weight=prior).fit(scores, labels, weights=weights, folds=0)
    expected = bbq_by_definition(scores, labels, weights, prior)
    assert_close(fitted.predict_proba(scores), expected)


def test_bbq_tries_a_tenth_to_ten_times_the_cube_root() -> None:
    assert numbers_of_bins(1_000.0, 1_000) == range(1, 101)
    assert numbers_of_bins(27_000.0, 27_000) == range(3, 301)


@pytest.mark.parametrize("weight", [1e-30, 1e15, 1e39])
def test_bbq_tries_no_more_bins_than_there_are_samples(
    weight: float, binary: tuple[Tensor, Tensor, Tensor]
) -> None:
    scores, labels, _ = (part[:60] for part in binary)
    assert numbers_of_bins(60 * weight, 60).stop <= 61
    weights = torch.full((60,), weight, dtype=torch.float64)
    fitted = BBQ().fit(scores, labels, weights=weights, folds=0)
    assert fitted.predict_proba(scores).isfinite().all()


def test_scaling_binning_gives_the_mean_of_the_sigmoid_in_each_bin(
    binary: tuple[Tensor, Tensor, Tensor],
) -> None:
    scores, labels, weights = binary
    fitted = ScalingBinning(bins=6).fit(scores, labels, weights=weights, folds=0)
    sigmoid = PlattScaling().fit(scores, labels, weights=weights, folds=0).predict_proba(scores)
    found = fitted.predict_proba(scores)
    for inside in bins_by_definition(scores, weights, 6):
        mean = (weights * sigmoid)[inside].sum() / weights[inside].sum()
        assert_close(found[inside], mean.expand(int(inside.sum())))


def test_scaling_binning_varies_less_than_a_histogram(rng: torch.Generator) -> None:
    scores = torch.randn(40, 100, generator=rng, dtype=torch.float64)
    labels = torch.bernoulli(scores.sigmoid(), generator=rng).long()
    where, errors = torch.linspace(-1.5, 1.5, 9, dtype=torch.float64), {}
    for method in (ScalingBinning, HistogramBinning):
        found = torch.stack(
            [
                method(bins=10).fit(s, y, folds=0).predict_proba(where)
                for s, y in zip(scores, labels, strict=True)
            ]
        )
        errors[method] = (found - where.sigmoid()).square().mean()
    assert errors[ScalingBinning] < 0.5 * errors[HistogramBinning]


def test_settings_that_make_no_sense_are_refused() -> None:
    scores, labels = torch.linspace(-2, 2, 12), torch.arange(12) % 2
    with pytest.raises(ValueError, match="bins must be a whole number, at least 1; got 0"):
        HistogramBinning(bins=0).fit(scores, labels)
    with pytest.raises(ValueError, match="bins must be a whole number, at least 1; got 0"):
        ScalingBinning(bins=0).fit(scores, labels)
    with pytest.raises(ValueError, match="prior_weight must be positive and finite; got 0"):
        BBQ(prior_weight=0.0).fit(scores, labels)
