from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from calibrant import (
    MEASURES,
    SCORES,
    Predictions,
    as_logits,
    ece,
    esd,
    evaluate,
    evaluate_events,
    ks_error,
    label_binned_ece,
    mce,
    top_label,
)
from calibrant.evaluation._summary import Summary
from calibrant.evaluation._table import bound, number


def drawn(n: int, seed: int, scale: float = 3.0, classes: int = 4) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (n,), generator=rng)
    logits = scale * torch.randn(n, classes, generator=rng)
    logits[torch.arange(n), labels] += scale / 2
    return logits, labels


def exactly(predictions: Predictions) -> dict[str, Tensor]:
    def top(measure: object, **settings: object) -> Tensor:
        events = predictions.confidence, predictions.correct
        return measure(*events, **settings)  # type: ignore[operator, no-any-return]

    return {
        "accuracy": SCORES["accuracy"](predictions),
        "nll": SCORES["nll"](predictions),
        "brier": SCORES["brier"](predictions),
        "mean_entropy": predictions.entropy.mean(),
        "ece": top(ece),
        "ece_l2": top(ece, norm=2),
        "mce": top(mce),
        "class_wise_ece": MEASURES["class_wise_ece"](predictions),
        "per_class_ece": MEASURES["per_class_ece"](predictions),
        "label_binned_ece": top(label_binned_ece),
        "ece_mass": top(ece, binning="mass"),
        "ks_error": top(ks_error),
        "esd": top(esd),
    }


BOUNDED = {"label_binned_ece", "ece_mass", "ks_error", "esd"}


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("cells", [32, 1024, 8192])
@pytest.mark.parametrize("n", [3, 50, 3_000])
def test_agrees_with_the_measures_within_its_bounds(n: int, cells: int, scale: float) -> None:
    logits, labels = drawn(n, seed=n, scale=scale)
    summary = Summary(4, cells=cells)
    for part in torch.arange(n).split(700):
        summary.update(logits[part], labels[part])
    found = summary.values()
    truth = exactly(Predictions(logits.double(), labels))
    assert found.keys() == truth.keys()
    for name, bounded in found.items():
        slack = 1e-6 * (1 + abs(truth[name].item()))
        assert abs(bounded.value - truth[name].item()) <= bounded.error + slack, name
        assert (bounded.error == 0) or name in BOUNDED


def test_events_may_be_arrays() -> None:
    sure, right = np.array([0.9, 0.8, 0.3]), np.array([True, False, False])
    told = Summary(None).add_events(torch.from_numpy(sure), torch.from_numpy(right))
    assert Summary(None).add_events(sure, right).values() == told.values()


def test_batches_may_be_arrays() -> None:
    logits, labels = drawn(200, seed=1)
    told = Summary(logits.shape[1]).update(logits, labels)
    found = Summary(logits.shape[1]).update(logits.numpy(), labels.numpy().tolist())
    assert found.values() == told.values()


def test_bounds_are_tight_enough_to_use() -> None:
    logits, labels = drawn(20_000, seed=1)
    found = Summary(4).update(logits, labels).values()
    assert found["ks_error"].error < 1e-3
    assert found["ece_mass"].error < 2e-2
    assert found["label_binned_ece"].error < 1e-3
    assert found["esd"].error < 0.1 * found["esd"].value


@pytest.mark.parametrize("scale", [1e-3, 0.05, 1.0])
def test_no_bound_reaches_further_than_the_truth_can(scale: float) -> None:
    """Nearly alike, all confidences share a few cells."""
    logits, labels = drawn(5_000, seed=3)
    for cells in (1, 8192):
        found = Summary(4, cells=cells).update(scale * logits, labels).values()
        truth = exactly(Predictions(scale * logits.double(), labels))
        for name in BOUNDED:
            value, error = found[name].value, found[name].error
            assert value + error <= 1 + 1e-9 or error <= value, name
            assert abs(value - truth[name].item()) <= error + 1e-6, name
        told = Predictions(scale * logits, labels)
        gap = (told.correct - told.confidence).double()
        most = max(gap.clamp(min=0).mean().item(), (-gap).clamp(min=0).mean().item()) ** 2
        assert found["esd"].error <= max(most * 1.001, 2 * found["esd"].value)
        assert found["ece_mass"].error <= gap.abs().mean().item()


def test_the_bound_holds_for_confidences_rounded_beyond_their_cell() -> None:
    """In float32 a fifth is a little more than the edge between bins, where the accuracy is."""
    confidence, outcome = torch.tensor([0.2, 0.2, 0.1, 0.1, 0.1]), torch.tensor([1, 0, 0, 0, 0])
    found = Summary(None, bins=5, cells=1).add_events(confidence, outcome).values()
    lossy = found["label_binned_ece"]
    off = abs(lossy.value - (1 / 5 - confidence.double()).abs().mean().item())
    assert 1e-10 < off <= lossy.error < 1e-7


def test_no_smaller_bound_holds_for_a_cell_around_the_accuracy() -> None:
    """Half of it lies at either end."""
    confidence, outcome = torch.tensor([0.4001, 0.4001, 0.6, 0.6]), torch.tensor([1, 0, 1, 0])
    found = Summary(None, bins=5, cells=1).add_events(confidence, outcome).values()
    lossy, truth = found["label_binned_ece"], label_binned_ece(confidence, outcome.float(), bins=5)
    assert lossy.value < 1e-4
    assert truth.item() - lossy.value <= lossy.error < 1.001 * truth.item()


def test_an_empty_batch_adds_nothing() -> None:
    logits, labels = drawn(50, seed=0)
    summary, kept = (Summary(4).update(logits, labels) for _ in range(2))
    assert summary.update(logits[:0], labels[:0]) is summary
    summary.update(np.zeros((0, 4)), [])
    same(summary, kept)
    events, told = (Summary(None).add_events([0.9, 0.8, 0.6], [1, 1, 0]) for _ in range(2))
    assert events.add_events(torch.zeros(0), torch.zeros(0)) is events
    events.add_events([], [])
    same(events, told)
    none = logits[:0]
    for wrong in ((none[:, :3], labels[:0]), (none, labels[:1]), (logits[:1], labels[:0])):
        with pytest.raises(ValueError, match="must"):
            summary.update(*wrong)
    with pytest.raises(ValueError, match="must hold one entry per confidence"):
        events.add_events(torch.zeros(0), torch.ones(1))
    with pytest.raises(ValueError, match="at least 3 samples"):
        evaluate(logits[:0], labels[:0], draws=39)


def test_edges_of_bins_fall_where_ece_puts_them() -> None:
    confidence = torch.tensor([j / 15 for j in range(8, 16)])
    told = Predictions.from_probabilities(confidence, torch.zeros(8, dtype=torch.long))
    assert_close(
        torch.tensor(Summary(2).add(told).values()["ece"].value),
        top_label(ece)(told),
    )


def same(a: Summary, b: Summary) -> None:
    for name, part in a.state.items():
        assert_close(part, b.state[name], rtol=1e-12, atol=1e-12)


@given(st.lists(st.integers(1, 40), min_size=3, max_size=3))
def test_merging_is_associative_and_commutative_and_loses_nothing(sizes: list[int]) -> None:
    parts = [drawn(n, seed=i) for i, n in enumerate(sizes)]
    a, b, c = (Summary(4, cells=64).update(*part) for part in parts)
    whole = Summary(4, cells=64).update(*(torch.cat(p) for p in zip(*parts, strict=True)))
    same(a.merge(b).merge(c), a.merge(b.merge(c)))
    same(a.merge(b), b.merge(a))
    same(a.merge(b).merge(c), whole)
    assert len(a.merge(b)) == len(a) + len(b)


def test_merging_changes_neither() -> None:
    a, b = (Summary(4, cells=64).update(*drawn(10, seed=i)) for i in range(2))
    before = {name: part.clone() for name, part in a.state.items()}
    a.merge(b)
    for name, part in a.state.items():
        assert_close(part, before[name], rtol=0, atol=0)


def test_memory_does_not_grow_with_the_data() -> None:
    summary = Summary(10)

    def size() -> int:
        return sum(part.numel() * part.element_size() for part in summary.state.values())

    before = size()
    for seed in range(5):
        summary.update(*drawn(1_000, seed=seed, classes=10))
    assert size() == before < 400_000


@pytest.mark.parametrize("classes", [None, 2, 10, 1_000, 128_256])
def test_it_takes_half_a_megabyte_and_seven_tenths_of_a_kilobyte_for_each_class(
    classes: int | None,
) -> None:
    summary = Summary(classes)
    kept = [*summary.state.values(), summary.edges, summary.bin_of_cell]
    size = sum(part.numel() * part.element_size() for part in kept)
    assert size == pytest.approx(500_000 + 700 * (classes or 0), rel=0.1)


def test_counts_do_not_stick_at_two_to_the_twenty_fourth() -> None:
    logits, labels = drawn(1_000, seed=0)
    once = Summary(4).update(logits, labels)
    many = once
    for _ in range(15):  # 1,000 times 2^15: 32 million samples
        many = many.merge(many)
    assert len(many) == 1_000 * 2**15
    assert many.values()["ece"].value == pytest.approx(once.values()["ece"].value, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_events_are_judged_as_they_are_and_not_by_the_likelier_answer(dtype: torch.dtype) -> None:
    rng = torch.Generator().manual_seed(2)
    confidence = torch.rand(500, generator=rng).to(dtype)
    outcome = torch.rand(500, generator=rng) < confidence.float() ** 2
    summary = Summary(None)
    for part in torch.arange(500).split(170):
        summary.add_events(confidence[part], outcome[part])
    found, truth = summary.values(), evaluate_events(confidence, outcome, draws=39)
    assert found.keys() < truth.rows.keys()
    for name, bounded in found.items():
        assert abs(bounded.value - truth[name].value) <= bounded.error + 1e-6, name
        assert (bounded.error == 0) or name in BOUNDED
    halves = (Summary(None).add_events(confidence[k::2], outcome[k::2]) for k in range(2))
    same(next(halves).merge(next(halves)), summary)


def test_events_and_predictions_do_not_mix() -> None:
    with pytest.raises(ValueError, match=r"takes add_events\(confidence, outcome\); got pred"):
        Summary(None).update(*drawn(4, seed=0))
    with pytest.raises(ValueError, match=r"of 4 classes takes update\(logits, labels\); got ev"):
        Summary(4).add_events(torch.rand(3), torch.ones(3))
    with pytest.raises(ValueError, match=r"confidence must lie between 0 and 1"):
        Summary(None).add_events(torch.tensor([1.5]), torch.ones(1))
    with pytest.raises(ValueError, match=r"must share classes, bins and cells"):
        Summary(None).merge(Summary(4))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (float("nan"), "logits must hold numbers; got NaN in row 7"),
        (float("inf"), "got NaN for row 7"),
    ],
)
def test_a_row_that_is_no_forecast_is_named_and_nothing_is_added(bad: float, said: str) -> None:
    logits, labels = drawn(20, seed=0)
    broken = logits.clone()
    broken[[7, 9], 2] = bad
    summary = Summary(4).update(logits, labels)
    before = {name: part.clone() for name, part in summary.state.items()}
    sentence = rf"{said} \(counted from 0\), the first of 2\. Leave such rows out"
    with pytest.raises(ValueError, match=sentence):
        summary.update(broken, labels)
    for name, part in summary.state.items():
        assert_close(part, before[name], rtol=0, atol=0)
    ruled_out = torch.where(torch.arange(4) == (labels[:, None] + 1) % 4, -torch.inf, logits)
    assert len(summary.update(ruled_out, labels)) == 40


def test_rows_that_could_not_be_looked_at_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, labels = drawn(20, seed=0)
    logits[7] = torch.nan
    # As on a device, which would have to wait.
    monkeypatch.setattr("calibrant.evaluation._summary.is_readable", lambda x: False)
    summary = Summary(4).update(logits, labels)
    with pytest.raises(ValueError, match=r"must be of numbers; got NaN in at least one of its 20"):
        summary.values()


def test_probabilities_are_refused_with_what_works() -> None:
    logits, labels = drawn(20, seed=0)
    chances = logits.softmax(dim=1)
    with pytest.raises(
        ValueError, match=r"that are probabilities.* Pass probabilities=True, or as_l"
    ):
        Summary(4).update(chances, labels)
    whole = Summary(4).update(as_logits(chances), labels)
    given = Summary(4).add(Predictions.from_probabilities(chances, labels))
    assert whole.values()["ece"].value == pytest.approx(given.values()["ece"].value, abs=1e-6)
    told = Summary(4).update(chances.numpy(), labels, probabilities=True)
    assert told.values() == given.values()


def test_probabilities_are_taken_where_that_is_said() -> None:
    chance, labels = torch.tensor([0.9, 0.2, 0.4, 0.7]).double(), torch.tensor([1, 0, 1, 1])
    one_by_one = Summary(2)
    for k in range(4):
        one_by_one.update(chance[k : k + 1], labels[k : k + 1], probabilities=True)
    rows = torch.stack([1 - chance, chance], dim=1)
    same(one_by_one, Summary(2).update(rows, labels, probabilities=True))
    said = evaluate(chance, labels, probabilities=True, draws=39)
    assert one_by_one.values()["brier"].value == pytest.approx(said["brier"].value)
    assert len(one_by_one.update(chance[:0], labels[:0], probabilities=True)) == 4


@pytest.mark.usefixtures("unchecked_types")
def test_probabilities_are_refused_as_evaluate_refuses_them() -> None:
    logits, labels = drawn(20, seed=0)
    chances = logits.softmax(dim=1)
    broken: list[tuple[Any, Any]] = [
        (logits, True),
        (1.02 * chances, True),
        (torch.where(torch.arange(20) == 3, torch.nan, chances.T).T, True),
        (chances[:, :1], True),
        (chances, "yes"),
        (torch.linspace(-1, 1, 20), True),
    ]
    for table, flag in broken:
        sentences = []
        for judge in (Summary(4).update, evaluate):
            with pytest.raises((ValueError, TypeError)) as refused:
                judge(table, labels, probabilities=flag)
            sentences.append(str(refused.value))
        assert sentences[0] == sentences[1]
    with pytest.raises(ValueError, match="probabilities must be True or False; got 'yes'"):
        Summary(4).update(logits[:0], labels[:0], probabilities="yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must have 4 classes, like the summary; got 2"):
        Summary(4).update(torch.rand(20), labels % 2, probabilities=True)


def test_it_says_in_a_line_what_it_holds() -> None:
    assert repr(Summary(10, bins=20)) == "Summary(0 samples of 10 classes, 20 bins)"
    found = Summary(3).update(torch.eye(3).repeat(500, 1), torch.arange(1500) % 3)
    assert repr(found) == "Summary(1,500 samples of 3 classes, 15 bins)"
    events = Summary(None).add_events(torch.linspace(0, 1, 7), torch.ones(7))
    assert repr(events) == "Summary(7 events, 15 bins)"


def test_printed_it_is_a_table_of_what_it_knows() -> None:
    found = Summary(4).update(*drawn(5_000, seed=1))
    head, names, *lines = str(found).splitlines()
    assert head == repr(found)
    assert names.split() == ["value", "off", "by", "at", "most"]
    assert [line.split()[0] for line in lines] == list(found.values())
    told = {line.split()[0]: line.split()[1:] for line in lines}
    assert told["ece"] == [number(found.values()["ece"].value), "exact"]
    lossy = found.values()["esd"]
    assert told["esd"] == [number(lossy.value), *bound(lossy.error).split()]
    few = Summary(4).update(*drawn(2, seed=1))
    assert str(few) == repr(few)


def test_bad_input_gets_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"must have 4 classes, like the summary; got 3"):
        Summary(4).update(torch.zeros(2, 3), torch.zeros(2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"must share classes, bins and cells"):
        Summary(4).merge(Summary(4, bins=10))
    with pytest.raises(ValueError, match=r"at least 3 samples to be judged; got 0"):
        Summary(4).values()
    weighted = Predictions(*drawn(4, seed=0), weights=torch.ones(4))
    with pytest.raises(ValueError, match=r"counts every sample once; got weights"):
        Summary(4).add(weighted)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("classes", [1, -1, True, "10", 10.0, [3], float("nan"), torch.tensor(3)])
def test_classes_must_be_a_whole_number(classes: Any) -> None:
    sentence = (
        r"classes must be a whole number, at least 2, or None for events; got .* Pass how many"
    )
    with pytest.raises(ValueError, match=sentence):
        Summary(classes)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("name", ["bins", "cells"])
@pytest.mark.parametrize("value", [0, "15", 15.0, None, True])
def test_bins_and_cells_must_be_whole_numbers(name: str, value: Any) -> None:
    usual = {"bins": 15, "cells": 8192}[name]
    sentence = rf"{name} must be a whole number, at least 1; got {value!r}\. Usual is {usual}\."
    with pytest.raises(ValueError, match=sentence):
        Summary(2, **{name: value})


@pytest.mark.parametrize(
    ("classes", "sizes", "taken"),
    [
        (3, {"bins": 10**9}, "1,000,000,000 bins and 8,192 cells of 3 classes take 23,000,040,960"),
        (None, {"cells": 10**10}, "15 bins and 10,000,000,000 cells take 50,000,000,075"),
        (100_000, {"bins": 1_000}, "1,000 bins and 8,192 cells of 100,000 classes take 600,045,9"),
    ],
)
def test_a_summary_that_is_not_small_is_refused(
    classes: int | None, sizes: dict[str, int], taken: str
) -> None:
    with pytest.raises(ValueError, match=f"must hold at most 134,217,728 numbers; {taken}"):
        Summary(classes, **sizes)
    assert Summary(50_000, bins=20, cells=64).bins == 20


@pytest.mark.usefixtures("unchecked_types")
def test_numbers_of_numpy_are_numbers() -> None:
    summary = Summary(np.int64(3), bins=np.int32(5), cells=np.uint8(9))  # type: ignore[arg-type]
    assert repr(summary) == "Summary(0 samples of 3 classes, 5 bins)"
    assert summary.merge(Summary(3, bins=5, cells=9)).classes == 3


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("other", [3, None, "x", {}, [Summary(4)]])
def test_what_is_no_summary_is_not_merged(other: Any) -> None:
    kind = type(other).__name__
    with pytest.raises(TypeError, match=rf"merges with another Summary; got {kind}\. For several"):
        Summary(4).merge(other)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("given", [3, None, torch.zeros(3, 4), (torch.zeros(3, 4), [0, 1, 2])])
def test_what_is_no_predictions_is_not_added(given: Any) -> None:
    kind = type(given).__name__
    for classes, right in ((4, r"update\(logits, labels\)"), (None, r"add_events\(confidence")):
        sentence = rf"predictions must be Predictions; got {kind}\. For numbers use {right}"
        with pytest.raises(TypeError, match=sentence):
            Summary(classes).add(given)


def test_complex_numbers_are_no_logits() -> None:
    with pytest.raises(TypeError, match=r"logits must be floating point; got torch\.complex64"):
        Summary(2).update(torch.zeros(3, 2, dtype=torch.complex64), [0, 1, 0])


def test_a_merged_summary_lies_where_the_first_does() -> None:
    here, there = Summary(4), Summary(4)
    there.state = {name: part.to("meta") for name, part in there.state.items()}
    assert there.merge(here).device.type == "meta"
