"""Long columns that are read part by part give what the definitions give of whole ones."""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import (
    Criterion,
    Measure,
    Predictions,
    Score,
    accuracy,
    brier,
    debiased_ece,
    ece,
    mce,
    nll,
    smooth_ece,
    top_label,
)
from calibrant._checks import are_up_to, check_labels
from calibrant._tables import PART, events_of
from calibrant.criteria import BY_PARTS, name_of
from calibrant.measures._binned import assign_bins

N = 2 * PART + 77
MEASURES: dict[str, Measure] = {
    "ece": ece,
    "ece of few bins": partial(ece, bins=2),
    "ece of many bins": partial(ece, bins=5_000),
    "ece of more bins than a part": partial(ece, bins=PART + 1),
    "l2": partial(ece, norm=2),
    "mce": mce,
    "equal mass": partial(ece, binning="mass"),
    "largest of equal mass": partial(mce, binning="mass"),
    "debiased": debiased_ece,
    "debiased width": partial(debiased_ece, binning="width"),
    "smooth": smooth_ece,
}
every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])


def columns(dtype: torch.dtype, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Confidences on borders, next to them, at and beyond both ends, and many alike."""
    confidence = torch.rand(N, generator=rng, dtype=torch.float64).to(dtype)
    borders = (torch.arange(16) / 15).to(dtype)
    confidence[:16], confidence[16:31] = borders, torch.nextafter(borders[1:], borders[:1])
    confidence[31:46] = torch.nextafter(borders[:-1], borders[-1:])
    confidence[46:48] = torch.tensor([-5e-4, 1.0005])
    confidence[N // 2 :] = 1 - confidence[N // 2 :] / 30
    outcome = torch.bernoulli(confidence.clamp(0, 1).double() ** 2, generator=rng).long()
    return confidence, outcome


@every_measure
@weighted_or_not
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_events_in_parts_are_judged_as_on_the_graph(
    measure: Measure, weighted: bool, dtype: torch.dtype, rng: torch.Generator
) -> None:
    confidence, outcome = columns(dtype, rng)
    given = {"weights": torch.rand(N, generator=rng).round(decimals=1)} if weighted else {}
    expected = measure(confidence.clone().requires_grad_(), outcome, **given).detach()
    close = 2e-6 if dtype == torch.float32 else 1e-9
    for kind in (torch.bool, torch.uint8, torch.int64, torch.float32, torch.float64):
        found = measure(confidence, outcome.to(kind), **given)
        assert found.dtype == dtype
        assert_close(found, expected, rtol=close, atol=1e-9)


@every_measure
@weighted_or_not
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_chances_in_parts_are_judged_as_the_table_is(
    measure: Measure, weighted: bool, dtype: torch.dtype, rng: torch.Generator
) -> None:
    chance, labels = columns(torch.float64, rng)
    chance = chance.clamp(0, 1).to(dtype)
    chance[100:200] = 0.5
    weights = torch.rand(N, generator=rng) if weighted else None
    table = torch.stack([1 - chance, chance], dim=1).requires_grad_()
    expected = top_label(measure)(Predictions.from_probabilities(table, labels, weights=weights))
    told = Predictions.from_probabilities(chance, labels, weights=weights)
    close = 1e-9 if dtype == torch.float64 else 2e-6
    assert_close(top_label(measure)(told), expected.detach(), rtol=close, atol=1e-9)


@cache
def table_and_labels(classes: int, odd: bool, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """A little more than a part, the same for every measure."""
    rng = torch.Generator().manual_seed(7)
    table = (4 * torch.randn(PART + 77, classes, generator=rng)).softmax(dim=1).to(dtype)
    if odd:
        table[0] = 0.0
        table[0, 1] = 1.0009  # rounded
        table[1] = 1 / classes  # tied
    return table, torch.multinomial(table.float(), 1, generator=rng)[:, 0]


@every_measure
@weighted_or_not
@pytest.mark.parametrize("odd", [False, True], ids=["", "odd"])
@pytest.mark.parametrize("classes", [3, 300])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_a_table_is_judged_as_its_columns_are(
    measure: Measure,
    weighted: bool,
    classes: int,
    odd: bool,
    dtype: torch.dtype,
    rng: torch.Generator,
) -> None:
    table, labels = table_and_labels(classes, odd, dtype)
    weights = torch.rand(len(labels), generator=rng) if weighted else None
    found = top_label(measure)(Predictions.from_probabilities(table, labels, weights=weights))
    wide = table.to(torch.promote_types(dtype, torch.float32))
    correct = (wide.argmax(dim=1) == labels).to(wide.dtype)
    settings = {"weights": weights} if weighted else {}
    on_the_graph = wide.amax(dim=1).requires_grad_()
    assert_close(found, measure(on_the_graph, correct, **settings).detach())


def test_logarithms_leave_the_chances_as_they_were(rng: torch.Generator) -> None:
    chances, labels = torch.rand(N, generator=rng), torch.randint(2, (N,), generator=rng)
    before = chances.clone()
    predictions = Predictions.from_probabilities(chances, labels)
    assert_close(predictions.true_log_prob.exp(), predictions.true_prob)
    assert_close(chances, before, rtol=0, atol=0)
    assert_close(nll(predictions), nll(Predictions(predictions.probs.log(), labels)))


def test_a_column_of_memory_is_not_made_where_parts_do(rng: torch.Generator) -> None:
    chance, labels = columns(torch.float32, rng)
    told = Predictions.from_probabilities(chance.clamp(0, 1), labels)
    for measure in (ece, mce, smooth_ece, partial(ece, norm=2)):
        top_label(measure)(told)
    assert not told._derived


@pytest.mark.parametrize(
    "criterion", [top_label(ece), top_label(smooth_ece), brier, nll], ids=name_of
)
def test_extra_memory_for_chances_is_a_twentieth_of_them(criterion: Criterion) -> None:
    chance = torch.linspace(0, 1, 1_000_000)
    told = Predictions.from_probabilities(chance, (chance > 0.4).long())
    assert peak_bytes(lambda: criterion(told)) < 0.05 * (chance.nbytes + told.labels.nbytes)


@pytest.mark.parametrize("measure", [ece, mce, smooth_ece])
def test_extra_memory_for_events_is_a_twentieth_of_them(measure: Measure) -> None:
    chance = torch.linspace(0, 1, 1_000_000)
    outcome = (chance > 0.4).long()
    assert peak_bytes(lambda: measure(chance, outcome)) < 0.05 * (chance.nbytes + outcome.nbytes)


def peak_bytes(judge: Callable[[], Tensor]) -> int:
    """What NumPy takes at most, less what it keeps for next time."""
    judge()
    tracemalloc.start()
    try:
        judge()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("measure", [ece, mce, debiased_ece, smooth_ece])
def test_where_gradients_are_recorded_nothing_is_read_by_parts(measure: Measure) -> None:
    assert measure in BY_PARTS
    confidence = torch.linspace(0, 1, 2_000)
    outcome, weights = confidence.round(), torch.ones(2_000)
    assert events_of(confidence, outcome, weights) is not None
    for recorded in range(3):
        given = [confidence, outcome, weights]
        given[recorded] = given[recorded].clone().requires_grad_()
        assert events_of(*given) is None
    assert events_of(confidence.clone().requires_grad_(), outcome, None) is None
    leaf = confidence.clone().requires_grad_()
    told = Predictions.from_probabilities(leaf, outcome.long())
    assert told.events is None
    with torch.no_grad():
        assert told.events is not None


@every_measure
def test_columns_may_lie_apart_and_be_shared(measure: Measure, rng: torch.Generator) -> None:
    confidence, outcome = columns(torch.float32, rng)
    both = torch.stack([confidence, outcome.float()], dim=1)
    assert_close(measure(*both.unbind(1)), measure(confidence, outcome))
    same = torch.tensor([0.7]).expand(N)
    assert_close(measure(same, outcome), measure(same.contiguous(), outcome))


@pytest.mark.parametrize("norm", [1, 2])
def test_bins_of_a_few_numbers_each_hold_these_few(norm: float) -> None:
    measure = partial(ece, bins=3_000_001, norm=norm)
    confidence = 0.75 - torch.arange(4_096) * 2.0**-24
    outcome = assign_bins(confidence, bins=3_000_001, binning="width") % 2
    expected = measure(confidence.clone().requires_grad_(), outcome).detach()
    assert_close(measure(confidence, outcome), expected)


def test_no_number_makes_no_number(rng: torch.Generator) -> None:
    confidence, outcome = columns(torch.float32, rng)
    confidence[PART + 3] = torch.nan
    for measure in (ece, mce, smooth_ece):
        assert measure(confidence, outcome).isnan()


def test_weights_that_cannot_be_are_refused_of_chances_too(rng: torch.Generator) -> None:
    chance, labels = columns(torch.float32, rng)
    told = Predictions.from_probabilities(chance.clamp(0, 1), labels)
    with pytest.raises(ValueError, match="weights must be finite and not negative"):
        top_label(ece)(told.reweighted(-torch.ones(N)))


@dataclass
class _Lead:
    """A measure of somebody's own, which Python cannot look up since it can be changed."""

    scale: float

    def __call__(self, confidence: Tensor, outcome: Tensor) -> Tensor:
        return self.scale * (confidence - outcome).mean()


def test_a_measure_need_not_be_hashable(predictions: Predictions) -> None:
    expected = 2 * (predictions.confidence - predictions.correct).mean()
    assert_close(top_label(_Lead(2.0))(predictions), expected)


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str
)
def test_both_classes_are_off_by_as_much(dtype: torch.dtype, rng: torch.Generator) -> None:
    chance, labels = (x[:300] for x in columns(torch.float64, rng))
    chance = chance.clamp(0, 1).to(dtype)
    table = Predictions.from_probabilities(torch.stack([1 - chance, chance], dim=1), labels)
    found = Predictions.from_probabilities(chance, labels).squared_error
    last = 4 * torch.finfo(dtype).eps
    assert_close(found, table.squared_error, rtol=last, atol=last)
    assert_close(found, brier.per_sample(table), rtol=last, atol=last)


def test_the_brier_score_of_chances_has_the_gradient_of_its_definition(
    rng: torch.Generator,
) -> None:
    chance = torch.rand(300, generator=rng, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(2, (300,), generator=rng)
    (slope,) = torch.autograd.grad(brier(Predictions.from_probabilities(chance, labels)), chance)
    assert_close(slope, 4 * (chance.detach() - labels) / 300)


@pytest.mark.parametrize("most", [0, 1, 9, 999])
@pytest.mark.parametrize(
    "kind",
    [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int64, torch.float32, torch.float64],
    ids=str,
)
def test_one_look_tells_that_all_are_small(kind: torch.dtype, most: int) -> None:
    floating = kind.is_floating_point
    numbers = torch.tensor([0, 1, 9, 120, -1, -120] + [0.5, 1.5, torch.nan] * floating)
    for x in numbers.to(kind):
        truth = bool(x.double() >= 0) and bool(x.double() <= most)
        assert are_up_to(most, torch.stack([torch.zeros_like(x), x])) == truth
    assert not are_up_to(most, torch.empty(0, dtype=kind))


def test_minus_zero_is_a_chance_and_minus_one_no_label() -> None:
    labels = torch.zeros(2, dtype=torch.long)
    assert not are_up_to(1, torch.tensor([-0.0]))
    assert Predictions.from_probabilities(torch.tensor([-0.0, 1.0]), labels).confidence.all()
    for narrow in (torch.int8, torch.int16):
        with pytest.raises(ValueError, match="labels must lie between 0 and 999"):
            check_labels(torch.tensor([-1, 5], dtype=narrow), torch.zeros(2, 1000))


@pytest.mark.parametrize("chance", [0.25, 0.1, 0.33, 0.9])
@pytest.mark.parametrize("score", [brier, nll], ids=["brier", "nll"])
def test_means_of_parts_are_right_to_the_last_digit(score: Score[[]], chance: float) -> None:
    """Equal numbers are rounded the same way at each addition: in float32 that would show."""
    n = 3 * 2**20
    told = Predictions.from_probabilities(torch.full((n,), chance), torch.ones(n, dtype=torch.long))
    exact = score.per_sample(told).double().mean().item()
    assert score(told).item() == pytest.approx(exact, rel=1e-7)
    assert accuracy(told).item() == float(chance > 0.5)
