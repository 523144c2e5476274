"""The weight goes where the held-out score wants it."""

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


@pytest.mark.parametrize("score", [nll, brier])
def test_moves_by_the_slope_of_the_score_along_the_step_before(
    score: Any, rng: torch.Generator
) -> None:
    model = layer(rng)
    weight = AdaptiveWeight(model, score=score, start=2.0, rate=0.1)
    first, second = batch(rng), batch(rng)

    def gradient(criterion: Any, inputs: Tensor, labels: Tensor) -> Tensor:
        value = criterion(Predictions(model(inputs), labels))
        return torch.cat([g.flatten() for g in torch.autograd.grad(value, [*model.parameters()])])

    for inputs, labels in (first, second):
        predictions = Predictions(model(inputs), labels)
        weight.watch(overconfidence(predictions), predictions)
    step = gradient(overconfidence, *first)
    slope = gradient(score, *second)
    cosine = torch.nn.functional.cosine_similarity(step, slope, dim=0)
    assert_close(torch.tensor(weight.value).log(), torch.tensor(2.0).log() + 0.1 * cosine.float())


@pytest.mark.parametrize(("loss", "rises"), [(overconfidence, True), (boast, False)])
def test_rises_while_calibration_helps_the_held_out_score_and_falls_when_it_hurts(
    loss: Any, rises: bool, rng: torch.Generator
) -> None:
    """Random labels: large logits can only hurt."""
    model = layer(rng)
    weight = AdaptiveWeight(model, rate=0.1)
    for _ in range(30):
        watched(weight, model, loss, rng)
    assert weight.value > 3 if rises else weight.value < 1 / 3


def test_stays_within_its_bounds(rng: torch.Generator) -> None:
    model = layer(rng)
    for loss, bound in ((overconfidence, 2.0), (boast, 0.5)):
        weight = AdaptiveWeight(model, rate=1.0, lowest=0.5, highest=2.0)
        for _ in range(10):
            watched(weight, model, loss, rng)
        assert weight.value == pytest.approx(bound)


def test_the_scale_of_neither_loss_matters(rng: torch.Generator) -> None:
    model, values = layer(rng), []
    for scale in (1.0, 1e4):
        weight, again = AdaptiveWeight(model), torch.Generator().manual_seed(5)
        for _ in range(5):
            watched(weight, model, lambda p, scale=scale: scale * overconfidence(p), again)
        values.append(weight.value)
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert values[0] != 1


def test_a_batch_without_miscalibration_teaches_nothing(rng: torch.Generator) -> None:
    model = layer(rng)
    weight = AdaptiveWeight(model)
    for _ in range(3):
        watched(weight, model, lambda p: 0 * p.logits.sum(), rng)
    assert weight.value == 1


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
    with pytest.raises(ValueError, match="start must lie between lowest and highest"):
        AdaptiveWeight(nn.Linear(2, 2), start=5.0, highest=2.0)
    with pytest.raises(ValueError, match="rate must be above 0"):
        AdaptiveWeight(nn.Linear(2, 2), rate=0.0)
    with pytest.raises(ValueError, match=r"classifier must have parameters .* got ReLU without"):
        AdaptiveWeight(nn.ReLU())


def interleaved(
    epochs: int, checkpoint: Path | None = None, start: float = 1.0
) -> tuple[nn.Module, AdaptiveWeight]:
    """A small network on noisy labels, trained from the same start each time."""
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(3)
    inputs = torch.randn(360, 4, generator=rng)
    labels = torch.multinomial(inputs[:, :3].softmax(dim=1), 1, generator=rng)[:, 0]
    data = TensorDataset(inputs, labels)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    weight = AdaptiveWeight(model[-1], rate=0.1, start=start)
    fit_interleaved(
        model,
        DataLoader(Subset(data, range(240)), batch_size=60, shuffle=True),
        DataLoader(Subset(data, range(240, 360)), batch_size=60, shuffle=True),
        calibration=top_label(rooted(esd)),
        weight=weight,
        optimiser=torch.optim.Adam(model.parameters(), lr=0.01),
        epochs=epochs,
        checkpoint=checkpoint,
        progress=False,
    )
    return model, weight


def test_training_that_memorises_noise_raises_a_weight_that_is_too_low() -> None:
    """The network learns 240 noisy labels by heart, and boasts about the others."""
    _, weight = interleaved(epochs=60, start=0.01)
    assert weight.value > 0.02


def test_a_run_goes_on_from_a_checkpoint_with_its_weight(tmp_path: Path) -> None:
    model, weight = interleaved(epochs=4)
    interleaved(epochs=2, checkpoint=tmp_path / "run")
    resumed, same = interleaved(epochs=4, checkpoint=tmp_path / "run")
    assert same.value == weight.value
    assert_close(resumed.state_dict(), model.state_dict(), rtol=0, atol=0)
