"""Spline calibration: the slope of the smoothed gap, and a predicted class that stays."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions, ks_error, top_label
from calibrant.recalibration import SplineCalibration
from calibrant.recalibration._spline import spline_correction


@pytest.fixture
def overconfident(rng: torch.Generator) -> tuple[Tensor, Tensor]:
    logits = 3 * torch.randn(1_000, 4, generator=rng, dtype=torch.float64)
    labels = torch.multinomial((logits / 2.5).softmax(dim=1), 1, generator=rng)[:, 0]
    return logits, labels


def natural_cubic(t: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Another basis of the same splines: truncated powers that end in straight lines."""

    def d(k: int) -> np.ndarray:
        above = np.clip(t - knots[k], 0, None) ** 3 - np.clip(t - knots[-1], 0, None) ** 3
        scaled: np.ndarray = above / (knots[-1] - knots[k])
        return scaled

    last = d(len(knots) - 2)
    return np.stack([np.ones_like(t), t, *(d(k) - last for k in range(len(knots) - 2))], axis=1)


@pytest.mark.parametrize("knots", [3, 6])
def test_correction_is_the_slope_of_a_natural_spline_through_the_gap(knots: int) -> None:
    rng = np.random.default_rng(0)
    odds = np.sort(rng.normal(2, 2, 80))
    mass = rng.integers(1, 4, 80).astype(float)
    hits = mass * rng.integers(0, 2, 80).astype(float)
    confidence = 1 / (1 + np.exp(-odds))
    t = np.array([mass[: i + 1].sum() for i in range(80)]) / mass.sum()
    gap = np.array([(hits - mass * confidence)[: i + 1].sum() for i in range(80)]) / mass.sum()
    at = np.linspace(0, 1, knots)
    weigh = np.diag(mass)
    basis = natural_cubic(t, at)
    heights = np.linalg.solve(basis.T @ weigh @ basis, basis.T @ weigh @ gap)
    middle, h = t - mass / (2 * mass.sum()), 1e-5
    rise = natural_cubic(middle + h, at) - natural_cubic(middle - h, at)
    expected = rise @ heights / (2 * h)
    assert_close(spline_correction(odds, hits, mass, knots), expected, rtol=1e-5, atol=1e-6)


def test_confidence_moves_by_the_correction(overconfident: tuple[Tensor, Tensor]) -> None:
    logits, labels = overconfident
    fitted = SplineCalibration().fit(logits, labels, folds=0)
    predictions = Predictions(logits, labels)
    order = predictions.confidence.argsort()
    correction = spline_correction(
        predictions.confidence[order].logit().numpy(),
        predictions.correct[order].numpy(),
        np.ones(1_000),
        6,
    )
    expected = predictions.confidence[order] + torch.from_numpy(correction)
    after = fitted.predict_proba(logits)[order]
    moved = after.gather(1, predictions.predicted[order, None])[:, 0]
    # Where the wanted confidence is below the next class's, the predicted class is held above.
    free = moved > after.topk(2, dim=1).values[:, 1] + 1e-9
    assert free.double().mean() > 0.5
    assert_close(moved[free], expected[free].clamp(1e-6, 1 - 1e-6), rtol=1e-6, atol=1e-6)


def test_error_it_is_named_after_falls(overconfident: tuple[Tensor, Tensor]) -> None:
    logits, labels = overconfident
    fitted = SplineCalibration().fit(logits[:500], labels[:500], folds=0)
    before = top_label(ks_error)(Predictions(logits[500:], labels[500:]))
    after = top_label(ks_error)(Predictions(fitted.transform(logits[500:]), labels[500:]))
    assert after < 0.5 * before


def test_other_classes_keep_their_proportions(overconfident: tuple[Tensor, Tensor]) -> None:
    logits, labels = overconfident
    fitted = SplineCalibration().fit(logits, labels, folds=0)
    rest = torch.ones_like(logits, dtype=torch.bool).scatter(1, logits.argmax(1)[:, None], False)
    assert_close(fitted.transform(logits)[rest], logits[rest])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_predicted_class_stays_where_confidence_should_fall_below_the_next(
    dtype: torch.dtype, rng: torch.Generator
) -> None:
    logits = torch.randn(400, 3, generator=rng, dtype=dtype)
    wrong = (logits.argmax(dim=1) + 1) % 3
    fitted = SplineCalibration().fit(logits, wrong, folds=0)
    mapped = fitted.transform(logits)
    assert torch.equal(mapped.argmax(dim=1), logits.argmax(dim=1))
    assert mapped.softmax(dim=1).amax(dim=1).mean() < logits.softmax(dim=1).amax(dim=1).mean()


def test_refuses_fewer_than_three_knots() -> None:
    with pytest.raises(ValueError, match="knots must be a whole number, at least 3; got 2"):
        SplineCalibration(knots=2).fit(torch.randn(20, 3), torch.arange(20) % 3)
