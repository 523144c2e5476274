import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import calibrant
from calibrant import MEASURES as MEASURES_BY_NAME
from calibrant import (
    SCORES,
    Measure,
    Penalised,
    Predictions,
    across_ranks,
    by_group,
    class_wise,
    dca,
    ece,
    esd,
    ks_error,
    mmce,
    nll,
    per_class,
    rooted,
    soft_binned_ece,
    top_label,
)
from calibrant.criteria import _lifts, root

UNTYPED: Any = calibrant

MEASURES = {
    "esd": esd,
    "mmce": mmce,
    "soft_binned_ece": soft_binned_ece,
    "ece": ece,
    "equal mass": partial(ece, norm=2, binning="mass"),
    "ks_error": ks_error,
}
every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=list(MEASURES))


def columns(predictions: Predictions) -> list[tuple[Tensor, Tensor]]:
    return [
        (predictions.probs[:, k].contiguous(), (predictions.labels == k).double())
        for k in range(predictions.classes)
    ]


@every_measure
def test_class_wise_is_a_loop_over_classes(measure: Measure, predictions: Predictions) -> None:
    logits = predictions.logits.clone().requires_grad_()
    mine = Predictions(logits, predictions.labels)
    each = torch.stack([measure(c, y) for c, y in columns(mine)])
    for lifted, expected in (
        (class_wise(measure), each.mean()),
        (class_wise(measure, norm=2), each.square().mean().sqrt()),
    ):
        value = lifted(Predictions(logits, predictions.labels))
        assert_close(value, expected)
        assert_close(
            torch.autograd.grad(value, logits),
            torch.autograd.grad(expected, logits, retain_graph=True),
        )


def test_class_wise_takes_the_size_of_negative_values(predictions: Predictions) -> None:
    def negative(confidence: Tensor, outcome: Tensor) -> Tensor:
        return -(confidence.mean() + outcome.mean())

    each = torch.stack([negative(c, y) for c, y in columns(predictions)])
    expected = each.abs().pow(3).mean() ** (1 / 3)
    assert_close(class_wise(negative, norm=3)(predictions), expected)


def test_class_wise_in_blocks_is_the_same(
    predictions: Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = class_wise(ece)(predictions)
    monkeypatch.setattr(_lifts, "_AT_ONCE", 3 * 200)
    assert_close(class_wise(ece)(predictions), whole)


@every_measure
def test_per_class_is_the_measure_of_each_predicted_class_by_share(
    measure: Measure, predictions: Predictions
) -> None:
    expected = torch.zeros((), dtype=torch.float64)
    for k in range(4):
        chosen = predictions.predicted == k
        part = measure(predictions.confidence[chosen], predictions.correct[chosen])
        expected += chosen.double().mean() * part
    assert_close(per_class(measure)(predictions), expected)


@every_measure
def test_by_group_is_the_mean_over_groups(measure: Measure, predictions: Predictions) -> None:
    groups = torch.arange(200) % 5 // 2
    confidence, outcome = predictions.confidence, predictions.correct
    each = [measure(confidence[groups == g], outcome[groups == g]) for g in range(3)]
    expected = torch.stack(each).mean()
    assert_close(by_group(groups)(measure)(confidence, outcome), expected)
    assert_close(top_label(by_group(groups)(measure))(predictions), expected)
    assert_close(by_group(groups)(top_label(measure))(predictions), expected)


def test_groups_and_weights_multiply(predictions: Predictions, rng: torch.Generator) -> None:
    groups = torch.arange(200) % 2
    weights = torch.rand(200, generator=rng, dtype=torch.float64)
    weights[groups == 1] = 0
    confidence, outcome = predictions.confidence, predictions.correct
    first = groups == 0
    expected = ece(confidence[first], outcome[first], weights=weights[first])
    assert_close(by_group(groups)(ece)(confidence, outcome, weights=weights), expected)
    weighted = Predictions(predictions.logits, predictions.labels, weights=weights)
    assert_close(by_group(groups)(top_label(ece))(weighted), expected)


def test_one_group_is_the_measure_itself(predictions: Predictions) -> None:
    one = by_group(torch.zeros(200, dtype=torch.long))(esd)
    assert_close(one(predictions.confidence, predictions.correct), top_label(esd)(predictions))


def test_groups_of_another_length_are_refused(predictions: Predictions) -> None:
    for judged in ((predictions.confidence, predictions.correct), (predictions,)):
        with pytest.raises(ValueError, match=r"one entry per sample, 200 in all; got 3"):
            by_group(torch.arange(3))(dca if len(judged) == 2 else top_label(dca))(*judged)


def test_a_measure_without_weights_says_so(predictions: Predictions) -> None:
    def plain(confidence: Tensor, outcome: Tensor) -> Tensor:
        return (outcome - confidence).mean()

    assert top_label(plain)(predictions).isfinite()
    with pytest.raises(ValueError, match=r"plain has no weighted form"):
        per_class(plain)(predictions)


@pytest.mark.parametrize("order", [1, 1.5, 2, 3])
def test_a_root_is_exact_in_value(order: float) -> None:
    x = torch.tensor([-1.0, 0.0, 1e-30, 1e-13, 1e-11, 0.5, 2.0], dtype=torch.float64)
    assert_close(root(x, order), x.clamp(min=0) ** (1 / order), rtol=1e-12, atol=0)


@pytest.mark.parametrize("order", [1.5, 2, 3])
def test_a_root_has_the_true_slope_above_its_floor_and_a_bounded_one_below(order: float) -> None:
    x = torch.tensor([-1.0, 0.0, 1e-30, 1e-13, 1e-11, 0.5], dtype=torch.float64).requires_grad_()
    (slope,) = torch.autograd.grad(root(x, order).sum(), x)
    steepest = 1e-12 ** (1 / order - 1) / order
    expected = [0, 0, steepest, steepest]
    expected += [v ** (1 / order - 1) / order for v in (1e-11, 0.5)]
    assert_close(slope, torch.tensor(expected, dtype=torch.float64))


def test_rooted_lifts_measures_and_criteria_alike(predictions: Predictions) -> None:
    inside, outside = top_label(rooted(esd)), rooted(top_label(esd))
    assert_close(inside(predictions), outside(predictions))
    assert_close(inside(predictions).square(), top_label(esd)(predictions))


def test_lifts_say_what_they_lift() -> None:
    assert repr(across_ranks(top_label(rooted(esd)))) == "AcrossRanks(TopLabel(Rooted(esd)))"
    assert repr(class_wise(partial(ece, bins=10))) == "ClassWise(partial(ece, bins=10))"


def test_penalised_is_fit_plus_weighted_calibration(predictions: Predictions) -> None:
    objective = Penalised(nll, top_label(esd), weight=3.0)
    expected = nll(predictions) + 3 * top_label(esd)(predictions)
    assert_close(objective(predictions.logits, predictions.labels), expected)
    assert repr(objective) == "Penalised(fit=nll, calibration=TopLabel(esd), weight=3.0)"


def test_penalised_takes_weights(predictions: Predictions, rng: torch.Generator) -> None:
    weights = torch.rand(200, generator=rng, dtype=torch.float64)
    weighted = Predictions(predictions.logits, predictions.labels, weights=weights)
    expected = nll(weighted) + 3 * top_label(ece)(weighted)
    objective = Penalised(nll, top_label(ece), weight=3.0)
    assert_close(objective(predictions.logits, predictions.labels, weights), expected)


def test_objectives_can_be_pickled_and_copied(predictions: Predictions) -> None:
    groups = torch.arange(200) % 2
    for calibration in (*MEASURES_BY_NAME.values(), by_group(groups)(top_label(rooted(esd)))):
        for fit in SCORES.values():
            objective = Penalised(fit, calibration, weight=0.5)
            value = objective(predictions.logits, predictions.labels)
            for copied in (pickle.loads(pickle.dumps(objective)), copy.deepcopy(objective)):
                assert_close(copied(predictions.logits, predictions.labels), value)


def test_groups_are_of_samples_also_with_several_labels(rng: torch.Generator) -> None:
    scores, targets = torch.randn(20, 3, generator=rng), torch.randint(2, (20, 3), generator=rng)
    groups = torch.arange(20) % 2
    several = Predictions.from_multilabel(scores, targets)
    each = [
        top_label(ece)(Predictions.from_multilabel(scores[groups == g], targets[groups == g]))
        for g in range(2)
    ]
    assert_close(by_group(groups)(top_label(ece))(several), torch.stack(each).mean())


def test_a_class_that_is_never_predicted_does_not_count() -> None:
    def mean_gap(confidence: Tensor, outcome: Tensor, *, weights: Tensor) -> Tensor:
        return (weights * (outcome - confidence).abs()).sum() / weights.sum()

    predictions = Predictions(torch.tensor([[1.0, 0.0, -9.0]] * 3), torch.tensor([0, 1, 0]))
    assert per_class(mean_gap)(predictions).isfinite()


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        (r"ece takes a confidence and an outcome .* lift it: top_label\(ece\)",
         lambda p: UNTYPED.ece(p)),
        (r"nll judges Predictions; got Tensor\. Pass Predictions\(logits, labels\)",
         lambda p: UNTYPED.nll(p.logits, p.labels)),
        (r"fit must be a function; got 'nll'\. For a name use SCORES",
         lambda p: UNTYPED.Penalised("nll", top_label(esd), 1.0)),
        (r"measure must be a function; got 3", lambda p: UNTYPED.top_label(3)),
        (r"groups must be a torch tensor; got list", lambda p: UNTYPED.by_group([0, 1])),
    ],
)  # fmt: skip
def test_misuse_gets_one_sentence(
    sentence: str,
    wrong: Callable[[Predictions], object],
    predictions: Predictions,
    unchecked_types: None,
) -> None:
    with pytest.raises(TypeError, match=sentence):
        wrong(predictions)


def test_penalised_takes_tokens(rng: torch.Generator) -> None:
    logits = torch.randn(4, 6, 3, generator=rng)
    labels = torch.randint(3, (4, 6), generator=rng)
    labels[0, 2:] = -100
    objective = Penalised(nll, top_label(esd), 1.0, class_dim=-1, ignore_index=-100)
    kept = labels.reshape(-1) != -100
    flat = Penalised(nll, top_label(esd), 1.0)
    assert_close(
        objective(logits, labels),
        flat(logits.reshape(-1, 3)[kept], labels.reshape(-1)[kept]),
    )
