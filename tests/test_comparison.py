"""Differences between models, and figures over seeds, mean what they say."""

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]
from torch import Tensor
from torch.testing import assert_close

from calibrant import (
    CRITERIA,
    Criterion,
    Measure,
    Predictions,
    Score,
    ece,
    mmce,
    nll,
    smooth_ece,
    top_label,
)
from calibrant.evaluation import _crowds, _lots, compare_events, evaluate
from calibrant.evaluation._comparison import COMPARED, compare
from calibrant.evaluation._differences import Difference
from calibrant.evaluation._how_often import draws_for
from calibrant.evaluation._interval import p_value_of
from calibrant.evaluation._judged import judged
from calibrant.evaluation._lots import Lots
from calibrant.evaluation._named import BY_CLASS, OF_EVENTS, named
from calibrant.evaluation._paired import Ray, paired_interval
from calibrant.evaluation._resampled import AlongRay
from calibrant.evaluation._seeds import cohens_d, mean_and_sem, within_subject_sem
from calibrant.evaluation._together import _difference, _drawn
from calibrant.evaluation._weights import multinomial_weights


def world(n: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    logits = 1.5 * torch.randn(n, 4, generator=rng, dtype=torch.float64)
    return logits, torch.multinomial(logits.softmax(1), 1, generator=rng)[:, 0]


def test_agrees_with_the_bootstrap_written_slowly(rng: torch.Generator) -> None:
    logits, labels = world(60, rng)
    other = logits + torch.randn(60, 4, generator=rng, dtype=torch.float64)
    criteria: dict[str, Criterion] = {"nll": nll, "narrow": top_label(partial(mmce, bandwidth=0.2))}
    found = compare(logits, other, labels, criteria=criteria, draws=50, level=0.9, seed=3)
    counts = torch.cat(list(multinomial_weights(torch.ones(60, dtype=torch.float64), 50, 3)))
    for name, criterion in criteria.items():
        drawn = []
        for count in counts.long():  # the rows themselves, as often as they were drawn
            rows = torch.arange(60).repeat_interleave(count)
            a, b = (criterion(Predictions(z[rows], labels[rows])).item() for z in (logits, other))
            drawn.append(a - b)
        a, b = (criterion(Predictions(z, labels)).item() for z in (logits, other))
        low, high = (2 * (a - b) - q for q in np.quantile(drawn, [0.95, 0.05], method="weibull"))
        shifted = np.array(drawn) - (a - b)
        smaller = min((shifted >= a - b).sum(), (shifted <= a - b).sum())
        row = found[name]
        assert (row.first, row.second, row.difference) == pytest.approx((a, b, a - b))
        assert (row.low, row.high) == pytest.approx((low, high))
        # Between two draws it lies where the interval ends.
        assert row.p_value == pytest.approx(min(1, 2 * (1 + smaller) / 51), abs=2 / 51)


@pytest.mark.parametrize("seed", [140, 142, 254, 262, 292])
def test_a_p_value_never_contradicts_its_interval(seed: int) -> None:
    """On the verge, where a count of draws says one thing and an interval another."""
    rng = torch.Generator().manual_seed(seed)
    n = [60, 200, 600, 2000][seed % 4]
    factors = [(1, 1), (1.1, 1), (1.5, 1), (2, 1.7), (1.3, 0.8), (3, 1)][seed % 6]
    logits = 2 * torch.randn(n, 5, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    first, second = (
        factor * (logits + 0.5 * torch.randn(n, 5, generator=rng)) for factor in factors
    )
    for level in (0.9, 0.95, 0.96):
        for name, row in compare(
            first, second, labels, draws=200, seed=seed, level=level
        ).rows.items():
            assert (row.p_value <= 1 - level) == (not row.low <= 0 <= row.high), name


def test_draws_that_cannot_tell_a_level_are_refused(rng: torch.Generator) -> None:
    logits, labels = world(50, rng)
    with pytest.raises(ValueError, match=r"at least 39 for a level of 0\.95: .* got 38"):
        compare(logits, 2 * logits, labels, draws=38)
    logits, labels = world(400, rng)
    for draws in range(19, 300, 20):  # no more than it takes, as rounding has it
        level = 1 - 2 / (draws + 1)
        row = compare(logits, 4 * logits, labels, criteria={"nll": nll}, draws=draws, level=level)[
            "nll"
        ]
        assert row.high < 0
        assert row.p_value <= 1 - level


def test_criteria_without_names_are_refused(unchecked_types: None, rng: torch.Generator) -> None:
    logits, labels = world(50, rng)
    with pytest.raises(TypeError, match=r"criteria must be a dictionary .* got list\. Pass"):
        compare(logits, logits, labels, criteria=["ece"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a criterion must be a function; got 'ece'\. For a name"):
        compare(logits, logits, labels, criteria={"ece": "ece"})  # type: ignore[dict-item]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("found", [0.5, None, torch.zeros(60)])
def test_a_criterion_returns_one_number_as_a_tensor(found: Any, rng: torch.Generator) -> None:
    logits, labels = world(60, rng)
    with pytest.raises(TypeError, match=r"must return one number as a tensor; 'odd' returned .*\."):
        compare(logits, logits, labels, criteria={"odd": lambda _: found}, draws=40)


@pytest.mark.usefixtures("unchecked_types")
def test_names_of_criteria_are_text(rng: torch.Generator) -> None:
    logits, labels = world(60, rng)
    with pytest.raises(
        TypeError, match=r"must have names that are text; got 1\. Pass {str\(name\)"
    ):
        compare(logits, logits, labels, criteria={1: nll}, draws=40)  # type: ignore[dict-item]


@given(
    st.lists(st.integers(-6, 6), min_size=1, max_size=40), st.integers(-6, 6), st.floats(0.05, 0.99)
)
def test_a_p_value_is_at_most_one_less_the_level_exactly_where_zero_is_left_out(
    drawn: list[int], difference: int, level: float
) -> None:
    row = _difference(float(difference), 0.0, torch.tensor(drawn, dtype=torch.float64), level)
    told = 1 - level >= 2 / (len(drawn) + 1)  # fewer draws cannot tell
    assert (row.p_value <= 1 - level) == (told and not row.low <= 0 <= row.high)


def test_draws_are_shared_so_a_model_never_differs_from_itself(rng: torch.Generator) -> None:
    logits, labels = world(100, rng)
    for name, row in compare(logits, logits + 1, labels, draws=50).rows.items():
        assert row.difference == pytest.approx(0, abs=1e-12)
        assert row.low <= 1e-12
        assert row.high >= -1e-12
        assert 0.3 < row.p_value <= 1
        # Truths of errors are moved one at a time, so some width remains.
        if name not in ("ece", "ks_error", "esd"):
            assert (row.low, row.high) == pytest.approx((0, 0), abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_model_and_itself_do_not_differ_in_any_row(
    dtype: torch.dtype, rng: torch.Generator
) -> None:
    logits, labels = world(60, rng)
    logits = logits.to(dtype)
    found = compare(logits, logits.clone(), labels, criteria=CRITERIA, draws=40)
    for name, row in found.rows.items():
        assert (row.difference, row.low, row.high, row.p_value) == (0, 0, 0, 1), name


def test_the_same_numbers_in_two_types_are_the_same_model(rng: torch.Generator) -> None:
    logits, labels = world(300, rng)
    narrow = logits.float()
    for pair in ((narrow, narrow.double()), (narrow.double(), narrow)):
        for name, row in compare(*pair, labels, criteria=CRITERIA, draws=40).rows.items():
            assert (row.difference, row.low, row.high, row.p_value) == (0, 0, 0, 1), name


@pytest.mark.parametrize("seed", range(5))
def test_rounding_is_no_alarm(seed: int) -> None:
    logits, labels = world(400, torch.Generator().manual_seed(seed))
    narrow = logits.float()
    chances = narrow.softmax(dim=1), logits.softmax(dim=1)
    for name in ("accuracy", "nll", "brier", "ece", "ks_error"):
        only = {name: CRITERIA[name]}
        told = compare(narrow, narrow + 1, labels, criteria=only, draws=50)[name]
        given = compare(*chances, labels, criteria=only, probabilities=True, draws=50)[name]
        for row in (told, given):
            assert row.p_value == 1
            assert row.low <= 0 <= row.high


def test_equal_values_of_different_models_are_no_alarm_and_no_certainty() -> None:
    right, wrong = [3.0, 0.0], [0.0, 3.0]
    first, second = torch.tensor([right, wrong] * 30), torch.tensor([wrong, right] * 30)
    labels = torch.zeros(60, dtype=torch.long)
    for name, row in compare(first, second, labels, draws=50).rows.items():
        assert row.p_value == 1, name
        assert row.difference == pytest.approx(0, abs=1e-7)
        assert row.low <= 0 <= row.high, name
    assert row.low < row.high


def test_a_bias_of_resamples_is_no_difference_where_none_was_seen() -> None:
    always = torch.linspace(0.1, 0.3, 50, dtype=torch.float64)  # every resample above what was seen
    row = _difference(0.2, 0.2, always, 0.95).beyond_rounding(1e-16)
    assert row.p_value == 1
    assert row.low <= 0 <= row.high
    assert _difference(0.8, 0.2, always, 0.95).beyond_rounding(1e-16).p_value < 0.05


@pytest.mark.parametrize("n", [50, 1_200])
def test_what_is_infinite_for_both_does_not_differ(
    early: None, n: int, rng: torch.Generator
) -> None:
    """Nor where samples are many."""
    logits, labels = world(n, rng)
    ruled_out = logits.clone()
    ruled_out[7, labels[7]] = -torch.inf
    only = {"nll": CRITERIA["nll"]}
    same = compare(ruled_out, ruled_out.clone(), labels, criteria=only, draws=40)["nll"]
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    worse = compare(ruled_out, logits, labels, criteria=only, draws=99)["nll"]
    assert worse.low == worse.difference == worse.high == torch.inf
    assert worse.p_value == pytest.approx(2 / 100)


def test_interval_of_a_mean_is_that_of_the_paired_t_test(rng: torch.Generator) -> None:
    logits, labels = world(800, rng)
    found = compare(logits, 1.4 * logits, labels, draws=2_000)["nll"]
    gaps = nll.per_sample(Predictions(logits, labels)) - nll.per_sample(
        Predictions(1.4 * logits, labels)
    )
    t = stats.ttest_1samp(gaps.numpy(), 0.0).confidence_interval(0.95)
    width = t.high - t.low
    assert found.low == pytest.approx(t.low, abs=0.1 * width)
    assert found.high == pytest.approx(t.high, abs=0.1 * width)


def test_intervals_cover_and_alarms_are_as_rare_as_promised(rng: torch.Generator) -> None:
    """Two models that err alike on average, each with noise of its own."""
    trials, level, covered, alarms = 80, 0.9, 0, 0
    for trial in range(trials):
        logits, labels = world(100, rng)
        first, second = (
            logits + torch.randn(100, 4, generator=rng, dtype=torch.float64) for _ in range(2)
        )
        only = {"nll": CRITERIA["nll"]}
        row = compare(first, second, labels, criteria=only, draws=99, level=level, seed=trial)[
            "nll"
        ]
        covered += row.low <= 0 <= row.high
        alarms += row.p_value <= 1 - level
    slack = 4 * (level * (1 - level) / trials) ** 0.5
    assert abs(covered / trials - level) < slack
    assert abs(alarms / trials - (1 - level)) < slack


def test_the_bias_of_a_plug_in_measure_is_taken_off(rng: torch.Generator) -> None:
    """Resamples of ECE lie above it; the interval for a difference must not."""
    logits, labels = world(400, rng)
    found = compare(2 * logits, logits, labels, criteria={"ece": CRITERIA["ece"]})["ece"]
    many, of_many = world(200_000, rng)
    truth = (
        CRITERIA["ece"](Predictions(2 * many, of_many))
        - CRITERIA["ece"](Predictions(many, of_many))
    ).item()
    assert found.low < truth < found.high
    assert found.p_value == pytest.approx(2 / 1001)


def test_every_criterion_of_the_catalogue_can_be_compared(predictions: Predictions) -> None:
    logits, labels = predictions.logits[:40], predictions.labels[:40]
    found = compare(logits, 0.7 * logits, labels, criteria=CRITERIA, draws=40)
    assert list(found.rows) == list(CRITERIA)
    assert all(np.isfinite(row.high) for row in found.rows.values())


def test_a_criterion_that_looks_at_its_values_is_judged_draw_by_draw(rng: torch.Generator) -> None:
    logits, labels = world(50, rng)

    def looking(predictions: Predictions) -> Tensor:
        loss = nll(predictions)
        return loss if loss.item() > 0 else -loss

    criteria: dict[str, Criterion] = {"mapped": nll, "looking": looking}
    found = compare(logits, 2 * logits, labels, criteria=criteria, draws=40)
    assert found["looking"] == found["mapped"]


def test_a_criterion_that_leaves_weights_aside_is_refused(rng: torch.Generator) -> None:
    """Every resample would be the same, and every difference certain."""
    logits, labels = world(200, rng)

    def aside(predictions: Predictions) -> Tensor:
        return ece(predictions.confidence, predictions.correct)

    def weighed(predictions: Predictions) -> Tensor:
        return ece(predictions.confidence, predictions.correct, weights=predictions.weights)

    with pytest.raises(ValueError, match=r"'mine' gives .* weights=predictions\.weights"):
        compare(logits, 1.001 * logits, labels, criteria={"mine": aside})
    found = compare(logits, 1.001 * logits, labels, criteria={"mine": weighed}, draws=99)["mine"]
    assert found.low < 0 < found.high


def test_is_a_mapping_of_its_rows(rng: torch.Generator) -> None:
    logits, labels = world(50, rng)
    found = compare(logits, 2 * logits, labels, draws=39)
    assert "ece" in found
    assert "no such row" not in found
    assert dict(found) == found.rows
    assert len(found) == len(found.rows)


def test_probabilities_are_taken_when_told(rng: torch.Generator) -> None:
    logits, labels = world(80, rng)
    told = compare(
        logits.softmax(1).numpy(),
        (2 * logits).softmax(1).numpy(),
        labels.numpy(),
        probabilities=True,
        draws=40,
    )
    given = compare(logits, 2 * logits, labels, draws=40)
    for name, row in told.rows.items():
        assert vars(row) == pytest.approx(vars(given[name]))


def test_prints_within_eighty_columns_and_converts(predictions: Predictions) -> None:
    found = compare(
        predictions.logits,
        1e-3 * predictions.logits,
        predictions.labels,
        criteria=COMPARED | {"class_wise_soft_binned_ece": CRITERIA["class_wise_soft_binned_ece"]},
        draws=40,
    )
    lines = str(found).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 80
    for name, line in zip(["criterion", *found.rows], lines, strict=True):
        assert name.startswith(line.split()[0].removesuffix("…"))
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.to_dict()["rows"]["nll"]["first"] == nll(predictions).item()
    header, rule, *rows = found.to_markdown().splitlines()
    assert {line.count("|") for line in (header, rule, *rows)} == {8}
    assert rows[0].split("|")[1].strip() == "accuracy"


def test_bad_comparisons_are_refused(rng: torch.Generator) -> None:
    logits, labels = world(9, rng)
    with pytest.raises(ValueError, match=r"one shape.*got \(9, 4\) and \(8, 4\)"):
        compare(logits, logits[:8], labels)
    with pytest.raises(ValueError, match="at least 3 samples; got 2"):
        compare(logits[:2], logits[:2], labels[:2])
    with pytest.raises(ValueError, match=r"draws must be a whole number, at least 1; got 0"):
        compare(logits, logits, labels, draws=0)
    with pytest.raises(ValueError, match=r"level must lie between 0 and 1; got 95"):
        compare(logits, logits, labels, level=95)
    with pytest.raises(ValueError, match=r"seed must be a whole number from 0 .* got -1"):
        compare(logits, logits, labels, seed=-1)
    with pytest.raises(ValueError, match=r"first must be unnorm.* Pass probabilities=True"):
        compare(logits.softmax(1), logits.softmax(1), labels)
    with pytest.raises(ValueError, match=r"second must be unnorm.* or as_logits\(probabilities\)"):
        compare(logits, logits.softmax(1), labels)
    with pytest.raises(ValueError, match=r"second must hold numbers; got NaN in row 4"):
        compare(logits, torch.where(torch.arange(9) == 4, torch.nan, logits.T).T, labels)
    with pytest.raises(TypeError, match=r"labels must be class indices.* got str '"):
        compare(logits, logits, labels.numpy().astype(str))


def test_intervals_stay_within_what_two_models_can_differ_by(rng: torch.Generator) -> None:
    furthest = dict.fromkeys((*COMPARED, "label_binned_ece", "debiased_ece"), 1.0)
    furthest |= {"nll": float("inf"), "brier": 2.0}
    criteria = {name: CRITERIA[name] for name in furthest}
    for seed in range(5):
        first, second = 2 * torch.randn(2, 5, 3, generator=rng)
        labels = torch.randint(3, (5,), generator=rng)
        found = compare(first, second, labels, criteria=criteria, draws=40, seed=seed)
        for name, most in furthest.items():
            assert -most <= found[name].low <= found[name].high <= most, name
    assert Difference(0.9, 0.1, 0.8, 0.2, 1.4, 0.03).within(1.0).high == 1.0
    assert Difference(0.1, 0.9, -0.8, -1.4, -0.2, 0.03).within(1.0).low == -1.0


def test_cohens_d_counts_pooled_standard_deviations() -> None:
    a, b = [4.0, 6.0, 8.0, 7.0], [1.0, 2.0, 6.0]
    pooled = ((3 * np.var(a, ddof=1) + 2 * np.var(b, ddof=1)) / 5) ** 0.5
    assert cohens_d(a, b) == pytest.approx((np.mean(a) - np.mean(b)) / pooled)
    t = stats.ttest_ind(a, b).statistic
    assert cohens_d(a, b) == pytest.approx(t * (1 / 4 + 1 / 3) ** 0.5)
    assert cohens_d([1.0, 1.0], [1.0, 1.0]) == 0
    assert cohens_d([2.0, 2.0], [1.0, 1.0]) == float("inf")
    assert cohens_d([0.3] * 3, [0.1] * 3) == float("inf")  # though thirds of their sums are not


def test_figures_that_do_not_vary_have_no_standard_error() -> None:
    assert mean_and_sem([0.1] * 3)[1] == 0.0


def test_figures_may_be_the_values_of_a_dictionary() -> None:
    by_seed = {0: 3.0, 1: 5.0}
    assert mean_and_sem(by_seed.values()) == (4.0, 1.0)
    assert cohens_d((x for x in (3.0, 5.0)), (1.0, 3.0)) == pytest.approx(2**0.5)


def test_figures_keep_every_digit_however_they_are_held() -> None:
    far = [1e8 + 1, 1e8 + 2]
    near = [1e8 + 2, 1e8 + 4]
    for held in (tuple, np.array, lambda x: torch.tensor(x, dtype=torch.float64)):
        assert cohens_d(held(far), held(near)) == pytest.approx(cohens_d([1.0, 2.0], [2.0, 4.0]))
        assert mean_and_sem(held(far)) == (1e8 + 1.5, 0.5)
    assert cohens_d([torch.tensor(1.0), torch.tensor(3.0)], [0.0, 2.0]) == pytest.approx(0.5**0.5)


def test_figures_may_be_a_frame() -> None:
    pd = pytest.importorskip("pandas")
    table = [[1.0, 2.0], [11.0, 14.0]]
    assert_close(within_subject_sem(pd.DataFrame(table) + 1e8), within_subject_sem(table))


def test_figures_that_are_no_numbers_are_refused_in_one_sentence() -> None:
    with pytest.raises(TypeError, match=r"a must hold numbers.* got \['x', 'y'\]"):
        cohens_d(["x", "y"], [1.0, 2.0])
    with pytest.raises(TypeError, match=r"as many in every row; got \[\[1, 2\], \[3\]\]"):
        within_subject_sem([[1, 2], [3]])


def test_sem_is_scipys() -> None:
    values = [0.3, 0.9, 0.5, 0.1]
    mean, sem = mean_and_sem(torch.tensor(values, dtype=torch.float64))
    assert (mean, sem) == pytest.approx((np.mean(values), stats.sem(values)))


def test_within_subject_sem_is_the_root_of_the_interaction_mean_square(
    rng: torch.Generator,
) -> None:
    table = torch.randn(6, 4, generator=rng, dtype=torch.float64)
    n, conditions = table.shape
    interaction = 0.0
    for i in range(n):
        for j in range(conditions):
            rest = table[i, j] - table[i].mean() - table[:, j].mean() + table.mean()
            interaction += rest.item() ** 2
    mean_square = interaction / ((n - 1) * (conditions - 1))
    expected = torch.full((4,), (mean_square / n) ** 0.5, dtype=torch.float64)
    assert_close(within_subject_sem(table), expected)
    # How subjects differ overall is nothing to it, unlike the plain standard error.
    moved = table + 100 * torch.arange(6.0).double()[:, None]
    assert_close(within_subject_sem(moved), expected)


def test_within_subject_sem_per_condition_is_that_of_normalised_data(rng: torch.Generator) -> None:
    table = torch.randn(5, 3, generator=rng, dtype=torch.float64)
    normalised = table - table.mean(dim=1, keepdim=True) + table.mean()
    plain = torch.from_numpy(stats.sem(normalised.numpy(), axis=0))
    assert_close(within_subject_sem(table, pooled=False, corrected=False), plain)
    assert_close(within_subject_sem(table, pooled=False), plain * (3 / 2) ** 0.5)


def test_two_conditions_have_the_bar_of_their_paired_difference(rng: torch.Generator) -> None:
    table = torch.randn(7, 2, generator=rng, dtype=torch.float64)
    of_difference = stats.sem((table[:, 0] - table[:, 1]).numpy())
    assert within_subject_sem(table)[0].item() == pytest.approx(of_difference / 2**0.5)


def test_too_few_figures_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a must hold at least two figures.*got shape \(1,\)"):
        cohens_d([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="values must hold at least two figures"):
        mean_and_sem([1.0])
    with pytest.raises(ValueError, match=r"at least two conditions; got shape \(3, 1\)"):
        within_subject_sem([[1.0], [2.0], [3.0]])


def rays(
    rng: torch.Generator, scales: tuple[float, float], draws: int = 2_000, noise: float = 1.0
) -> tuple[Ray, Ray]:
    """Two estimates that are their truths plus noise, which the two share but for a tenth."""
    grid = torch.arange(0.0, 20.0, 0.5, dtype=torch.float64)
    shared = torch.randn(draws, 1, generator=rng, dtype=torch.float64)
    own = 0.1 * torch.randn(2, draws, 1, generator=rng, dtype=torch.float64)
    first, second = (
        Ray(value, noise * (shared + each) + grid, grid, grid, value)
        for value, each in zip(scales, own, strict=True)
    )
    return first, second


def paired_p_value(first: Ray, second: Ray) -> float:
    return p_value_of(partial(paired_interval, first, second), 0.95, len(first.moved))


def test_noise_that_both_models_share_cancels_from_the_paired_interval(
    rng: torch.Generator,
) -> None:
    first, second = rays(rng, (6.25, 4.0))
    low, high = paired_interval(first, second, 0.95)
    half = 1.96 * 0.1 * 2**0.5
    assert (low, high) == pytest.approx((2.25 - half, 2.25 + half), abs=0.03)
    assert paired_p_value(first, second) == pytest.approx(2 / 2_001)


def test_swapping_the_models_turns_the_paired_interval_round(rng: torch.Generator) -> None:
    first, second = rays(rng, (6.25, 6.0))
    low, high = paired_interval(first, second, 0.9)
    assert paired_interval(second, first, 0.9) == pytest.approx((-high, -low))
    assert paired_p_value(first, second) == pytest.approx(paired_p_value(second, first))


def test_a_paired_p_value_is_below_the_level_where_the_interval_leaves_out_zero(
    rng: torch.Generator,
) -> None:
    for gap in (0.1, 0.2, 0.27, 0.29, 0.35):
        first, second = rays(rng, (5 + gap, 5.0))
        low, high = paired_interval(first, second, 0.95)
        p_value = paired_p_value(first, second)
        assert p_value == pytest.approx(2 * stats.norm.sf(gap / (0.1 * 2**0.5)), abs=0.03)
        assert (p_value < 0.05) == (not low <= 0 <= high)


def test_a_model_that_is_always_sure_and_right_differs_from_one_that_is_not(
    rng: torch.Generator,
) -> None:
    labels = torch.randint(3, (500,), generator=rng)
    guessed, known = torch.randn(500, 3, generator=rng), 200 * torch.eye(3)[labels]
    for found in (compare(guessed, known, labels), compare(known, guessed, labels)):
        for name in ("ece", "ks_error", "esd"):
            row = found[name]
            assert 0 < row.p_value < 0.05, name
            assert row.low * row.high > 0, name


def test_either_model_may_be_the_one_that_moves(rng: torch.Generator) -> None:
    """The noise of one grows with its truth, so it matters which truth is moved."""
    grid = torch.arange(0.0, 20.0, 0.5, dtype=torch.float64)
    steady, growing = torch.randn(2, 4_000, 1, generator=rng, dtype=torch.float64)
    a, b = 9.2, 4.0
    first = Ray(a, grid + steady, grid, grid, a)
    second = Ray(b, grid * (1 + 0.3 * growing), grid, grid, b)

    def surprise(drawn: Tensor, seen: float) -> float:
        return 2 * (1 + min(int((drawn >= seen).sum()), int((drawn <= seen).sum()))) / 4_001

    moved_down = surprise((b + steady) - b * (1 + 0.3 * growing), a - b)
    moved_up = surprise(a * (1 + 0.3 * growing) - (a + steady), b - a)
    assert moved_up > 10 * moved_down
    assert paired_p_value(first, second) == pytest.approx(max(moved_down, moved_up), rel=0.05)
    low, high = paired_interval(first, second, 0.95)
    assert paired_interval(second, first, 0.95) == pytest.approx((-high, -low))
    if_first_moves = 1.96 * (1 + (0.3 * b) ** 2) ** 0.5
    assert low < a - b - 1.2 * if_first_moves
    assert high == pytest.approx(a - b + if_first_moves, rel=0.05)


def test_a_row_that_is_not_there_is_asked_for_in_vain(rng: torch.Generator) -> None:
    logits, labels = torch.randn(50, 3, generator=rng), torch.randint(3, (50,), generator=rng)
    with pytest.raises(KeyError, match="no row is called 'ecce'; there are accuracy, nll"):
        compare(logits, -logits, labels, draws=40)["ecce"]


def test_a_p_value_at_the_level_is_no_more_than_its_complement() -> None:
    """1 - 0.95 is a little more than 0.05 in binary."""
    at = p_value_of(lambda level: (1.0, 2.0) if level <= 0.95 else (-1.0, 2.0), 0.95, draws=1000)
    assert at == 0.05


# Whatever is drawn together where samples are many.
_TOGETHER = (*COMPARED, "mce", "label_binned_ece", "debiased_ece", "focal", "mmce", "smooth_ece")
TOGETHER = {name: CRITERIA[name] for name in _TOGETHER}


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are many from a thousand on, and lots few."""
    for module in (_crowds, _lots):
        monkeypatch.setattr(module, "SINGLY_UP_TO", 1_000)
    monkeypatch.setattr(_lots, "_LOTS", 512)


def two_models(n: int, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    logits, labels = world(n, rng)
    first, second = (logits + 0.4 * torch.randn(n, 4, generator=rng).double() for _ in range(2))
    return 1.3 * first, second, labels


def resamples(
    models: tuple[Tensor, Tensor], labels: Tensor, criteria: dict[str, Criterion], *, many: bool
) -> dict[str, Tensor]:
    """Of both models, by lots or by samples one by one."""
    ones = torch.ones(len(labels), dtype=torch.float64)
    lots = Lots.of(ones) if many else None
    one, other = (judged(Predictions(z, labels), criteria, ones, lots, 0) for z in models)
    pairs = {name: (one[name], other[name]) for name in criteria}
    for pair in pairs.values():
        assert all((each.crowds is not None) == many for each in pair)
    return _drawn(pairs, ones, lots, 100 if "smooth_ece" in criteria else 800, int(many))


def assert_scatter_alike(one: Tensor, other: Tensor) -> None:
    """In every column, but for what 512 lots and so many draws leave to chance."""
    mean, spread, draws = one.mean(dim=0), one.std(dim=0), len(one)
    near = 4 * (2 / draws + 1 / 512) ** 0.5
    assert ((other.mean(dim=0) - mean).abs() <= near * spread + 1e-12).all()
    tails = (one - mean).pow(4).mean(dim=0) / spread.pow(4).clamp(min=1e-40)
    error = 4 * (tails.clamp(min=3) / 2 * (1 / draws + 1 / 512)).sqrt()
    assert ((other.std(dim=0) - spread).abs() <= error * spread + 1e-12).all()


@pytest.mark.parametrize("slow", [False, True])
def test_lots_of_two_models_scatter_together_as_their_samples_do(
    early: None, slow: bool, rng: torch.Generator
) -> None:
    """Each by itself, and the one less the other, at every place of every ray."""
    *models, labels = two_models(1_600, rng)
    only = {name: each for name, each in TOGETHER.items() if (name == "smooth_ece") == slow}
    single, together = (
        resamples((models[0], models[1]), labels, only, many=many) for many in (False, True)
    )
    for name in only:
        whole = torch.stack([single[name], together[name]])
        for one, other in (whole[:, 0], whole[:, 1], whole[:, 0] - whole[:, 1]):
            assert_scatter_alike(one, other)


def test_of_many_samples_too_a_model_and_itself_do_not_differ_in_any_row(
    early: None, rng: torch.Generator
) -> None:
    logits, labels = world(1_500, rng)
    for z in (logits, logits.float()):
        for name, row in compare(z, z.clone(), labels, criteria=TOGETHER, draws=40).rows.items():
            assert (row.difference, row.low, row.high, row.p_value) == (0, 0, 0, 1), name


def test_of_many_samples_too_the_other_way_round_is_the_opposite(
    early: None, rng: torch.Generator
) -> None:
    first, second, labels = two_models(2_000, rng)
    found = compare(first, second, labels, criteria=TOGETHER, draws=60)
    turned = compare(second, first, labels, criteria=TOGETHER, draws=60)
    for name, row in found.rows.items():
        other = turned[name]
        assert (row.first, row.second) == pytest.approx((other.second, other.first))
        assert (row.low, row.high) == pytest.approx(
            (-other.high, -other.low), rel=1e-5, abs=1e-8
        ), name
        assert row.p_value == pytest.approx(other.p_value), name


def test_of_many_samples_a_p_value_never_contradicts_its_interval(
    early: None, rng: torch.Generator
) -> None:
    for _ in range(5):
        logits, labels = world(1_500, rng)
        other = logits + 0.3 * torch.randn(1_500, 4, generator=rng).double()
        for name, row in compare(1.1 * logits, other, labels, draws=60).rows.items():
            assert (row.p_value <= 1 - 0.95) == (not row.low <= 0 <= row.high), name


def test_interval_of_a_mean_of_many_samples_is_that_of_the_paired_t_test(
    rng: torch.Generator,
) -> None:
    logits, labels = world(20_000, rng)
    found = compare(logits, 1.1 * logits, labels, criteria={"nll": nll}, draws=4_000)["nll"]
    losses = (nll.per_sample(Predictions(z, labels)) for z in (logits, 1.1 * logits))
    t = stats.ttest_rel(*(loss.numpy() for loss in losses)).confidence_interval(0.95)
    width = t.high - t.low
    assert found.low == pytest.approx(t.low, abs=0.06 * width)
    assert found.high == pytest.approx(t.high, abs=0.06 * width)


def test_a_criterion_that_only_its_caller_knows_is_drawn_sample_by_sample(
    early: None, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, labels = two_models(1_200, rng)

    def own(predictions: Predictions) -> Tensor:
        return nll(predictions)

    criteria: dict[str, Criterion] = {"own": own, "nll": nll}
    found = compare(first, second, labels, criteria=criteria, draws=60)
    assert list(found.rows) == ["own", "nll"]
    monkeypatch.setattr(_lots, "SINGLY_UP_TO", 2_000)
    monkeypatch.setattr(_crowds, "SINGLY_UP_TO", 2_000)
    few = compare(first, second, labels, criteria=criteria, draws=60)
    assert few["own"] == few["nll"] == found["own"] != found["nll"]


def test_a_mean_that_looks_at_the_whole_batch_is_drawn_sample_by_sample(
    early: None, rng: torch.Generator
) -> None:
    logits, labels = world(1_200, rng)
    ones = torch.ones(1_200, dtype=torch.float64)

    def squares(predictions: Predictions) -> Tensor:
        loss = -predictions.true_log_prob
        return (loss - loss.mean()).square()

    criteria: dict[str, Criterion] = {"centred": Score(squares)}
    of_model = judged(Predictions(logits, labels), criteria, ones, Lots.of(ones), 0)
    assert of_model["centred"].crowds is None


def test_models_of_many_samples_are_compared_by_fewer_resamples() -> None:
    slow = ["nll", "dece"]  # unless all are drawn together
    assert [draws_for(n, slow) for n in (100, 20_000, 50_000, 10**7)] == [1000, 1000, 400, 100]
    assert draws_for(10**7, ["nll", "ece"]) == draws_for(10**7) == 1000
    assert draws_for(10**7, slow, 5000) == 5000  # or it was asked for
    assert [draws_for(10**7, slow, level=level) for level in (0.99, 0.999)] == [199, 1999]


@pytest.mark.parametrize("name", OF_EVENTS)
def test_every_interval_depends_on_the_seed(name: str, rng: torch.Generator) -> None:
    first, second, labels = two_models(300, rng)
    found = [
        compare(first, second, labels, criteria={name: named(name)}, draws=60, seed=seed)[name]
        for seed in (0, 1)
    ]
    assert found[0].difference == found[1].difference
    assert found[0].low != found[1].low or found[0].high != found[1].high


def test_the_interval_of_a_row_by_class_holds_what_both_intervals_of_half_the_errors_hold(
    rng: torch.Generator,
) -> None:
    first, second, labels = two_models(400, rng)
    criteria = {name: CRITERIA[name] for name in BY_CLASS}
    found = compare(first, second, labels, criteria=criteria, draws=100, level=0.9, seed=3)
    one, other = (evaluate(z, labels, draws=100, level=0.95, seed=3) for z in (first, second))
    for name, row in found.items():
        assert row.low == pytest.approx(one[name].low - other[name].high)
        assert row.high == pytest.approx(one[name].high - other[name].low)


@pytest.mark.parametrize("factors", [(1.0, 1.0), (1.5, 1.0)], ids=str)
def test_rows_by_class_and_of_many_bins_hold_the_true_difference(
    factors: tuple[float, float],
) -> None:
    """The basic bootstrap misses it, since noise adds more to the better calibrated of the two."""
    many = partial(ece, bins=50)
    criteria: dict[str, Criterion] = {
        **{name: CRITERIA[name] for name in ("class_wise_ece", "per_class_ece", "smooth_ece")},
        "many": top_label(many),
        "mass": named("ece_mass"),
    }
    chances = 1.5 * torch.randn(200_000, 4, generator=torch.Generator().manual_seed(9)).double()
    truths = [_without_noise(chances, factor, many) for factor in factors]
    missed = dict.fromkeys(criteria, 0)
    for trial in range(trials := 25):
        logits, labels = world(300, torch.Generator().manual_seed(trial))
        first, second = (factor * logits for factor in factors)
        found = compare(first, second, labels, criteria=criteria, draws=79, seed=trial)
        for name, row in found.items():
            missed[name] += not row.low <= truths[0][name] - truths[1][name] <= row.high
    assert max(missed.values()) <= 0.05 * trials + 4 * (0.05 * 0.95 * trials) ** 0.5, missed


def _without_noise(logits: Tensor, factor: float, many: Measure) -> dict[str, float]:
    """Of predictions whose every outcome is replaced by its chance."""
    chances, probs = logits.softmax(dim=1), (factor * logits).softmax(dim=1)
    confidence, said = probs.max(dim=1)
    hit = chances.gather(1, said[:, None])[:, 0]
    per_class = (
        (said == k).double().mean() * ece(confidence[said == k], hit[said == k]) for k in range(4)
    )
    return {
        "class_wise_ece": sum(ece(probs[:, k], chances[:, k]).item() for k in range(4)) / 4,
        "per_class_ece": sum(each.item() for each in per_class),
        "smooth_ece": smooth_ece(confidence, hit).item(),
        "many": many(confidence, hit).item(),
        "mass": ece(confidence, hit, binning="mass").item(),
    }


def test_weights_count_samples_as_often(rng: torch.Generator) -> None:
    first, second, labels = two_models(120, rng)
    weights = torch.randint(0, 3, (120,), generator=rng)
    rows = torch.arange(120).repeat_interleave(weights)
    criteria = COMPARED | {name: CRITERIA[name] for name in BY_CLASS}
    weighed = compare(first, second, labels, criteria=criteria, weights=weights, draws=79)
    repeated = compare(first[rows], second[rows], labels[rows], criteria=criteria, draws=79)
    assert weighed.n == 120
    for name, row in weighed.items():
        if name != "esd":  # whose triples are of distinct samples
            assert row.first == pytest.approx(repeated[name].first, rel=1e-6), name
            assert row.second == pytest.approx(repeated[name].second, rel=1e-6), name
    counting = weights > 0
    one, other, own = (x[counting] for x in (first, second, labels))
    among = compare(one, other, own, criteria=criteria, weights=weights[counting], draws=79)
    assert weighed.rows == among.rows
    with pytest.raises(ValueError, match="must not all be zero"):
        compare(first, second, labels, weights=torch.zeros(120))
    with pytest.raises(ValueError, match="at least 3 samples that count; got 2"):
        compare(first, second, labels, weights=torch.arange(120) < 2)


def test_events_are_compared_as_the_tables_behind_them(rng: torch.Generator) -> None:
    first, second, labels = two_models(200, rng)
    weights = torch.rand(200, generator=rng)
    events = []
    for logits in (first, second):
        sure, said = logits.softmax(dim=1).max(dim=1)
        events.append((sure.numpy(), (said == labels).numpy()))
    names = [name for name in OF_EVENTS if name not in ("nll", "brier")]
    found = compare_events(*events, criteria=names, weights=weights, bins=7, draws=60, seed=2)
    criteria = {name: named(name, 7) for name in names}
    told = compare(first, second, labels, criteria=criteria, weights=weights, draws=60, seed=2)
    for name, row in found.items():
        assert vars(row) == pytest.approx(vars(told[name]), rel=1e-6, abs=1e-12), name


def test_events_that_cannot_be_compared_are_refused(unchecked_types: None) -> None:
    sure, right = np.linspace(0.1, 0.9, 9), np.arange(9) % 2
    with pytest.raises(ValueError, match=r"the same samples; got 9 and 8 events"):
        compare_events((sure, right), (sure[:8], right[:8]))
    with pytest.raises(TypeError, match=r"second must be a pair .* got ndarray\. .* call compare"):
        compare_events((sure, right), sure)  # type: ignore[arg-type]
    for names in (["class_wise_ece"], "ece"):
        with pytest.raises(ValueError, match=r"criteria must be a list of names, each one of acc"):
            compare_events((sure, right), (sure, right), criteria=names)


def test_a_criterion_of_tiny_numbers_that_leaves_weights_aside_is_refused(
    rng: torch.Generator,
) -> None:
    logits, labels = world(200, rng)

    def aside(predictions: Predictions) -> Tensor:
        return 1e-7 * ece(predictions.confidence, predictions.correct)

    with pytest.raises(ValueError, match=r"criteria must count each sample by its weight; 'tiny'"):
        compare(logits, 1.001 * logits, labels, criteria={"tiny": aside})


def test_a_criterion_of_ones_own_counts_weights_once(rng: torch.Generator) -> None:
    first, second, labels = two_models(150, rng)
    weights = torch.rand(150, generator=rng, dtype=torch.float64)

    def own(predictions: Predictions) -> Tensor:
        return nll(predictions)

    criteria: dict[str, Criterion] = {"own": own, "nll": nll}
    found = compare(first, second, labels, criteria=criteria, weights=weights, draws=60)
    drawn = torch.cat(list(multinomial_weights(weights, 60, 0)))
    losses = [nll.per_sample(Predictions(z, labels)) for z in (first, second)]
    apart = (drawn @ (losses[0] - losses[1])) / drawn.sum(dim=1)
    delta = (weights @ (losses[0] - losses[1])) / weights.sum()
    low, high = (2 * delta - q for q in np.quantile(apart, [0.975, 0.025], method="weibull"))
    for row in found.rows.values():
        assert (row.low, row.high) == pytest.approx((low.item(), high.item()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
def test_two_calibrated_models_of_which_one_is_never_wrong_do_not_differ(dtype: type) -> None:
    """Both errors are truly zero; the last digit of a sum is no difference."""
    draw = np.random.default_rng(0)
    chance = draw.uniform(0.5, 1, 1000)
    labels = (draw.random(1000) < chance).astype(int)
    first, second = (
        torch.from_numpy(np.stack([1 - q, q], axis=1).astype(dtype)) for q in (1.0 * labels, chance)
    )
    names = ("ece", "debiased_ece", "ks_error", "mmce", *BY_CLASS)
    criteria = {name: CRITERIA[name] for name in names}
    found = compare(first, second, labels, criteria=criteria, probabilities=True)
    for name, row in found.items():
        assert row.p_value > 0.05, name
        assert row.low <= 0 <= row.high, name


def test_a_p_value_of_a_row_by_class_is_no_smaller_than_its_draws_can_tell(
    rng: torch.Generator,
) -> None:
    logits, labels = world(2_000, rng)
    for draws, least in ((79, 0.05), (159, 0.025)):
        criteria = {"class_wise_ece": CRITERIA["class_wise_ece"]}
        row = compare(4 * logits, logits, labels, criteria=criteria, draws=draws)["class_wise_ece"]
        assert row.low > 0
        assert row.p_value == pytest.approx(least)


def test_events_that_do_not_count_are_not_drawn(rng: torch.Generator) -> None:
    sure = 0.5 + 0.5 * torch.rand(300, generator=rng, dtype=torch.float64)
    right = torch.bernoulli(sure, generator=rng)
    weights = (torch.arange(300) % 10 == 0).double()
    counting = weights > 0
    found = compare_events((sure.sqrt(), right), (sure, right), weights=weights, draws=60)
    among = compare_events(
        (sure.sqrt()[counting], right[counting]), (sure[counting], right[counting]), draws=60
    )
    assert found.n == 300
    for name, row in found.items():
        assert vars(row) == pytest.approx(vars(among[name])), name


def test_resamples_whose_accuracies_do_not_rise_leave_a_sweep_its_ray(
    rng: torch.Generator,
) -> None:
    """They are no draws, and neither is their median."""
    first, _, labels = two_models(300, rng)
    told = judged(
        Predictions(first, labels),
        {"sweep": CRITERIA["sweep_ece"]},
        torch.ones(300, dtype=torch.float64),
        None,
        0,
    )["sweep"]
    assert isinstance(told.resampled, AlongRay)
    (weights,) = multinomial_weights(torch.ones(300, dtype=torch.float64), 100, 0)
    moved = told.drawn(weights)
    assert moved.isnan().any()
    ray = Ray.of(float(told.value()), told.resampled, moved)
    place = ray.at(ray.scale)[0].nanmedian().item()
    assert place == pytest.approx(ray.value, rel=0.1)
