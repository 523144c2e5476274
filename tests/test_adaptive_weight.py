"""Calibration pulls with a share of the force of the held-out score, and no more."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils.data import DataLoader, Subset, TensorDataset

from calibrant import (
    AdaptiveWeight,
    Predictions,
    brier,
    esd,
    fit_interleaved,
    nll,
    rooted,
    top_label,
)


def layer(rng: torch.Generator, dtype: torch.dtype = torch.float64) -> nn.Linear:
    made = nn.Linear(4, 3, dtype=dtype)
    with torch.no_grad():
        for each in made.parameters():
            each.copy_(torch.randn(each.shape, generator=rng, dtype=dtype))
    return made


def batch(rng: torch.Generator) -> tuple[Tensor, Tensor]:
    inputs = torch.randn(32, 4, generator=rng, dtype=torch.float64)
    return inputs, torch.randint(3, (32,), generator=rng)


def overconfidence(predictions: Predictions) -> Tensor:
    """A loss whose descent shrinks the logits."""
    return predictions.logits.square().mean()


def boast(predictions: Predictions) -> Tensor:
    """One whose descent makes them grow."""
    return -predictions.logits.square().mean()


def watched(weight: AdaptiveWeight, model: nn.Linear, loss: Any, rng: torch.Generator) -> None:
    inputs, labels = batch(rng)
    predictions = Predictions(model(inputs), labels)
    weight.watch(loss(predictions), predictions)


def gradient(model: nn.Module, criterion: Any, inputs: Tensor, labels: Tensor) -> Tensor:
    value = criterion(Predictions(model(inputs), labels))
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, [*model.parameters()])])


@pytest.mark.parametrize("score", [nll, brier])
def test_calibration_pulls_with_a_share_of_the_scores_force(
    score: Any, rng: torch.Generator
) -> None:
    model = layer(rng)
    weight = AdaptiveWeight(model, score=score, share=0.3)
    batches = [batch(rng) for _ in range(4)]
    for inputs, labels in batches:
        predictions = Predictions(model(inputs), labels)
        weight.watch(overconfidence(predictions), predictions)
    of_score, of_calibration = (
        sum(gradient(model, criterion, *each).square().sum().item() for each in batches)
        for criterion in (score, overconfidence)
    )
    assert weight.value == pytest.approx(0.3 * (of_score / of_calibration) ** 0.5)


def test_a_step_still_improves_the_score_by_what_was_promised(rng: torch.Generator) -> None:
    """Even where calibration pulls the other way."""
    model = layer(rng)
    inputs, labels = batch(rng)
    score = gradient(model, nll, inputs, labels)
    for share in (0.2, 0.5, 0.9):
        weight = AdaptiveWeight(model, share=share, highest=1e9)
        predictions = Predictions(model(inputs), labels)
        worst = -1e-3 * nll(predictions)
        weight.watch(worst, predictions)
        step = score + weight.value * -1e-3 * score
        assert score @ step == pytest.approx((1 - share) * (score @ score).item())


def test_what_was_long_ago_is_forgotten(rng: torch.Generator) -> None:
    model = layer(rng)
    weight = AdaptiveWeight(model, memory=5.0)
    for scale in (10.0, 1.0):
        for _ in range(40):
            watched(weight, model, lambda p, scale=scale: scale * overconfidence(p), rng)
    fresh = AdaptiveWeight(model, memory=5.0)
    for _ in range(40):
        watched(fresh, model, overconfidence, rng)
    # A hundred times the square, forgotten by a fifth a batch.
    assert weight.value == pytest.approx(fresh.value, rel=0.5)


def test_stays_within_its_bounds(rng: torch.Generator) -> None:
    model = layer(rng)
    for scale, bound in ((1e-6, 2.0), (1e6, 0.5)):
        weight = AdaptiveWeight(model, lowest=0.5, highest=2.0)
        watched(weight, model, lambda p, scale=scale: scale * overconfidence(p), rng)
        assert weight.value == bound


def test_the_scale_of_the_measure_does_not_matter(rng: torch.Generator) -> None:
    model, prices = layer(rng), []
    for scale in (1.0, 10.0):
        weight, again = AdaptiveWeight(model), torch.Generator().manual_seed(5)
        for _ in range(5):
            watched(weight, model, lambda p, scale=scale: scale * overconfidence(p), again)
        prices.append(scale * weight.value)
    assert prices[0] == pytest.approx(prices[1])


def test_a_batch_without_miscalibration_teaches_nothing(rng: torch.Generator) -> None:
    model = layer(rng)
    weight = AdaptiveWeight(model)
    watched(weight, model, overconfidence, rng)
    learnt = weight.value
    for _ in range(3):
        watched(weight, model, lambda p: 0 * p.logits.sum(), rng)
    assert weight.value == learnt


def test_the_graph_is_left_for_the_descent(rng: torch.Generator) -> None:
    model = layer(rng)
    inputs, labels = batch(rng)
    predictions = Predictions(model(inputs), labels)
    loss = overconfidence(predictions)
    weight = AdaptiveWeight(model)
    weight.watch(loss, predictions)
    assert model.weight.grad is None
    loss.backward()
    assert model.weight.grad is not None


def test_goes_on_from_a_checkpoint_as_if_nothing_had_happened(rng: torch.Generator) -> None:
    model = layer(rng)
    weight = AdaptiveWeight(model)
    for _ in range(3):
        watched(weight, model, overconfidence, rng)
    copy = AdaptiveWeight(model)
    copy.load_state_dict(weight.state_dict())
    for each in (weight, copy):
        watched(each, model, overconfidence, torch.Generator().manual_seed(9))
    assert weight.value == copy.value


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="lowest must be above 0 and at most highest"):
        AdaptiveWeight(nn.Linear(2, 2), lowest=5.0, highest=2.0)
    with pytest.raises(ValueError, match="share must be above 0"):
        AdaptiveWeight(nn.Linear(2, 2), share=0.0)
    with pytest.raises(ValueError, match="memory must be at least 1"):
        AdaptiveWeight(nn.Linear(2, 2), memory=0.5)
    with pytest.raises(ValueError, match=r"classifier must have parameters .* got ReLU without"):
        AdaptiveWeight(nn.ReLU())


def interleaved(
    epochs: int, checkpoint: Path | None = None, scale: float = 1.0
) -> tuple[nn.Module, AdaptiveWeight]:
    """A small network on noisy labels, trained from the same start each time."""
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(3)
    inputs = torch.randn(360, 4, generator=rng)
    labels = torch.multinomial(inputs[:, :3].softmax(dim=1), 1, generator=rng)[:, 0]
    data = TensorDataset(inputs, labels)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    weight = AdaptiveWeight(model[-1])
    fit_interleaved(
        model,
        DataLoader(Subset(data, range(240)), batch_size=60, shuffle=True),
        DataLoader(Subset(data, range(240, 360)), batch_size=60, shuffle=True),
        calibration=lambda held_out: scale * top_label(rooted(esd))(held_out),
        weight=weight,
        optimiser=torch.optim.Adam(model.parameters(), lr=0.01),
        epochs=epochs,
        checkpoint=checkpoint,
        progress=False,
    )
    return model, weight


def test_training_is_the_same_whatever_units_the_measure_has() -> None:
    plain, weight = interleaved(epochs=3)
    scaled, lighter = interleaved(epochs=3, scale=8.0)
    assert weight.value == pytest.approx(8 * lighter.value, rel=1e-3)
    assert_close(scaled.state_dict(), plain.state_dict(), rtol=1e-3, atol=1e-4)


def test_a_run_goes_on_from_a_checkpoint_with_its_weight(tmp_path: Path) -> None:
    model, weight = interleaved(epochs=4)
    interleaved(epochs=2, checkpoint=tmp_path / "run")
    resumed, same = interleaved(epochs=4, checkpoint=tmp_path / "run")
    assert same.value == weight.value
    assert_close(resumed.state_dict(), model.state_dict(), rtol=0, atol=0)
