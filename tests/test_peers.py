"""Independent implementations agree where they are right; where they differ, they are wrong.

What they print was recorded by `benchmarks/peer_figures.py`. See docs/decisions/peers.md.
"""

import json
from functools import partial
from math import fsum, sqrt
from pathlib import Path

import numpy as np
import pytest
import torch
from peers import inputs
from torch import Tensor

from calibrant import (
    BetaCalibration,
    Criterion,
    Predictions,
    VennAbers,
    brier,
    calibration_tests,
    class_wise,
    debiased_ece,
    ece,
    evaluate,
    mce,
    nll,
    prediction_sets,
    smooth_ece,
    top_label,
)

RECORDED = json.loads((Path(__file__).parent / "peers" / "figures.json").read_text())
FIGURES: dict[str, float] = RECORDED["figures"]
MAPS = json.loads((Path(__file__).parent / "peers" / "maps.json").read_text())
LOGITS = Path(__file__).parents[2] / "shared" / "data" / "logits"

by_mass = partial(ece, binning="mass")


@pytest.fixture(scope="module")
def predictions() -> Predictions:
    return told(*inputs.table())


def told(probs: inputs.Array, labels: inputs.Array) -> Predictions:
    return Predictions.from_probabilities(torch.from_numpy(probs), torch.from_numpy(labels))


@pytest.fixture(scope="module")
def chances() -> tuple[Tensor, Tensor]:
    chance, happened = inputs.chances()
    return torch.from_numpy(chance), torch.from_numpy(happened)


AGREED: list[tuple[str, Criterion]] = [
    ("netcal ECE", top_label(ece)),
    ("netcal MCE", top_label(mce)),
    ("uncertainty-calibration ECE", top_label(ece)),
    ("uncertainty-calibration ECE mass", top_label(by_mass)),
    ("uncertainty-calibration l2 mass", top_label(partial(by_mass, norm=2))),
    ("uncertainty-calibration debiased", top_label(debiased_ece)),
    ("uncertainty-calibration marginal", class_wise(partial(by_mass, norm=2), norm=2)),
    ("uncertainty-calibration marginal debiased", class_wise(debiased_ece, norm=2)),
    ("scikit-learn ECE", top_label(ece)),
    ("scikit-learn Brier", brier),
    ("scikit-learn log loss", nll),
    ("torchmetrics ECE", top_label(ece)),
]


@pytest.mark.parametrize(("figure", "criterion"), AGREED, ids=[name for name, _ in AGREED])
def test_agrees_with_a_peer(figure: str, criterion: Criterion, predictions: Predictions) -> None:
    assert criterion(predictions).item() == pytest.approx(FIGURES[figure], rel=0, abs=1e-6)


def test_agrees_on_chances_of_an_event(chances: tuple[Tensor, Tensor]) -> None:
    assert ece(*chances).item() == pytest.approx(FIGURES["netcal ECE of chances"], rel=0, abs=1e-6)


def test_smooth_ece_lies_within_one_step_of_the_peers_search(
    chances: tuple[Tensor, Tensor],
) -> None:
    """It stops at widths 1/1024 apart, and the value falls by no more than the width grows."""
    assert smooth_ece(*chances).item() == pytest.approx(FIGURES["relplot smECE"], abs=1 / 1024)


def test_tests_of_calibration_agree_with_mapie(chances: tuple[Tensor, Tensor]) -> None:
    found = calibration_tests(chances, draws=10)
    chance = chances[0]
    # MAPIE divides by the standard deviation of the last running sum; we print the sums.
    scale = sqrt((chance * (1 - chance)).sum().item()) / len(chance)
    for name, ours in (("KS", found.ks), ("Kuiper", found.kuiper)):
        assert ours.statistic / scale == pytest.approx(FIGURES[f"MAPIE {name}"], abs=1e-6)
        assert ours.p_value == pytest.approx(FIGURES[f"MAPIE {name} p-value"], abs=1e-6)
    z = found.spiegelhalter
    assert z.statistic == pytest.approx(FIGURES["MAPIE Spiegelhalter"], abs=1e-6)
    one_sided = FIGURES["MAPIE Spiegelhalter p-value"]
    assert z.p_value == pytest.approx(2 * min(one_sided, 1 - one_sided), abs=1e-6)


def test_conformal_sets_are_those_of_mapie() -> None:
    probs, labels = inputs.table()
    sets = prediction_sets(told(probs[:500], labels[:500]), probs[-100:])
    assert ["".join(str(int(kept)) for kept in row) for row in sets] == RECORDED["MAPIE sets"]


def ece_by_definition(confidence: inputs.Array, outcome: inputs.Array, bins: int = 15) -> float:
    """One bin after the other, every sum exact."""
    gaps = []
    for j in range(bins):
        lower = -1.0 if j == 0 else j / bins
        own = (confidence > lower) & (confidence <= (j + 1) / bins)
        gaps.append(abs(fsum(outcome[own].tolist()) - fsum(confidence[own].tolist())))
    return fsum(gaps) / len(confidence)


def test_certain_answers_belong_to_the_last_bin_and_torchmetrics_sets_them_apart() -> None:
    probs, labels = inputs.saturated()
    right = ece_by_definition(probs.max(axis=1), (probs.argmax(axis=1) == labels).astype(float))
    assert top_label(ece)(told(probs, labels)).item() == pytest.approx(right, abs=1e-9)
    assert FIGURES["netcal ECE saturated"] == pytest.approx(right, abs=1e-9)
    assert FIGURES["torchmetrics ECE saturated"] - right > 0.04


def test_a_million_samples_add_up_and_torchmetrics_loses_some() -> None:
    chance, happened = inputs.million()
    right = ece_by_definition(chance.astype(np.float64), happened)
    ours = ece(torch.from_numpy(chance), torch.from_numpy(happened)).item()
    assert ours == pytest.approx(right, abs=1e-6)
    assert abs(FIGURES["torchmetrics ECE million"] - right) > 1e-4


def test_bins_of_equal_mass_differ_where_samples_do_not_divide(predictions: Predictions) -> None:
    """Of 500 samples uncertainty-calibration gives 34 to the first bins, we to any."""
    first = told(*(x[:500] for x in inputs.table()))
    confidence, correct = first.confidence.numpy(), first.correct.numpy()
    order = np.argsort(confidence)
    by_rank = [order[np.arange(500) * 15 // 500 == j] for j in range(15)]
    first_larger = np.array_split(order, 15)
    ours, theirs = (
        sum(abs(correct[own].sum() - confidence[own].sum()) for own in parts) / 500
        for parts in (by_rank, first_larger)
    )
    assert top_label(by_mass)(first).item() == pytest.approx(ours, abs=1e-9)
    theirs_recorded = FIGURES["uncertainty-calibration ECE mass of the first 500"]
    assert theirs_recorded == pytest.approx(theirs, abs=1e-9)
    assert abs(ours - theirs) > 1e-4


def test_improbable_truths_are_not_clipped_as_scikit_learn_clips_them() -> None:
    probs, labels = inputs.improbable()
    right = -np.log(probs.astype(np.float64)[np.arange(10), labels]).mean()
    assert nll(told(probs, labels)).item() == pytest.approx(right, rel=1e-6)
    assert right - FIGURES["scikit-learn log loss improbable"] > 1


@pytest.mark.skipif(not LOGITS.exists(), reason="the published logits are not here")
def test_published_logits_have_the_error_that_was_published() -> None:
    """ResNet-110 on CIFAR-10, 15 bins: 4.75%, as tables of recalibration papers print it."""
    with np.load(LOGITS / "resnet110-cifar10.npz") as archive:
        logits, labels = archive["test_logits"], archive["test_labels"]
    predictions = Predictions(torch.from_numpy(logits), torch.from_numpy(labels))
    assert round(100 * top_label(ece)(predictions).item(), 2) == 4.75
    assert round(100 * evaluate(logits, labels, draws=39)["ece"].value, 2) == 4.75


def test_fitted_maps_are_those_of_their_authors_packages() -> None:
    chance, happened = (torch.from_numpy(part) for part in inputs.chances(500))
    asked = torch.from_numpy(inputs.asked()).logit()
    beta = BetaCalibration().fit(chance.logit(), happened, folds=0).predict_proba(asked)
    # betacal stops where scikit-learn's solver does.
    torch.testing.assert_close(
        beta, torch.tensor(MAPS["beta"], dtype=torch.float64), rtol=1e-3, atol=1e-4
    )
    venn = VennAbers().fit(chance.logit(), happened, folds=0)
    both = torch.stack(venn.interval(asked), dim=1)
    torch.testing.assert_close(both, torch.tensor(MAPS["venn_abers_both"], dtype=torch.float64))
    merged = venn.predict_proba(asked)
    torch.testing.assert_close(merged, torch.tensor(MAPS["venn_abers"], dtype=torch.float64))
