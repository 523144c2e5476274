"""Numbers as people see them: decimals, one way everywhere, and no zero with a sign."""

import json
import re
from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
import torch

import calibrant as cal
from calibrant._text import width
from calibrant.demo._show import cell as demo_cell
from calibrant.evaluation import _table as table
from calibrant.lab._tables import _cell
from calibrant.report._verdict import points
from calibrant.report._words import number as on_a_page
from calibrant.training._history import Epoch


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (0.0, "0.0000"),
        (0.04751, "0.0475"),
        (0.001, "0.0010"),
        (0.00087, "0.00087"),
        (0.000087, "0.000087"),
        (-0.0000658, "-0.000066"),
        (5e-5, "0.000050"),
        (4.9e-5, "4.9e-05"),
        (-0.0000053, "-5.3e-06"),
        (-3e-7, "-3.0e-07"),
        (1.2e-9, "1.2e-09"),
        (-9e-10, "0.0000"),
        (-0.0, "0.0000"),
        (9_999.5, "9999.5000"),
        (1_234_567.8, "1,234,568"),
        (2.5e20, "2.5e+20"),
        (float("nan"), "nan"),
    ],
)
def test_a_number_keeps_two_digits(x: float, shown: str) -> None:
    assert table.number(x) == shown
    if x == x and abs(x) < 1e15:
        assert on_a_page(x) == shown.replace("-", "\N{MINUS SIGN}")


@pytest.mark.parametrize(
    ("p", "shown"), [(0.0, "< 0.0001"), (9e-5, "< 0.0001"), (0.05149, "0.0515"), (1.0, "1.0000")]
)
def test_a_p_value_is_never_zero(p: float, shown: str) -> None:
    assert table.p_value(p) == shown
    assert table.spoken_p(p) == f"p {shown}" if p < 1e-4 else f"p = {shown}"


@pytest.mark.parametrize(
    ("error", "shown"),
    [(0.0, "exact"), (3e-7, "< 0.0001"), (0.00214, "0.0021"), (1e4, "10,000"), (2e15, "2e+15")],
)
def test_an_error_bound_is_zero_only_where_nothing_was_lost(error: float, shown: str) -> None:
    assert table.bound(error) == shown


def test_one_is_no_plural() -> None:
    one = torch.tensor([0.8]), torch.tensor([1.0])
    events = cal.Summary(None, bins=1).add_events(*one)
    assert repr(events) == "Summary(1 event, 1 bin)"
    sample = cal.Summary(2).update(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    assert repr(sample) == "Summary(1 sample of 2 classes, 15 bins)"
    monitor = cal.CalibrationMonitor()
    monitor.update(one)
    assert repr(monitor).startswith("CalibrationMonitor(1 window, 1 event, evidence ")


def test_an_alarm_after_years_fits_a_line() -> None:
    monitor = cal.CalibrationMonitor()
    quiet = monitor.update((torch.tensor([0.8]), torch.tensor([1.0])))
    monitor.windows = [replace(quiet, n=1_000_000)] * 12_000
    monitor.windows[-1] = cal.Watched(11_999, 1_000_000, 25.0, True, "under-confident", 11_998)
    found = "12,000 windows, under-confident since 11998, alarm in 11999"
    assert repr(monitor) == f"CalibrationMonitor({found})"
    assert len(repr(monitor)) <= 80


def test_what_rounds_to_zero_has_no_sign_in_pages_and_logs() -> None:
    assert _cell([-0.004, 0.001], "none") == "0.00"
    assert _cell([-0.004, 0.001], "std") == "0.00 ± 0.00"
    assert str(Epoch(1, 0.5, calibration=-3e-6, weight=1.0)).endswith("calibration 0.0000 times 1")
    assert points(-0.0004) == "0.0"
    assert demo_cell(cal.Estimate(-0.0004, -0.0112, 0.0, 9)) == "0.0 (-1.1 to 0.0)"


def test_tests_and_comparisons_print_in_that_way() -> None:
    sure = torch.linspace(0.5, 1, 300)
    tests = cal.calibration_tests((sure, (torch.arange(300) % 3 == 0).float()), draws=99)
    assert re.search(r"spiegelhalter +-?\d+\.\d{4} +< 0\.0001$", str(tests), flags=re.MULTILINE)
    logits = torch.eye(3).repeat(40, 1)
    labels = torch.arange(120) // 2 % 3
    found = cal.compare(2 * logits, 2.0005 * logits, labels, draws=40)
    shown = [table.number(x) for x in list(vars(found["esd"]).values())[:-1]]
    for text in (str(found), found.to_markdown(), found._repr_html_()):
        assert all(number in text for number in shown)
    assert max(map(len, str(found).splitlines())) <= 80


def test_the_esd_of_a_large_sample_is_not_printed_as_zero() -> None:
    rng = torch.Generator().manual_seed(0)
    sure = 0.5 + 0.5 * torch.rand(200_000, generator=rng)
    right = torch.rand(200_000, generator=rng) < sure - 0.003
    found = cal.evaluate_events(sure, right, draws=39)
    line = next(x for x in str(found).splitlines() if x.startswith("esd"))
    assert re.fullmatch(r"esd +\d\.\de-06  \d\.\de-\d\d to \d\.\de-\d\d", line)
    assert max(map(len, str(found).splitlines())) <= 80


def test_at_a_prompt_results_are_the_tables_that_they_print() -> None:
    logits, labels = torch.eye(3).repeat(9, 1), torch.arange(27) % 2
    for found in (
        cal.evaluate(logits, labels, draws=39),
        cal.compare(2 * logits, logits, labels, draws=40),
        cal.calibration_tests(cal.Predictions(logits, labels), draws=99),
        cal.decompose(cal.Predictions(logits, labels)),
    ):
        assert repr(found) == str(found)
        assert len(repr(found).splitlines()) >= 3
        assert max(map(len, repr(found).splitlines())) <= 80
        assert not re.search(r"\d\.\d{8}", repr(found))


def test_a_value_outside_its_interval_is_marked_and_explained() -> None:
    beside, within = cal.Estimate(0.3, 0.0, 0.2, 100), cal.Estimate(0.1, 0.0, 0.2, 1000)
    below = cal.Estimate(-0.1, 0.0, 0.2, 1000)
    found = cal.Evaluation({"mce": beside, "ece": within, "esd": below}, 50, {"draws": 1000})
    lines = str(found).splitlines()
    marked = [line.split()[0] for line in lines if line.endswith("*")]
    assert marked == ["mce", "esd"]
    assert re.search(r"^mce .* 100 draws \*$", str(found), flags=re.MULTILINE)
    for text in (str(found), found.to_markdown(), found._repr_html_()):
        assert "* The value lies outside its interval." in text
    assert max(map(len, lines)) <= 80
    alone = cal.Evaluation({"ece": within}, 50, {"draws": 1000})
    assert "*" not in str(alone)


HOSTILE = [
    "two\nlines",
    "tab\there",
    "漢字漢字",
    "e\u0301te\u0301",
    "\x1b[31mred",
    "x" * 200,
    "漢" * 99,
]


@pytest.fixture(scope="module")
def hostile() -> cal.Evaluation:
    rng = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(70, 3, generator=rng), torch.randint(3, (70,), generator=rng)
    return cal.evaluate(logits, labels, groups=np.array(HOSTILE)[np.arange(70) % 7], draws=39)


def test_hostile_names_keep_to_their_columns(hostile: cal.Evaluation) -> None:
    lines = str(hostile).splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("group"))
    table, after = lines[start : start + 8], lines[start + 8 :]
    assert len({width(line) for line in table}) == 1
    assert max(map(width, lines)) <= 80
    assert len(after) == 1
    for name in ("two\\nlines", "tab\\there", "\\x1b[31mred", "漢字漢字"):
        assert any(line.startswith(f"{name}  ") for line in table)
    cells = hostile._repr_html_()
    assert "two\\nlines" in cells
    assert "\x1b" not in cells


def test_the_worst_gap_says_of_what_and_against_what(hostile: cal.Evaluation) -> None:
    group, gap = hostile.worst_group, hostile.worst_gap
    assert group is not None
    assert gap is not None
    said = str(hostile).splitlines()[-1]
    assert said.startswith(f"worst gap: ece {table.number(gap.value)} in ")
    assert said.endswith(f", {table.number(hostile['ece'].value)} in all samples")
    assert hostile.to_markdown().splitlines()[-1] == table.as_it_is(said)
    assert said in hostile._repr_html_()
    kept = hostile.to_dict()["worst_gap"]
    assert (kept["group"], kept["row"], kept["value"]) == (group, "ece", gap.value)
    assert kept["of_all"] == hostile["ece"].value


def test_groups_that_begin_alike_are_told_apart() -> None:
    logits, labels = torch.eye(3).repeat(6, 1), torch.arange(18) % 3
    labels[::2] = 0
    groups = np.array([f"hospitals of the northern district, ward {k % 2}" for k in range(18)])
    found = cal.evaluate(logits, labels, groups=groups, draws=39)
    *_, first, second, worst = str(found).splitlines()
    assert first.startswith("hospitals of …strict, ward 0  ")
    assert second.startswith("hospitals of …strict, ward 1  ")
    assert f"in hospitals of …strict, ward {str(found.worst_group)[-1]}, " in worst


def test_hostile_criteria_keep_to_their_columns() -> None:
    logits, labels = torch.eye(3).repeat(9, 1), torch.arange(27) % 2
    criteria = {name: cal.CRITERIA["nll"] for name in HOSTILE}
    found = cal.compare(2 * logits, logits, labels, criteria=criteria, draws=40)
    lines = str(found).splitlines()
    assert len(lines) == 8
    assert {width(line) for line in lines} == {width(lines[0])}
    assert width(lines[0]) <= 80


def test_numbers_are_never_cut_to_make_room_for_a_name() -> None:
    row = ["x" * 60, *["-123,456.7890"] * 5]
    assert table.plain(["name", *"abcde"], [row]).endswith("  -123,456.7890" * 5)
    assert table.plain(["name", *"abcde"], [row]).splitlines()[1].startswith("xxxx…")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a|b", r"a\|b"),
        ("a\\|b", r"a\\\|b"),
        ("two\nlines", r"two\\nlines"),
        ("<unk>", r"\<unk>"),
        ("*bold*", r"\*bold\*"),
        ("`code`", r"\`code\`"),
        ("< 0.0001", "< 0.0001"),
        ("ece_l2", "ece_l2"),
    ],
)
def test_a_name_is_itself_in_markdown(name: str, shown: str) -> None:
    assert table.markdown(["group", "n"], [[name, "1"]]).splitlines()[2] == f"| {shown} | 1 |"
    row = cal.Evaluation({name: cal.Estimate(0.1, 0.0, 0.2, 9)}, 50, {"draws": 9})
    assert f"\n| {shown} | 0.1000 | " in row.to_markdown()
    compared = cal.compare(
        torch.eye(3), torch.eye(3), torch.arange(3), criteria={name: cal.nll}, draws=40
    )
    assert f"\n| {shown} | " in compared.to_markdown()


def test_what_is_outside_its_interval_is_no_list_in_markdown() -> None:
    found = cal.Evaluation({"mce": cal.Estimate(0.3, 0.0, 0.2, 9)}, 50, {"draws": 9})
    assert not re.search(r"^\* ", found.to_markdown(), flags=re.MULTILINE)


def test_every_part_of_a_score_is_printed() -> None:
    sure, right = torch.tensor([0.9, 0.9, 0.6, 0.6]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    found = cal.decompose((sure, right))
    for text in (str(found), repr(found), found._repr_html_(), str(found.brier)):
        for part in ("score", "calibration", "refinement", "uncertainty", "discrimination"):
            assert part in text
        assert table.number(found.brier.calibration) in text
    assert max(map(len, str(found).splitlines())) <= 80
    assert str(found).splitlines()[1].split() == [
        "brier",
        *(table.number(x) for x in found.to_dict()["brier"].values()),
    ]


def test_json_has_no_word_for_infinity() -> None:
    endless = cal.Estimate(inf, nan, -inf, 9)
    found = cal.Evaluation({"nll": endless, "ece": cal.Estimate(0.1, 0.0, 0.2, 9)}, 50, {})

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    kept = json.loads(found.to_json(), parse_constant=refuse)
    assert kept["rows"]["nll"] == {"value": None, "low": None, "high": None, "draws": 9}
    read = cal.Evaluation.from_dict(kept)
    assert read["ece"] == found["ece"]
    assert np.isnan([read["nll"].value, read["nll"].low, read["nll"].high]).all()
    logits = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, -inf]])
    compared = cal.compare(logits, logits.clamp(min=-9), torch.tensor([0, 1, 1]), draws=40)
    kept = json.loads(compared.to_json(), parse_constant=refuse)["rows"]["nll"]
    assert (kept["first"], kept["difference"]) == (None, None)
