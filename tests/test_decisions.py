"""Thresholds and sets keep what they promise, on samples they have not seen."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from forecasts import Forecasts, as_tensors, forecasts
from hypothesis import given, settings
from scipy import stats  # type: ignore[import-untyped]
from torch import Tensor

from calibrant import Predictions
from calibrant.evaluation._conformal import Method, prediction_sets
from calibrant.evaluation._decisions import threshold_for


def lowest_by_definition(
    confidence: list[float], wrong: list[float], risk: float, level: float
) -> int:
    """How many to answer: every fixed sequence walked a step at a time; none is 0."""
    n = len(confidence)
    places = {sum(c > t for c in confidence) for t in confidence} | {n}
    sizes = sorted(places - {0})

    def errors(size: int) -> int:
        return int(sum(w for _, w in sorted(zip(confidence, wrong, strict=True))[n - size :]))

    starts, s = [], n
    while s >= 1:
        if (1 - risk) ** s <= 1 - level:
            starts.append(s)
        s //= 2
    best = 0
    for start in starts:
        for size in (k for k in sizes if k >= start):
            if stats.binom.cdf(errors(size), size, risk) > (1 - level) / len(starts):
                break
            best = max(best, size)
    return best


@given(forecasts(min_size=5, max_size=60))
@settings(max_examples=60)
def test_risk_is_tested_from_strict_to_lax(drawn: Forecasts) -> None:
    confidence, outcome = as_tensors(drawn)
    expected = lowest_by_definition(confidence.tolist(), (1 - outcome).tolist(), 0.5, 0.7)
    if expected == 0:
        with pytest.raises(ValueError, match=r"no threshold keeps the risk at 0\.5"):
            threshold_for((confidence, outcome), risk=0.5, level=0.7)
        return
    found = threshold_for((confidence, outcome), risk=0.5, level=0.7)
    assert int((confidence >= found.threshold).sum()) == expected
    assert found.coverage == pytest.approx(expected / len(confidence))


WORLDS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[float], float]]] = {
    # The chance of an error at each confidence, and the risk of answering from a threshold on.
    "risk falls as confidence rises": (lambda c: 0.4 * (1 - c), lambda t: 0.2 * (1 - t)),
    "the surest are often wrong": (
        lambda c: 0.05 + 0.5 * (c > 0.95) + 0.15 * (c < 0.5),
        lambda t: 0.05 + (0.5 * min(0.05, 1 - t) + 0.15 * max(0.5 - t, 0)) / (1 - t),
    ),
    "confidence says nothing": (lambda c: torch.full_like(c, 0.11), lambda t: 0.11),
}


@pytest.mark.parametrize("world", WORLDS)
def test_risk_is_kept_as_often_as_promised(world: str, rng: torch.Generator) -> None:
    chance, risk_from = WORLDS[world]
    level, trials, broken = 0.8, 250, 0
    for _ in range(trials):
        confidence = torch.rand(400, generator=rng, dtype=torch.float64)
        wrong = torch.bernoulli(chance(confidence), generator=rng)
        try:
            found = threshold_for((confidence, 1 - wrong), risk=0.1, level=level)
        except ValueError:
            continue
        broken += risk_from(found.threshold) > 0.1
    assert broken / trials < 1 - level + 4 * (level * (1 - level) / trials) ** 0.5


def test_the_promise_of_a_risk_costs_little_when_samples_are_many(rng: torch.Generator) -> None:
    covered = []
    for _ in range(40):
        confidence = torch.rand(5_000, generator=rng, dtype=torch.float64)
        wrong = torch.bernoulli(0.4 * (1 - confidence), generator=rng)
        covered.append(threshold_for((confidence, 1 - wrong), risk=0.1).coverage)
    # Without a promise half could be answered.
    assert 0.38 < np.mean(covered) < 0.5


def test_risk_is_kept_with_few_distinct_confidences(rng: torch.Generator) -> None:
    level, trials, broken = 0.8, 250, 0
    for _ in range(trials):
        confidence = (torch.randint(5, 10, (300,), generator=rng) / 10).double()
        wrong = torch.bernoulli(0.5 * (1 - confidence), generator=rng)
        try:
            found = threshold_for((confidence, 1 - wrong), risk=0.15, level=level)
        except ValueError:
            continue
        # Answering from 0.6 on has a risk of 0.125, from 0.5 on of 0.15: let that be too much.
        broken += found.threshold <= 0.5
    assert broken / trials < 1 - level + 4 * (level * (1 - level) / trials) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_threshold_separates_in_the_precision_of_the_scores(dtype: torch.dtype) -> None:
    confidence = torch.tensor([0.9] * 50 + [0.3] * 50, dtype=dtype)
    right = torch.tensor([1.0] * 50 + [0.0] * 50)
    found = threshold_for((confidence, right), risk=0.2)
    assert int((confidence >= found.threshold).sum()) == 50
    assert 0.3 < found.threshold < 0.3001
    everyone = threshold_for((confidence, torch.ones(100)), risk=0.2)
    assert (everyone.threshold, everyone.coverage) == (0.0, 1.0)


@pytest.mark.parametrize("tied", [False, True])
def test_coverage_and_its_risk_are_kept_as_often_as_promised(
    tied: bool, rng: torch.Generator
) -> None:
    level, trials, short, broken, thresholds = 0.8, 300, 0, 0, []
    for _ in range(trials):
        confidence = torch.rand(150, generator=rng, dtype=torch.float64)
        confidence = (10 * confidence).floor() / 10 if tied else confidence
        wrong = torch.bernoulli(0.4 * (1 - confidence), generator=rng)
        found = threshold_for((confidence, 1 - wrong), coverage=0.7, level=level)
        t = found.threshold
        short += 1 - t < 0.7 - 1e-9
        truth = 0.2 * (1 - t) + (0.4 * 0.05 if tied else 0)
        broken += truth > found.risk
        thresholds.append(t)
    slack = 4 * (level * (1 - level) / trials) ** 0.5
    assert short / trials < 1 - level + slack
    assert broken / trials < 1 - level + slack
    if not tied:  # no laxer than it must be: the next rank up would break the promise
        assert short / trials > 1 - level - slack - 0.08
        assert np.mean(thresholds) > 0.25


def test_coverage_is_the_largest_rank_that_binomial_counts_allow() -> None:
    confidence = torch.linspace(0.01, 1, 100, dtype=torch.float64)
    rank = max(r for r in range(1, 100) if stats.binom.sf(r - 1, 100, 0.3) >= 0.95)
    wrong = (torch.arange(100) % 10 == 0).double()
    found = threshold_for((confidence, 1 - wrong), coverage=0.7)
    assert found.threshold == confidence[rank - 1].item()
    # The sample at the threshold counts as wrong, and here it is right.
    answered, errors = 100 - rank + 1, int(wrong[rank - 1 :].sum()) + 1
    bound = stats.beta.ppf(0.95, errors + 1, answered - errors)
    assert found.risk == pytest.approx(bound)
    assert (found.coverage, found.least_coverage) == (answered / 100, 0.7)


def test_coverage_of_nearly_all_answers_everything_when_samples_are_few() -> None:
    found = threshold_for(([0.3, 0.6, 0.9], [0, 0, 0]), coverage=0.9)
    assert (found.threshold, found.risk, found.n) == (0.0, 1.0, 3)


def test_bad_requests_are_refused(predictions: Predictions) -> None:
    with pytest.raises(ValueError, match="either risk or coverage; got risk=None"):
        threshold_for(predictions)
    with pytest.raises(ValueError, match=r"either risk or coverage; got risk=0\.1, coverage=0\.5"):
        threshold_for(predictions, risk=0.1, coverage=0.5)
    with pytest.raises(ValueError, match=r"risk must lie between 0 and 1; got 1\.5"):
        threshold_for(predictions, risk=1.5)
    with pytest.raises(ValueError, match=r"no threshold keeps the risk .* Give more samples"):
        threshold_for(predictions, risk=1e-4)
    with pytest.raises(ValueError, match="must not have weights"):
        threshold_for(predictions.reweighted(torch.ones(200)), risk=0.1)


def test_what_is_no_share_and_no_predictions_is_refused(
    unchecked_types: None, predictions: Predictions
) -> None:
    with pytest.raises(ValueError, match=r"risk must lie between 0 and 1; got '0\.1'"):
        threshold_for(predictions, risk="0.1")  # type: ignore[arg-type]
    pair = predictions.logits, predictions.labels
    with pytest.raises(TypeError, match=r"calibration must be Predictions; got tuple\. Pass Pred"):
        prediction_sets(pair, predictions.probs)  # type: ignore[arg-type]


def test_sets_of_a_list_are_an_array(unchecked_types: None, predictions: Predictions) -> None:
    rows = predictions.probs[:3]
    found = prediction_sets(predictions, rows.tolist())  # type: ignore[arg-type]
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, prediction_sets(predictions, rows).numpy())  # type: ignore[union-attr]


def world(n: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Logits that are over-confident by half, and labels."""
    logits = 2 * torch.randn(n, 5, generator=rng, dtype=torch.float64)
    return 1.5 * logits, torch.multinomial(logits.softmax(1), 1, generator=rng)[:, 0]


def score_by_definition(probs: list[float], label: int, method: str) -> float:
    """What a class must pay to be let in."""
    if method == "lac":
        return 1 - probs[label]
    total = 0.0
    for k in sorted(range(len(probs)), key=lambda k: -probs[k]):
        total += probs[k]
        if k == label:
            break
    return total


@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize(("n", "coverage"), [(19, 0.9), (20, 0.9), (9, 0.9), (37, 0.5)])
def test_sets_are_their_definition(
    method: Method, n: int, coverage: float, rng: torch.Generator
) -> None:
    calibration = Predictions(*world(n, rng))
    test = world(12, rng)[0].softmax(1)
    rows = zip(calibration.probs.tolist(), calibration.labels.tolist(), strict=True)
    seen = sorted(score_by_definition(p, y, method) for p, y in rows)
    rank = -(-(n + 1) * round(coverage * 10) // 10)
    kept = prediction_sets(calibration, test, coverage=coverage, method=method)
    for probs, found in zip(test.tolist(), kept.tolist(), strict=True):
        for k in range(5):
            inside = score_by_definition(probs, k, method) <= seen[rank - 1] + 1e-12
            top = method == "aps" and k == probs.index(max(probs))
            assert found[k] == (inside or top)


@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize("kinds", [(torch.float64, torch.float32), (torch.float32, torch.float64)])
@pytest.mark.parametrize("sure", [0.8, 0.9])  # one of them is less in float32, one more
def test_sets_of_scores_that_tie_do_so_in_every_precision(
    method: Method, kinds: tuple[torch.dtype, torch.dtype], sure: float
) -> None:
    """Nine of ten are right, and as sure as the new one."""
    row = torch.tensor([[1 - sure, sure]], dtype=torch.float64)
    labels, (first, second) = (torch.arange(50) % 10 > 0).long(), kinds
    calibration = Predictions.from_probabilities(row.expand(50, -1).to(first), labels)
    kept = prediction_sets(calibration, row.to(second), coverage=0.85, method=method)
    assert torch.as_tensor(kept).tolist() == [[False, True]]
    half = prediction_sets(calibration, row.half().numpy(), coverage=0.85, method=method)
    assert half.tolist() == [[False, True]]


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_sets_cover_as_often_as_asked(method: Method, rng: torch.Generator) -> None:
    n, fresh, coverage, shares = 49, 400, 0.9, []
    for _ in range(80):
        calibration = Predictions(*world(n, rng))
        logits, labels = world(fresh, rng)
        kept = torch.as_tensor(
            prediction_sets(calibration, logits.softmax(1), coverage=coverage, method=method)
        )
        shares.append(kept.gather(1, labels[:, None]).double().mean().item())
    slack = 4 * np.std(shares) / len(shares) ** 0.5
    assert np.mean(shares) > coverage - slack
    if method == "lac":
        assert np.mean(shares) < coverage + 1 / (n + 1) + slack


def test_every_class_is_kept_when_samples_are_too_few(rng: torch.Generator) -> None:
    calibration = Predictions(*world(8, rng))
    assert torch.as_tensor(prediction_sets(calibration, torch.full((2, 5), 0.2))).all()


def test_arrays_give_arrays(rng: torch.Generator) -> None:
    calibration = Predictions(*world(30, rng))
    probs = world(4, rng)[0].softmax(1)
    found = prediction_sets(calibration, probs.numpy())
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, np.asarray(prediction_sets(calibration, probs)))
    backwards = prediction_sets(calibration, probs.numpy()[::-1].astype(">f4"))
    np.testing.assert_array_equal(backwards, found[::-1])


def test_bad_sets_are_refused(predictions: Predictions) -> None:
    probs = predictions.probs
    with pytest.raises(ValueError, match=r"coverage must lie between 0 and 1; got 90"):
        prediction_sets(predictions, probs, coverage=90)
    with pytest.raises(ValueError, match=r"a column for each of the 4 classes .* got 2"):
        prediction_sets(predictions, torch.full((3, 2), 0.5))
    with pytest.raises(ValueError, match=r"must have shape \(n, classes\); got \(200,\)\. For ch"):
        prediction_sets(predictions, probs[:, 0])
    with pytest.raises(ValueError, match=r"each row must sum.* pass logits\.softmax\(dim=1\)"):
        prediction_sets(predictions, predictions.logits)
    with pytest.raises(ValueError, match="test_probs must hold numbers; got NaN in row 3"):
        prediction_sets(predictions, torch.where(torch.arange(200) == 3, torch.nan, probs.T).T)
    nowhere = torch.where(torch.arange(200) == 5, torch.nan, predictions.logits.T).T
    with pytest.raises(ValueError, match="every row a confidence; got NaN for row 5"):
        prediction_sets(Predictions(nowhere, predictions.labels), probs)
    with pytest.raises(ValueError, match="must not have weights"):
        prediction_sets(predictions.reweighted(torch.ones(200)), probs)


def test_a_threshold_says_what_was_seen_and_what_is_promised() -> None:
    confidence = torch.linspace(0.01, 1, 100, dtype=torch.float64)
    outcome = (torch.arange(100) % 10 != 0).double()
    covered = threshold_for((confidence, outcome), coverage=0.7, level=0.9)
    kept, seen = covered.to_dict(), (confidence >= covered.threshold).double().mean().item()
    assert (kept["coverage"], kept["least_coverage"], kept["level"]) == (seen, 0.7, 0.9)
    risky = threshold_for((confidence, outcome), risk=0.3)
    assert risky.least_coverage is None
    assert risky.coverage == (confidence >= risky.threshold).double().mean().item()
    assert repr(risky) == (
        "Threshold(0.0, risk at most 0.3, 100% of 100 samples answered, level 95%)"
    )
    assert "answered, at least 70% of new ones, level 90%)" in repr(covered)
    assert repr(covered).startswith(f"Threshold({covered.threshold}, ")  # not rounded
