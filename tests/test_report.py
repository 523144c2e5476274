"""The report: what it says is what was measured, and what it holds is shown and never run."""

import json
import math
import re
from dataclasses import asdict
from html.parser import HTMLParser
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from scipy.stats import binom  # type: ignore[import-untyped]
from torch import Tensor

import calibrant as cal
from calibrant.cli import main
from calibrant.evaluation import _crowds, _lots
from calibrant.evaluation._groups import members
from calibrant.report import Report, _page, _repair, _rows, _write, write_report
from calibrant.report._account import account_of
from calibrant.report._against import Kept, against_first
from calibrant.report._bins import clopper_pearson, reliability_bins
from calibrant.report._classes import class_rows
from calibrant.report._curves import cumulative, risk_coverage
from calibrant.report._groups import groups_of
from calibrant.report._mistakes import mistakes_of
from calibrant.report._models import MOST_MODELS, Told, told
from calibrant.report._page import page
from calibrant.report._repair import Repair, repair
from calibrant.report._rows import rows_of
from calibrant.report._settings import Settings
from calibrant.report._verdict import Verdict, verdict
from calibrant.report._words import script_json

QUICK = Settings(draws=50)
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'><svg onload=alert(3)>",
    "{{ 7 * 7 }}{% raw %}",
    "\u2028line\u2029separators",
    "\u202eright to left\u202c قطة",
    "🐈‍⬛ & <b>bold</b>",
    "nul\x00 and \x1b[31mred",
]


def drawn(n: int = 400, classes: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Calibrated predictions."""
    rng = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(n, classes, generator=rng)
    return logits, torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    """A report in which every name is an attack."""
    logits, labels = drawn(320, 8)
    place = tmp_path_factory.mktemp("report") / "report.html"
    found = write_report(
        place,
        {HOSTILE[0]: (3 * logits, labels), HOSTILE[1]: (logits, labels)},
        class_names=HOSTILE,
        groups=np.array(HOSTILE)[np.arange(320) % 8],
        severity=torch.arange(320) % 3,
        sample_names=[f"{HOSTILE[k % 8]} {k}" for k in range(320)],
        title=HOSTILE[2],
        draws=50,
    )
    return place, found


class Read(HTMLParser):
    """What a browser would make of the page: its elements with attributes, and its text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.scripts = "", []  # type: ignore[var-annotated]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.scripts and self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.text += data


def read(place: Path) -> Read:
    parsed = Read()
    parsed.feed(place.read_text(encoding="utf-8"))
    return parsed


def verdict_of(said: Told) -> Verdict:
    tests = cal.calibration_tests((said.confidence, said.outcome))
    bins = reliability_bins(said.confidence, said.outcome)
    return verdict(rows_of(said, QUICK), tests, bins, QUICK.level)


# What the verdict says.


@pytest.mark.parametrize(("scale", "kind"), [(3.0, "over"), (1.0, "none"), (0.4, "under")])
def test_the_verdict_names_direction_size_interval_and_p_value(scale: float, kind: str) -> None:
    logits, labels = drawn(1000)
    said = told("m", (scale * logits, labels))
    found = verdict_of(said)
    predictions = cal.Predictions(scale * logits, labels)
    p = cal.calibration_tests(predictions).kuiper.p_value
    gap = (predictions.confidence.double() - predictions.correct.double()).mean().item()
    assert (found.kind, found.p_value) == (kind, p)
    assert found.overconfidence == pytest.approx(gap)
    assert found.low < gap < found.high
    ends = sorted(abs(100 * end) for end in (found.low, found.high))
    spoken = "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
    assert f"Kuiper's test {spoken}" in found.sentence
    assert f"{predictions.correct.double().mean():.1%} of the time" in found.sentence
    if kind != "none":
        start = f"{kind.capitalize()}-confident by {abs(100 * gap):.1f} points (95% interval "
        assert found.sentence.startswith(f"{start}{ends[0]:.1f} to {ends[1]:.1f}; ")


def test_errors_that_cancel_on_average_are_not_called_calibrated() -> None:
    turn = torch.arange(1000)
    sure = torch.where(turn % 2 == 0, 0.95, 0.55)
    right = turn // 2 % 10 < torch.where(turn % 2 == 0, 8, 7)  # 0.15 too much, 0.15 too little
    found = verdict_of(told("m", (sure, right)))
    assert found.low < 0 < found.high
    assert found.kind == "mixed"
    assert "claims too" in found.sentence


@pytest.mark.parametrize("wrong", [1, 40])
def test_certainty_that_was_contradicted_is_over_confidence(wrong: int, tmp_path: Path) -> None:
    """Also once, when the interval, of resamples that may miss the miss, begins at zero."""
    sure, right = torch.ones(200), (torch.arange(200) >= wrong).float()
    found = verdict_of(told("m", (sure, right)))
    assert (found.kind, found.p_value) == ("over", 0)
    assert found.sentence.startswith(f"Over-confident by {wrong / 2:.1f} points (95% interval ")
    assert "Kuiper's test p < 0.0001" in found.sentence
    assert (found.low > 0) == (wrong > 1)
    report = write_report(tmp_path / "sure.html", {"m": (sure, right)}, draws=50)
    assert report.verdicts["m"].kind == "over"
    assert "Over-confident by" in read(tmp_path / "sure.html").text


def test_an_interval_and_a_test_that_disagree_are_told_apart() -> None:
    estimate, bins = cal.Estimate, reliability_bins(torch.rand(50), torch.ones(50))
    rows = {
        name: estimate(0.5, 0.4, 0.6, 50) for name in ("mean_confidence", "accuracy", "ece")
    } | {"overconfidence": estimate(0.021, 0.001, 0.041, 50)}
    tests = cal.calibration_tests((torch.full((50,), 0.5), torch.arange(50) % 2), draws=50)
    found = verdict(rows, tests, bins, 0.95)
    p = tests.kuiper.p_value
    assert (found.kind, p > 0.05) == ("none", True)
    assert found.sentence.startswith("Not clearly miscalibrated")
    assert f"95% interval 0.1 to 4.1; Kuiper's test p = {p:.4f}). The interval leaves out 0, " in (
        found.sentence
    )
    rows["overconfidence"] = estimate(0.021, -0.001, 0.041, 50)
    assert "leaves out" not in verdict(rows, tests, bins, 0.95).sentence


# Numbers agree with the rest of the package, and with their definitions written slowly.


def test_rows_are_those_of_evaluate() -> None:
    logits, labels = drawn()
    found = rows_of(told("m", (3 * logits, labels)), Settings(draws=39))
    evaluation = cal.evaluate(3 * logits, labels, draws=39)
    shared = set(found) & set(evaluation.rows)
    assert shared >= {"accuracy", "nll", "brier", "ece", "ks_error", "auroc"}
    for name in shared:
        assert found[name].value == pytest.approx(evaluation[name].value, rel=1e-5), name
        assert found[name].low == pytest.approx(evaluation[name].low, rel=1e-5), name
        assert found[name].high == pytest.approx(evaluation[name].high, rel=1e-5), name


def test_differences_are_those_of_compare() -> None:
    logits, labels = drawn()
    kept = [Kept.of(told(name, (s * logits, labels))) for name, s in (("a", 1.0), ("b", 3.0))]
    (against,) = against_first(kept, QUICK)
    direct = cal.compare(3 * logits, logits, labels, draws=50)
    assert (against.name, against.reference) == ("b", "a")
    for name, row in against.rows.items():
        same = direct[name]
        for part in ("first", "second", "difference", "low", "high", "p_value"):
            assert getattr(row, part) == pytest.approx(getattr(same, part), abs=1e-6), (name, part)


def test_differences_of_many_samples_are_those_of_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_crowds, _lots):
        monkeypatch.setattr(module, "SINGLY_UP_TO", 100)
    test_differences_are_those_of_compare()


def test_models_on_other_labels_are_not_compared() -> None:
    logits, labels = drawn()
    kept = [Kept.of(told("a", (logits, labels))), Kept.of(told("b", (logits, labels.flip(0))))]
    assert against_first(kept, QUICK) == []


@pytest.mark.parametrize("bins", [1, 4, 10])
def test_bins_are_what_their_edges_say(bins: int, rng: torch.Generator) -> None:
    # On a coarse grid, so that edges and ties are common.
    sure = torch.randint(0, 21, (300,), generator=rng).double() / 20
    right = torch.bernoulli(sure, generator=rng)
    found = reliability_bins(sure, right, bins=bins)
    assert sum(one.count for one in found) == 300
    for k, one in enumerate(found):
        inside = (sure <= one.high) & ((sure > one.low) | (k == 0))
        assert one.count == int(inside.sum())
        assert one.confidence == pytest.approx(sure[inside].mean().item())
        assert one.accuracy == pytest.approx(right[inside].mean().item())
        assert one.gap == pytest.approx((sure - right)[inside].mean().item())
        assert one.accuracy_low <= one.accuracy <= one.accuracy_high
    error = sum(one.count * abs(one.gap) for one in found) / 300
    assert error == pytest.approx(cal.ece(sure, right, bins=bins).item())


def test_bins_of_equal_mass_are_those_of_the_measure(rng: torch.Generator) -> None:
    sure = torch.randint(0, 21, (300,), generator=rng).double() / 20
    right = torch.bernoulli(sure, generator=rng)
    found = reliability_bins(sure, right, bins=7, binning="mass")
    error = sum(one.count * abs(one.gap) for one in found) / 300
    assert error == pytest.approx(cal.ece(sure, right, bins=7, binning="mass").item())
    assert all(one.high < other.low for one, other in pairwise(found))


@pytest.mark.parametrize(("hits", "n"), [(0, 9), (9, 9), (3, 9), (1, 1), (40, 300)])
def test_the_interval_of_a_share_has_the_tails_it_promises(hits: int, n: int) -> None:
    low, high = clopper_pearson(torch.tensor([float(hits)]), torch.tensor([float(n)]), 0.9)
    if hits > 0:
        assert binom.sf(hits - 1, n, low.item()) == pytest.approx(0.05)
    else:
        assert low.item() == 0
    if hits < n:
        assert binom.cdf(hits, n, high.item()) == pytest.approx(0.05)
    else:
        assert high.item() == 1


def test_curves_are_their_definitions(rng: torch.Generator) -> None:
    sure = torch.randint(0, 11, (60,), generator=rng).double() / 10
    right = torch.bernoulli(sure, generator=rng)
    curve, risk = cumulative(sure, right), risk_coverage(sure, right)
    levels = sorted(set(sure.tolist()))
    for k, level in enumerate(levels, start=1):
        below = sure <= level
        assert curve.quantile[k] == pytest.approx(below.double().mean().item())
        assert curve.accuracy[k] == pytest.approx((right * below).mean().item())
        assert curve.confidence[k] == pytest.approx((sure * below).mean().item())
        variance = (sure * (1 - sure) * below).sum().item()
        assert curve.spread[k] == pytest.approx(1.96 * math.sqrt(variance) / 60)
    for k, level in enumerate(reversed(levels)):
        kept = sure >= level
        assert risk.coverage[k] == pytest.approx(kept.double().mean().item())
        assert risk.risk[k] == pytest.approx(1 - right[kept].mean().item())
    assert len(cumulative(torch.rand(5000, generator=rng), torch.ones(5000)).quantile) == 121


def test_classes_are_judged_by_the_answers_that_named_them() -> None:
    logits, labels = drawn()
    said = told("m", (3 * logits, labels))
    rows = class_rows(said, ["a", "b", "c", "d"], 0.95)
    answers = logits.argmax(dim=1)
    assert sorted(row.name for row in rows) == ["a", "b", "c", "d"]
    assert rows == sorted(rows, key=lambda row: -abs(row.gap * row.count))
    for row in rows:
        own = answers == "abcd".index(row.name)
        assert row.count == int(own.sum())
        assert row.accuracy == pytest.approx((labels == answers)[own].double().mean().item())
        confidence = (3 * logits).softmax(dim=1).amax(dim=1)[own].double().mean().item()
        assert row.gap == pytest.approx(confidence - row.accuracy, abs=1e-6)
        assert sum(cell.count for cell in row.cells) == row.count
        total = sum(cell.count * cell.gap for cell in row.cells) / row.count
        assert total == pytest.approx(row.gap)


def test_mistakes_are_the_surest_wrong_answers() -> None:
    sure = torch.tensor([0.9, 0.8, 0.9, 0.99, 0.7])
    right = torch.tensor([0, 0, 0, 1, 0])
    found = mistakes_of(told("m", (sure, right)), [], list("abcde"), 3)
    assert [(one.row, one.sample) for one in found] == [(0, "a"), (2, "c"), (1, "b")]


def test_groups_are_evaluated_apart_and_tested_together() -> None:
    logits, labels = drawn(600)
    scale = torch.where(torch.arange(600) % 3 == 0, 3.0, 1.0)
    said = told("m", (scale[:, None] * logits, labels))
    names = np.array(["worst", "b", "c"])[np.arange(600) % 3]
    names[-5:] = "tiny"
    found = {one.name: one for one in groups_of(said, names, QUICK)}
    assert found["tiny"].rows == {}
    tested = {}
    for name, own in members(names, 600).items():
        if name != "tiny":
            pair = said.confidence[own], said.outcome[own]
            assert found[name].rows["ece"].value == pytest.approx(cal.ece(*pair).item())
            tested[name] = cal.calibration_tests(pair, draws=2000).kuiper.p_value
    held = 0.0
    for left, (name, p) in zip(
        (3, 2, 1), sorted(tested.items(), key=lambda one: one[1]), strict=True
    ):
        held = max(held, min(1.0, left * p))
        assert found[name].p_value == pytest.approx(held)
    assert min(tested, key=tested.__getitem__) == "worst"


# What recalibration would change is judged on samples it has not seen.


def test_after_recalibration_nothing_depends_on_the_labels_it_is_judged_by() -> None:
    logits, labels = drawn()
    said = told("m", (3 * logits, labels))
    parts = _repair._parts(len(said), 0)
    after = _repair._cross_fitted(said, parts)
    own = parts == 2
    shuffled = torch.where(own, (labels + 1) % 4, labels)
    other = _repair._cross_fitted(told("m", (3 * logits, shuffled)), parts)
    torch.testing.assert_close(other.confidence[own], after.confidence[own])
    assert not torch.allclose(other.confidence[~own], after.confidence[~own])


@pytest.mark.parametrize("events", [False, True])
def test_the_recommended_map_repairs_an_over_confident_model(events: bool) -> None:
    logits, labels = drawn(1200)
    said = told("m", (3 * logits, labels))
    if events:
        said = told("m", (said.confidence, said.outcome))
    found = repair(said, rows_of(said, QUICK), QUICK)
    assert isinstance(found, Repair)
    assert not found.changes_nothing
    assert found.is_worth_it
    assert found.after["ece"].value < 0.06 < 0.2 < found.before["ece"].value
    assert found.gain.low > 0
    assert found.p_value < 1e-3
    assert found.after["accuracy"].value == pytest.approx(said.outcome.double().mean().item())
    assert found.gain.value == pytest.approx(found.before["nll"].value - found.after["nll"].value)


def test_zeros_among_probabilities_do_not_ruin_the_recommended_map() -> None:
    logits, labels = drawn(1200)
    votes = (10 * (3 * logits).softmax(dim=1).double()).round()
    said = told("forest", (votes / votes.sum(dim=1, keepdim=True), labels), probabilities=True)
    found = repair(said, rows_of(said, QUICK), QUICK)
    assert isinstance(found, Repair)
    of_logits = repair(told("m", (3 * logits, labels)), {}, QUICK)
    assert isinstance(of_logits, Repair)
    assert found.after["nll"].value < 1.15 * of_logits.after["nll"].value


def test_a_calibrated_model_is_left_as_it_is() -> None:
    said = told("m", drawn(1200))
    found = repair(said, rows_of(said, QUICK), QUICK)
    assert isinstance(found, Repair)
    assert found.changes_nothing
    assert found.method == "Identity()"


@pytest.mark.parametrize("seed", [3, 4])  # of which the gain is below and above zero
def test_a_map_without_a_clear_gain_is_not_recommended(seed: int, tmp_path: Path) -> None:
    logits, labels = drawn(seed=seed)
    said = told("m", (1.15 * logits, labels))
    found = repair(said, {}, QUICK)
    assert isinstance(found, Repair)
    assert found.method == "TemperatureScaling()"
    assert found.gain.low < 0
    assert not found.is_worth_it
    write_report(tmp_path / "report.html", {"m": (1.15 * logits, labels)}, draws=50)
    text = read(tmp_path / "report.html").text
    assert "Nothing to recommend: the best method tried, TemperatureScaling(), does not" in text
    assert "Recommended:" not in text
    write_report(tmp_path / "report.html", {"m": (3 * logits, labels)}, draws=50)
    text = read(tmp_path / "report.html").text
    assert re.search(r"Recommended: TemperatureScaling\(\), temperature \d\.\d+\. It lowers", text)


def test_large_tables_are_fitted_on_some_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_repair, "_FITTED_TO", 400)
    monkeypatch.setattr(_repair, "_FEWEST_ROWS", 60)
    found = repair(told("m", (3 * drawn()[0], drawn()[1])), {}, QUICK)
    assert isinstance(found, Repair)
    assert found.fitted_to == 100


def test_a_level_that_takes_many_draws_is_given_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rows, "_DRAWS", 50)
    said, settings = told("m", drawn(60)), Settings(level=0.99)
    assert {row.draws for row in rows_of(said, settings).values()} == {199}
    (group,) = groups_of(said, ["all"] * 60, settings)
    assert {row.draws for row in group.rows.values()} == {199}


def test_rows_of_many_samples_are_those_of_evaluate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn together, and none left out."""
    monkeypatch.setattr(_crowds, "SINGLY_UP_TO", 100)
    monkeypatch.setattr(_lots, "SINGLY_UP_TO", 100)
    logits, labels = drawn(300)
    weights = torch.arange(300) % 3
    found = rows_of(told("m", (3 * logits, labels), weights=weights), Settings(draws=200))
    asked = cal.evaluate(3 * logits, labels, weights=weights, draws=200)
    for name in found.keys() - {"overconfidence", "mean_confidence"}:
        assert asdict(found[name]) == pytest.approx(asdict(asked[name])), name
    assert {"ece", "debiased_ece", "ks_error", "auroc", "risk_coverage_area"} <= found.keys()


# The page.


def test_every_figure_is_drawn_with_finite_numbers(hostile: tuple[Path, Report]) -> None:
    text = hostile[0].read_text(encoding="utf-8")
    drawings = re.findall(r"<svg .*?</svg>", text, flags=re.DOTALL)
    labels = []
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        labels.append(str(root.get("aria-label")))
        marks = [one for one in root.iter() if one.get("class") == "mark"]
        assert marks, labels[-1]
        assert all((mark.find("title") is not None) for mark in marks)
        for one, name in product(root.iter(), ("x", "y", "cx", "cy", "width", "height", "d")):
            value = one.get(name)
            assert value is None or not re.search("nan|inf", value), (one.tag, value)
            if name in ("width", "height") and value is not None:
                assert float(value) >= 0
    for what in (
        "Reliability diagram", "Histogram", "Cumulative", "Risk of", "by predicted class",
        "before recalibration", "after recalibration", "of every group", "severity", "every model",
    ):  # fmt: skip
        assert any(what in label for label in labels), what


def test_the_verdict_comes_before_everything_else(hostile: tuple[Path, Report]) -> None:
    place, found = hostile
    text = read(place).text
    for one in found.verdicts.values():
        assert text.index(one.sentence) < text.index("side by side")


def test_names_are_shown_and_never_run(hostile: tuple[Path, Report]) -> None:
    place, _ = hostile
    parsed = read(place)
    shown = [re.sub("[\x00-\x08\x0b-\x1f]", "\N{REPLACEMENT CHARACTER}", name) for name in HOSTILE]
    for name in shown:
        assert name in parsed.text, name
    assert len(parsed.scripts) == 2
    assert not any("alert" in script for script in parsed.scripts[1:])
    allowed = (
        "html head body header main footer section div p h1 h2 h3 h4 ul li span b table caption "
        "thead tbody tr th td figure figcaption details summary dl dt dd sub pre code svg g rect "
        "line path circle text title bdi label select option style script meta link "
    )
    for tag, attributes in parsed.elements:
        assert f"{tag} " in allowed, tag
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert attributes.get("src") is None
    assert [one for one in parsed.elements if one[0] == "img"] == []


def test_the_numbers_inside_are_json(hostile: tuple[Path, Report]) -> None:
    place, found = hostile
    text = read(place).scripts[0]
    assert not re.search("[<>\u2028\u2029]", text)
    kept = json.loads(text)["models"]
    assert list(kept) == HOSTILE[:2]
    for name, one in found.verdicts.items():
        assert kept[name]["verdict"] == one.to_dict()


def test_json_inside_a_script_keeps_its_strings() -> None:
    for text in HOSTILE:
        assert json.loads(script_json(text)) == text
        assert not re.search("[<>&\u2028\u2029]", script_json(text))


def test_the_page_needs_nothing_else(hostile: tuple[Path, Report]) -> None:
    text = hostile[0].read_text(encoding="utf-8")
    for tag, attributes in read(hostile[0]).elements:
        for name in ("href", "src", "srcset", "action", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value == "data:,", (tag, name, value)
    assert "@import" not in text
    assert "url(" not in text
    assert "fetch(" not in text


def test_a_page_of_as_many_models_as_allowed_stays_small() -> None:
    logits, labels = drawn(200, 30)
    account = account_of(told("m", (3 * logits, labels)), QUICK)
    text = page([account] * MOST_MODELS, [], QUICK, title="t", command=None)
    assert len(text.encode()) < 2_000_000
    assert 'id="choose-bins"' not in text  # fewer choices, so that it stays small
    assert 'id="choose-bins"' in page([account], [], QUICK, title="t", command=None)


def contrast(one: str, other: str) -> float:
    """Of two colours, as the accessibility guidelines define it."""

    def light(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_read_in_light_and_dark(hostile: tuple[Path, Report]) -> None:
    text = hostile[0].read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", text, flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})[0-9a-f]{0,2};", block))
        for ink, ground in product(
            ("ink", "soft", "accent", "over", "under", "good"), ("page", "card")
        ):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)


def test_every_form_of_the_same_predictions_gives_the_same_verdict() -> None:
    logits, labels = drawn(200)
    table = (3 * logits).double()
    found = verdict_of(told("m", (table, labels)))
    assert found == verdict_of(told("m", (table.numpy(), labels.numpy())))
    assert found == verdict_of(told("m", cal.Predictions(table, labels)))
    given = verdict_of(told("m", (table.softmax(dim=1), labels), probabilities=True))
    assert given.overconfidence == pytest.approx(found.overconfidence)
    assert given.p_value == found.p_value


def test_what_cannot_be_judged_is_said_and_not_drawn(tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    logits, labels = drawn(60)
    ruled_out = logits.clone()
    ruled_out[torch.arange(5), labels[:5]] = -torch.inf
    cases = {
        "three": (logits[:3], labels[:3]),
        "always sure": (1e4 * torch.eye(4)[labels], labels),
        "ruled out what happened": (ruled_out, labels),
        "constant": (torch.zeros(60, 4), labels),
        "events": (torch.ones(60), torch.ones(60)),
    }
    for name, pair in cases.items():
        write_report(place, {name: pair}, draws=39)
        text = read(place).text
        assert "nan" not in text.lower(), name
    write_report(place, {"three": cases["three"]}, draws=39)
    assert "Recalibration was not tried: recalibration is judged on 50" in read(place).text


# What is refused.


@pytest.mark.parametrize(
    ("models", "more", "sentence"),
    [
        ({}, {}, "between 1 and 20 models; got 0"),
        ({"m": [torch.zeros(5, 2)]}, {}, "model 'm': a model must be a pair"),
        ({"m": (torch.full((9, 2), 0.5), torch.zeros(9).long())}, {}, "Say probabilities=True"),
        (
            {"m": (torch.tensor([2.0, 3.0, 4.0]), torch.ones(3))},
            {},
            "between 0 and 1; got 2 in row 0 ",
        ),
        ({"m": (torch.tensor([[torch.nan, 1.0]] * 3), torch.zeros(3).long())}, {}, "NaN in row 0"),
        ({"m": drawn(50)}, {"class_names": ["a"]}, "one name per class, 4 in all; got 1"),
        ({"m": drawn(50)}, {"class_names": "abcd"}, "one name per class, 4 in all; got 1"),
        ({"m": drawn(50)}, {"groups": ["a"] * 9}, "one entry per sample, 50 in all"),
        ({"m": drawn(50)}, {"groups": [1, "1"] * 25}, "all names or all numbers; got int, str"),
        (
            {"m": drawn(50)},
            {"groups": np.array([np.float32(0.1), np.float64(0.1)] * 25, dtype=object)},
            "groups must be called differently where they differ; two are '0.1'",
        ),
        ({"m": drawn(50)}, {"severity": ["a"] * 50}, "severity must hold a number per sample"),
        ({"m": drawn(50)}, {"sample_names": ["a"]}, "sample_names must hold one name per sample"),
        ({"m": drawn(50)}, {"bins": 0}, "bins must be a whole number"),
        ({"m": drawn(50)}, {"draws": 38}, "draws must be at least 39 for a level of 0.95: fewer"),
        ({"m": drawn(50)}, {"level": 0.99}, "draws must be at least 199 for a level of 0.99"),
        ({"m": drawn(2)}, {}, "at least 3 samples; got 2"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    models: Any, more: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(sentence)):
        write_report(tmp_path / "report.html", models, **({"draws": 39} | more))
    assert list(tmp_path.iterdir()) == []


def test_a_list_is_no_mapping(tmp_path: Path, unchecked_types: None) -> None:
    with pytest.raises(TypeError, match="models must map a name to"):
        write_report(tmp_path / "report.html", [drawn(50)])  # type: ignore[arg-type]


def test_a_folder_that_does_not_exist_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a folder that exists"):
        write_report(tmp_path / "nowhere" / "report.html", {"m": drawn(50)})


class Unwritable(str):
    """A page that cannot be written."""

    def encode(self, *_: object) -> bytes:
        raise RuntimeError("no room")


def test_an_old_report_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "report.html"
    place.write_text("old")
    monkeypatch.setattr(_write, "page", lambda *_, **__: Unwritable())
    with pytest.raises(RuntimeError, match="no room"):
        write_report(place, {"m": drawn(60)}, draws=39)
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert place.read_text() == "old"


def test_without_jinja_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_page, "import_module", lambda name: (_ for _ in ()).throw(ImportError))
    said: list[str] = []
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[report\]'"):
        write_report(tmp_path / "report.html", {"m": drawn(60)}, progress=said.append)
    assert said == []  # before the work, so that none is lost


def test_progress_says_what_is_done(tmp_path: Path) -> None:
    said: list[str] = []
    write_report(tmp_path / "report.html", {"m": drawn(60)}, draws=39, progress=said.append)
    assert said[0].startswith("m: ")
    assert said[-1] == "drawing"


# From a shell.


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    logits, labels = drawn(120)
    for name, scale in (("boastful", 3.0), ("honest", 1.0)):
        region = np.array(["north", "south"])[np.arange(120) % 2]
        level = np.arange(120) % 3
        np.savez(
            tmp_path / f"{name}.npz",
            logits=scale * logits,
            labels=labels,
            region=region,
            level=level,
        )
    return [tmp_path / "boastful.npz", tmp_path / "honest.npz"]


def test_the_command_writes_the_page_and_prints_the_verdicts(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    asked = ["report", *map(str, files), "-o", str(out), "--draws", "39", "--severity", "level"]
    assert main([*asked, "--class-names", "cat,dog,owl,fox", "--groups", "region"]) == 0
    printed, err = capsys.readouterr()
    assert "boastful: Over-confident by" in printed
    assert f"The report is in {out}" in printed
    assert max(len(line) for line in printed.splitlines() if str(out) not in line) <= 80
    assert err == ""
    text = read(out).text
    assert all(word in text for word in ("owl", "south", "side by side", "honest", "Under shift"))


def test_the_page_says_what_the_terminal_says(
    files: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_rows, "_DRAWS", 50)
    out = tmp_path / "page.html"
    asked = [str(files[0]), "--groups", "region"]
    assert main(["report", *asked, "-o", str(out)]) == 0
    capsys.readouterr()
    assert main(["evaluate", *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    page = next(text for text in read(out).scripts if text.startswith("{"))
    ours = json.loads(page)["models"]["boastful"]
    assert found["rows"]["ece"]["draws"] == found["groups"]["north"]["rows"]["ece"]["draws"] == 50
    assert ours["verdict"]["p_value"] == found["tests"]["kuiper"]["p_value"]
    shared = ours["rows"].keys() & found["rows"].keys()
    assert len(shared) >= 7
    for name in shared:
        for part in ("value", "low", "high"):
            assert ours["rows"][name][part] == pytest.approx(found["rows"][name][part]), name
    for group in found["groups"].values():
        low, high = (f"{group['rows']['ece'][end]:.4f}" for end in ("low", "high"))
        assert f"({low} to {high})" in read(out).text


def test_the_command_prints_json(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, names = tmp_path / "page.html", tmp_path / "names.txt"
    names.write_text("cat\n<dog>\nowl\nfox\n")
    asked = ["report", str(files[0]), "-o", str(out), "--draws", "39", "--json"]
    assert main([*asked, "--severity", "level", "--class-names", str(names)]) == 0
    found = json.loads(capsys.readouterr().out)
    logits, labels = drawn(120)
    report = write_report(tmp_path / "same.html", {"m": (3 * logits, labels)}, draws=39)
    assert found["path"] == str(out)
    assert found["verdicts"]["boastful"] == report.verdicts["m"].to_dict()
    assert "Under shift" in read(out).text
    assert "<dog>" in read(out).text


def test_the_command_has_the_level_of_every_interval(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    asked = ["report", *map(str, files), "-o", str(out), "--draws", "1999", "--level", "0.999"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    logits, labels = drawn(120)
    models = {"boastful": (3 * logits, labels), "honest": (logits, labels)}
    report = write_report(tmp_path / "same.html", models, draws=1999, level=0.999)
    assert found["verdicts"] == report.to_dict()["verdicts"]
    assert "99.9% interval" in found["verdicts"]["boastful"]["sentence"]
    text = read(out).text
    assert "99.9%" in text
    assert "95% interval" not in text
    assert "100% interval" not in text


def test_the_command_does_not_write_over_what_it_reads(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before = files[1].read_bytes()
    assert main(["report", *map(str, files), "-o", str(files[1])]) == 2
    assert "--out must not be a file that is read" in capsys.readouterr().err
    assert files[1].read_bytes() == before
    names = files[0].with_name("names.txt")
    names.write_text("cat\ndog\nfox\nowl\n")
    asked = ["report", str(files[0]), "--class-names", str(names), "-o", str(names)]
    assert main(asked) == 2
    assert "--out must not be a file that is read" in capsys.readouterr().err
    assert names.read_text() == "cat\ndog\nfox\nowl\n"


def test_names_of_classes_between_commas_may_be_longer_than_a_path(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [letter * 100 for letter in "abcd"]
    out = tmp_path / "page.html"
    asked = ["report", str(files[0]), "-o", str(out), "--draws", "39"]
    assert main([*asked, "--class-names", ",".join(names)]) == 0
    assert names[3] in read(out).text
    assert main(["report", "", "-o", str(out)]) == 2
    assert "must name a file; got an empty name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--level", "1.5"], "level must lie between 0 and 1; got 1.5."),
        (["--level", "0.99"], "draws must be at least 199 for a level of 0.99"),
        (["--class-names", "cat"], "class_names must hold one name per class, 4 in all; got 1."),
        (["--class-names", "no.txt"], "there is no file 'no.txt'. Check the path."),
        (["--groups", "region", "--severity", "labels"], "must have a column of their own"),
        (["--groups", "country"], "has no column 'country'"),
        (["-o", "/nowhere/page.html"], "a file in a folder that exists"),
    ],
)
def test_the_command_refuses_in_a_sentence(
    more: list[str],
    sentence: str,
    files: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["report", str(files[0]), "-o", str(tmp_path / "page.html"), "--draws", "39", *more]
    assert main(asked) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_a_file_given_twice_is_refused(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(files[0]), str(files[0])]) == 2
    assert "must be given once" in capsys.readouterr().err


# In a notebook.


def test_tables_in_notebooks_show_names_and_never_run_them(tmp_path: Path) -> None:
    logits, labels = drawn(120)
    names = np.array(["<script>alert(1)</script>", "b"])[np.arange(120) % 2]
    evaluation = cal.evaluate(logits, labels, groups=names, draws=39)
    shown = evaluation._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert f"{evaluation['ece'].value:.4f}" in shown
    evaluation.to_html(tmp_path / "page.html", title="<b>")
    page_text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<title>&lt;b&gt;</title>" in page_text
    assert shown.replace("\n", "") in page_text.replace("\n", "")
    assert "<script" not in page_text


def test_comparisons_and_recalibrators_are_tables_in_notebooks() -> None:
    logits, labels = drawn(200)
    comparison = cal.compare(3 * logits, logits, labels, draws=40)
    assert f"{comparison['nll'].difference:.3g}" in comparison._repr_html_()
    scaling = cal.TemperatureScaling()
    assert scaling._repr_html_() == "<p>TemperatureScaling()</p>"
    scaling.fit(3 * logits, labels)
    assert f"{scaling.report_.ece_before:.4f}" in scaling._repr_html_()
    assert "held-out folds" in scaling.report_._repr_html_()
