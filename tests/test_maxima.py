"""Confidence and correctness of tables of probabilities, small and long, however they are read."""

from _thread import start_new_thread
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions
from calibrant import _tables as tables
from calibrant._tables import _blocks, _places
from calibrant._tables._windows import windows_of

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def correct_by_definition(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Row by row: nothing is larger than the label, and nothing before it as large."""
    right = []
    for row, label in zip(probabilities.tolist(), labels.tolist(), strict=True):
        right.append(row.index(max(row)) == label)
    return torch.tensor(right)


def coarse(n: int, columns: int, dtype: torch.dtype, rng: torch.Generator) -> Tensor:
    """Rows that sum to one, some nearly certain and most with several maxima."""
    raised = torch.randint(0, 5, (n, columns), generator=rng).double()
    sparse = (torch.rand(n, columns, generator=rng) < 8 / columns).double()
    table = raised * sparse + 1e-6
    table[::3, 1] += 10
    return (table / table.sum(dim=1, keepdim=True)).to(dtype)


def labels_of(table: Tensor, rng: torch.Generator) -> Tensor:
    """One of the largest entries of each row, or now and then any."""
    maxima = (table == table.amax(dim=1, keepdim=True)).double() + 1e-4
    return torch.multinomial(maxima, 1, generator=rng)[:, 0]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("columns", [2, 3, 63, 64, 65, 256, 300, 500, 777])
@pytest.mark.parametrize("n", [1, 3, 301])
def test_confidence_and_correctness_equal_their_definitions(
    n: int,
    columns: int,
    dtype: torch.dtype,
    threads: int,
    rng: torch.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(_places, "WORTH_IT", 0)
    monkeypatch.setattr(_places, "_WORTH_A_THREAD", 0)
    monkeypatch.setattr(_places, "_ROWS", 100)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 2**13)
    table = coarse(n, columns, dtype, rng)
    labels = labels_of(table.float(), rng)
    for given in (table, table.T.contiguous().T, table.repeat(1, 2)[:, :columns]):
        told = Predictions.from_probabilities(given, labels)
        assert told.confidence.equal(table.amax(dim=1).to(told.dtype))
        assert told.correct.equal(correct_by_definition(table, labels).to(told.dtype))


def test_windows_cover_each_row_and_little_of_it_twice() -> None:
    some = 0
    for columns in range(1, 5_000):
        windows = windows_of(columns)
        if windows is not None:
            starts = range(0, columns - windows.length + 1, windows.step)
            assert windows.step <= windows.length
            assert starts[-1] + windows.length == columns
            assert len(starts) * windows.length < 1.1 * columns
            some += 1
    assert windows_of(1_000) is not None
    assert some > 1_000


def test_of_maxima_tied_across_windows_the_first_is_the_answer() -> None:
    windows = windows_of(1_000)
    assert windows is not None
    ends = [windows.step - 1, windows.step, windows.length - 1, windows.length]
    table, labels, right = torch.full((2_100, 1_000), 1e-5), [], []
    pairs = [(a, b) for a in [0, *ends, 2 * windows.step, 999] for b in ends if a != b]
    for row in range(len(table)):
        first, second = pairs[row // 2 % len(pairs)]
        table[row, [first, second]] = 0.49
        labels.append([first, second][row % 2])
        right.append(labels[-1] == min(first, second))
    table[:, 500] += 1 - table.sum(dim=1)
    told = Predictions.from_probabilities(table, torch.tensor(labels))
    assert told.correct.tolist() == right
    for own in (torch.arange(0, 2_100, 3), slice(0, 2_100, 7)):
        unasked = Predictions.from_probabilities(table, torch.tensor(labels))
        assert unasked._some(own, None).correct.equal(told.correct[own])


@pytest.mark.parametrize("columns", [4, 1_000])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nan_of_either_sign_in_one_of_many_rows_is_seen(columns: int, sign: float) -> None:
    table = torch.full((600, columns), 1 / columns)
    table[401, columns // 3] = torch.copysign(torch.tensor(torch.nan), torch.tensor(sign))
    with pytest.raises(
        ValueError, match="got values from nan to nan, and nan as the sum of row 401 "
    ):
        Predictions.from_probabilities(table, torch.zeros(600, dtype=torch.long))


@pytest.mark.parametrize("columns", [4, 70])
def test_how_far_a_row_is_off_is_told_whichever_way(columns: int) -> None:
    for wrong in (0.25, -0.25):
        table = torch.full((600, columns), 1 / columns)
        table[7, 1] += wrong + 1 / columns
        table[7, 0] -= 1 / columns
        found = f"{1 + wrong} as the sum of row 7 " if columns == 4 and wrong > 0 else "row 7 "
        told = rf"got values from -?[\d.e-]+ to [\d.]+, and .*{found}"
        with pytest.raises(ValueError, match=told):
            Predictions.from_probabilities(table, torch.zeros(600, dtype=torch.long))


@pytest.mark.parametrize("columns", [10, 600])
def test_inside_a_transform_constant_probabilities_are_judged_as_outside(
    columns: int, rng: torch.Generator
) -> None:
    table = coarse(70, columns, torch.float32, rng)
    labels = labels_of(table, rng)

    def scaled(by: Tensor) -> Tensor:
        return by * Predictions.from_probabilities(table, labels).correct.sum()

    slope = torch.func.grad(scaled)(torch.tensor(1.0))
    assert_close(slope, correct_by_definition(table, labels).float().sum())


def search_many_parts(
    start: Callable[..., int], threads: int, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With threads started by `start`, and small parts, so that each thread finds some."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(_blocks, "start_new_thread", start)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 2**12)
    table = coarse(tables.WORTH_IT // 600 + 7, 600, torch.float32, rng)
    labels = labels_of(table, rng)
    told = Predictions.from_probabilities(table, labels)
    assert told.predicted.equal(table.argmax(dim=1))
    assert told.correct.equal(correct_by_definition(table, labels).float())


@pytest.mark.parametrize("threads", [1, 3])
def test_as_many_threads_are_started_as_torch_has(
    threads: int, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []

    def start(*asked: Any) -> int:
        started.append(asked)
        return start_new_thread(*asked)

    search_many_parts(start, threads, rng, monkeypatch)
    assert len(started) == threads - 1


def test_where_no_thread_can_be_had_one_does_it_all(
    rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    search_many_parts(refuse, 3, rng, monkeypatch)


@pytest.mark.parametrize("columns", [1_000, 40_000])
def test_some_rows_of_every_large_table_are_looked_at(columns: int) -> None:
    table = torch.full((600_000 // columns + 17, columns), 1 / columns)
    table[1:] *= 0.5
    table[1:, 0] = 0.2
    with pytest.raises(ValueError, match=r"each row must sum to one; got .* as the sum of row 1 "):
        Predictions.from_probabilities(table, torch.zeros(len(table), dtype=torch.long))


def test_a_view_with_a_negative_bit_is_read_like_its_numbers() -> None:
    # The imaginary part of a conjugate is such a view: torch holds the opposite numbers.
    chances = torch.tensor([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
    view = torch.complex(torch.zeros(3, 2), -chances).conj().imag
    assert view.is_neg()
    predictions = Predictions.from_probabilities(view, torch.tensor([0, 1, 0]))
    assert predictions.confidence.tolist() == chances.amax(dim=1).tolist()
    assert predictions.correct.tolist() == [1, 1, 1]


def test_infinite_chances_get_the_sentence_and_no_remark_of_numpys() -> None:
    table = torch.tensor([[float("inf"), float("-inf")], [0.5, 0.5]])
    with pytest.raises(ValueError, match="probabilities must not be negative"):
        Predictions.from_probabilities(table, torch.zeros(2, dtype=torch.long))
