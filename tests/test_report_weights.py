"""A report whose samples count unequally: weight two is a sample twice, weight nothing none."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import calibrant as cal
from calibrant.cli import main
from calibrant.report import write_report
from calibrant.report._account import Account, account_of
from calibrant.report._against import Kept, against_first
from calibrant.report._bins import reliability_bins
from calibrant.report._models import told
from calibrant.report._repair import Repair
from calibrant.report._settings import Settings

QUICK = Settings(draws=39)


def drawn(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Over-confident predictions of four classes, with whole weights of which some are zero."""
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, 4, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    return 2.5 * logits, labels, torch.randint(4, (n,), generator=rng).double()


@pytest.fixture(scope="module")
def both() -> tuple[Account, Account]:
    """The same predictions, weighted and as often as their weights say."""
    logits, labels, weights = drawn(200)
    often = torch.arange(200).repeat_interleave(weights.long())
    pair = told("m", (logits, labels), weights=weights), told("m", (logits[often], labels[often]))
    weighted, repeated = (account_of(one, QUICK) for one in pair)
    return weighted, repeated


def test_every_number_is_that_of_repeated_samples(both: tuple[Account, Account]) -> None:
    weighted, repeated = both
    for name, row in repeated.rows.items():
        assert weighted.rows[name].value == pytest.approx(row.value), name
    assert weighted.class_wise_ece == pytest.approx(repeated.class_wise_ece)
    for one, other in zip(weighted.binned, repeated.binned, strict=True):
        assert one.error == pytest.approx(other.error), one.name


def test_every_figure_is_that_of_repeated_samples(both: tuple[Account, Account]) -> None:
    weighted, repeated = both
    for one, other in zip(weighted.binned[0].parts, repeated.binned[0].parts, strict=True):
        assert one.accuracy == pytest.approx(other.accuracy)
        assert one.confidence == pytest.approx(other.confidence)
        assert one.mass == pytest.approx(other.count / repeated.n)
    for name in ("quantile", "accuracy", "confidence"):
        at, seen = weighted.cumulative.quantile, repeated.cumulative.quantile
        curve = np.interp(at, seen, getattr(repeated.cumulative, name))  # thinned elsewhere
        np.testing.assert_allclose(getattr(weighted.cumulative, name), curve, atol=5e-3)
    assert weighted.risk_coverage.risk[-1] == pytest.approx(repeated.risk_coverage.risk[-1])
    for ours, theirs in zip(weighted.classes_shown, repeated.classes_shown, strict=True):
        assert ours.name == theirs.name
        assert ours.gap == pytest.approx(theirs.gap)
        for cell, same in zip(ours.cells, theirs.cells, strict=False):
            assert cell.gap == pytest.approx(same.gap)


def test_intervals_are_those_of_evaluate() -> None:
    logits, labels, weights = drawn(80, seed=1)
    halves, few = np.arange(80) % 2, Settings(draws=39)
    found = account_of(told("m", (logits, labels), weights=weights), few, groups=halves)
    theirs = cal.evaluate(logits, labels, weights=weights, groups=halves, draws=39)
    for name in ("accuracy", "nll", "ece", "ks_error", "auroc"):
        one, other = found.rows[name], theirs[name]
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))
    for group in found.groups:
        one, other = group.rows["ece"], theirs.groups[group.name]["ece"]
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


@pytest.mark.parametrize("every", [1.0, 2.0])
def test_samples_that_count_alike_are_counted(every: float) -> None:
    logits, labels, _ = drawn(200)
    plain = account_of(told("m", (logits, labels)), QUICK)
    same = account_of(told("m", (logits, labels), weights=torch.full((200,), every)), QUICK)
    assert plain.verdict.p_value is not None
    assert same.verdict.p_value is None
    assert isinstance(same.tests, str)
    ours, theirs = same.binned[0].parts, plain.binned[0].parts
    for one, other in zip(ours, theirs, strict=True):
        assert list(vars(one).values()) == pytest.approx(list(vars(other).values()))
    assert same.risk_coverage.high == pytest.approx(plain.risk_coverage.high)
    assert same.cumulative.spread == pytest.approx(plain.cumulative.spread)
    assert isinstance(same.repair, Repair)
    assert isinstance(plain.repair, Repair)
    assert same.repair.gain.low == pytest.approx(plain.repair.gain.low, rel=1e-4)
    assert same.repair.p_value == pytest.approx(plain.repair.p_value, rel=1e-2)


def test_unequal_weights_widen_the_interval_of_a_share() -> None:
    sure, right = torch.full((40,), 0.75), (torch.arange(40) % 4 != 0).float()
    unequal = torch.where(torch.arange(40) < 8, 4.0, 0.25).double()
    (alike,) = reliability_bins(sure, right, bins=1)
    (weighted,) = reliability_bins(sure, right, bins=1, weights=unequal)
    assert weighted.accuracy == pytest.approx(alike.accuracy)
    assert weighted.accuracy_low < alike.accuracy_low - 0.1
    # (Σw)² / Σw² = 40² / 130 samples of weight one, of which three in four are hits.
    n = unequal.sum().square() / unequal.square().sum()
    from scipy.stats import beta  # type: ignore[import-untyped]

    low = beta.ppf(0.025, 0.75 * n, 0.25 * n + 1)
    assert weighted.accuracy_low == pytest.approx(low)


def test_recalibration_is_fitted_and_judged_by_weight() -> None:
    logits, labels, _ = drawn(400)
    # Half of the samples are far too confident and count for nothing.
    odd = torch.arange(400) % 2 == 1
    logits = torch.where(odd[:, None], 6 * logits, logits / 2.5)
    found = account_of(told("m", (logits, labels), weights=(~odd).double()), QUICK)
    assert isinstance(found.repair, Repair)
    assert found.repair.changes_nothing
    without = account_of(told("m", (logits, labels)), QUICK)
    assert isinstance(without.repair, Repair)
    assert not without.repair.changes_nothing


def test_models_are_compared_by_weight_and_only_where_weights_agree() -> None:
    logits, labels, weights = drawn(200)

    def kept(name: str, scale: float, counted: Tensor) -> Kept:
        return Kept.of(told(name, (scale * logits, labels), weights=counted))

    pair = [kept("a", 1.0, weights), kept("b", 0.4, weights)]
    (found,) = against_first(pair, QUICK)
    mean = [(weights * one.told.nll).sum() / weights.sum() for one in pair]
    assert found.rows["nll"].difference == pytest.approx((mean[1] - mean[0]).item())
    assert against_first([pair[0], kept("b", 0.4, weights + 1)], QUICK) == []


def test_weights_of_predictions_count_as_well(tmp_path: Path) -> None:
    logits, labels, weights = drawn(60)
    said = told("m", cal.Predictions(logits, labels, weights=weights))
    assert_close(said.mass, weights)
    assert said.predictions is not None
    assert said.predictions.weights is not None
    assert told("m", (logits, labels)).mass.tolist() == [1] * 60
    place = tmp_path / "report.html"
    found = write_report(place, {"m": (logits, labels)}, weights=weights, draws=39).verdicts["m"]
    gap = (weights * (said.confidence - said.outcome)).sum() / weights.sum()
    assert found.overconfidence == pytest.approx(gap.item())


def test_the_command_weighs_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logits, labels, weights = drawn(60)
    file, page = tmp_path / "m.npz", tmp_path / "page.html"
    np.savez(file, logits=logits, labels=labels, counts=weights)
    asked = [str(file), "--weights", "counts", "--draws", "39"]
    assert main(["report", *asked, "-o", str(page)]) == 0
    assert main(["evaluate", *asked, "--json"]) == 0
    text = page.read_text(encoding="utf-8")
    assert "each counts by its weight" in text
    assert "samples, by weight" in text
    printed = capsys.readouterr().out
    assert "not tested" in printed
    found = json.loads(printed[printed.index("{") :])["rows"]
    numbers = re.search(r'id="numbers">(.*?)</script>', text, flags=re.DOTALL)
    assert numbers is not None
    ours = json.loads(numbers[1])["models"]["m"]["rows"]
    for name in ours.keys() & found.keys():
        for part in ("value", "low", "high"):
            assert ours[name][part] == pytest.approx(found[name][part]), (name, part)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (torch.zeros(50), "weights must not all be zero"),
        (torch.ones(49), "weights must hold one number per sample, 50 in all"),
        (-torch.ones(50), "weights must not all be zero|weights must be finite and not negative"),
    ],
)
def test_weights_that_cannot_be_are_refused(weights: Tensor, sentence: str) -> None:
    logits, labels, _ = drawn(50)
    with pytest.raises(ValueError, match=f"model 'm': ({sentence})"):
        told("m", (logits, labels), weights=weights)


def test_samples_that_do_not_count_are_not_drawn_when_models_are_compared() -> None:
    logits, labels, _ = drawn(300)
    weights = (torch.arange(300) % 10 == 0).double()
    counting = weights > 0
    pairs = (
        [Kept.of(told(name, (z, y), weights=w)) for name, z in (("a", x), ("b", 0.5 * x))]
        for x, y, w in (
            (logits, labels, weights),
            (logits[counting], labels[counting], torch.ones(30, dtype=torch.float64)),
        )
    )
    (found,), (among,) = (against_first(pair, QUICK) for pair in pairs)
    for name, row in found.rows.items():
        assert vars(row) == pytest.approx(vars(among.rows[name])), name
