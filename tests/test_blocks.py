"""What is read by blocks, where only values are asked, equals the definitions."""

from functools import partial
from math import isnan, log

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import (
    Predictions,
    brier,
    class_wise,
    ece,
    evaluate,
    kernels,
    mce,
    nll,
    top_label,
)
from calibrant import _tables as tables
from calibrant._checks import extremes, numbers_of
from calibrant._tables import as_floats, same_class, squares_of_rows
from calibrant.criteria import _lifts
from calibrant.measures import _binned, _binned_by_parts
from calibrant.measures._class_gaps import class_wise_ece
from calibrant.predictions._rows import log_of

STATISTICS = [
    "confidence",
    "correct",
    "true_log_prob",
    "predicted",
    "entropy",
    "mean_log_prob",
    "sum_of_squares",
    "true_prob",
]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
# Logarithms of float32 probabilities reach 60 here, and are right to the last bits of that.
CLOSE = {torch.float32: 1e-5, torch.float64: 1e-12}


def awkward(classes: int, dtype: torch.dtype, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Logits with all maxima tied, some tied, one class ruled out, and near certainty."""
    n = 2 * tables.WORTH_IT // classes
    logits = 3 * torch.randn(n, classes, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    logits[: n // 8] = logits[: n // 8].round()
    logits[n // 8 : n // 4] = 1.0
    logits[n // 4, 0] = -torch.inf
    labels[n // 4] = 1
    logits[n // 4 + 1] = 0.0
    logits[n // 4 + 1, 1] = 60.0
    return logits.to(dtype), labels


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("classes", [2, 3, 41])
def test_statistics_of_rows_equal_their_definitions(
    classes: int, dtype: torch.dtype, rng: torch.Generator
) -> None:
    logits, labels = awkward(classes, dtype, rng)
    with kernels.use("definition"):
        defined = Predictions(logits, labels)
        expected = {name: getattr(defined, name) for name in STATISTICS}
        ranks = defined.soft_rank()
    given = Predictions(logits, labels)
    close = CLOSE[given.dtype]
    for name in STATISTICS:
        assert_close(getattr(given, name), expected[name], rtol=close, atol=close)
    assert_close(given.soft_rank(), ranks, rtol=close, atol=close)
    assert ("log_probs", True) not in given._derived  # no second table was made


def test_among_tied_maxima_only_the_first_is_right(rng: torch.Generator) -> None:
    logits = torch.zeros(20_000, 3)
    labels = torch.arange(20_000) % 3
    assert_close(Predictions(logits, labels).correct, (labels == 0).float())
    told = Predictions.from_probabilities(torch.full((20_000, 3), 1 / 3), labels)
    assert_close(told.correct, (labels == 0).float())


def test_a_row_of_nan_is_judged_as_argmax_judges_it() -> None:
    logits = torch.randn(20_000, 3, generator=torch.Generator().manual_seed(0))
    logits[7] = torch.nan
    labels = torch.zeros(20_000, dtype=torch.long)
    with kernels.use("definition"):
        expected = Predictions(logits, labels).correct
    assert_close(Predictions(logits, labels).correct, expected)


def layouts(table: Tensor) -> dict[str, Tensor]:
    """The same numbers, differently laid out in memory."""
    wide = torch.zeros(len(table), 2 * table.shape[1], dtype=table.dtype)
    wide[:, ::2] = table
    rows = torch.zeros(2 * len(table), table.shape[1], dtype=table.dtype)
    rows[1::2] = table
    return {
        "rows": table,
        "columns": table.T.contiguous().T,
        "every other column": wide[:, ::2],
        "every other row": rows[1::2],
        "reversed": table.flip(0).flip(0),
    }


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("classes", [5, 300])
def test_however_they_lie_probabilities_give_the_same_statistics(
    classes: int, dtype: torch.dtype, rng: torch.Generator
) -> None:
    logits, labels = awkward(classes, torch.float64, rng)
    probs = logits.softmax(dim=1).to(dtype)
    for name, table in layouts(probs).items():
        told = Predictions.from_probabilities(table, labels)
        wide = probs.to(told.dtype)
        assert told.predicted.equal(probs.argmax(dim=1)), name
        assert told.confidence.equal(wide.amax(dim=1)), name
        assert told.correct.equal((probs.argmax(dim=1) == labels).to(told.dtype)), name
        logs = wide.clamp(min=torch.finfo(told.dtype).tiny).log()
        assert_close(told.entropy, -(wide * logs).sum(dim=1))
        assert_close(told.mean_log_prob, logs.mean(dim=1))
        assert_close(told.logits, logs)
        assert_close(nll(told), -logs.gather(1, labels[:, None]).mean())
        one_hot = torch.nn.functional.one_hot(labels, classes)
        assert_close(brier(told), (wide - one_hot).square().sum(dim=1).mean())


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("classes", [7, 300])
def test_two_threads_see_what_one_sees(
    classes: int, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits, labels = awkward(classes, torch.float32, rng)
    probs = logits.softmax(dim=1)
    monkeypatch.setattr(tables._blocks, "BLOCK_BYTES", 3_000)
    told = Predictions.from_probabilities(probs, labels)
    assert told.confidence.equal(probs.amax(dim=1))
    assert told.correct.equal((probs.argmax(dim=1) == labels).float())
    assert_close(told.sum_of_squares, probs.square().sum(dim=1))
    assert tables.first_largest(probs).equal(probs.argmax(dim=1))
    some = torch.randint(len(probs), (999,), generator=rng)
    assert tables.first_largest_of(probs, some).equal(probs[some].argmax(dim=1))


@pytest.mark.usefixtures("two_threads")
def test_parts_are_done_once_each_by_whichever_thread_is_free() -> None:
    done: list[slice] = []
    parts = [slice(place, place + 1) for place in range(1000)]
    tables.side_by_side(done.append, parts)
    assert sorted(part.start for part in done) == list(range(1000))


@pytest.mark.usefixtures("two_threads")
def test_what_goes_wrong_in_a_part_is_heard_of() -> None:
    def work(part: slice) -> None:
        if part.start == 3:
            raise MemoryError("no room")

    for _ in range(20):  # by whichever thread
        with pytest.raises(MemoryError, match="no room"):
            tables.side_by_side(work, [slice(place, None) for place in range(8)])


@pytest.mark.parametrize("asked_before", [False, True])
def test_of_tied_probabilities_the_first_is_the_answer(asked_before: bool) -> None:
    rows = torch.tensor([[0.5, 0.5, 0.0], [0.4, 0.2, 0.4], [0.2, 0.4, 0.4], [0.0, 0.0, 1.0]])
    told = Predictions.from_probabilities(
        rows.repeat(20_000, 1), torch.tensor([1, 2, 1, 2]).repeat(20_000)
    )
    if asked_before:
        assert told.predicted.equal(torch.tensor([0, 0, 1, 2]).repeat(20_000))
    assert told.correct.equal(torch.tensor([0.0, 0.0, 1.0, 1.0]).repeat(20_000))


@pytest.mark.parametrize("row", [[torch.nan] * 4, [1.5, -0.5, 0.0, 0.0], [0.0] * 4])
def test_a_row_whose_maximum_is_no_chance_is_seen_among_any_number(row: list[float]) -> None:
    table = torch.full((300_000, 4), 0.25)
    table[100_001] = torch.tensor(row)
    with pytest.raises(ValueError, match="each row must sum to one"):
        Predictions.from_probabilities(table, torch.zeros(300_000, dtype=torch.long))


def test_one_bad_row_of_a_very_large_table_is_seen_by_evaluate() -> None:
    table = torch.full((300_000, 4), 0.25)
    table[100_001, 0] = 0.27
    labels = torch.zeros(300_000, dtype=torch.long)
    assert len(Predictions.from_probabilities(table, labels)) == 300_000  # too many to add up
    with pytest.raises(ValueError, match="each row must sum to one"):
        evaluate(table, labels, probabilities=True, draws=39)


def spoilt(how: str) -> Tensor:
    table = torch.full((30_000, 4), 0.25, dtype=torch.float64)
    if how == "negative":
        table[29_999] = torch.tensor([0.6, 0.5, -0.1, 0.0])
    elif how == "sum":
        table[123, 0] = 0.27
    elif how == "nan":
        table[5, 2] = torch.nan
    else:
        table[17] = 0.0
    return table


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("how", ["negative", "sum", "nan", "zeros"])
def test_one_bad_row_among_many_is_seen(how: str, dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match="each row must sum to one"):
        Predictions.from_probabilities(spoilt(how).to(dtype), torch.zeros(30_000, dtype=torch.long))


def test_minus_zero_is_no_negative_probability() -> None:
    table = torch.tensor([[1.0, -0.0], [0.25, 0.75]]).repeat(20_000, 1)
    told = Predictions.from_probabilities(table, torch.zeros(40_000, dtype=torch.long))
    assert told.predicted.equal(torch.tensor([0, 1]).repeat(20_000))


def test_gradients_are_those_of_the_definitions(rng: torch.Generator) -> None:
    logits, labels = awkward(5, torch.float64, rng)
    logits = logits.nan_to_num(neginf=-30.0)

    def gradient(given: Tensor) -> Tensor:
        leaf = given.clone().requires_grad_()
        predictions = Predictions(leaf, labels)
        with torch.no_grad():
            assert not predictions.confidence.requires_grad
        total = top_label(ece)(predictions) + brier(predictions) + class_wise(ece)(predictions)
        return torch.autograd.grad(total, leaf)[0]

    with kernels.use("definition"):
        expected = gradient(logits)
    assert_close(gradient(logits), expected)


def test_probabilities_have_gradients_after_a_look_without(rng: torch.Generator) -> None:
    leaf = torch.rand(200, 4, generator=rng).softmax(dim=1).requires_grad_()
    with torch.no_grad():
        told = Predictions.from_probabilities(leaf, torch.zeros(200, dtype=torch.long))
        assert not told.confidence.requires_grad
    told.confidence.sum().backward()
    assert_close(leaf.grad, torch.zeros(200, 4).scatter(1, told.predicted[:, None], 1.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("bins", [1, 2, 10, 15, 1000])
def test_bins_by_arithmetic_are_those_of_bucketize(
    bins: int, dtype: torch.dtype, rng: torch.Generator
) -> None:
    edges = torch.arange(bins + 1, dtype=dtype) / bins
    one = torch.ones((), dtype=dtype)
    near = [torch.nextafter(edges, side * one) for side in (-1, 2)]
    odd = torch.tensor([0.0, 1.0, torch.nan, -5e-4, 1.0005, 5e-324, -0.3, 1.77], dtype=dtype)
    random = torch.rand(3 * tables.PART, generator=rng, dtype=dtype)
    confidence = torch.cat([edges, *near, odd, random])
    inner = edges[1:-1].contiguous()
    found = _binned.assign_bins(confidence, bins=bins, binning="width")
    assert found.equal(torch.bucketize(confidence, inner))


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("weighted", [False, True])
def test_binned_errors_by_parts_are_those_of_the_whole(
    weighted: bool, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 5 * tables.PART + 5
    confidence = (torch.rand(n, generator=rng, dtype=torch.float64) * 60).round() / 60
    outcome = torch.bernoulli(confidence**2, generator=rng)
    weights = torch.rand(n, generator=rng, dtype=torch.float64) if weighted else None
    for measure in (ece, partial(ece, norm=2), mce):
        by_parts = measure(confidence, outcome, weights=weights)
        with monkeypatch.context() as patch:
            patch.setattr(_binned_by_parts, "MANY", 10**9)
            patch.setattr(_binned, "MANY", 10**9)
            assert_close(by_parts, measure(confidence, outcome, weights=weights))


def test_a_million_float32_confidences_add_up() -> None:
    confidence = torch.full((1_000_000,), 0.9)
    outcome = torch.ones(1_000_000)
    assert_close(ece(confidence, outcome), torch.tensor(0.1), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("classes", [2, 3, 41])
@pytest.mark.parametrize("given", ["logits", "probabilities", "weighted"])
@pytest.mark.parametrize("settings", [{}, {"bins": 1}, {"bins": 7, "norm": 2}], ids=str)
def test_class_wise_errors_equal_one_class_after_the_other(
    classes: int, dtype: torch.dtype, given: str, settings: dict[str, int], rng: torch.Generator
) -> None:
    logits, labels = awkward(classes, dtype, rng)
    if given == "probabilities":
        exact = logits.double().softmax(dim=1)
        # Sixteenths, on the borders of sixteen bins, and certainty.
        exact[:100] = 0
        exact[:100, 0], exact[:100, 1] = 1 / 16, 15 / 16
        exact[100:200] = torch.eye(classes, dtype=torch.float64)[labels[100:200]]
        settings = {**settings, "bins": 16}
        predictions = Predictions.from_probabilities(exact.to(dtype), labels)
    elif given == "weighted":
        weights = torch.rand(len(labels), generator=rng)
        predictions = Predictions(logits, labels, weights=weights)
    else:
        predictions = Predictions(logits, labels)
    criterion = class_wise(partial(ece, **settings))  # type: ignore[arg-type]
    assert isinstance(criterion, _lifts._ClassWise)
    fast = class_wise_ece(predictions, **settings)  # type: ignore[arg-type]
    assert fast is not None
    close = 1e-12 if dtype == torch.float64 else 5e-7
    assert_close(fast, criterion._one_by_one(predictions), rtol=0, atol=close)


@pytest.mark.parametrize("scale", [1e-50, 1e39])
def test_only_proportions_of_weights_count_over_classes(scale: float, rng: torch.Generator) -> None:
    logits, labels = awkward(41, torch.float32, rng)
    weights = torch.rand(len(labels), generator=rng, dtype=torch.float64)
    expected = class_wise(ece)(Predictions(logits, labels, weights=weights))
    assert_close(class_wise(ece)(Predictions(logits, labels, weights=scale * weights)), expected)


def test_every_sample_counts_once_in_whatever_blocks(
    rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits, labels = awkward(41, torch.float64, rng)
    criterion = class_wise(ece)
    value = criterion(Predictions(logits, labels))
    with monkeypatch.context() as patch:
        patch.setattr(tables._blocks, "BLOCK_BYTES", 3_000)
        assert_close(criterion(Predictions(logits, labels)), value)
        assert_close(Predictions(logits, labels).confidence, logits.softmax(dim=1).amax(dim=1))
    assert np.isfinite(value.item())


@pytest.mark.parametrize("shape", [(1, 2), (41, 1271), (3000, 400), (3, 5000)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_squares_are_added_up_as_by_definition(
    shape: tuple[int, int], dtype: torch.dtype, rng: torch.Generator
) -> None:
    table = torch.rand(shape, generator=rng, dtype=dtype)
    expected = table.double().square().sum(dim=1).to(dtype)
    for given in (table, table.T.contiguous().T, table.clone().requires_grad_()):
        found = squares_of_rows(given)
        assert found.dtype == dtype
        assert found.requires_grad == given.requires_grad
        assert_close(found.detach(), expected)


@pytest.mark.parametrize("columns", [1000, 4000])
def test_the_last_digits_of_many_equal_squares_are_right(columns: int) -> None:
    """Equal ones are rounded the same way at each addition."""
    table = torch.full((64, columns), 1 / columns)
    for given in (table, table.T.contiguous().T):
        assert_close(squares_of_rows(given), torch.full((64,), 1 / columns), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_few_logarithms_are_those_of_many(dtype: torch.dtype, rng: torch.Generator) -> None:
    many = torch.rand(200_000, generator=rng, dtype=dtype)
    many[:3] = torch.tensor([0.0, 1.0, torch.nan])
    found = torch.cat([log_of(some) for some in many.split(1000)])
    assert_close(found, log_of(many), equal_nan=True)
    assert_close(found[3:], many[3:].double().log().to(dtype))
    assert found[0] == pytest.approx(log(torch.finfo(dtype).tiny))


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.int32, torch.int64, torch.int16])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_whole_numbers_are_converted_and_compared(
    kind: torch.dtype, dtype: torch.dtype, rng: torch.Generator
) -> None:
    one, other = (torch.randint(2, (50_000,), generator=rng).to(kind) for _ in range(2))
    assert_close(as_floats(one, dtype), one.to(dtype), rtol=0, atol=0)
    assert_close(same_class(one, other, dtype), (one == other).to(dtype), rtol=0, atol=0)
    assert extremes(one) == (0, 1)


def test_a_trace_sees_torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(8)
    assert numbers_of(x) is not None
    assert tables.unrecorded(x)
    monkeypatch.setattr(torch._C, "_get_tracing_state", object)
    assert numbers_of(x) is None
    assert not tables.unrecorded(x)


@pytest.mark.parametrize("kind", [torch.uint16, torch.uint64, torch.int8, torch.bool])
def test_extremes_of_many_whole_numbers_are_found(
    kind: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant._checks._tensors._FEW", 0)
    assert extremes(torch.tensor([1, 0, 1]).to(kind)) == (0, 1)


def test_extremes_of_nan_are_nan() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        low, high = extremes(torch.tensor([0.5, torch.nan, 2.0], dtype=dtype))
        assert isnan(low)
        assert isnan(high)


@pytest.mark.parametrize("threads", [1, 3])
def test_work_side_by_side_is_done_once_and_its_errors_are_told(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    done: list[int] = []
    tables.side_by_side(lambda part: done.append(part.start), [slice(i, i + 1) for i in range(20)])
    assert sorted(done) == list(range(20))

    def fail(part: slice) -> None:
        if part.start == 13:
            raise ValueError("thirteen")
        done.append(part.start)

    with pytest.raises(ValueError, match="thirteen"):
        tables.side_by_side(fail, [slice(i, i + 1) for i in range(20)])
