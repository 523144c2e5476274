from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot
from torch.testing import assert_close

from calibrant import (
    Criterion,
    Predictions,
    accuracy,
    brier,
    confidence_penalty,
    dual_focal,
    flsd,
    focal,
    label_smoothing,
    margin_smoothing,
    nll,
    squared_logits,
)


def focal_of(p: Tensor, gamma: float) -> Tensor:
    return -((1 - p) ** gamma) * p.log()


def by_sample(predictions: Predictions) -> list[tuple[Tensor, Tensor, int]]:
    labels = predictions.labels.tolist()
    return list(zip(predictions.logits, predictions.logits.softmax(dim=1), labels, strict=True))


def dual_focal_by_definition(predictions: Predictions) -> Tensor:
    losses = []
    for _, p, y in by_sample(predictions):
        runner_up = max([q for q in p if q < p[y]], default=torch.zeros(()))
        losses.append(-((1 - p[y] + runner_up) ** 5) * p[y].log())
    return torch.stack(losses).mean()


def flsd_by_definition(predictions: Predictions) -> Tensor:
    losses = []
    for _, p, y in by_sample(predictions):
        gamma = 5 if p[y] < 0.2 else 3 if p[y] < 0.5 else 2
        losses.append(focal_of(p[y], gamma))
    return torch.stack(losses).mean()


def squared_by_definition(predictions: Predictions) -> Tensor:
    losses = []
    for z, _, y in by_sample(predictions):
        rest = sum(z[j] ** 2 for j in range(4) if j != y)
        losses.append((15 * (z[y] - 30) ** 2 + rest) / 4)
    return torch.stack(losses).mean()


def margin_by_definition(predictions: Predictions) -> Tensor:
    losses = []
    for z, p, y in by_sample(predictions):
        lags = torch.stack([(z.max() - z[j] - 2).clamp(min=0) for j in range(4)])
        losses.append(-p[y].log() + 0.3 * lags.mean())
    return torch.stack(losses).mean()


DEFINITIONS: dict[str, tuple[Criterion, Criterion]] = {
    "nll": (nll, lambda p: cross_entropy(p.logits, p.labels)),
    "label smoothing": (
        partial(label_smoothing, eps=0.2),
        lambda p: cross_entropy(p.logits, p.labels, label_smoothing=0.2),
    ),
    "focal": (
        partial(focal, gamma=2.5),
        lambda p: torch.stack([focal_of(q[y], 2.5) for _, q, y in by_sample(p)]).mean(),
    ),
    "focal at zero": (partial(focal, gamma=0), nll),
    "flsd": (partial(flsd, gamma=2), flsd_by_definition),
    "dual focal": (dual_focal, dual_focal_by_definition),
    "brier": (
        brier,
        lambda p: (p.logits.softmax(dim=1) - one_hot(p.labels, 4)).square().sum(dim=1).mean(),
    ),
    "squared logits": (partial(squared_logits, weight=15, target=30), squared_by_definition),
    "margin smoothing": (
        partial(margin_smoothing, margin=2, weight=0.3),
        margin_by_definition,
    ),
    "confidence penalty": (
        partial(confidence_penalty, weight=0.3),
        lambda p: (
            cross_entropy(p.logits, p.labels)
            - 0.3 * torch.distributions.Categorical(logits=p.logits).entropy().mean()
        ),
    ),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_agrees_with_its_definition_in_value_and_gradient(
    name: str, predictions: Predictions
) -> None:
    logits = predictions.logits.clone().requires_grad_()
    found = []
    for criterion in DEFINITIONS[name]:
        value = criterion(Predictions(logits, predictions.labels))
        found.append((value, *torch.autograd.grad(value, logits)))
    assert_close(*found)


def test_accuracy_is_the_share_of_right_answers(predictions: Predictions) -> None:
    right = (predictions.logits.argmax(dim=1) == predictions.labels).double().mean()
    assert_close(accuracy(predictions), right)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_accuracy_is_exact_whatever_the_precision_of_the_logits(dtype: torch.dtype) -> None:
    logits, labels = torch.eye(2, dtype=dtype)[[0] * 70], torch.arange(70) % 7 // 6
    assert accuracy(Predictions(logits, labels)).item() == 60 / 70
    assert accuracy(Predictions.from_probabilities(logits, labels)).item() == 60 / 70
    assert accuracy(Predictions.from_probabilities(logits[:, 1], labels)).item() == 60 / 70
    weights = torch.full((70,), 0.3)
    weighted = accuracy(Predictions(logits, labels, weights=weights)).item()
    assert weighted == pytest.approx(60 / 70, rel=1e-15)


def test_accuracy_of_many_is_counted_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, labels = torch.eye(2)[[0] * 70], torch.arange(70) % 7 // 6
    monkeypatch.setattr("calibrant.predictions._rows._EXACT", 8)
    monkeypatch.setattr("calibrant.predictions._of_chances._PART", 9)
    assert accuracy(Predictions(logits, labels)).item() == 60 / 70
    assert accuracy(Predictions.from_probabilities(logits[:, 1], labels)).item() == 60 / 70


def test_means_are_weighted(predictions: Predictions, rng: torch.Generator) -> None:
    weights = torch.rand(200, generator=rng, dtype=torch.float64)
    weighted = Predictions(predictions.logits, predictions.labels, weights=weights)
    each = nll.per_sample(predictions)
    assert_close(nll(weighted), (weights * each).sum() / weights.sum())


def test_logits_of_minus_and_plus_sixty_keep_their_loss() -> None:
    logits = torch.tensor([[60.0, -60.0]], dtype=torch.float16)
    assert_close(nll(Predictions(logits, torch.tensor([1]))), torch.tensor(120.0))


@pytest.mark.parametrize(
    ("criterion", "sentence"),
    [
        (partial(focal, gamma=-1.0), r"gamma must be finite and not negative; got -1\.0"),
        (partial(flsd, gamma=-1.0), r"gamma must be finite"),
        (partial(dual_focal, gamma=-1.0), r"gamma must be finite"),
        (partial(label_smoothing, eps=1.5), r"eps must lie between 0 and 1; got 1\.5"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    criterion: Criterion, sentence: str, predictions: Predictions
) -> None:
    with pytest.raises(ValueError, match=sentence):
        criterion(predictions)


def test_flsd_takes_its_own_gamma_from_one_half_on() -> None:
    even = Predictions(torch.zeros(1, 2, dtype=torch.float64), torch.tensor([0]))
    assert_close(flsd(even, gamma=2.0), focal(even, gamma=2.0))


def test_the_default_dtype_is_irrelevant(predictions: Predictions) -> None:
    single = Predictions(predictions.logits.float(), predictions.labels)
    expected = flsd(single)
    torch.set_default_dtype(torch.float64)
    try:
        assert_close(flsd(Predictions(single.logits, single.labels)), expected)
    finally:
        torch.set_default_dtype(torch.float32)
