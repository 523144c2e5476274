"""Recalibrators of probabilities, whose zeros have no logarithm."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import calibrant as cal
from calibrant.logs import recalibrate_log
from calibrant.recalibration import RECALIBRATORS, PlattScaling, as_logits
from calibrant.recalibration._chances import smallest_told


def votes(rng: torch.Generator, classes: int = 2, trees: int = 10) -> tuple[Tensor, Tensor]:
    """Shares of votes, zeros among them, and labels that are less sure."""
    logits = 4 * torch.randn(600, classes, generator=rng, dtype=torch.float64)
    drawn = torch.multinomial(logits.softmax(dim=1), trees, replacement=True, generator=rng)
    counts = torch.nn.functional.one_hot(drawn, classes).sum(dim=1)
    labels = torch.multinomial((logits / 2).softmax(dim=1), 1, generator=rng)[:, 0]
    return counts.double() / trees, labels


def test_a_zero_counts_as_one_more_vote_shared_among_the_classes(rng: torch.Generator) -> None:
    for classes in (2, 3):
        chances, _ = votes(rng, classes)
        assert smallest_told(chances, 1, scores=False) == pytest.approx(1 / 11 / classes)
    chance = votes(rng)[0][:, 1]
    assert smallest_told(chance, 1, scores=True) == pytest.approx(1 / 22)
    assert smallest_told(1 - chance, 1, scores=True) == pytest.approx(1 / 22)
    nearly = torch.tensor([0.9, 1 - 2e-16], dtype=torch.float64)  # a one with a rounding
    assert smallest_told(nearly, 1, scores=True) == pytest.approx(1 / 22)
    single = torch.tensor([0.0, 1.0, 1.0])
    assert smallest_told(single, 1, scores=True) == 1 / 4


@pytest.mark.parametrize("trees", [1, 2, 10])
def test_one_chance_says_the_same_as_two(rng: torch.Generator, trees: int) -> None:
    chances, labels = votes(rng, trees=trees)
    for make in (cal.Identity, PlattScaling, cal.IsotonicCalibration, cal.TemperatureScaling):
        of_one = make().fit(chances[:, 1], labels, probabilities=True, folds=0)
        of_two = make().fit(chances, labels, probabilities=True, folds=0)
        found = of_one.predict_proba(chances[:, 1], probabilities=True)
        assert_close(found, of_two.predict_proba(chances, probabilities=True)[:, 1])
        sure, unsure = found[chances[:, 1] == 1].min(), found[chances[:, 1] == 0].max()
        assert sure > unsure


def test_what_is_not_counted_does_not_matter(rng: torch.Generator) -> None:
    chances, labels = votes(rng, 3)
    plain = PlattScaling().fit(chances, labels, probabilities=True, folds=0)
    for nothing in (float("nan"), 0.0, 1.0):
        more = torch.cat([chances, torch.full((50, 3), nothing, dtype=torch.float64)])
        ignored = torch.cat([labels, torch.full((50,), -100)])
        found = PlattScaling().fit(more, ignored, ignore_index=-100, probabilities=True, folds=0)
        assert_close(found.state_dict(), plain.state_dict())
    tiny = torch.tensor([[1 - 2e-9, 1e-9, 1e-9]], dtype=torch.float64).expand(50, -1)
    weightless = PlattScaling().fit(
        torch.cat([chances, tiny]),
        torch.cat([labels, labels[:50]]),
        weights=torch.arange(650) < 600,
        probabilities=True,
        folds=0,
    )
    assert_close(weightless.state_dict(), plain.state_dict())
    chance, happened = chances[:, 1].clone(), (labels == 1).long()
    one = PlattScaling().fit(chance[50:], happened[50:], probabilities=True, folds=0)
    chance[:50], happened[:50] = float("nan"), -100
    padded = PlattScaling().fit(chance, happened, ignore_index=-100, probabilities=True, folds=0)
    assert_close(padded.state_dict(), one.state_dict())


def test_probabilities_are_not_taken_for_logits_by_a_map_of_probabilities(
    rng: torch.Generator,
) -> None:
    chances, labels = votes(rng)
    rows = PlattScaling().fit(chances, labels, probabilities=True, folds=0)
    one = PlattScaling().fit(chances[:, 1], labels, probabilities=True, folds=0)
    pixels = PlattScaling().fit(
        chances.T[None], labels[None], class_dim=1, probabilities=True, folds=0
    )
    for fitted, told in ((rows, chances[:1]), (one, chances[:1, 1]), (pixels, chances.T[None])):
        with pytest.raises(ValueError, match="Pass probabilities=True"):
            fitted.predict_proba(told)
        assert_close(
            fitted.predict_proba(told, probabilities=True),
            fitted.transform(as_logits_like(told)).softmax(dim=1)
            if told.ndim > 1
            else fitted.transform(as_logits_like(told)).sigmoid(),
        )


def test_a_map_of_logits_takes_log_odds_wherever_they_lie(rng: torch.Generator) -> None:
    scores = 2 * torch.randn(3_000, generator=rng, dtype=torch.float64)
    labels = torch.bernoulli(scores.sigmoid(), generator=rng).long()
    fitted = cal.TemperatureScaling().fit(scores, labels, folds=0)
    some = (scores > 0) & (scores < 1)
    assert_close(fitted.transform(scores[some]), fitted.transform(scores)[some])


def as_logits_like(told: Tensor) -> Tensor:
    """By hand, with ten trees: zeros have 1/22, and the other class the rest."""
    return (
        told.clamp(1 / 22, 21 / 22).logit() if told.ndim == 1 else told.clamp(1 / 22, 21 / 22).log()
    )


def test_without_a_zero_no_told_probability_is_changed(rng: torch.Generator) -> None:
    chances, labels = votes(rng, 3)
    sure = (0.9999 * chances + 0.0001 / 3).softmax(dim=1)
    assert smallest_told(sure, 1, scores=False) == 1e-7
    rare = torch.tensor([[1 - 1e-20, 1e-20], [0.5, 0.5]], dtype=torch.float64)
    assert smallest_told(rare, 1, scores=False) == pytest.approx(5e-21)
    for name, make in RECALIBRATORS.items():
        told = make().fit(sure, labels, probabilities=True, folds=0)
        by_hand = make().fit(as_logits(sure), labels, folds=0)
        found = told.predict_proba(sure, probabilities=True)
        assert_close(found, by_hand.predict_proba(as_logits(sure)), msg=name)


def test_the_same_rule_holds_for_every_row_when_it_is_applied(
    rng: torch.Generator, tmp_path: Path
) -> None:
    chances, labels = votes(rng, 3)
    fitted = PlattScaling().fit(chances, labels, probabilities=True)
    whole = fitted.predict_proba(chances, probabilities=True)
    zero = chances == 0
    rest = 1 - zero.sum(dim=1, keepdim=True) / 33
    by_hand = fitted.predict_proba(torch.where(zero, 1 / 33, chances * rest).log())
    assert_close(whole, by_hand)
    by_row = [fitted.predict_proba(row[None], probabilities=True) for row in chances[:20]]
    assert_close(torch.cat(by_row), whole[:20])
    mapped = fitted.transform(chances.numpy(), probabilities=True)
    assert_close(torch.from_numpy(mapped).softmax(dim=1), whole)
    fitted.save(tmp_path / "map.safetensors")
    loaded = cal.Recalibrator.load(tmp_path / "map.safetensors")
    assert_close(loaded.predict_proba(chances, probabilities=True), whole)
    np.savez(tmp_path / "forest.npz", probs=chances)
    recalibrate_log(loaded, tmp_path / "forest.npz", tmp_path / "better.npz")
    assert_close(torch.from_numpy(np.load(tmp_path / "better.npz")["probs"]), whole)


def test_a_choice_among_maps_knows_the_rule_and_hands_it_on(rng: torch.Generator) -> None:
    chances, labels = votes(rng)
    best = cal.BestOf([PlattScaling()]).fit(chances, labels, probabilities=True)
    fresh = cal.BestOf([PlattScaling()])
    fresh.load_state_dict(best.state_dict())
    expected = best.predict_proba(chances, probabilities=True)
    for each in (best.best_, fresh, fresh.best_):
        assert_close(each.predict_proba(chances, probabilities=True), expected)


def test_every_layout_of_probabilities_is_taken(rng: torch.Generator) -> None:
    chances, labels = votes(rng, 3)
    rows = PlattScaling().fit(chances, labels, probabilities=True, folds=0)
    expected = rows.predict_proba(chances, probabilities=True)
    pixels = chances.reshape(6, 100, 3).movedim(-1, 1)
    seen = PlattScaling().fit(pixels, labels.reshape(6, 100), probabilities=True, folds=0)
    found = seen.predict_proba(pixels, probabilities=True)
    assert_close(found.movedim(1, -1).reshape(-1, 3), expected)
    chance, happened = chances[:, 1], (labels == 1).long()
    one = PlattScaling().fit(chance, happened, probabilities=True, folds=0)
    several = PlattScaling().fit(
        chance.reshape(-1, 2), happened.reshape(-1, 2), multilabel=True, probabilities=True, folds=0
    )
    assert_close(
        several.predict_proba(chance.reshape(-1, 2), probabilities=True).reshape(-1),
        one.predict_proba(chance, probabilities=True),
    )


def test_before_is_what_was_told_and_after_is_finite(rng: torch.Generator) -> None:
    chances, labels = votes(rng)
    report = PlattScaling().fit(chances, labels, probabilities=True).report_
    told = cal.Predictions.from_probabilities(chances, labels)
    assert report.ece_before == pytest.approx(cal.CRITERIA["ece"](told).item())
    assert report.nll_before == pytest.approx(cal.nll(told).item())
    assert report.nll_before > 1 > report.nll_after  # type: ignore[operator]


def test_probabilities_whose_log_odds_lie_between_0_and_1_are_taken(rng: torch.Generator) -> None:
    chance = torch.linspace(0.5, 0.73, 200, dtype=torch.float64)
    happened = torch.bernoulli(chance, generator=rng).long()
    for name, make in RECALIBRATORS.items():
        fitted = make().fit(chance, happened, probabilities=True, folds=0)
        found = fitted.predict_proba(chance, probabilities=True)
        assert_close(fitted.transform(chance, probabilities=True).sigmoid(), found, msg=name)


def test_what_are_no_probabilities_is_refused(rng: torch.Generator) -> None:
    chances, labels = votes(rng)
    with pytest.raises(ValueError, match="each row must sum to one"):
        PlattScaling().fit(2 * chances, labels, probabilities=True)
    with pytest.raises(ValueError, match=r"must lie between 0 and 1; got -[\d.]+ in row 0 "):
        PlattScaling().fit(chances[:, 0] - 2, labels, probabilities=True)
    with pytest.raises(ValueError, match="probabilities must be floating point"):
        PlattScaling().fit(chances.round().long(), labels, probabilities=True)
    with pytest.raises(ValueError, match="class_dim"):
        PlattScaling().fit(chances, labels, class_dim=5, probabilities=True)
    fitted = PlattScaling().fit(chances, labels, probabilities=True, folds=0)
    for wrong in (torch.tensor(0.5), torch.ones(4, 3) / 3):
        with pytest.raises(ValueError, match="as when fitted"):
            fitted.transform(wrong, probabilities=True)
