"""The papers' rule for which model to keep, and their advice on when to interleave."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import TensorDataset

import calibrant as cal


def run(accuracy: float, error: float) -> SimpleNamespace:
    return SimpleNamespace(accuracy=accuracy, error=error)


def test_the_lowest_error_wins_among_those_that_lose_less_than_the_margin() -> None:
    runs = [run(0.90, 0.08), run(0.89, 0.05), run(0.885, 0.01), run(0.80, 0.0)]
    assert cal.select(runs, baseline=0.90) is runs[1]  # a loss of exactly 1.5 points is too much
    assert cal.select(runs, baseline=0.90, margin=0.0151) is runs[2]
    assert cal.select(runs, baseline=0.90, margin=0.5) is runs[3]


def test_relative_margins_are_a_share_of_the_baseline() -> None:
    runs = [run(0.50, 0.08), run(0.487, 0.02)]
    assert cal.select(runs, baseline=0.50, margin=0.015) is runs[1]
    assert cal.select(runs, baseline=0.50, margin=0.015, relative=True) is runs[0]


def test_without_a_baseline_the_most_accurate_candidate_is_it() -> None:
    runs = [run(0.92, 0.08), run(0.906, 0.05), run(0.90, 0.01)]
    assert cal.select(runs) is runs[1]


def test_of_equal_errors_the_more_accurate_then_the_first_wins() -> None:
    runs = [run(0.90, 0.05), run(0.91, 0.05), run(0.91, 0.05)]
    assert cal.select(runs, baseline=0.91) is runs[1]


def test_a_sentence_when_all_lose_too_much() -> None:
    with pytest.raises(ValueError, match=r"accuracy above 0.8850; got 1, at best 0.8500"):
        cal.select([run(0.85, 0.01)], baseline=0.90)
    with pytest.raises(ValueError, match="candidates must hold at least one to choose; got none"):
        cal.select([], baseline=0.90)


NAN = float("nan")


def test_what_is_not_a_number_is_worse_than_any_number() -> None:
    good, wrong, broken = run(0.90, 0.03), run(0.91, NAN), run(NAN, 0.01)
    for runs in ([wrong, broken, good], [good, broken, wrong]):
        assert cal.select(runs) is good
    assert cal.select([wrong, broken]) is wrong
    with pytest.raises(ValueError, match="an accuracy that is a number; got nan for all 2"):
        cal.select([broken, broken])


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.5])
def test_a_margin_is_a_fraction(margin: float) -> None:
    with pytest.raises(ValueError, match="margin must lie between 0 and 1"):
        cal.select([run(0.9, 0.1)], margin=margin)


def test_a_baseline_is_a_fraction() -> None:
    with pytest.raises(ValueError, match=r"92% is 0\.92"):
        cal.select([run(0.9, 0.1)], baseline=92.0)


# On a coarse grid, so that ties and exact margins are common.
epochs = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=12)


@given(epochs, st.sampled_from([None, 0.6, 1.0]), st.booleans())
def test_the_epoch_that_is_best_in_the_end_was_kept_all_along(
    grid: list[tuple[int, int]], baseline: float | None, relative: bool
) -> None:
    rule = cal.Selection(margin=0.25, baseline=baseline, relative=relative)
    history = [cal.Epoch(i, 0.0, accuracy=a / 8, error=e / 8) for i, (a, e) in enumerate(grid)]
    check_kept_all_along(rule, history)


numbers = st.sampled_from([0.5, 0.625, 1.0, NAN])


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6), st.sampled_from([None, 0.9]))
def test_so_it_was_where_some_figures_are_not_numbers(
    figures: list[tuple[float, float]], baseline: float | None
) -> None:
    rule = cal.Selection(margin=0.25, baseline=baseline)
    history = [cal.Epoch(i, 0.0, accuracy=a, error=e) for i, (a, e) in enumerate(figures)]
    check_kept_all_along(rule, history)


def check_kept_all_along(rule: cal.Selection, history: list[cal.Epoch]) -> None:
    kept: set[int] = set()
    for now in range(1, len(history) + 1):
        possible = {epoch.number for epoch in rule.possible(history[:now])}
        assert possible <= kept | {now - 1}  # weights once dropped are gone
        kept = possible
        assert rule.best(history[:now]).number in kept


def test_when_every_epoch_falls_short_the_most_accurate_is_kept() -> None:
    rule = cal.Selection(baseline=0.99)
    history = [cal.Epoch(0, 0.0, accuracy=0.8, error=0.01), cal.Epoch(1, 0.0, accuracy=0.9)]
    assert rule.best(history) is history[1]


def test_the_rule_says_what_it_is() -> None:
    said = str(cal.Selection(baseline=0.92))
    assert said.endswith("lose less than 1.5 points of accuracy to a baseline of 0.92")


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({"plain": 0.05, "interleaved": 0.03}, True),
        ({"plain": 0.03, "interleaved": 0.03}, False),
        ({"train": 0.0045}, True),
        ({"train": 0.01}, False),
        ({"train": 0.04, "suspicious": 0.05}, True),
        ({"plain": 0.03, "interleaved": 0.05, "train": 0.001}, False),
    ],
)
def test_interleave_if_it_helps_or_if_training_looks_too_good(
    errors: dict[str, float], expected: bool
) -> None:
    assert cal.should_interleave(**errors) is expected


def test_advice_needs_something_to_go_by() -> None:
    for errors in ({}, {"plain": 0.03}, {"interleaved": 0.03, "train": 0.1}):
        with pytest.raises(ValueError, match="needs plain and interleaved"):
            cal.should_interleave(**errors)
    with pytest.raises(ValueError, match=r"1% is 0\.01"):
        cal.should_interleave(train=6.9)


@pytest.mark.parametrize(("fraction", "seed"), [(0.1, 0), (0.25, 1), (0.99, 2)])
def test_a_split_leaves_out_no_sample_and_repeats_none(fraction: float, seed: int) -> None:
    data = TensorDataset(torch.arange(103))
    parts = cal.split_for_calibration(data, fraction, seed=seed)
    assert len(parts[1]) == round(fraction * 103)
    read = [int(part[i][0]) for part in parts for i in range(len(part))]
    assert sorted(read) == list(range(103))
    again = cal.split_for_calibration(data, fraction, seed=seed)
    assert [list(part.indices) for part in parts] == [list(part.indices) for part in again]
    other = cal.split_for_calibration(data, fraction, seed=seed + 1)
    assert list(parts[1].indices) != list(other[1].indices)


def test_a_stratified_slice_holds_each_class_by_its_share() -> None:
    labels = torch.cat([torch.zeros(70), torch.ones(30), torch.full((5,), 2)]).long()
    data = TensorDataset(labels)
    _, held_out = cal.split_for_calibration(data, 0.2, seed=3, labels=labels.tolist())
    counts = labels[torch.tensor(held_out.indices)].bincount()
    assert counts.tolist() == [14, 6, 1]
    _, other = cal.split_for_calibration(data, 0.2, seed=4, labels=labels)
    assert sorted(held_out.indices) != sorted(other.indices)


@pytest.mark.parametrize("fraction", [0.0, 1.0, 0.01, -0.1])
def test_a_slice_must_leave_samples_on_both_sides(fraction: float) -> None:
    with pytest.raises(ValueError, match="must leave samples on both sides"):
        cal.split_for_calibration(TensorDataset(torch.arange(20)), fraction, seed=0)


def test_labels_to_stratify_by_must_be_one_per_sample() -> None:
    with pytest.raises(ValueError, match="one class per sample, 20 in all"):
        cal.split_for_calibration(TensorDataset(torch.arange(20)), seed=0, labels=[0, 1])
