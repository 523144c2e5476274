"""Platt scaling and beta calibration against independent solvers of the same problem."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize  # type: ignore[import-untyped]
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions, nll
from calibrant.recalibration import BetaCalibration, PlattScaling


@pytest.fixture
def binary(rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    scores = 3 * torch.randn(600, generator=rng, dtype=torch.float64)
    labels = torch.bernoulli((0.4 * scores + 0.3).sigmoid(), generator=rng).long()
    return scores, labels, torch.rand(600, generator=rng, dtype=torch.float64)


def test_platt_is_what_scikit_learn_fits(binary: tuple[Tensor, Tensor, Tensor]) -> None:
    from sklearn.calibration import _SigmoidCalibration

    scores, labels, weights = binary
    fitted = PlattScaling().fit(scores, labels, weights=weights, folds=0)
    peer = _SigmoidCalibration().fit(scores.numpy(), labels.numpy(), weights.numpy())
    assert fitted.slope_.item() == pytest.approx(-peer.a_, abs=1e-4)
    assert fitted.shift_.item() == pytest.approx(-peer.b_, abs=1e-4)


def test_platt_without_smoothing_is_logistic_regression(
    binary: tuple[Tensor, Tensor, Tensor],
) -> None:
    from sklearn.linear_model import LogisticRegression

    scores, labels, weights = binary
    fitted = PlattScaling(smoothed=False).fit(scores, labels, weights=weights, folds=0)
    peer = LogisticRegression(C=float("inf"), tol=1e-12, max_iter=1_000)
    peer.fit(scores[:, None].numpy(), labels.numpy(), sample_weight=weights.numpy())
    assert fitted.slope_.item() == pytest.approx(peer.coef_.item(), rel=1e-5)
    assert fitted.shift_.item() == pytest.approx(peer.intercept_.item(), rel=1e-5)


def test_every_class_is_fitted_to_its_own_odds(rng: torch.Generator) -> None:
    logits = 2 * torch.randn(500, 3, generator=rng, dtype=torch.float64)
    labels = torch.multinomial((logits / 2).softmax(dim=1), 1, generator=rng)[:, 0]
    fitted = PlattScaling().fit(logits, labels, folds=0)
    odds = logits.softmax(dim=1).logit()
    chances = []
    for k in range(3):
        alone = PlattScaling().fit(odds[:, k], (labels == k).long(), folds=0)
        chances.append(alone.predict_proba(odds[:, k]))
    expected = torch.stack(chances, dim=1)
    assert_close(fitted.predict_proba(logits), expected / expected.sum(dim=1, keepdim=True))


def beta_by_definition(
    chance: np.ndarray, outcome: np.ndarray, weights: np.ndarray, ridge: float
) -> np.ndarray:
    """A general solver with bounds on the log-loss of the beta map."""

    def loss(theta: np.ndarray) -> float:
        a, b, c = theta
        odds = a * np.log(chance) - b * np.log1p(-chance) + c
        losses = np.logaddexp(0, np.where(outcome == 1, -odds, odds))
        pull = 0.5 * ridge * ((a - 1) ** 2 + (b - 1) ** 2 + c**2)
        return float((weights * losses).sum() / weights.sum() + pull)

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000}
    bounds = [(0, None), (0, None), (None, None)]
    found: np.ndarray = minimize(loss, [1, 1, 0], bounds=bounds, options=options).x
    return found


@pytest.mark.parametrize("twist", ["none", "a", "b", "both"])
def test_beta_is_the_optimum_within_its_bounds(twist: str, rng: torch.Generator) -> None:
    scores = 1.5 * torch.randn(800, generator=rng, dtype=torch.float64)
    chance = scores.sigmoid()
    a, b = {"none": (0.6, 1.4), "a": (-0.5, 1.0), "b": (1.0, -0.5), "both": (-0.5, -0.5)}[twist]
    truth = a * chance.log() - b * (-chance).log1p() + 0.2
    labels = torch.bernoulli(truth.sigmoid(), generator=rng).long()
    weights = torch.rand(800, generator=rng, dtype=torch.float64)
    fitted = BetaCalibration(ridge=1e-3).fit(scores, labels, weights=weights, folds=0)
    expected = beta_by_definition(chance.numpy(), labels.numpy(), weights.numpy(), 1e-3)
    assert_close(fitted.coefficients_[0].numpy(), expected, rtol=0, atol=2e-4)
    assert (fitted.coefficients_[0, :2] >= 0).all()
    held = {"none": [], "a": [0], "b": [1], "both": [0, 1]}[twist]
    assert all(fitted.coefficients_[0, k] == 0 for k in held)


def test_slope_vanishes_to_a_millionth(binary: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, labels, weights = binary
    for scale in (0.05, 1.0, 20.0):
        fitted = BetaCalibration().fit(scale * scores, labels, weights=weights, folds=0)
        theta = fitted.coefficients_[0].clone().requires_grad_()
        for_it = torch.nn.functional.logsigmoid(scale * scores)
        against = torch.nn.functional.logsigmoid(-scale * scores)
        odds = theta[0] * for_it - theta[1] * against + theta[2]
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            odds, labels.double(), reduction="none"
        )
        pull = 0.5e-6 * (theta - torch.tensor([1.0, 1.0, 0.0])).square().sum()
        loss = (weights * losses).sum() / weights.sum() + pull
        (slope,) = torch.autograd.grad(loss, theta)
        free = fitted.coefficients_[0] != 0
        assert slope[free].norm() < 1e-9


def test_beta_never_hurts_the_likelihood_of_two_classes(
    binary: tuple[Tensor, Tensor, Tensor],
) -> None:
    scores, labels, _ = binary
    fitted = BetaCalibration().fit(scores, labels, folds=0)
    after = nll(Predictions.from_binary(fitted.transform(scores), labels))
    assert after <= nll(Predictions.from_binary(scores, labels))


def test_data_that_can_be_told_apart_are_refused_or_smoothed() -> None:
    scores = torch.tensor([-2.0, -1.0, 1.0, 2.0], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"finite optimum; got 4 samples.*Pass smoothed=True"):
        PlattScaling(smoothed=False).fit(scores, labels)
    with pytest.raises(ValueError, match=r"finite optimum; got 4 samples.*Pass ridge=1e-6"):
        BetaCalibration(ridge=0.0).fit(scores, labels)
    for method in (PlattScaling(), BetaCalibration()):
        assert method.fit(scores, labels, folds=0).predict_proba(scores)[3] < 1


def test_a_missing_class_is_refused() -> None:
    logits = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="needs every class among the labels; got none of class 2"):
        PlattScaling().fit(logits, torch.arange(20) % 2)


def test_scores_that_never_vary_leave_the_slope_alone() -> None:
    fitted = PlattScaling(smoothed=False).fit(
        torch.zeros(10, dtype=torch.float64), torch.tensor([1] * 7 + [0] * 3), folds=0
    )
    assert fitted.slope_ == 1
    assert fitted.predict_proba(torch.zeros(1)).item() == pytest.approx(0.7)
