"""The price rises while held-out batches find too much confidence, in shares of a score's force."""

from inspect import signature
from itertools import cycle
from math import copysign, exp, log
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

START = AdaptiveWeight().share


def predictions(rng: torch.Generator, dtype: torch.dtype = torch.float64) -> Predictions:
    logits = torch.randn(32, 3, generator=rng, dtype=torch.float64).to(dtype)
    return Predictions(logits.requires_grad_(), torch.randint(3, (32,), generator=rng))


def overconfidence(held_out: Predictions) -> Tensor:
    """A loss whose descent shrinks the logits."""
    return held_out.logits.square().mean()


def boast(held_out: Predictions) -> Tensor:
    """One whose descent makes them grow."""
    return -overconfidence(held_out)


def watched(weight: AdaptiveWeight, losses: Any, times: int, rng: torch.Generator) -> list[float]:
    """The shares after each of so many batches."""
    shares = []
    for loss, _ in zip(cycle(losses), range(times), strict=False):
        held_out = predictions(rng)
        weight.watch(loss(held_out), held_out)
        shares.append(weight.share)
    return shares


def gradient(criterion: Any, held_out: Predictions) -> Tensor:
    return torch.autograd.grad(criterion(held_out), held_out.logits)[0]


@pytest.mark.parametrize("score", [nll, brier])
def test_calibration_pulls_with_a_share_of_the_scores_force(
    score: Any, rng: torch.Generator
) -> None:
    weight = AdaptiveWeight(score=score, share=0.3, rate=0.0)
    batches = [predictions(rng) for _ in range(4)]
    for held_out in batches:
        weight.watch(overconfidence(held_out), held_out)
    of_score, of_calibration = (
        sum(gradient(criterion, each).square().sum().item() for each in batches)
        for criterion in (score, overconfidence)
    )
    assert weight.value == pytest.approx(0.3 * (of_score / of_calibration) ** 0.5)


def test_the_price_rises_while_batches_agree_and_falls_where_they_do_not(
    rng: torch.Generator,
) -> None:
    agreed = watched(AdaptiveWeight(memory=10.0), [overconfidence], 40, rng)
    assert agreed[4] == START < agreed[5] < agreed[39]
    modest = watched(AdaptiveWeight(memory=10.0), [boast], 40, rng)
    assert modest[39] < START
    divided = watched(AdaptiveWeight(memory=10.0), [overconfidence, boast], 40, rng)
    assert divided[39] < START


def test_agreement_is_the_squared_mean_over_the_mean_square(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(memory=4.0, agreement=0.2, rate=0.1)
    share, pulls = START, []
    mean = square = 0.0
    losses = [overconfidence, overconfidence, boast, overconfidence, boast, boast, boast, boast]
    for count, loss in enumerate(losses, 1):
        held_out = predictions(rng)
        # By a factor on all logits, and its logarithm, here from finite differences.
        scaled = [Predictions(held_out.logits * exp(e), held_out.labels) for e in (1e-5, -1e-5)]
        pulls.append((loss(scaled[0]) - loss(scaled[1])).item() / 2e-5)
        part = max(1 / count, 1 / 4)
        mean += part * (pulls[-1] - mean)
        square += part * (pulls[-1] ** 2 - square)
        if count > 2:
            share = exp(log(share) + 0.1 * (mean * max(mean, 0.0) / square - 0.2))
        weight.watch(loss(held_out), held_out)
        assert weight.share == pytest.approx(share, rel=1e-6)
    assert mean < 0  # where agreement no longer counts


def test_too_little_confidence_is_left_to_the_fit(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(memory=10.0)
    watched(weight, [boast], 20, rng)
    assert weight.value == 0.0
    watched(weight, [overconfidence], 20, rng)
    assert weight.value > 0.0


def test_few_batches_prove_nothing(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(memory=10.0)
    watched(weight, [boast], 5, rng)
    assert weight.value > 0.0
    assert weight.share == START
    watched(weight, [boast], 1, rng)
    assert weight.value == 0.0
    assert weight.share < START


def test_what_is_paid_fades_as_batches_agree_on_too_little(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(agreement=0.2, memory=1.0)
    watched(weight, [overconfidence], 1, rng)
    state, whole = weight.state_dict(), weight.value
    of_score, of_calibration, *_ = state["means"]
    # Of pulls with a mean square of 1, the mean that gives each agreement.
    for agreed, paid in {0.1: 1.0, 0.0: 1.0, -0.05: 0.75, -0.1: 0.5, -0.2: 0.0, -0.9: 0.0}.items():
        mean = copysign(abs(agreed) ** 0.5, agreed)
        weight.load_state_dict({**state, "means": [of_score, of_calibration, mean, 1.0]})
        assert weight.value == pytest.approx(paid * whole)


def test_without_a_level_nothing_is_paid_below_zero(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(agreement=0.0, memory=4.0)
    watched(weight, [boast], 3, rng)
    assert weight.value == 0.0
    watched(weight, [overconfidence], 20, rng)
    assert weight.value > 0.0


def test_a_measure_that_needs_no_scale_does_not_move_it(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(memory=2.0)
    assert watched(weight, [lambda held_out: held_out.logits.sum() * 0], 20, rng)[-1] == START
    assert weight.value == START


def test_the_share_stays_within_its_bounds(rng: torch.Generator) -> None:
    kept: dict[str, Any] = {"share": 0.5, "least": 0.4, "most": 0.6, "memory": 2.0, "rate": 1.0}
    assert watched(AdaptiveWeight(**kept), [overconfidence], 20, rng)[-1] == 0.6
    assert watched(AdaptiveWeight(**kept, agreement=0.99), [boast, overconfidence], 20, rng)[
        -1
    ] == pytest.approx(0.4)


def test_no_batch_pulls_much_harder_than_the_score(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(memory=9.0, rate=0.0)
    watched(weight, [lambda held_out: 1e-9 * overconfidence(held_out)], 30, rng)
    held_out = predictions(rng)
    weight.watch(overconfidence(held_out), held_out)
    pull = weight.value * gradient(overconfidence, held_out).norm()
    force = gradient(nll, held_out).norm()
    assert pull < START * 3 * 1.2 * force < 100 * pull


def test_what_was_long_ago_is_forgotten(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(memory=5.0, rate=0.0)
    watched(weight, [lambda held_out: 10 * overconfidence(held_out)], 40, rng)
    watched(weight, [overconfidence], 40, rng)
    fresh = AdaptiveWeight(memory=5.0, rate=0.0)
    watched(fresh, [overconfidence], 40, rng)
    # A hundred times the square, forgotten by a fifth a batch.
    assert weight.value == pytest.approx(fresh.value, rel=0.5)


def test_the_scale_of_the_measure_does_not_matter() -> None:
    prices = []
    for scale in (1.0, 10.0):
        weight, rng = AdaptiveWeight(memory=3.0), torch.Generator().manual_seed(5)
        watched(weight, [lambda held_out, s=scale: s * overconfidence(held_out)], 9, rng)
        prices.append(scale * weight.value)
    assert prices[0] == pytest.approx(prices[1])


def test_half_precision_learns_the_same(rng: torch.Generator) -> None:
    criterion, values = top_label(rooted(esd)), []
    for dtype in (torch.float32, torch.float16):
        weight, again = AdaptiveWeight(memory=3.0), torch.Generator().manual_seed(5)
        for _ in range(9):
            held_out = predictions(again, dtype)
            weight.watch(1e-5 * criterion(held_out), held_out)
        values.append(weight.value)
    assert values[1] == pytest.approx(values[0], rel=0.02)
    assert values[0] < 1e6  # the ceiling, which all would share


@pytest.mark.parametrize("steepness", [1.0, 300.0, 3e4])
def test_steep_batches_of_half_precision_are_watched(
    steepness: float, rng: torch.Generator
) -> None:
    half = predictions(rng, torch.float16)
    single = Predictions(half.logits.detach().float().requires_grad_(), half.labels)
    prices = []
    for held_out in (half, single):
        weight = AdaptiveWeight(score=brier)
        weight.watch(steepness * held_out.logits[0, 0], held_out)
        prices.append(weight.value)
    assert prices[0] == pytest.approx(prices[1], rel=1e-2)
    assert prices[0] != weight.share


def test_logits_beyond_all_measure_teach_nothing(rng: torch.Generator) -> None:
    weight = AdaptiveWeight()
    logits = (1e160 * torch.randn(8, 3, generator=rng, dtype=torch.float64)).requires_grad_()
    held_out = Predictions(logits, torch.randint(3, (8,), generator=rng))
    weight.watch(logits.mean(), held_out)
    assert weight.state_dict()["seen"] == 0


def test_a_batch_of_no_number_teaches_nothing(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(memory=2.0)
    watched(weight, [overconfidence], 5, rng)
    kept = weight.state_dict()
    watched(weight, [lambda held_out: overconfidence(held_out) * float("nan")], 3, rng)
    weight.score = lambda held_out: nll(held_out) * float("inf")
    watched(weight, [overconfidence], 3, rng)
    assert weight.state_dict() == kept
    weight.score = nll
    held_out = predictions(rng)
    with torch.no_grad():
        held_out.logits[:, 2] = float("-inf")
    known = Predictions(held_out.logits, held_out.labels.clamp(max=1))
    weight.watch(known.logits.sum(), known)  # pulled on by infinity, from a score that is finite
    assert weight.state_dict() == kept


def test_masked_classes_have_no_say(rng: torch.Generator) -> None:
    criterion = top_label(rooted(esd))
    free, masked = AdaptiveWeight(memory=2.0), AdaptiveWeight(memory=2.0)
    for _ in range(6):
        held_out = predictions(rng)
        free.watch(criterion(held_out), held_out)
        wide = nn.functional.pad(held_out.logits.detach(), (0, 1), value=float("-inf"))
        again = Predictions(wide.requires_grad_(), held_out.labels)
        masked.watch(criterion(again), again)
    assert masked.share == pytest.approx(free.share)
    assert masked.value == pytest.approx(free.value)


def test_batches_without_miscalibration_are_no_agreement(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(memory=5.0)
    before = watched(weight, [overconfidence], 20, rng)[-1]
    calm = watched(weight, [lambda held_out: 0 * overconfidence(held_out)], 300, rng)[-1]
    assert calm < before
    assert weight.value == 1e6


def test_what_does_not_come_from_logits_is_refused(rng: torch.Generator) -> None:
    chances = predictions(rng).probs.detach().requires_grad_()
    held_out = Predictions.from_probabilities(chances, torch.zeros(32, dtype=torch.long))
    with pytest.raises(ValueError, match="held_out must be made from the logits of a model"):
        AdaptiveWeight().watch(brier(held_out), held_out)


def test_a_calibration_without_a_graph_is_left_to_who_descends_it(rng: torch.Generator) -> None:
    weight = AdaptiveWeight()
    weight.watch(torch.tensor(0.1), predictions(rng))
    assert weight.state_dict()["seen"] == 0


def test_the_graph_is_left_for_the_descent(rng: torch.Generator) -> None:
    held_out = predictions(rng)
    loss = overconfidence(held_out)
    AdaptiveWeight().watch(loss, held_out)
    assert held_out.logits.grad is None
    loss.backward()
    assert held_out.logits.grad is not None


def test_goes_on_from_a_checkpoint_as_if_nothing_had_happened(rng: torch.Generator) -> None:
    weight, copy = AdaptiveWeight(memory=2.0), AdaptiveWeight(memory=2.0)
    watched(weight, [overconfidence], 5, rng)
    copy.load_state_dict(weight.state_dict())
    for each in (weight, copy):
        watched(each, [boast], 3, torch.Generator().manual_seed(9))
    assert weight.value == copy.value
    assert weight.share == copy.share != START


def test_bad_settings_are_refused(unchecked_types: None) -> None:
    with pytest.raises(ValueError, match="share must lie between least and most"):
        AdaptiveWeight(share=3.0)
    with pytest.raises(ValueError, match="these above 0"):
        AdaptiveWeight(least=0.0)
    with pytest.raises(TypeError, match="score must be a function; got 'nll'"):
        AdaptiveWeight(score="nll")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="agreement must be at least 0 and below 1"):
        AdaptiveWeight(agreement=1.0)
    with pytest.raises(ValueError, match="rate must be at least 0"):
        AdaptiveWeight(rate=-0.1)
    with pytest.raises(ValueError, match="memory must be at least 1"):
        AdaptiveWeight(memory=0.5)


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
    weight = AdaptiveWeight(memory=4.0)
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
    assert weight.share != START
    assert weight.value == pytest.approx(8 * lighter.value, rel=1e-3)
    assert_close(scaled.state_dict(), plain.state_dict(), rtol=1e-3, atol=1e-4)


def test_a_run_goes_on_from_a_checkpoint_with_its_weight(tmp_path: Path) -> None:
    model, weight = interleaved(epochs=4)
    interleaved(epochs=2, checkpoint=tmp_path / "run")
    resumed, same = interleaved(epochs=4, checkpoint=tmp_path / "run")
    assert same.value == weight.value
    assert_close(resumed.state_dict(), model.state_dict(), rtol=0, atol=0)


def test_a_step_that_fails_has_taught_it_nothing(rng: torch.Generator) -> None:
    inputs, labels = torch.randn(40, 4, generator=rng), torch.arange(40) % 3
    spoilt = inputs.clone()
    spoilt[0, 0] = float("nan")
    known: list[dict[str, Any]] = []

    class Remembered(AdaptiveWeight):
        def update(self, statistics: Any) -> None:
            known.append(self.state_dict())

    model, weight = nn.Linear(4, 3), Remembered()
    with pytest.raises(FloatingPointError, match="fit loss must be finite; got nan at step 2"):
        fit_interleaved(
            model,
            [(inputs, labels), (inputs, labels), (spoilt, labels)],
            [(inputs, labels)],
            calibration=top_label(rooted(esd)),
            weight=weight,
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=1,
        )
    assert len(known) == 2
    assert weight.state_dict() == known[-1]


def test_it_says_how_it_was_made_whatever_it_has_learnt(rng: torch.Generator) -> None:
    weight = AdaptiveWeight(memory=2.0)
    said = repr(weight)
    watched(weight, [overconfidence], 5, rng)
    assert weight.share != START
    assert repr(weight) == said
    assert said == (
        "AdaptiveWeight(share=0.25, least=0.1, most=2.0, agreement=0.05, rate=0.05, memory=2.0, "
        "score=nll)"
    )


@pytest.mark.parametrize("settings", [{"memory": 5.0}, {"share": 0.3}, {"score": brier}])
def test_another_one_does_not_go_on_from_its_checkpoint(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(weight: AdaptiveWeight, epochs: int) -> None:
        model = nn.Linear(4, 3)
        batches = [(torch.randn(12, 4), torch.arange(12) % 3)]
        fit_interleaved(
            model,
            batches,
            batches,
            calibration=top_label(rooted(esd)),
            weight=weight,
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=epochs,
            checkpoint=tmp_path / "run.pt",
        )

    trained(AdaptiveWeight(), 1)
    with pytest.raises(ValueError, match=r"same weight; got another: AdaptiveWeight\(share=0\.25"):
        trained(AdaptiveWeight(**settings), 2)
    trained(AdaptiveWeight(), 2)
    monkeypatch.setattr(AdaptiveWeight, "rule", AdaptiveWeight.rule + 1)
    with pytest.raises(ValueError, match=r"rule 4, and here .*, rule 5"):
        trained(AdaptiveWeight(), 3)


def test_a_rule_has_a_number() -> None:
    """Stored runs are told apart by it: whoever changes a default here, raises it."""
    usual = {
        "share": 0.25,
        "least": 0.1,
        "most": 2.0,
        "agreement": 0.05,
        "rate": 0.05,
        "memory": 50.0,
        "score": nll,
    }
    told = {name: each.default for name, each in signature(AdaptiveWeight).parameters.items()}
    assert (told, AdaptiveWeight.rule) == (usual, 4)
