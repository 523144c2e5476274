"""What every measure of confidence and outcome says to bad input, and takes of good."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

import calibrant as cal
from calibrant import Measure

OF_EVENTS: dict[str, Measure] = {
    name: getattr(cal, name)
    for name in (
        *("esd", "esd_naive", "mmce", "weighted_mmce", "soft_binned_ece", "soft_label_binned_ece"),
        *("ece", "label_binned_ece", "mce", "debiased_ece", "ks_error", "sweep_ece"),
        *("smooth_ece", "kde_ece", "dca"),
    )
}
every_measure = pytest.mark.parametrize("measure", OF_EVENTS.values(), ids=list(OF_EVENTS))

CONFIDENCE, OUTCOME = torch.tensor([0.6, 0.7, 0.8, 0.9]), torch.tensor([1.0, 0.0, 1.0, 1.0])


@every_measure
def test_outcomes_may_be_of_any_type(measure: Measure) -> None:
    expected = measure(CONFIDENCE, OUTCOME)
    for dtype in (torch.bool, torch.int64, torch.uint8, torch.float64, torch.bfloat16):
        assert_close(measure(CONFIDENCE, OUTCOME.to(dtype)), expected)


@every_measure
def test_arguments_may_be_named(measure: Measure) -> None:
    named = measure(confidence=CONFIDENCE, outcome=OUTCOME)
    assert_close(named, measure(CONFIDENCE, OUTCOME))


@every_measure
def test_weights_may_be_of_any_type(measure: Measure) -> None:
    weights = torch.tensor([1.0, 2.0, 0.0, 1.0])
    expected = measure(CONFIDENCE, OUTCOME, weights=weights)
    for dtype in (torch.int64, torch.float64):
        assert_close(measure(CONFIDENCE, OUTCOME, weights=weights.to(dtype)), expected)


@every_measure
def test_strides_are_irrelevant(measure: Measure) -> None:
    confidence = torch.stack([CONFIDENCE, CONFIDENCE], dim=1)[:, 0]
    outcome = torch.stack([OUTCOME, OUTCOME], dim=1)[:, 1]
    assert_close(measure(confidence, outcome), measure(CONFIDENCE, OUTCOME))


@every_measure
def test_bad_events_get_one_sentence(measure: Measure) -> None:
    for sentence, arguments in (
        (r"outcome must hold one number per confidence, 4 in all; got shape \(3,\)",
         (CONFIDENCE, OUTCOME[:3])),
        (r"outcome must hold one number per confidence, 4 in all; got shape \(4, 1\)",
         (CONFIDENCE, OUTCOME[:, None])),
        (r"confidence must be a vector .* got torch\.float32 of shape \(4, 1\)",
         (CONFIDENCE[:, None], OUTCOME)),
        (r"confidence must be a vector of floating-point numbers, .* got torch\.int64",
         (OUTCOME.long(), OUTCOME)),
        (r"confidence must lie between 0 and 1; got 6 in row 0 .*, the first of 4",
         (10 * CONFIDENCE, OUTCOME)),
        (r"outcome must lie between 0 and 1; got 3 in row \d \(counted from 0\)",
         (CONFIDENCE, 3 * OUTCOME)),
        (r"outcome must be on the device of confidence, cpu; got meta",
         (CONFIDENCE, OUTCOME.to("meta"))),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=sentence):
            measure(*arguments)
    with pytest.raises(ValueError, match=r"weights must be finite and not negative; got -1 to"):
        measure(CONFIDENCE, OUTCOME, weights=-OUTCOME)
    with pytest.raises(ValueError, match=r"weights must hold one number per confidence, 4 in all"):
        measure(CONFIDENCE, OUTCOME, weights=OUTCOME[:2])


@every_measure
@pytest.mark.parametrize("n", [4, 40_000])
def test_bad_numbers_anywhere_among_many_are_told(measure: Measure, n: int) -> None:
    confidence, outcome = CONFIDENCE.repeat(n // 4), OUTCOME.repeat(n // 4).long()
    above, unknown = confidence.clone(), outcome.clone()
    above[-1], unknown[n // 2] = 1.5, -3
    with pytest.raises(ValueError, match=rf"confidence must lie .* got 1\.5 in row {n - 1} "):
        measure(above, outcome)
    with pytest.raises(ValueError, match=rf"outcome must lie .* got -3 in row {n // 2} "):
        measure(confidence, unknown)


@every_measure
def test_a_setting_that_a_measure_does_not_have_is_named_with_it(measure: Measure) -> None:
    said = rf"{measure.__name__} has no setting 'wieghts'; it takes .*Did you mean 'weights'\?"
    for n in (4, 40_000):
        with pytest.raises(TypeError, match=said):
            measure(CONFIDENCE.repeat(n // 4), OUTCOME.repeat(n // 4), wieghts=OUTCOME)


@every_measure
def test_so_it_is_where_the_measure_is_lifted(measure: Measure) -> None:
    said = f"{measure.__name__} has no setting 'wieghts'"
    table = torch.softmax(torch.linspace(-3, 3, 40_000).reshape(-1, 4), dim=1)
    labels = torch.arange(len(table)) % 2
    chances = cal.Predictions.from_probabilities(table[:, 0].contiguous(), labels)
    for lift in (cal.top_label, cal.class_wise):
        for told in (chances, cal.Predictions.from_probabilities(table, labels)):
            with pytest.raises(TypeError, match=said):
                lift(partial(measure, wieghts=OUTCOME))(told)
