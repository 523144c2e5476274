"""Vector scaling: the optimum, whatever the scale of the logits, or a sentence."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from calibrant import Predictions
from calibrant.recalibration import MatrixScaling, VectorScaling, _newton, _softmax_fit
from calibrant.recalibration._vector import Diagonal


def overconfident(n: int, classes: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    logits = 2 * torch.randn(n, classes, generator=rng, dtype=torch.float64)
    labels = torch.multinomial((0.6 * logits).softmax(dim=1), 1, generator=rng)[:, 0]
    return logits, labels


def gradient_by_definition(
    fitted: VectorScaling, logits: Tensor, labels: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Slope of the penalised mean log-loss, by automatic differentiation."""
    w = fitted.weight_.clone().requires_grad_()
    b = fitted.bias_.clone().requires_grad_()
    losses = cross_entropy(logits.double() * w + b, labels, reduction="none")
    share = torch.ones_like(losses) if weights is None else weights
    penalty = 0.5 * fitted.ridge * ((w - 1).square().sum() + b.square().sum())
    loss = (share * losses).sum() / share.sum() + penalty
    return torch.cat(torch.autograd.grad(loss, (w, b)))


@pytest.mark.parametrize("scale", [1e-50, 1e-42, 1e39])
def test_only_proportions_of_weights_count(
    scale: float, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_softmax_fit, "_SMALL", 0)  # as of many, in the type they have
    logits, labels = (part[:600] for part in overconfident(600, 5, rng))
    weights = torch.rand(600, generator=rng, dtype=torch.float64)
    for method in (VectorScaling(), MatrixScaling()):
        usual = method.fit(logits.float(), labels, weights=weights, folds=0)
        expected = usual.predict_proba(logits)
        found = method.fit(logits.float(), labels, weights=scale * weights, folds=0)
        assert_close(found.predict_proba(logits), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("ridge", [0.0, 1e-6, 1e-2])
def test_slope_vanishes_at_any_scale_of_the_logits(
    scale: float, ridge: float, rng: torch.Generator
) -> None:
    logits, labels = overconfident(600, 5, rng)
    weights = torch.rand(600, generator=rng, dtype=torch.float64)
    fitted = VectorScaling(ridge=ridge).fit(scale * logits, labels, weights=weights, folds=0)
    assert fitted.report_.converged
    assert gradient_by_definition(fitted, scale * logits, labels, weights).norm() < 1e-9


def test_slope_vanishes_where_passes_are_made_in_single_precision(
    monkeypatch: pytest.MonkeyPatch, rng: torch.Generator
) -> None:
    logits, labels = overconfident(700, 12, rng)
    exact = VectorScaling().fit(logits, labels, folds=0)
    monkeypatch.setattr(_softmax_fit, "_SMALL", 0)
    monkeypatch.setattr(_softmax_fit, "_BLOCK", 1_000)
    fitted = VectorScaling().fit(logits.float(), labels, folds=0)
    assert fitted.report_.converged
    assert gradient_by_definition(fitted, logits.float(), labels).norm() < 1e-6
    assert_close(fitted.weight_, exact.weight_, rtol=1e-3, atol=1e-3)


def test_scales_and_shifts_are_recovered(rng: torch.Generator) -> None:
    logits = 2 * torch.randn(40_000, 3, generator=rng, dtype=torch.float64)
    w, b = torch.tensor([0.5, 1.0, 1.5]), torch.tensor([0.4, -0.4, 0.0])
    labels = torch.multinomial((w * logits + b).softmax(dim=1), 1, generator=rng)[:, 0]
    fitted = VectorScaling().fit(logits, labels, folds=0)
    assert_close(fitted.weight_, w.double(), rtol=0, atol=0.05)
    assert_close(fitted.bias_ - fitted.bias_.mean(), b.double(), rtol=0, atol=0.05)


def test_refuses_what_only_infinite_scales_fit_unless_there_is_a_ridge() -> None:
    logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"finite optimum; got 4 samples.*Pass ridge=1e-6"):
        VectorScaling(ridge=0).fit(logits, labels)
    fitted = VectorScaling().fit(logits, labels, folds=0)
    assert fitted.report_.converged
    assert fitted.weight_.isfinite().all()


def test_a_missing_class_is_refused_unless_there_is_a_ridge(rng: torch.Generator) -> None:
    logits, labels = overconfident(300, 4, rng)
    labels[labels == 3] = 0
    with pytest.raises(ValueError, match="1 of 4 classes are missing"):
        VectorScaling(ridge=0).fit(logits, labels)
    fitted = VectorScaling().fit(logits, labels, folds=0)
    assert fitted.predict_proba(logits)[:, 3].max() < 1e-3


def test_a_score_that_never_varies_keeps_a_modest_scale(rng: torch.Generator) -> None:
    scores = 2 * torch.randn(500, generator=rng, dtype=torch.float64)
    labels = torch.bernoulli((0.5 * scores - 0.3).sigmoid(), generator=rng).long()
    fitted = VectorScaling(ridge=0).fit(scores, labels, folds=0)
    assert 0.1 < fitted.weight_[0] <= 1  # nothing in the data says what it should be
    two = torch.stack([torch.zeros_like(scores), scores], dim=1)
    assert gradient_by_definition(fitted, two, labels).norm() < 1e-9


def test_refuses_a_strength_that_is_none() -> None:
    with pytest.raises(ValueError, match="ridge must be finite and not negative; got -1"):
        VectorScaling(ridge=-1).fit(torch.randn(9, 3), torch.arange(9) % 3)


def test_a_step_that_overshoots_is_shortened_until_the_value_falls(rng: torch.Generator) -> None:
    logits, labels = overconfident(400, 3, rng)
    # So confident that the first full step lands where the value is higher.
    problem = _softmax_fit.SoftmaxFit.of(Predictions(15 * logits, labels), Diagonal())
    values = []
    watched = problem.at

    def at(point: Tensor, *, careful: bool) -> tuple[float, Tensor]:
        value, slope = watched(point, careful=careful)
        values.append(value)
        return value, slope

    problem.at = at  # type: ignore[method-assign]
    found = _newton.minimise(problem, problem.identity)
    assert found is not None
    assert values[-1] <= min(values) + 1e-12


def test_large_logits_that_know_nothing_are_fitted_all_the_same(rng: torch.Generator) -> None:
    logits = torch.randn(20, 6, generator=rng, dtype=torch.float64)
    labels = torch.randint(6, (20,), generator=rng)
    fits = [VectorScaling().fit(scale * logits, labels, folds=0) for scale in (1.0, 1e3)]
    assert all(each.report_.converged for each in fits)
    said = [each.predict_proba(s * logits) for each, s in zip(fits, (1.0, 1e3), strict=True)]
    assert_close(said[0], said[1], rtol=0, atol=1e-3)  # the ridge pulls elsewhere
