"""Venn–Abers prediction against two isotonic fits for every sample."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from calibrant.recalibration import VennAbers
from calibrant.recalibration._steps import looked_up, stacked
from calibrant.recalibration._venn_abers import venn_abers_curves


def by_definition(
    odds: np.ndarray, happened: np.ndarray, weights: np.ndarray, at: float, outcome: int
) -> float:
    """The isotonic level of one more sample, of weight one: the highest of all lowest means."""
    x, y = np.append(odds, at), np.append(happened, outcome).astype(float)
    w = np.append(weights, 1.0)
    starts, ends = sorted({*x[x <= at]}), sorted({*x[x >= at]})

    def mean(low: float, high: float) -> float:
        inside = (x >= low) & (x <= high)
        return float((w * y)[inside].sum() / w[inside].sum())

    return max(min(mean(low, high) for high in ends) for low in starts)


coarse = st.lists(
    st.tuples(st.integers(-3, 3), st.booleans(), st.integers(1, 3)), min_size=1, max_size=12
)


@given(coarse)
def test_both_chances_are_those_of_a_fit_with_one_more_sample(
    samples: list[tuple[int, bool, int]],
) -> None:
    odds, happened, weights = (np.array(column) for column in zip(*samples, strict=True))
    odds, weights = odds.astype(float), weights.astype(float)
    steps, low, high = venn_abers_curves(odds, happened, weights)
    # At samples, between them, and beyond them.
    at = np.arange(-4, 4.5, 0.5)
    table = torch.tensor(at)[:, None]
    for outcome, levels in ((0, low), (1, high)):
        (found,) = looked_up(table, *stacked([(steps, levels)]))
        expected = [by_definition(odds, happened, weights, s, outcome) for s in at]
        assert_close(found[:, 0], torch.tensor(expected, dtype=torch.float64))


def test_chance_lies_between_both_and_risks_least(rng: torch.Generator) -> None:
    scores = torch.randn(200, generator=rng, dtype=torch.float64)
    labels = torch.bernoulli(scores.sigmoid(), generator=rng).long()
    fitted = VennAbers().fit(scores, labels, folds=0)
    low, high = fitted.interval(scores)
    assert (low < high).all()
    assert_close(fitted.predict_proba(scores), high / (1 - low + high))
    # The regret in log-loss is the same whichever of the two is true.
    chance = fitted.predict_proba(scores)
    assert_close((high / chance).log(), ((1 - low) / (1 - chance)).log())


def test_interval_has_the_shape_of_the_chances(rng: torch.Generator) -> None:
    logits = torch.randn(300, 3, generator=rng)
    labels = torch.arange(300) % 3
    low, high = VennAbers().fit(logits, labels, folds=0).interval(logits)
    assert low.shape == high.shape == logits.shape
    assert low.dtype == torch.float32
    assert (low < high).all()
    two = VennAbers().fit(logits[:, :2], labels.clamp(max=1), folds=0)
    low, high = two.interval(logits[:, :2])
    assert_close(low[:, 0], 1 - high[:, 1])
    with pytest.raises(ValueError, match="must be fitted before it is used"):
        VennAbers().interval(logits)


@pytest.mark.parametrize("columns", [None, 2, 3])
def test_interval_of_arrays_is_arrays(columns: int | None, rng: torch.Generator) -> None:
    logits = torch.randn(300, columns or 1, generator=rng).squeeze(1)
    labels = torch.arange(300) % (columns or 2)
    fitted = VennAbers().fit(logits.numpy(), labels.numpy(), folds=0)
    for found, expected in zip(
        fitted.interval(logits.numpy()), fitted.interval(logits), strict=True
    ):
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float32
        assert_close(torch.from_numpy(found), expected, rtol=0, atol=0)


def test_one_of_both_is_calibrated_whatever_the_scores_are_worth(rng: torch.Generator) -> None:
    """Of each sample, the chance that its own outcome selects: right on average."""
    gaps = []
    for _ in range(120):
        scores = torch.randn(41, generator=rng, dtype=torch.float64)
        labels = torch.bernoulli((2 * scores + 1).sigmoid(), generator=rng).long()
        if labels[:40].unique().numel() < 2:
            continue
        low, high = VennAbers().fit(scores[:40], labels[:40], folds=0).interval(scores[40:])
        selected = torch.where(labels[40:] == 1, high, low)
        gaps.append((labels[40:] - selected).item())
    spread = np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 4 * spread


def test_rounding_does_not_part_a_sample_from_its_tie(rng: torch.Generator) -> None:
    scores = torch.randn(100, generator=rng, dtype=torch.float64)
    labels = torch.bernoulli(scores.sigmoid(), generator=rng).long()
    fitted = VennAbers().fit(scores, labels, folds=0)
    rounded = fitted.predict_proba(scores.float())
    assert_close(rounded.double(), fitted.predict_proba(scores), rtol=0, atol=1e-6)
