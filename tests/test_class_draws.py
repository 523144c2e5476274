"""Rows by class scatter as labels do that are drawn anew."""

import math
from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions, class_wise, ece, evaluate, nll, per_class
from calibrant.evaluation import _chance_blocks, _class_draws
from calibrant.evaluation._class_cells import Cells, ClassTables, _spread_of_trimmed
from calibrant.evaluation._class_draws import LabelDraws, OverClasses, along
from calibrant.evaluation._estimates import estimates
from calibrant.evaluation._interval import inverted
from calibrant.evaluation._resampled import Events
from calibrant.evaluation._rows import Row, rows_of_predictions
from calibrant.evaluation._tempered import Tempered
from calibrant.measures._binned import assign_bins, equal_mass
from calibrant.measures._order import Ascending

BY_CLASS = ("class_wise_ece", "marginal_ece", "per_class_ece")
CRITERIA = {
    "class_wise_ece": class_wise(ece),
    "marginal_ece": class_wise(partial(ece, norm=2, binning="mass"), norm=2),
    "per_class_ece": per_class(ece),
}
ZERO = torch.zeros(1, dtype=torch.float64)


pytestmark = pytest.mark.usefixtures("one_thread")


def sample(n: int, classes: int, *, factor: float = 1.0, seed: int = 0) -> Predictions:
    """Logits that a calibrated model would have, times a factor, some of them tied."""
    rng = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, classes, generator=rng, dtype=torch.float64)
    logits[: n // 4] = logits[: n // 4].round()
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    return Predictions(factor * logits, labels)


def rows_by_class(predictions: Predictions, weights: Tensor | None = None) -> dict[str, Row]:
    own = torch.ones(len(predictions)).double() if weights is None else weights
    rows = rows_of_predictions(predictions, own, 15)
    return {name: rows[name] for name in BY_CLASS}


def over_classes(row: Row) -> OverClasses:
    assert isinstance(row.resampled, OverClasses)
    return row.resampled


@pytest.mark.parametrize(("n", "classes"), [(60, 2), (40, 30), (12, 4)])
def test_a_calibrated_model_scatters_as_the_measures_of_labels_drawn_from_its_chances(
    n: int, classes: int
) -> None:
    """Against the criteria themselves, of as many labels drawn one set after another."""
    predictions, times = sample(n, classes), 600
    rng = torch.Generator().manual_seed(5)
    drawn = torch.multinomial(predictions.probs, times, replacement=True, generator=rng).T
    for name, row in rows_by_class(predictions).items():
        slowly = torch.stack([CRITERIA[name](Predictions(predictions.logits, y)) for y in drawn])
        error = 4 * (2 * slowly.var() / times).sqrt().item()
        for ray in over_classes(row).rays(times, 0, ZERO)[:, :, 0].T:
            assert ray.mean().item() == pytest.approx(slowly.mean().item(), abs=error)
            # The error of a standard deviation is a share of it, 3 % of so many draws.
            assert ray.std().item() == pytest.approx(slowly.std().item(), rel=4 * 0.05)


@pytest.mark.parametrize(("n", "classes"), [(30, 5), (150, 60)])
def test_intervals_of_calibrated_models_begin_at_zero(n: int, classes: int) -> None:
    """Resampled rows called nearly all of these miscalibrated; two or three in a hundred may be."""
    alarms = dict.fromkeys(BY_CLASS, 0)
    for seed in range(60):
        predictions = sample(n, classes, seed=seed)
        ones = torch.ones(n).double()
        found = estimates(rows_by_class(predictions), ones, draws=100, level=0.95, seed=seed)
        for name, one in found.items():
            alarms[name] += one.low > 0
    assert max(alarms.values()) <= 6


def test_intervals_of_many_classes_hold_the_truth_of_a_sharp_model() -> None:
    """Gaps that no class shows by itself; the truth is that of ten thousand more samples."""
    classes, n, times = 60, 400, 25
    rng = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(60_000, classes, generator=rng, dtype=torch.float64)
    chances, told = logits.softmax(dim=1), (1.5 * logits).softmax(dim=1)
    cell = assign_bins(told.reshape(-1), bins=15, binning="width").reshape(told.shape)
    cell = cell + 15 * torch.arange(classes)
    gaps = torch.zeros(15 * classes).double()
    gaps.index_add_(0, cell.reshape(-1), (chances - told).reshape(-1))
    truth = gaps.abs().sum().item() / len(logits) / classes
    held = 0
    for k in range(times):
        some = slice(k * n, (k + 1) * n)
        labels = torch.multinomial(chances[some], 1, generator=rng)[:, 0]
        rows = rows_by_class(Predictions(1.5 * logits[some], labels))
        chosen = {"class_wise_ece": rows["class_wise_ece"]}
        ones = torch.ones(n).double()
        one = estimates(chosen, ones, draws=100, level=0.95, seed=k)["class_wise_ece"]
        held += one.low <= truth <= one.high
    assert held >= 21


def cells_of(chance: Tensor, count: Tensor, truth: Tensor) -> Cells:
    """Of samples that are alike in each cell."""
    squares = torch.stack([chance.square(), chance * truth[0], truth[0].square()])
    return Cells(count / count.sum(), count, chance, truth, torch.zeros_like(truth), squares)


def test_along_a_ray_every_cell_has_the_counts_of_its_truth() -> None:
    """Mean and variance of a binomial law at each place, for chances that rise, fall and end."""
    chance = torch.tensor([0.1, 0.9, 0.4, 0.5, 0.0, 1.0], dtype=torch.float64)
    count = torch.tensor([1.0, 5.0, 30.0, 3.0, 4.0, 2.0], dtype=torch.float64)
    truth = torch.tensor([[0.2, -0.3, -0.1, 0.0, 0.1, -0.2]], dtype=torch.float64)
    cells, draws = cells_of(chance, count, truth), 20_000
    rng = torch.Generator().manual_seed(0)
    hits = torch.binomial(count.expand(draws, -1), chance.expand(draws, -1), rng)
    scales = torch.tensor([0.0, 1.0, 2.0, 8.0], dtype=torch.float64)
    for k in range(len(chance)):
        own = slice(k, k + 1)
        one = replace(cells_of(chance[own], count[own], truth[:, own]), mass=cells.mass[own])
        share = (hits / count * cells.mass)[:, own]
        squares = along("mass", one, share, scales, rng)[:, 0] / one.mass
        for scale, square in zip(scales, squares.T, strict=True):
            moved = (chance[k] + scale * truth[0, k]).clamp(0, 1)
            mean = moved * (1 - moved) / count[k] + (moved - chance[k]).square()
            assert_close(square.mean(), mean, atol=4 * square.std().item() / draws**0.5, rtol=1e-9)
    sizes = along("width", cells, hits / count * cells.mass, scales, rng)
    assert_close(sizes[:, 0, 0], (hits / count - chance).abs() @ cells.mass)


def test_a_place_of_a_ray_differs_little_from_its_neighbour() -> None:
    """A chance that falls takes hits away, and puts none back."""
    chance, count = torch.tensor([0.5]).double(), torch.tensor([100.0]).double()
    cells = cells_of(chance, count, torch.tensor([[-0.4]]).double())
    rng = torch.Generator().manual_seed(0)
    hits = torch.full((50, 1), 30.0).double()
    scales = torch.linspace(0, 1.25, 6, dtype=torch.float64)
    sizes = along("width", cells, hits / count, scales, rng)[:, 0]
    assert_close(sizes[:, 0], torch.full((50,), 0.2).double())
    assert (sizes.diff(dim=1) >= 0).all()
    assert_close(sizes[:, -1], torch.full((50,), 0.5).double())


def test_a_truth_is_less_what_luck_with_the_samples_adds_to_it() -> None:
    """Tempered gaps differ within a cell: of two samples their mean is off by chance."""
    predictions = sample(80, 3, factor=2.0)
    labels = LabelDraws(predictions, torch.ones(80).double(), 4)
    cells = labels.cells("mass")
    tempered = Tempered.of(predictions, torch.full((80,), 1 / 80).double())
    total = 0.0
    for k in range(3):
        chance = predictions.probs[:, k]
        gap = tempered.gap(chance, torch.arange(80))
        order = chance.argsort(stable=True)
        bin_of = assign_bins(chance, bins=4, binning="mass", weights=torch.ones(80).double())
        for b in range(4):
            own = order[bin_of[order] == b]
            # With other samples the borders move too: what is beyond them counts as they do.
            clipped = gap[order.clone()]
            first, last = (int((order == own[end]).nonzero()) for end in (0, -1))
            clipped[:first], clipped[last + 1 :] = clipped[first].clone(), clipped[last].clone()
            square = gap[own].mean().square() - 80 * clipped.var(correction=0) / len(own) ** 2
            total += square.clamp(min=0).item() * len(own) / 80
    found = OverClasses(labels, "mass").truths(torch.ones(1).double())[1, 0]
    assert found.item() == pytest.approx(math.sqrt(total / 3))
    assert (cells.luck[[0, 2]] == 0).all()


def test_means_of_bins_of_equal_mass_scatter_from_sample_to_sample_as_luck_says() -> None:
    """Five bins of a hundred samples, whose gaps grow faster than their chances."""
    rng, n, times = torch.Generator().manual_seed(1), 100, 4000
    chance = torch.rand(times, n, generator=rng, dtype=torch.float64).sort(dim=1).values
    bins = chance.pow(3).reshape(times, 5, n // 5)
    mean, square = bins.mean(dim=2), bins.square().mean(dim=2)
    below, mass = torch.arange(5) / 5, torch.full((5,), 0.2).double()
    spread = _spread_of_trimmed(mass, mean, square, below, bins[..., 0], bins[..., -1])
    seen = mean.var(dim=0)
    # Half the variance of a variance is its square over the number of samples.
    assert_close((spread / (n // 5)).mean(dim=0), seen, rtol=4 * (2 / times) ** 0.5 + 1 / n, atol=0)
    assert ((bins.var(dim=2) / (n // 5)).mean(dim=0) < 0.7 * seen).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_borders_are_those_of_the_outermost_samples(weighted: bool) -> None:
    predictions, weights = sample(70, 3, factor=1.5), torch.ones(70).double()
    if weighted:
        weights = 0.5 + torch.arange(70).double() % 3
    share = weights / weights.sum()
    cells = ClassTables.of(predictions, weights, 6).by_cut["mass"]
    tempered = Tempered.of(predictions, share)
    for k in range(3):
        chance = predictions.probs[:, k]
        gap = tempered.gap(chance, torch.arange(70))
        order = chance.argsort(stable=True)
        bin_of = assign_bins(chance, bins=6, binning="mass", weights=weights)
        for b in bin_of.unique().tolist():
            own = bin_of == b
            mass, mean = share[own].sum(), (share * gap)[own].sum() / share[own].sum()
            least, most = gap[order[own[order]][[0, -1]]]
            laid = torch.where(chance < chance[own].min(), least, gap)
            laid = torch.where(chance > chance[own].max(), most, laid)
            middle = (share * laid).sum()
            spread = (share * (laid - middle).square()).sum() / mass
            place = cells.place[k * 6 + b]
            luck = cells.cells.luck[1, place] * cells.cells.count[place]
            assert_close(luck, spread)
            assert_close(cells.cells.truth[1, place], mean)


@pytest.mark.parametrize("side", [-1, 1])
def test_tempered_outcomes_vary_by_what_thinned_ones_do_and_what_is_beyond(side: int) -> None:
    """Of chances that differ within a cell, as those of its highest bin do."""
    chance = torch.tensor([0.05, 0.1, 0.2, 0.5, 0.9], dtype=torch.float64)
    chance = chance if side < 0 else 1 - chance
    gap = side * torch.tensor([-0.02, 0.0, 0.05, 0.2, 0.3], dtype=torch.float64)
    squares = torch.stack([chance.square(), chance * gap, gap.square()]).mean(dim=1, keepdim=True)
    truth = torch.stack([gap.mean()[None]] * 2)
    one = torch.ones(1).double()
    cell = Cells(one, 5 * one, chance.mean()[None], truth, torch.zeros_like(truth), squares)
    for scale in (0.0, 0.5, 1.0):
        tempered = chance + scale * gap
        # Hits where chances fall, misses where they rise, are kept alike.
        kept, now = (chance, tempered) if side < 0 else (1 - chance, 1 - tempered)
        thinned = kept * now.sum() / kept.sum()
        more = (tempered * (1 - tempered) - thinned * (1 - thinned)).mean()
        found = cell.beyond_thinned(torch.tensor(scale, dtype=torch.float64))
        assert_close(found, more[None], atol=1e-12, rtol=1e-9)
        assert (found > 0) == (scale > 0)
    scales, rng = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64), torch.Generator()
    hits = torch.bernoulli(chance.expand(40_000, -1), generator=rng.manual_seed(0)).mean(dim=1)
    squares = along("mass", cell, hits[:, None], scales, rng)[:, 1]
    for scale, square in zip(scales, squares.T, strict=True):
        tempered = chance + scale * gap
        expected = (tempered * (1 - tempered)).mean() / 5 + (scale * gap.mean()).square()
        assert_close(square.mean(), expected, atol=4 * square.std().item() / 200, rtol=0)


def test_chances_that_would_fall_below_zero_have_no_more_noise() -> None:
    """Far along a ray, where all hits of a cell are gone."""
    chance, gap = torch.tensor([0.1, 0.3]).double(), torch.tensor([-0.1, -0.1]).double()
    squares = torch.stack([chance.square(), chance * gap, gap.square()]).mean(dim=1, keepdim=True)
    truth, one = gap.mean().expand(2, 1), torch.ones(1).double()
    cell = Cells(one, 2 * one, chance.mean()[None], truth, torch.zeros_like(truth), squares)
    assert cell.beyond_thinned(torch.tensor(8.0).double()) == 0


def test_a_tempered_ray_scatters_as_labels_drawn_from_tempered_chances() -> None:
    """Of many classes, where it hardly matters that the cells of each are thinned by themselves."""
    n, times = 200, 800
    predictions = sample(n, 20, factor=2.5)
    rng = torch.Generator().manual_seed(6)
    power = Tempered.of(predictions, torch.full((n,), 1 / n).double()).power
    chances = (power * predictions.log_probs).softmax(dim=1)
    drawn = torch.multinomial(chances, times, replacement=True, generator=rng).T
    zero_and_one = torch.tensor([0.0, 1.0], dtype=torch.float64)
    for name, row in rows_by_class(predictions).items():
        slowly = torch.stack([CRITERIA[name](Predictions(predictions.logits, y)) for y in drawn])
        ray = over_classes(row).rays(times, 0, zero_and_one)[:, 1, 1]
        error = 4 * (2 * slowly.var() / times).sqrt().item()
        assert ray.mean().item() == pytest.approx(slowly.mean().item(), abs=error)
        assert ray.std().item() == pytest.approx(slowly.std().item(), rel=4 * 0.035)


@pytest.mark.parametrize("weighted", [False, True])
def test_cells_are_those_of_each_class_on_its_own(weighted: bool) -> None:
    predictions, rng = sample(70, 9, factor=1.5), torch.Generator().manual_seed(2)
    weights = torch.ones(70).double()
    if weighted:
        weights = 0.5 + torch.rand(70, generator=rng, dtype=torch.float64)
    tables, share = ClassTables.of(predictions, weights, 10), weights / weights.sum()
    for k in range(9):
        chance = predictions.probs[:, k]
        events = Events.of(chance, (predictions.labels == k).double(), weights)
        for cut in ("width", "mass"):
            bin_of = assign_bins(
                chance, bins=10, binning=cut, weights=weights if cut == "mass" else None
            )
            table = tables.by_cut[cut]
            for b in bin_of.unique().tolist():
                own, place = bin_of == b, table.place[k * 10 + b]
                mass = share[own].sum()
                assert_close(table.cells.mass[place], mass)
                size = (mass.square() / share[own].square().sum()).round()
                assert_close(table.cells.count[place], size)
                mean = (share * chance)[own].sum() / mass
                assert_close(table.cells.chance[place], mean)
                sparse = (share * events.shape.sparse)[own].sum() / mass
                assert_close(table.cells.truth[0, place], sparse)
    filled = sum(len((predictions.probs[:, k] * 10 - 1e-12).floor().unique()) for k in range(9))
    assert len(tables.by_cut["width"].cells.mass) == filled


def test_few_classes_at_a_time_make_the_same_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    predictions, ones = sample(50, 12), torch.ones(50).double()
    whole = ClassTables.of(predictions, ones, 15)
    monkeypatch.setattr(_chance_blocks, "_AT_ONCE", 100)
    parts = ClassTables.of(predictions, ones, 15)
    assert_close(parts.first, whole.first)
    for cut, table in whole.by_cut.items():
        assert_close(parts.by_cut[cut].place, table.place)
        for name in ("mass", "count", "chance", "truth", "luck", "squares"):
            assert_close(getattr(parts.by_cut[cut].cells, name), getattr(table.cells, name))


def test_bins_of_equal_mass_are_found_by_where_they_begin() -> None:
    predictions, ones = sample(50, 6), torch.ones(50).double()
    tables = ClassTables.of(predictions, ones, 7)
    for k, first in enumerate(tables.first):
        ascending = Ascending.of(predictions.probs[:, k])
        bins = ascending.unsort(equal_mass(ones, ascending.first_tied, 7))
        found = _class_draws._reached(
            predictions.probs[:, k : k + 1], first[None], torch.zeros(50, 1, dtype=torch.long)
        )
        assert_close(found[:, 0], bins)


def test_an_even_truth_is_as_many_standard_errors_off_everywhere() -> None:
    cells = ClassTables.of(sample(300, 5, factor=2.0), torch.ones(300).double(), 15)
    width = cells.by_cut["width"].cells
    error = (width.chance * (1 - width.chance) / width.count).sqrt()
    ratio = width.truth[2] / error
    assert_close(ratio.abs(), ratio.abs()[:1].expand_as(ratio))
    assert ratio.abs()[0] > 1
    assert torch.equal(ratio > 0, width.chance < 0.5)


@pytest.mark.parametrize(("factor", "power"), [(1.5, 1 / 1.5), (0.7, 1 / 0.7), (1.0, None)])
def test_tempered_chances_are_a_power_of_them(factor: float, power: float | None) -> None:
    predictions = sample(2000, 6, factor=factor)
    found = Tempered.of(predictions, torch.full((2000,), 1 / 2000).double())
    if power is None:
        assert abs(found.power - 1) == pytest.approx(0.1)
    else:
        assert found.power == pytest.approx(power, abs=0.08)
        again = Tempered.of(predictions, torch.full((2000,), 7.0).double())
        assert again.power == pytest.approx(found.power)
        slope = torch.autograd.functional.jacobian(
            lambda at: -nll(Predictions(at * predictions.logits, predictions.labels)),
            torch.tensor(found.power, dtype=torch.float64),
        )
        assert_close(slope, torch.zeros_like(slope), atol=1e-3, rtol=0)
    row, column = torch.arange(2000), torch.full((2000,), 3)
    moved = (found.power * predictions.log_probs).softmax(dim=1) - predictions.probs
    assert_close(found.gap(predictions.probs[row, column], row), moved[row, column])


@pytest.mark.parametrize("name", BY_CLASS)
def test_truths_rise_from_zero_and_ends_come_from_their_rays(name: str) -> None:
    row = rows_by_class(sample(200, 5, factor=1.4))[name]
    scales = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    truths = over_classes(row).truths(scales)
    assert_close(truths[:, 0], torch.zeros(3).double(), atol=1e-12, rtol=0)
    assert (truths.diff(dim=1) > 0).all()
    rays, value = over_classes(row).rays(60, 0, scales), row.value().item()
    sparse, tempered, even = (
        inverted(value, ray, truth, 0.9) for ray, truth in zip(rays.unbind(1), truths, strict=True)
    )
    low, high = over_classes(row).ends(value, rays, truths, 0.9)
    assert low == min(sparse[0], tempered[0])
    assert high == max(sparse[1], tempered[1], even[1])


def test_no_truth_lies_above_what_gaps_can_come_to() -> None:
    rows = rows_by_class(sample(20, 5))
    highest = {name: over_classes(row).highest for name, row in rows.items()}
    expected = {"class_wise_ece": 0.4, "marginal_ece": math.sqrt(0.4), "per_class_ece": 1.0}
    assert highest == pytest.approx(expected)


def test_rows_share_one_set_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Mock(wraps=_class_draws._drawn)
    monkeypatch.setattr(_class_draws, "_drawn", drawn)
    ones = torch.ones(40).double()
    rows = rows_by_class(sample(40, 5))
    first = estimates(rows, ones, draws=50, level=0.95, seed=3)
    assert drawn.call_count == 1
    again = estimates(rows_by_class(sample(40, 5)), ones, draws=50, level=0.95, seed=3)
    other = estimates(rows_by_class(sample(40, 5)), ones, draws=50, level=0.95, seed=4)
    assert again == first
    assert other != first


def test_draws_are_as_many_where_they_do_not_fit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_class_draws, "_AT_ONCE", 100)
    labels = LabelDraws(sample(40, 5), torch.ones(40).double(), 15)
    found = labels.totals(23, 0, ZERO)
    assert {cut: len(totals) for cut, totals in found.items()} == dict.fromkeys(found, 23)


def test_many_labels_or_cells_are_drawn_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = LabelDraws(sample(40, 5), torch.ones(40).double(), 15)
    cells = sum(len(labels.cells(cut).mass) for cut in _class_draws.CUTS)
    monkeypatch.setattr(_class_draws, "_LABELS", 40 * 700)
    assert labels.most == 700
    monkeypatch.setattr(_class_draws, "_COUNTS", cells * 300)
    assert labels.most == 300
    monkeypatch.setattr(_class_draws, "_COUNTS", cells)
    assert labels.most == 100


def test_samples_that_do_not_count_change_nothing() -> None:
    """Weights in two sizes and zeros: as if the zeros were not there, in any scale."""
    predictions = sample(60, 4, factor=1.5)
    weights = torch.tensor([2.0, 1.0, 0.0]).double().repeat(20)
    kept = weights > 0
    one, other = (
        ClassTables.of(
            Predictions(predictions.logits[own], predictions.labels[own]), own_weights, 8
        )
        for own, own_weights in (
            (torch.ones(60, dtype=torch.bool), weights),
            (kept, 3 * weights[kept]),
        )
    )
    for cut in _class_draws.CUTS:
        cells, fewer = one.by_cut[cut].cells, other.by_cut[cut].cells
        filled = cells.mass > 0
        for name in ("mass", "count", "chance"):
            assert_close(getattr(cells, name)[filled], getattr(fewer, name))


@pytest.mark.parametrize("unsure", [0, 5])
@pytest.mark.parametrize("right", [0.0, 0.7])
def test_answers_without_a_doubt_that_are_wrong_are_not_called_calibrated(
    right: float, unsure: int
) -> None:
    """They have no temperature, or next to none: that makes no interval hold zero."""
    rng = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (300,), generator=rng)
    answer = torch.where(torch.rand(300, generator=rng) < right, labels, (labels + 1) % 3)
    chances = torch.eye(3, dtype=torch.float64)[answer]
    chances[:unsure] = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    found = evaluate(chances, labels, probabilities=True, draws=100)
    for name in ("class_wise_ece", "marginal_ece", "per_class_ece"):
        row = found[name]
        assert 0.7 * row.value < row.low <= row.high < 1.4 * row.value, name


def test_chances_of_exactly_zero_and_one_stay_finite() -> None:
    probs = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]).repeat(10, 1)
    labels = torch.tensor([0, 1, 0]).repeat(10)
    for own in (labels, 2 - labels):  # the second contradicts certainties
        predictions = Predictions.from_probabilities(probs, own)
        ones = torch.ones(30).double()
        for one in estimates(
            rows_by_class(predictions), ones, draws=60, level=0.95, seed=0
        ).values():
            assert 0 <= one.low <= one.high < math.inf
