"""Numbers as people see them: decimals, one way everywhere, and no zero with a sign."""

import re
from dataclasses import replace

import pytest
import torch

import calibrant as cal
from calibrant.demo._show import cell as demo_cell
from calibrant.evaluation import _table as table
from calibrant.lab._render import _cell
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
        (4.9e-5, "0.0000"),
        (-0.0000053, "0.0000"),
        (-3e-7, "0.0000"),
        (-0.0, "0.0000"),
        (9_999.5, "9999.5000"),
        (1_234_567.8, "1,234,568"),
        (2.5e20, "2.5e+20"),
        (float("nan"), "nan"),
    ],
)
def test_a_number_keeps_two_digits_and_has_no_exponent(x: float, shown: str) -> None:
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
    found = cal.compare(2 * logits, 2.0005 * logits, labels, draws=20)
    for text in (str(tests), str(found), found.to_markdown(), found._repr_html_()):
        assert not re.search(r"\de[+-]\d", text)


def test_a_value_outside_its_interval_is_marked_and_explained() -> None:
    beside, within = cal.Estimate(0.3, 0.0, 0.2, 100), cal.Estimate(0.1, 0.0, 0.2, 1000)
    below = cal.Estimate(-0.1, 0.0, 0.2, 1000)
    found = cal.Evaluation({"mce": beside, "ece": within, "esd": below}, 50, {"draws": 1000})
    lines = str(found).splitlines()
    marked = [line.split()[0] for line in lines if line.endswith("*")]
    assert marked == ["mce", "esd"]
    assert re.search(r"^mce .* 100 draws \*$", str(found), flags=re.MULTILINE)
    for text in (str(found), found.to_markdown(), found._repr_html_()):
        assert "* lies outside its own interval." in text
    assert max(map(len, lines)) <= 80
    alone = cal.Evaluation({"ece": within}, 50, {"draws": 1000})
    assert "*" not in str(alone)
