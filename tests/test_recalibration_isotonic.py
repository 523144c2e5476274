"""Isotonic calibration against scikit-learn's fit of the same problem."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from torch import Tensor
from torch.testing import assert_close

from calibrant.recalibration import IsotonicCalibration, SharedIsotonicCalibration
from calibrant.recalibration._isotonic import isotonic_curve
from calibrant.recalibration._steps import looked_up, stacked


@pytest.fixture
def three_classes(rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    logits = 2 * torch.randn(600, 3, generator=rng, dtype=torch.float64)
    labels = torch.multinomial((logits / 2).softmax(dim=1), 1, generator=rng)[:, 0]
    return logits, labels, torch.rand(600, generator=rng, dtype=torch.float64)


# Odds on a coarse grid, so that ties are common; some sets happen always or never.
coarse = st.lists(
    st.tuples(st.integers(-4, 4), st.booleans(), st.integers(1, 3)), min_size=1, max_size=30
)


@given(coarse)
def test_curve_is_scikit_learns_at_every_sample(samples: list[tuple[int, bool, int]]) -> None:
    odds, happened, weights = (np.array(column) for column in zip(*samples, strict=True))
    odds, weights = odds / 2, weights.astype(float)
    curve = isotonic_curve(odds, happened, weights)
    (found,) = looked_up(torch.tensor(odds)[:, None], *stacked([curve[:2]]))
    expected = IsotonicRegression().fit_transform(odds, happened, sample_weight=weights)
    assert_close(found[:, 0].numpy(), expected)
    assert curve.mass.sum() == pytest.approx(weights.sum())


def test_curve_steps_half_way_between_samples() -> None:
    odds = np.array([0.0, 1.0, 4.0, 5.0])
    steps, levels, mass = isotonic_curve(odds, np.array([False, True, False, True]), None)
    assert_close(steps, np.array([0.5, 4.5]))
    assert_close(levels, np.array([0.0, 0.5, 1.0]))
    assert_close(mass, np.array([1.0, 2.0, 1.0]))


def test_classes_are_fitted_one_by_one_and_made_to_sum_to_one(
    three_classes: tuple[Tensor, Tensor, Tensor],
) -> None:
    logits, labels, weights = three_classes
    fitted = IsotonicCalibration().fit(logits, labels, weights=weights, folds=0)
    chances, expected = logits.softmax(dim=1).numpy(), np.empty((600, 3))
    for k in range(3):
        peer = IsotonicRegression()
        level = peer.fit_transform(chances[:, k], labels == k, sample_weight=weights.numpy())
        behind = np.array([weights[level == each].sum() for each in level])
        least = 1 / (3 * (behind + 2))
        expected[:, k] = level.clip(least, 1 - least)
    expected /= expected.sum(axis=1, keepdims=True)
    assert_close(fitted.predict_proba(logits), torch.from_numpy(expected))


def test_shared_curve_is_fitted_to_all_chances_at_once(
    three_classes: tuple[Tensor, Tensor, Tensor],
) -> None:
    logits, labels, weights = three_classes
    fitted = SharedIsotonicCalibration(epsilon=1e-2).fit(logits, labels, weights=weights, folds=0)
    chances = logits.softmax(dim=1)
    happened = torch.nn.functional.one_hot(labels, 3).flatten().numpy()
    counts = weights.repeat_interleave(3).numpy()
    level = IsotonicRegression().fit_transform(chances.flatten(), happened, sample_weight=counts)
    behind = np.array([counts[level == each].sum() for each in level])
    level = level.clip(1 / (3 * (behind + 2)), 1 - 1 / (3 * (behind + 2))).reshape(600, 3)
    expected = torch.from_numpy(level) + 1e-2 * chances
    assert_close(fitted.predict_proba(logits), expected / expected.sum(dim=1, keepdim=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shared_curve_keeps_the_predicted_class_of_near_ties(
    dtype: torch.dtype, three_classes: tuple[Tensor, Tensor, Tensor]
) -> None:
    logits, labels, _ = three_classes
    fitted = SharedIsotonicCalibration().fit(logits, labels, folds=0)
    near = logits.to(dtype)
    near[:, 2] = near[:, :2].amax(dim=1) * (1 + 4 * torch.finfo(dtype).eps)
    assert torch.equal(fitted.transform(near).argmax(dim=1), near.argmax(dim=1))


def test_perfectly_told_apart_is_one_step_and_never_certain() -> None:
    scores = torch.tensor([-2.0, -1.0, 1.0, 3.0], dtype=torch.float64)
    fitted = IsotonicCalibration().fit(scores, torch.tensor([0, 0, 1, 1]), folds=0)
    found = fitted.predict_proba(torch.tensor([-9.0, -0.1, 0.1, 9.0], dtype=torch.float64))
    assert_close(found, torch.tensor([1 / 8, 1 / 8, 7 / 8, 7 / 8], dtype=torch.float64))


def test_a_class_that_is_missing_is_refused_unless_the_curve_is_shared(
    three_classes: tuple[Tensor, Tensor, Tensor],
) -> None:
    logits, labels, _ = three_classes
    labels = labels.clamp(max=1)
    with pytest.raises(ValueError, match="needs every class among the labels; got none of class 2"):
        IsotonicCalibration().fit(logits, labels)
    assert SharedIsotonicCalibration().fit(logits, labels, folds=0).report_.converged


def test_refuses_an_epsilon_that_would_not_break_ties() -> None:
    with pytest.raises(ValueError, match="epsilon must lie above 0 and not above 1; got 0"):
        SharedIsotonicCalibration(epsilon=0).fit(torch.randn(9, 3), torch.arange(9) % 3)


def test_large_tables_are_looked_up_in_parts(
    three_classes: tuple[Tensor, Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    from calibrant.recalibration import _one_vs_rest, _steps

    logits, labels, _ = three_classes
    whole = IsotonicCalibration().fit(logits, labels, folds=0)
    expected = whole.transform(logits)
    monkeypatch.setattr(_steps, "_AT_ONCE", 7)
    monkeypatch.setattr(_one_vs_rest, "_AT_ONCE", 700)
    parts = IsotonicCalibration().fit(logits, labels, folds=0)
    assert torch.equal(parts.transform(logits), expected)


def test_odds_near_certainty_keep_their_order() -> None:
    from calibrant.recalibration._odds import log_odds

    logits = torch.tensor([[0.0, 0.0, 40.0], [0.0, 0.0, 50.0], [1.0, 2.0, 3.0]])
    exact = logits.double()
    others = torch.stack(
        [exact[:, [b, c]].logsumexp(dim=1) for b, c in ((1, 2), (0, 2), (0, 1))], dim=1
    )
    assert_close(log_odds(logits), (exact - others).float(), rtol=1e-5, atol=1e-5)
