"""Matrix scaling and Dirichlet calibration: the optimum, and the strength that is chosen."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from calibrant import Predictions, nll
from calibrant.recalibration import (
    DirichletCalibration,
    MatrixScaling,
    Recalibrator,
    VectorScaling,
    _affine,
    _odir,
)
from calibrant.recalibration._folds import folds_of

both = pytest.mark.parametrize("method", [MatrixScaling, DirichletCalibration])


def mixed_up(n: int, classes: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Logits whose classes lean on one another."""
    logits = 1.5 * torch.randn(n, classes, generator=rng, dtype=torch.float64)
    mixing = torch.eye(classes).double() + 0.3 * torch.randn(classes, classes, generator=rng)
    labels = torch.multinomial((logits @ mixing.T).softmax(dim=1), 1, generator=rng)[:, 0]
    return logits, labels


def objective(
    fitted: MatrixScaling, matrix: Tensor, shift: Tensor, scores: Tensor, labels: Tensor
) -> Tensor:
    """The penalised mean log-loss as the papers write it, and the slight ridge."""
    classes = len(shift)
    strength = fitted.strength_
    intercept = strength / (classes - 1) if fitted.intercept is None else fitted.intercept
    off_diagonal = matrix[~torch.eye(classes, dtype=torch.bool)]
    ridge = (matrix - torch.eye(classes)).square().sum() + shift.square().sum()
    return (
        cross_entropy(scores @ matrix.T + shift, labels)
        + strength * off_diagonal.square().sum() / (classes * (classes - 1))
        + intercept * shift.square().sum() / classes
        + 0.5 * fitted.ridge * ridge
    )


def slope(fitted: MatrixScaling, logits: Tensor, labels: Tensor) -> Tensor:
    dirichlet = isinstance(fitted, DirichletCalibration)
    scores = logits.log_softmax(dim=1) if dirichlet else logits
    w = fitted.weight_.clone().requires_grad_()
    b = fitted.bias_.clone().requires_grad_()
    slopes = torch.autograd.grad(objective(fitted, w, b, scores, labels), (w, b))
    return torch.cat([part.flatten() for part in slopes])


@both
@pytest.mark.parametrize("strength", [10.0, 1e-3])
@pytest.mark.parametrize("intercept", [None, 0.5])
def test_slope_vanishes(
    method: type[MatrixScaling], strength: float, intercept: float | None, rng: torch.Generator
) -> None:
    logits, labels = mixed_up(500, 4, rng)
    fitted = method(strength=strength, intercept=intercept).fit(logits, labels, folds=0)
    assert fitted.report_.converged
    assert slope(fitted, logits, labels).norm() < 1e-9


@both
@pytest.mark.parametrize("strength", [10.0, 1e-2])
def test_many_classes_are_fitted_without_the_whole_hessian(
    method: type[MatrixScaling], strength: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = torch.Generator().manual_seed(3)
    logits, labels = mixed_up(400, 5, rng)
    whole = method(strength=strength).fit(logits, labels, folds=0)
    monkeypatch.setattr(_affine, "_DENSE", 0)
    fitted = method(strength=strength).fit(logits, labels, folds=0)
    assert slope(fitted, logits, labels).norm() < 1e-8
    assert_close(fitted.weight_, whole.weight_, rtol=1e-5, atol=1e-6)


def test_without_a_penalty_it_is_multinomial_regression(rng: torch.Generator) -> None:
    from sklearn.linear_model import LogisticRegression

    logits, labels = mixed_up(800, 3, rng)
    weights = torch.rand(800, generator=rng, dtype=torch.float64)
    fitted = DirichletCalibration(strength=0.0, ridge=0.0).fit(
        logits, labels, weights=weights, folds=0
    )
    features = logits.log_softmax(dim=1).numpy()
    peer = LogisticRegression(C=float("inf"), tol=1e-10, max_iter=10_000)
    peer.fit(features, labels.numpy(), sample_weight=weights.numpy())
    expected = torch.from_numpy(peer.predict_proba(features))
    assert_close(fitted.predict_proba(logits), expected, rtol=1e-4, atol=1e-6)


def test_strength_is_the_last_before_the_held_out_likelihood_falls(rng: torch.Generator) -> None:
    logits, labels = mixed_up(300, 4, rng)
    fitted = MatrixScaling().fit(logits, labels, folds=0)

    def held_out(strength: float) -> float:
        total = 0.0
        for rest, held in folds_of(Predictions(logits, labels), 3):
            part = MatrixScaling(strength=strength).fit(rest.logits, rest.labels, folds=0)
            mapped = Predictions(part.transform(held.logits), held.labels)
            total += nll(mapped).item() * len(held)
        return total

    candidates = _odir.strengths(4)
    losses = {strength: held_out(strength) for strength in candidates}
    place = candidates.index(fitted.strength_.item())
    path = [losses[strength] for strength in candidates[: place + 2]]
    assert path[:-1] == sorted(path[:-1], reverse=True)
    assert place + 1 == len(candidates) or path[-1] > path[-2]
    assert 0 < place < len(candidates) - 1


def test_what_is_chosen_helps_where_classes_lean_on_one_another(rng: torch.Generator) -> None:
    logits, labels = mixed_up(4_000, 4, rng)
    before = nll(Predictions(logits[2_000:], labels[2_000:]))
    for method in (MatrixScaling, DirichletCalibration):
        fitted = method().fit(logits[:2_000], labels[:2_000], folds=0)
        after = nll(Predictions(fitted.transform(logits[2_000:]), labels[2_000:]))
        assert after < before - 0.02


def test_a_constant_added_to_a_row_changes_nothing_for_dirichlet(rng: torch.Generator) -> None:
    logits, labels = mixed_up(300, 3, rng)
    moved = logits + torch.randn(300, 1, generator=rng, dtype=torch.float64)
    first = DirichletCalibration(strength=1.0).fit(logits, labels, folds=0)
    second = DirichletCalibration(strength=1.0).fit(moved, labels, folds=0)
    assert_close(first.transform(moved), second.transform(logits))


def test_refuses_labels_that_only_infinite_coefficients_fit() -> None:
    logits = 3 * torch.eye(3, dtype=torch.float64).repeat(4, 1)
    labels = torch.arange(12) % 3
    with pytest.raises(ValueError, match=r"finite optimum; got 12 samples.*Pass ridge=1e-6"):
        MatrixScaling(strength=0.0, ridge=0.0).fit(logits, labels)
    assert MatrixScaling(strength=0.0).fit(logits, labels, folds=0).report_.converged


def test_samples_that_are_all_alike_give_the_strongest_penalty() -> None:
    fitted = MatrixScaling().fit(torch.ones(6, 3), torch.zeros(6, dtype=torch.long), folds=0)
    assert fitted.strength_ == _odir.strengths(3)[0]


def test_refuses_fewer_than_two_parts_to_judge_a_strength() -> None:
    with pytest.raises(ValueError, match="strength_folds must be a whole number, at least 2"):
        MatrixScaling(strength_folds=1).fit(torch.randn(9, 3), torch.arange(9) % 3)


@pytest.mark.parametrize("scale", [1e4, 1e200])
@pytest.mark.parametrize("kind", [MatrixScaling, VectorScaling])
def test_the_size_of_the_logits_does_not_matter(
    kind: type[Recalibrator], scale: float, rng: torch.Generator
) -> None:
    logits = torch.randn(200, 3, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    settings = {"strength": 0.0, "intercept": 0.0} if kind is MatrixScaling else {}
    usual, large = (
        kind(ridge=0.0, **settings).fit(each, labels, folds=0) for each in (logits, scale * logits)
    )
    assert large.report_.converged
    assert_close(
        large.predict_proba(scale * logits), usual.predict_proba(logits), rtol=0, atol=1e-6
    )


def test_many_classes_may_be_held_near_the_diagonal_and_still_be_shifted() -> None:
    rng = torch.Generator().manual_seed(5)
    logits = 2 * torch.randn(2_000, 60, generator=rng, dtype=torch.float64)
    shift = torch.randn(60, generator=rng, dtype=torch.float64)
    labels = torch.multinomial((logits + shift).softmax(dim=1), 1, generator=rng)[:, 0]
    held = Predictions(logits[1_000:], labels[1_000:])
    fitted = DirichletCalibration().fit(logits[:1_000], labels[:1_000], folds=0)
    vector = VectorScaling().fit(logits[:1_000], labels[:1_000], folds=0)
    after = nll(Predictions(fitted.transform(held.logits), held.labels))
    # A penalty that is too weak for so many coefficients would lose all of it again.
    assert after < nll(held) - 0.1
    assert after < nll(Predictions(vector.transform(held.logits), held.labels)) + 0.01


def test_enough_judges_spare_the_other_parts_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = torch.Generator().manual_seed(6)
    logits, labels = mixed_up(300, 3, rng)
    tried: list[float] = []
    whole = _odir.fit_affine

    def counted(
        predictions: Predictions, scores: Tensor, odir: _odir.Odir, *rest: Any, **named: Any
    ) -> Any:
        tried.append(odir.strength)
        return whole(predictions, scores, odir, *rest, **named)

    monkeypatch.setattr(_odir, "fit_affine", counted)
    for judges, turns in ((1, 1), (101, 2), (5_000, 3)):
        monkeypatch.setattr(_odir, "_JUDGES", judges)
        tried.clear()
        _odir.choose_strength(Predictions(logits, labels), logits, None, 1e-6, 3)
        assert tried.count(_odir.strengths(3)[0]) == turns


def test_copies_and_weights_take_as_many_turns_to_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between one and two parts would do, were copies counted as samples of their own."""
    monkeypatch.setattr(_odir, "_JUDGES", 150)
    rng = torch.Generator().manual_seed(8)
    logits, labels = mixed_up(300, 3, rng)
    twice = MatrixScaling().fit(logits.repeat(2, 1), labels.repeat(2), folds=0)
    weighted = MatrixScaling().fit(
        logits, labels, weights=torch.full((300,), 2.0).double(), folds=0
    )
    tried = []
    for predictions in (
        Predictions(logits, labels),
        Predictions(logits.repeat(2, 1), labels.repeat(2)),
    ):
        tried.append(len(list(folds_of(predictions, 3, 150))))
    assert tried == [2, 2]
    assert twice.strength_ == weighted.strength_
    assert_close(twice.weight_, weighted.weight_)
