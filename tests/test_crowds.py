"""Neighbours that are drawn together scatter as they do when each is drawn by itself."""

import itertools
import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions, nll
from calibrant.evaluation import _crowds, _lots, evaluate, evaluate_events
from calibrant.evaluation._bin_rays import OfBins
from calibrant.evaluation._class_draws import LabelDraws
from calibrant.evaluation._coins import CoinsOfCrowds
from calibrant.evaluation._crowd_esd import CrowdEsdDraws
from calibrant.evaluation._crowds import events_drawn
from calibrant.evaluation._esd_draws import EsdDraws
from calibrant.evaluation._estimates import _drawn, estimates
from calibrant.evaluation._largest_draws import LargestGapDraws
from calibrant.evaluation._lots import Lots, mean_drawn
from calibrant.evaluation._resampled import AlongRay, Events, OfWeights
from calibrant.evaluation._rows import Row, rows_of_events
from calibrant.evaluation._sweep_draws import SweepDraws
from calibrant.evaluation._weights import Population
from calibrant.measures._binned import as_counts

pytestmark = pytest.mark.usefixtures("one_thread")

OF_BINS = ("ece", "ece_l2", "ece_mass", "ece_mass_l2", "label_binned_ece", "sweep_ece")


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crowds and lots from a hundred samples on, and few of them."""
    for module in (_crowds, _lots):
        monkeypatch.setattr(module, "SINGLY_UP_TO", 100)
    monkeypatch.setattr(_crowds, "_CELLS", 60)
    monkeypatch.setattr(_lots, "_LOTS", 64)


def sample(n: int, *, tied: bool = False, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Too sure by a little."""
    rng = torch.Generator().manual_seed(seed)
    confidence = torch.rand(n, generator=rng, dtype=torch.float64)
    confidence = (40 * confidence).round() / 40 if tied else confidence
    return confidence, torch.bernoulli(0.05 + 0.85 * confidence, generator=rng)


def own_weights(n: int, kind: str) -> Tensor:
    rng = torch.Generator().manual_seed(1)
    return {
        "plain": torch.ones(n, dtype=torch.float64),
        "counted": torch.randint(3, (n,), generator=rng).double(),
        "unequal": as_counts(torch.randn(n, generator=rng, dtype=torch.float64).exp()),
    }[kind]


def both(confidence: Tensor, outcome: Tensor, weights: Tensor) -> list[dict[str, Row]]:
    """Rows of single samples, and of crowds."""
    given = confidence, outcome, weights, weights, 15
    return [rows_of_events(*given), rows_of_events(*given, crowded=True)]


def ray(row: Row) -> AlongRay:
    assert isinstance(row.resampled, AlongRay)
    return row.resampled


def of_bins(row: Row) -> OfBins:
    assert isinstance(row.resampled, OfBins)
    return row.resampled


every_weight = pytest.mark.parametrize("kind", ["plain", "counted", "unequal"])


@every_weight
def test_crowds_are_neighbours_with_one_outcome(early: None, kind: str) -> None:
    confidence, outcome = sample(700)
    weights = own_weights(700, kind)
    events = events_drawn(confidence, outcome, weights, 15).events
    assert events.crowds is not None
    assert len(events.gap) < 260
    # Found again from what each confidence of the crowds weighs.
    order = confidence.argsort()
    counted = order[weights[order] > 0]
    levels = events.confidence.unique()
    ends = [events.weights[events.confidence <= level].sum() for level in levels]
    cell = torch.searchsorted(torch.stack(ends) + 1e-6, weights[counted].cumsum(0))
    for k, level in enumerate(levels):
        members = counted[cell == k]
        mean = (weights * confidence)[members].sum() / weights[members].sum()
        assert_close(level, mean)
        for happened in (0, 1):
            own = members[outcome[members] == happened]
            crowd = (events.confidence == level) & (events.outcome == happened)
            assert crowd.sum() == (len(own) > 0)
            if len(own):
                mass, squares = weights[own].sum(), weights[own].square().sum()
                assert_close(events.weights[crowd][0], mass)
                assert_close(events.crowds.weights[crowd][0], mass)
                assert_close(events.crowds.count[crowd][0], mass**2 / squares)
                gap = (weights * (outcome - confidence))[own].sum() / mass
                assert_close(events.gap[crowd][0], gap)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_confidences_that_are_fewer_than_cells_stay_as_they_are(
    early: None, dtype: torch.dtype
) -> None:
    confidence, outcome = sample(500, tied=True)
    confidence = confidence.to(dtype)
    events = events_drawn(confidence, outcome.to(dtype), torch.ones(500).double(), 15).events
    assert events.confidence.dtype == dtype
    assert torch.equal(events.confidence.unique(), confidence.unique())
    for level in confidence.unique():
        assert events.weights[events.confidence == level].sum() == (confidence == level).sum()


@every_weight
@pytest.mark.parametrize("tied", [False, True])
def test_no_crowd_reaches_across_the_border_of_a_bin(early: None, tied: bool, kind: str) -> None:
    """Bins of equal width, of equal mass, and those of the sweep hold what they hold."""
    confidence, outcome = sample(900, tied=tied)
    # Where all are right the sweep has as many bins as there are ties.
    for happened in (outcome, torch.ones_like(outcome)) if tied else (outcome,):
        single, crowded = both(confidence, happened, own_weights(900, kind))
        for name in OF_BINS:
            one, other = (of_bins(rows[name]).fixed_bins() for rows in (single, crowded))
            for total in ("mass", "gap", "hits"):
                assert_close(getattr(other.own, total), getattr(one.own, total))
            assert_close(other.count, one.count)
            assert_close(other.chance, one.chance)


def test_a_sweep_of_more_bins_than_cells_has_those_of_crowds(early: None) -> None:
    """Where all are right every sample might be a bin of its own, and every crowd one sample."""
    confidence, _ = sample(2_000)
    crowded = both(confidence, torch.ones(2_000).double(), torch.ones(2_000).double())[1]
    sweep = crowded["sweep_ece"].resampled
    assert isinstance(sweep, SweepDraws)
    assert sweep.found is None
    assert len(sweep.events.gap) < 130
    assert len(of_bins(crowded["sweep_ece"]).fixed_bins().own.mass[0]) < 130


QUICK = [name for name in both(*sample(50), torch.ones(50).double())[0] if name != "smooth_ece"]
# A mean and a spread for each of a row's numbers, and of those that are not all one and the same.
_TIMES = 2_500


def scatter(rows: dict[str, Row], weights: Tensor, times: int, seed: int) -> dict[str, Tensor]:
    resampled = {
        name: row.resampled for name, row in rows.items() if isinstance(row.resampled, OfWeights)
    }
    drawn = _drawn(resampled, weights, dict.fromkeys(rows, times), seed)
    return {name: draws.reshape(times, -1) for name, draws in drawn.items()}


def assert_same_law(one: Tensor, other: Tensor) -> None:
    """Mean and spread of each column, within four standard errors."""
    spread = torch.maximum(one.std(dim=0), other.std(dim=0))
    off = (one.mean(dim=0) - other.mean(dim=0)).abs()
    assert (off <= 4 * spread * math.sqrt(2 / len(one)) + 1e-9).all()
    varied = spread > 1e-9
    if varied.any():
        x = (torch.stack([one, other]) - one.mean(dim=0))[..., varied].square()
        error = (x.var(dim=1) / len(one)).sum(dim=0).sqrt()
        assert ((x[0].mean(dim=0) - x[1].mean(dim=0)).abs() <= 4 * error).all()


@pytest.mark.parametrize("kind", ["plain", "unequal"])
def test_crowds_scatter_as_their_samples_do(early: None, kind: str) -> None:
    """At every place of every ray; of ties, so that nothing is lost to the width of a cell."""
    confidence, outcome = sample(1_200, tied=True)
    weights = own_weights(1_200, kind)
    single, crowded = (
        scatter({name: rows[name] for name in QUICK}, weights, _TIMES, seed)
        for seed, rows in enumerate(both(confidence, outcome, weights))
    )
    for name in QUICK:
        assert_same_law(single[name], crowded[name])


@every_weight
def test_truths_of_crowds_are_those_of_their_samples(early: None, kind: str) -> None:
    """ESD's to a part in a thousand where weights differ: of their cubes it knows no more."""
    confidence, outcome = sample(1_200, tied=True)
    rows = both(confidence, outcome, own_weights(1_200, kind))
    for name in rows[0]:
        one, other = (each[name].resampled for each in rows)
        if isinstance(one, AlongRay) and isinstance(other, AlongRay):
            scales = one.scales_like(one.events.gap)
            near = 1e-3 if name == "esd" and kind != "plain" else 1e-7
            assert_close(other.truths(scales), one.truths(scales), rtol=near, atol=1e-8)
        if isinstance(one, LargestGapDraws) and isinstance(other, LargestGapDraws):
            for seen in (True, False):
                crowded, singly = other._filled("even", seen), one._filled("even", seen)
                for found, slowly in zip(crowded, singly, strict=True):
                    assert_close(found, slowly)


def test_the_smooth_error_of_crowds_scatters_as_that_of_their_samples(early: None) -> None:
    confidence, outcome = sample(600, tied=True)
    ones = torch.ones(600, dtype=torch.float64)
    single, crowded = (
        scatter({"smooth_ece": rows["smooth_ece"]}, ones, 200, seed)["smooth_ece"]
        for seed, rows in enumerate(both(confidence, outcome, ones))
    )
    assert_same_law(single, crowded)


def test_many_distinct_confidences_lose_next_to_nothing_to_crowds() -> None:
    """Of the sample itself, in as many cells as there are."""
    confidence, outcome = sample(17_000)
    ones = torch.ones(17_000, dtype=torch.float64)
    rows = both(confidence, outcome, ones)[1]
    for name in ("ks_error", "mmce", "smooth_ece", "label_binned_ece", "auroc"):
        resampled = rows[name].resampled
        assert isinstance(resampled, OfWeights)
        assert resampled.crowds is not None
        found = resampled.draw(resampled.crowds.weights[None])[0].item()
        assert found == pytest.approx(rows[name].value().item(), rel=1e-3)


def test_what_is_drawn_of_a_crowd_is_a_poisson_number_of_its_samples() -> None:
    crowd = Population(torch.tensor([600.0, 0.5, 6.0]), torch.tensor([300.0, 1.0, 2.5]))
    drawn = torch.cat(list(crowd.blocks(30_000, seed=0)))
    times = drawn / torch.tensor([2.0, 0.5, 2.4])
    assert_close(times, times.round())
    spread = torch.tensor([300.0, 1.0, 2.5]).sqrt()
    error = 4 * spread / 30_000**0.5
    assert ((times.mean(dim=0) - spread**2).abs() < error).all()
    assert ((times.var(dim=0) / spread**2 - 1).abs() < 4 * (3 / 30_000) ** 0.5).all()
    assert torch.cat(list(crowd.blocks(30_000, seed=0))).equal(drawn)
    assert not torch.cat(list(crowd.blocks(30_000, seed=1))).equal(drawn)


@pytest.fixture
def alike(early: None) -> tuple[Events, Events, Tensor]:
    """Single samples, three or four alike in each crowd; the crowds; and the crowd of each."""
    confidence = torch.tensor([0.2, 0.45, 0.7, 0.9], dtype=torch.float64).repeat_interleave(35)
    outcome = (torch.arange(140) % 10 > 2).double()
    ones = torch.ones(140, dtype=torch.float64)
    single, crowds = (rows["ece"] for rows in both(confidence, outcome, ones))
    events = ray(crowds).events
    same = (confidence[:, None] == events.confidence) & (outcome[:, None] == events.outcome)
    return ray(single).events, events, same.double().argmax(dim=1)


def test_truths_of_esd_are_those_of_the_samples(alike: tuple[Events, Events, Tensor]) -> None:
    single, events, _ = alike
    scales = torch.tensor([0.0, 0.5, 3.0], dtype=torch.float64)
    for shape in ("expected", "sparse", "even"):
        truth = EsdDraws(single).truth(scales, shape)
        assert_close(CrowdEsdDraws(events).truth(scales, shape), truth)


def test_outcomes_drawn_anew_give_the_esd_of_the_samples(
    alike: tuple[Events, Events, Tensor],
) -> None:
    single, events, _ = alike
    drawn = (torch.rand(6, 140, generator=torch.Generator().manual_seed(2)) < 0.6).double()
    gaps = drawn - single.confidence
    level = single.confidence[:, None] == events.confidence
    mean = gaps @ level.double() / level.sum(dim=0)
    assert_close(CrowdEsdDraws(events).of_gaps(mean), EsdDraws(single).of_gaps(gaps))


def test_crowds_of_one_have_the_esd_of_their_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_crowds, "SINGLY_UP_TO", 100)
    confidence, outcome = sample(150)
    weights = own_weights(150, "unequal")
    events = events_drawn(confidence, outcome, weights, 15).events
    assert events.crowds is not None
    single = Events(events.confidence, events.outcome, events.gap, events.weights, events.shape)
    (block,) = events.crowds.blocks(5, seed=0)
    scales = torch.tensor([0.0, 1.0, 4.0], dtype=torch.float64)
    slowly, found = EsdDraws(single), CrowdEsdDraws(events)
    assert_close(found.draw(block), slowly.draw(block))
    assert_close(found.moved(block, scales, "even"), slowly.moved(block, scales, "even"))


def test_squares_and_cubes_of_a_crowd_are_those_expected_of_its_samples() -> None:
    """Three samples of weight two, drawn four times in all, in each of 81 ways."""
    ways = torch.tensor(list(itertools.product(range(3), repeat=4)))
    weight = 2.0 * torch.nn.functional.one_hot(ways, 3).sum(dim=1).double()
    one = torch.ones(1, dtype=torch.float64)
    shape = Events.of(one / 2, one, one).shape
    crowd = Population(6 * one, 3 * one)
    events = Events(one / 2, one, one / 2, 6 * one, shape, crowd)
    # What is drawn is in the proportion of the crowd's own weight, six eighths.
    found = CrowdEsdDraws(events)._drawn(8 * one[None])
    for power, each in enumerate(found, start=1):
        slowly = (weight / 8).pow(power).sum(dim=1).mean()
        assert_close(each[0, 0], slowly)


@every_weight
def test_coins_of_a_crowd_scatter_as_those_of_its_samples(early: None, kind: str) -> None:
    times = 20_000
    confidence, outcome = sample(150, tied=True)
    weights = own_weights(150, kind)
    events = events_drawn(confidence, outcome, weights, 15).events
    gaps = CoinsOfCrowds(events, seed=0).gaps(times)
    for level in confidence[weights > 0].unique():
        own = weights[confidence == level]
        found = gaps[:, events.confidence == level]
        assert (found == found[:, :1]).all()
        variance = (level * (1 - level) * own.square().sum() / own.sum() ** 2).item()
        assert found[:, 0].mean().abs().item() <= 4 * (variance / times) ** 0.5
        square = found[:, 0].square()
        error = 4 * (square.var() / times).sqrt().item()
        assert square.mean().item() == pytest.approx(variance, abs=error + 1e-12)
        if kind == "plain":
            hits = (found + level) * own.sum()
            assert_close(hits, hits.round())


def test_what_rounding_leaves_beyond_one_is_certain(early: None) -> None:
    confidence = torch.full((300,), 1.0005, dtype=torch.float64)
    confidence[:100] = 0
    events = events_drawn(confidence, confidence.round(), torch.ones(300).double(), 15).events
    gaps = CoinsOfCrowds(events, seed=0).gaps(3)
    assert_close(gaps, (events.confidence.round() - events.confidence).expand(3, -1))


@every_weight
def test_a_mean_of_lots_scatters_as_that_of_samples(kind: str) -> None:
    n, times = 20_000, 2_000
    values = torch.randn(n, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    values = values.sort().values  # in an order that must not matter
    weights = own_weights(n, kind)
    mean = mean_drawn(values, Lots.of(weights))
    drawn = scatter({"mean": Row(lambda: values.mean(), mean)}, weights, times, 0)["mean"]
    true = (weights * values).sum() / weights.sum()
    spread = (weights * (values - true)).square().sum().sqrt() / weights.sum()
    assert abs(drawn.mean() - true) < 4 * spread / times**0.5
    # Chance sorted the samples into 4,096 lots, and chance drew those.
    lots = mean.population
    assert lots is not None
    heavy = (lots.weights * (mean.values - true)).pow(4).mean()
    square = (lots.weights * (mean.values - true)).square().mean()
    error = 4 * (((heavy / square**2 - 1) / 4096 + 2 / times) / 4) ** 0.5
    assert (drawn.std() / spread).item() == pytest.approx(1, abs=error.item())


def test_a_lot_is_infinite_where_a_sample_that_counts_is(early: None) -> None:
    values = torch.ones(400, dtype=torch.float64)
    values[[3, 7]] = math.inf
    weights = torch.ones(400, dtype=torch.float64)
    weights[7] = 0
    mean = mean_drawn(values, Lots.of(weights))
    assert mean.values.isinf().sum() == 1
    drawn = scatter({"mean": Row(lambda: values.mean(), mean)}, weights, 4_000, 0)["mean"]
    # It is not drawn as often as a Poisson number of mean one is zero.
    share = (drawn == 1).double().mean().item()
    assert share == pytest.approx(math.exp(-1), abs=4 * (0.233 / 4_000) ** 0.5)
    assert drawn[drawn != 1].isinf().all()


def test_few_samples_are_drawn_one_by_one() -> None:
    few = _crowds.SINGLY_UP_TO
    for n in (few, few + 1):
        confidence, outcome = sample(n)
        ones = torch.ones(n, dtype=torch.float64)
        assert (events_drawn(confidence, outcome, ones, 15).events.crowds is None) == (n == few)
        assert (Lots.of(ones) is None) == (n == few)


@every_weight
def test_lots_say_what_is_drawn_of_crowds(early: None, kind: str) -> None:
    """As many samples of each crowd as lie in the lots, each as often as its lot was drawn."""
    confidence, outcome = sample(700)
    weights = own_weights(700, kind)
    events, lots = events_drawn(confidence, outcome, weights, 15).events, Lots.of(weights)
    crowds = events.crowds
    assert crowds is not None
    assert crowds.crowd is not None
    assert lots is not None
    counted = weights > 0
    assert_close(events.outcome[crowds.crowd], outcome[counted])
    assert_close(events.confidence[crowds.crowd], confidence[counted], rtol=0, atol=0.04)
    counts = torch.cat(list(lots.counts(600, seed=0)))
    assert counts.shape == (600, 64)
    assert_close(counts.sum(dim=1), torch.full((600,), 64.0).double())
    drawn = lots.drawn(counts, crowds)
    assert_close(lots.drawn(torch.ones_like(counts), crowds)[0], crowds.weights)
    for row, found in zip(counts[:5], drawn, strict=False):
        each = (weights * row[lots.lot])[counted]
        slowly = torch.zeros_like(crowds.weights).index_add(0, crowds.crowd, each)
        assert_close(found, slowly)
    assert_close(lots.drawn(counts, lots.population), counts * lots.population.weights)


def test_crowds_are_more_than_are_held_at_once(
    early: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    confidence, outcome = sample(700)
    ones = torch.ones(700, dtype=torch.float64)
    crowds, lots = events_drawn(confidence, outcome, ones, 15).events.crowds, Lots.of(ones)
    assert crowds is not None
    assert lots is not None
    (counts,) = lots.counts(20, seed=0)
    whole = lots.drawn(counts, crowds)
    monkeypatch.setattr(_lots, "_COLUMNS", 7)
    monkeypatch.setattr(_lots, "_ROWS", 9)
    assert [len(block) for block in lots.counts(20, seed=0)] == [9, 9, 2]
    assert torch.equal(lots.drawn(counts, crowds), whole)


def test_groups_are_crowds_or_single_samples_each_by_its_own_number(early: None) -> None:
    confidence, outcome = sample(330)
    small = torch.arange(330) < 90
    found = evaluate_events(confidence, outcome, groups=small, draws=60)
    for group, own in zip(found.groups.values(), (~small, small), strict=True):
        alone = evaluate_events(confidence[own], outcome[own], draws=60)
        assert group.rows == alone.rows


def test_rows_of_crowds_of_lots_and_of_samples_stand_side_by_side(early: None) -> None:
    confidence, outcome = sample(300)
    ones = torch.ones(300, dtype=torch.float64)
    single, crowded = both(confidence, outcome, ones)
    mean = Row(lambda: confidence.mean(), mean_drawn(confidence, Lots.of(ones)))
    rows = {"one": single["ks_error"], "other": crowded["ks_error"], "mean": mean}
    found = estimates(rows, ones, draws=60, level=0.9, seed=3)
    for name, row in rows.items():
        alone = estimates({name: row}, ones, draws=60, level=0.9, seed=3)
        assert alone[name] == found[name]


EXTREMES = ("all right", "all wrong", "one confidence", "certain", "few count", "half", "huge")


@pytest.mark.parametrize("case", EXTREMES)
def test_extremes_of_many_samples_have_intervals(early: None, case: str) -> None:
    confidence, outcome = sample(400)
    weights = torch.ones(400, dtype=torch.float64)
    if case in ("all right", "all wrong"):
        outcome = torch.full_like(outcome, case == "all right")
    if case == "one confidence":
        confidence = torch.full_like(confidence, 0.7)
    if case == "certain":
        confidence = outcome
    if case == "few count":
        weights = (torch.arange(400) % 100 == 7).double()
    if case == "half":
        confidence, outcome = confidence.half(), outcome.half()
    if case == "huge":
        weights = 1e150 * weights
    found = evaluate_events(confidence, outcome, weights=weights, draws=60)
    plain = evaluate_events(confidence, outcome, draws=60)
    for name, row in found.items():
        assert math.isfinite(row.low)
        assert 0 <= row.low <= row.high or name == "nll"
        if case == "huge":
            assert (row.low, row.high) == pytest.approx((plain[name].low, plain[name].high))
    if case == "certain":
        assert all(found[name].high == 0 for name in (*OF_BINS, "ks_error", "mmce", "esd"))


def test_an_answer_that_was_ruled_out_leaves_the_loss_no_end(early: None) -> None:
    logits = torch.randn(300, 3, generator=torch.Generator().manual_seed(0)).double()
    logits[:, 2] = -math.inf
    labels = torch.arange(300) % 2
    labels[5] = 2
    found = evaluate(logits, labels, draws=60)
    assert found["nll"].value == found["nll"].high == math.inf
    assert math.isfinite(found["nll"].low)
    others = Predictions(logits, labels).reweighted((labels < 2).double())
    assert math.isfinite(nll(others).item())


def test_chances_of_labels_have_their_bins_however_these_are_found() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(80, 5, generator=rng, dtype=torch.float64)
    predictions = Predictions(logits, torch.randint(5, (80,), generator=rng))
    draws = LabelDraws(predictions, torch.ones(80).double(), 10)
    labels = torch.randint(5, (80, 12), generator=rng)
    many, few = (draws._bins_of(predictions.probs, some) for some in (labels, labels[:, :4]))
    for found, looked_up in zip(few, many, strict=True):
        assert_close(found, looked_up[:, :4])
    chance = predictions.probs.gather(1, labels)
    assert_close(many[0], (chance * 10).ceil().long() - 1)
    begun = chance[..., None] >= draws.tables.first[labels]
    assert_close(many[1], begun.sum(dim=-1))
