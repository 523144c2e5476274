from functools import partial
from math import log

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions, avuc, avuc_gs, soft_avuc


def counted(predictions: Predictions, threshold: float) -> dict[str, Tensor]:
    """Eq. 14, sample by sample."""
    counts = dict.fromkeys(("AC", "AU", "IC", "IU"), torch.zeros((), dtype=torch.float64))
    for p, label in zip(predictions.probs, predictions.labels, strict=True):
        h, c = -(p * p.log()).sum(), p.max()
        accurate, certain = bool(p.argmax() == label), bool(h < threshold)
        support = c if accurate else 1 - c
        share = 1 - h.tanh() if certain else h.tanh()
        kind = ("A" if accurate else "I") + ("C" if certain else "U")
        counts[kind] = counts[kind] + support * share
    return counts


@pytest.mark.parametrize("threshold", [0.3, 0.7, 1.1])
def test_avuc_agrees_with_its_definition(predictions: Predictions, threshold: float) -> None:
    n = counted(predictions, threshold)
    expected = torch.log(1 + (n["AU"] + n["IC"]) / (n["AC"] + n["IU"]))
    assert_close(avuc(predictions, threshold=threshold), expected)
    assert_close(avuc_gs(predictions, threshold=threshold), expected)


def test_the_default_threshold_is_half_the_largest_entropy(predictions: Predictions) -> None:
    assert_close(avuc(predictions), avuc(predictions, threshold=log(4) / 2))


def test_gradient_stopping_trains_the_entropy_alone(rng: torch.Generator) -> None:
    logits = torch.randn(30, 4, generator=rng, dtype=torch.float64).requires_grad_()
    labels = torch.randint(4, (30,), generator=rng)
    predictions = Predictions(logits, labels)
    frozen = Predictions(logits, labels)
    frozen._derived["confidence", True] = predictions.confidence.detach()
    (stopped,) = torch.autograd.grad(avuc_gs(predictions), logits)
    (expected,) = torch.autograd.grad(avuc(frozen), logits)
    (full,) = torch.autograd.grad(avuc(Predictions(logits, labels)), logits)
    assert_close(stopped, expected)
    assert not torch.allclose(stopped, full)


@pytest.mark.parametrize(("threshold", "temperature"), [(0.5, 1.0), (0.2, 0.1), (0.8, 3.0)])
def test_soft_avuc_agrees_with_its_definition(
    predictions: Predictions, threshold: float, temperature: float
) -> None:
    good = bad = torch.zeros((), dtype=torch.float64)
    for p, label in zip(predictions.probs, predictions.labels, strict=True):
        h = -(p * p.log()).sum()
        share = h / log(4)
        odds = share * (1 - threshold) / ((1 - share) * threshold)
        t = torch.sigmoid(torch.log(odds) / temperature)
        uncertain, certain = t * h.tanh(), (1 - t) * (1 - h.tanh())
        if p.argmax() == label:
            good, bad = good + certain, bad + uncertain
        else:
            good, bad = good + uncertain, bad + certain
    ours = soft_avuc(predictions, threshold=threshold, temperature=temperature)
    assert_close(ours, torch.log(1 + bad / good))


def test_tends_to_a_hard_threshold_as_the_temperature_falls(predictions: Predictions) -> None:
    """At a step, t counts a sample as certain or uncertain with weight one, not c or 1 - c."""
    threshold = 0.5
    certain = predictions.normalised_entropy < threshold
    h, right = predictions.entropy.tanh(), predictions.correct == 1
    good = (1 - h)[certain & right].sum() + h[~certain & ~right].sum()
    bad = h[~certain & right].sum() + (1 - h)[certain & ~right].sum()
    assert_close(
        soft_avuc(predictions, threshold=threshold, temperature=1e-6), (bad / good).log1p()
    )


def test_is_finite_when_no_sample_is_as_it_should() -> None:
    unsure_but_right = Predictions(torch.tensor([[0.1, 0.0]] * 4), torch.zeros(4, dtype=torch.long))
    for criterion in (avuc, avuc_gs, soft_avuc):
        assert criterion(unsure_but_right).isfinite()


@pytest.mark.parametrize("threshold", [0.0, 1.0, 1.5])
def test_a_soft_threshold_outside_zero_and_one_is_refused(
    predictions: Predictions, threshold: float
) -> None:
    with pytest.raises(ValueError, match=r"threshold must lie between 0 and 1"):
        partial(soft_avuc, threshold=threshold)(predictions)
