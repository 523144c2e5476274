"""A proper score is calibration plus refinement, exactly."""

import numpy as np
import pytest
import torch
from forecasts import Forecasts, as_tensors, forecasts
from hypothesis import given, settings
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions, brier, evaluate_events, nll
from calibrant.evaluation._decomposition import Decomposition, decompose


def binary_scores(p: Tensor, y: Tensor) -> tuple[float, float]:
    """Mean squared error and mean surprise, sample by sample."""
    square = sum((a - b) ** 2 for a, b in zip(p.tolist(), y.tolist(), strict=True)) / len(p)
    hit = np.where(y.numpy() == 1, p.numpy(), 1 - p.numpy())
    return square, float(-np.log(np.maximum(hit, np.finfo(hit.dtype).tiny)).mean())


@given(forecasts(max_size=20))
@settings(max_examples=40)
def test_events_are_split_by_the_best_map_that_never_decreases(drawn: Forecasts) -> None:
    confidence, outcome = as_tensors(drawn)
    best = IsotonicRegression().fit_transform(confidence.numpy(), outcome.numpy())
    recalibrated = torch.from_numpy(np.asarray(best)).clamp(0, 1)
    found = decompose((confidence, outcome))
    forecast = binary_scores(confidence, outcome)
    fitted = binary_scores(recalibrated, outcome)
    base = binary_scores(outcome.mean().expand(len(outcome)), outcome)
    for parts, *expected in zip((found.brier, found.nll), forecast, fitted, base, strict=True):
        got = [parts.score, parts.refinement, parts.uncertainty]
        assert got == pytest.approx(expected, abs=1e-7)


def assert_sound(found: Decomposition) -> None:
    for parts in (found.brier, found.nll):
        assert parts.calibration + parts.refinement == pytest.approx(parts.score, rel=1e-14)
        assert parts.uncertainty - parts.discrimination == pytest.approx(
            parts.refinement, rel=1e-14
        )
        assert min(parts.calibration, parts.discrimination) > -1e-12
        assert parts.refinement >= 0


@given(forecasts(max_size=20))
@settings(max_examples=40)
def test_parts_add_up_and_none_is_negative(drawn: Forecasts) -> None:
    confidence, outcome = as_tensors(drawn)
    assert_sound(decompose((confidence.clamp(0.01, 0.99), outcome)))


@pytest.mark.parametrize("scale", [-1.0, 0.1, 1.0, 5.0])
def test_classes_too(scale: float, predictions: Predictions) -> None:
    judged = Predictions(scale * predictions.logits, predictions.labels)
    for top_label in (False, True):
        assert_sound(decompose(judged, top_label=top_label))


def test_scores_of_classes_are_the_scores(predictions: Predictions) -> None:
    found = decompose(predictions)
    assert found.brier.score == pytest.approx(brier(predictions).item())
    assert found.nll.score == pytest.approx(nll(predictions).item())
    frequency = predictions.labels.bincount() / len(predictions)
    assert found.brier.uncertainty == pytest.approx(1 - frequency.square().sum().item(), rel=1e-6)
    entropy = torch.distributions.Categorical(frequency).entropy().item()
    assert found.nll.uncertainty == pytest.approx(entropy, rel=1e-6)


def test_brier_of_classes_is_the_sum_over_one_against_the_rest(predictions: Predictions) -> None:
    each = [decompose((predictions.probs[:, k], predictions.labels == k)).brier for k in range(4)]
    found = decompose(predictions).brier
    assert found.refinement == pytest.approx(sum(part.refinement for part in each))
    assert found.calibration == pytest.approx(sum(part.calibration for part in each))


def test_likelihood_of_two_classes_is_refined_by_platt_scaling(rng: torch.Generator) -> None:
    scores = 3 * torch.randn(400, generator=rng, dtype=torch.float64)
    labels = torch.bernoulli((0.4 * scores - 0.7).sigmoid(), generator=rng).long()
    platt = LogisticRegression(C=np.inf, tol=1e-10).fit(scores[:, None].numpy(), labels.numpy())
    chance = torch.from_numpy(platt.predict_proba(scores[:, None].numpy()))
    expected = -chance.gather(1, labels[:, None]).log().mean().item()
    found = decompose(Predictions.from_binary(scores, labels)).nll
    assert found.refinement == pytest.approx(expected, rel=1e-7)
    assert found.calibration > 0.1


def test_likelihood_is_refined_by_temperature_and_offsets(rng: torch.Generator) -> None:
    truth = 2 * torch.randn(3_000, 4, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(truth.softmax(1), 1, generator=rng)[:, 0]
    offset = torch.tensor([1.0, -0.5, 0.0, 2.0]).double()
    found = decompose(Predictions(3 * truth + offset, labels)).nll
    calibrated = nll(Predictions(truth, labels)).item()
    # The truth is in the family; a fit of four free numbers gains about 4 / 2n on it.
    assert calibrated - 8 * 4 / 6_000 < found.refinement <= calibrated + 1e-9


def test_a_class_never_seen_costs_the_best_map_nothing(rng: torch.Generator) -> None:
    logits = torch.randn(200, 4, generator=rng, dtype=torch.float64)
    labels = torch.randint(3, (200,), generator=rng)
    with_it, without = (
        decompose(Predictions(z, labels)).nll for z in (logits, logits[:, :3].contiguous())
    )
    assert with_it.refinement == pytest.approx(without.refinement, rel=1e-10)
    assert with_it.score > without.score


def test_misleading_forecasts_refine_to_the_frequencies(predictions: Predictions) -> None:
    turned = Predictions(-predictions.logits, predictions.labels)
    assert decompose(turned).nll.discrimination == pytest.approx(0, abs=1e-6)


def test_weight_two_is_the_sample_twice(predictions: Predictions) -> None:
    weights = torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=torch.float64).repeat(50)
    times = weights.long()
    repeated = Predictions(
        predictions.logits.repeat_interleave(times, 0), predictions.labels.repeat_interleave(times)
    )
    for top_label in (False, True):
        weighted = decompose(predictions.reweighted(weights), top_label=top_label).to_dict()
        copied = decompose(repeated, top_label=top_label).to_dict()
        for score, parts in weighted.items():
            assert parts == pytest.approx(copied[score], abs=1e-7)


def test_top_label_is_the_event_of_being_right(predictions: Predictions) -> None:
    pair = predictions.confidence, predictions.correct
    assert decompose(predictions, top_label=True) == decompose(pair)


def test_the_impossible_that_happened_is_as_bad_as_elsewhere_and_all_calibration() -> None:
    events = np.array([1.0, 0.5, 0.5]), np.array([0, 1, 1])
    found = decompose(events).nll
    assert found.score == pytest.approx(evaluate_events(*events, draws=39)["nll"].value)
    assert found.score > 200
    assert found.refinement < 1


def test_gradients_are_left_alone(predictions: Predictions) -> None:
    logits = predictions.logits.clone().requires_grad_()
    found = decompose(Predictions(logits, predictions.labels))
    assert_close(torch.tensor(found.nll.score), torch.tensor(decompose(predictions).nll.score))


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1e2, 1e4, 1e6])
def test_refinement_of_the_likelihood_knows_no_scale_of_logits(scale: float) -> None:
    rng = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(500, 5, generator=rng, dtype=torch.float64)
    labels = torch.multinomial((logits / 1.7).softmax(1), 1, generator=rng)[:, 0]
    found, own = (decompose(Predictions(x, labels)).nll for x in (scale * logits, logits))
    assert found.refinement == pytest.approx(own.refinement, abs=1e-7)


def test_a_class_ruled_out_stays_ruled_out(rng: torch.Generator) -> None:
    """Then the best map of the others is what it would be without that class."""
    logits = torch.randn(300, 3, generator=rng, dtype=torch.float64)
    labels = torch.randint(2, (300,), generator=rng)
    ruled_out = torch.cat([logits[:, :2], torch.full((300, 1), -torch.inf)], dim=1)
    # One sample of the third class, which is sure of it, so that the class is seen.
    seen = torch.tensor([[-torch.inf, -torch.inf, 0.0]], dtype=torch.float64)
    both = decompose(
        Predictions(torch.cat([ruled_out, seen]), torch.cat([labels, torch.tensor([2])]))
    )
    alone = decompose(Predictions(logits[:, :2], labels))
    assert both.nll.refinement == pytest.approx(alone.nll.refinement * 300 / 301, abs=1e-6)


def test_bad_predictions_are_refused(predictions: Predictions) -> None:
    nobody = predictions.reweighted(torch.zeros(200, dtype=torch.float64))
    with pytest.raises(ValueError, match="weight above zero; got none"):
        decompose(nobody)
    nowhere = predictions.logits.clone()
    nowhere[7, 1] = torch.nan
    with pytest.raises(ValueError, match="got NaN for row 7"):
        decompose(Predictions(nowhere, predictions.labels))
    several = Predictions.from_multilabel(torch.zeros(3, 2), torch.ones(3, 2))
    with pytest.raises(ValueError, match="one label per sample; got 2"):
        decompose(several)
