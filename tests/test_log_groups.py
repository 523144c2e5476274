"""Summaries of many groups: each is that of its own rows, at hardly more than the cost of one."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.testing import assert_close

import calibrant as cal
from calibrant.evaluation._groups import members
from calibrant.logs import Batch, PredictionLog, _grouped, _log, open_log
from calibrant.logs._batch import joined as together

pa, parquet = map(import_module, ("pyarrow", "pyarrow.parquet"))

N, GROUPS = 2_000, 40


def names_of(n: int, groups: int) -> NDArray[np.str_]:
    """In no order, the last of them first and rare ones among them."""
    drawn = np.random.default_rng(0).geometric(4 / groups, n) % groups
    return np.array([f"group {groups - k}" for k in drawn])


def a_log(folder: Path, classes: int | None) -> PredictionLog:
    rng = torch.Generator().manual_seed(0)
    names = names_of(N, GROUPS)
    if classes is None:
        sure = torch.rand(N, generator=rng)
        table = {"confidence": sure.numpy(), "correct": torch.bernoulli(sure).bool().numpy()}
    else:
        logits = torch.randn(N, classes, generator=rng)
        table = {f"logit_{k}": column for k, column in enumerate(logits.T.numpy())}
        table["label"] = torch.randint(classes, (N,), generator=rng).numpy()
    parquet.write_table(pa.table(table | {"g": names}), folder / "log.parquet", row_group_size=97)
    return open_log(folder / "log.parquet", groups="g")


@pytest.mark.parametrize("classes", [None, 3])
@pytest.mark.parametrize("enough", [1, 20, 10**6])
def test_a_group_has_the_summary_of_its_rows_however_long_they_waited(
    classes: int | None, enough: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = a_log(tmp_path, classes)
    whole = log.read()
    monkeypatch.setattr(_log, "_NUMBERS", 150)
    monkeypatch.setattr(_grouped, "_DECENT", enough)
    found = log.summaries()
    assert whole.groups is not None
    assert list(found) == sorted(set(whole.groups.tolist()))
    for name, one in found.items():
        alone = cal.Summary(classes)
        whole.part(torch.from_numpy(whole.groups == name)).add_to(alone)
        assert len(one) == len(alone)
        assert_close(one.state, alone.state, rtol=1e-12, atol=1e-12)


def test_many_groups_are_added_in_few_parts_that_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = a_log(tmp_path, None)
    monkeypatch.setattr(_log, "_NUMBERS", 50)
    monkeypatch.setattr(_grouped, "_DECENT", 20)
    added: list[int] = []

    def add_to(batch: Batch, summary: cal.Summary) -> None:
        added.append(len(batch))

    monkeypatch.setattr(Batch, "add_to", add_to)
    log.summaries()
    assert sum(added) == N
    assert max(added) <= 50
    # Batch by batch, each of which has rows of many groups, there would be over five hundred.
    assert len(added) < 5 * GROUPS


def test_what_waits_is_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_log(tmp_path, None)
    monkeypatch.setattr(_log, "_NUMBERS", 50)
    monkeypatch.setattr(_grouped, "_DECENT", 20)
    seen: list[int] = []

    def joined(batches: list[Batch]) -> Batch:
        seen.append(sum(map(len, batches)))
        return together(batches)

    monkeypatch.setattr(_grouped, "joined", joined)
    log.summaries()
    assert sum(seen) == N
    assert max(seen) < 20 * GROUPS + 50


@pytest.mark.parametrize("as_given", [np.asarray, list, lambda names: names.astype(object)])
def test_members_are_the_rows_of_each_name_in_the_order_of_the_names(as_given: object) -> None:
    assert callable(as_given)
    names = np.tile(names_of(N, GROUPS), 3)
    found = members(as_given(names), len(names))
    assert list(found) == sorted(set(names.tolist()))
    for name, own in found.items():
        np.testing.assert_array_equal(own, np.flatnonzero(names == name))


def test_many_groups_are_found_by_comparing_no_name_with_every_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n, groups = 3_000, 300
    compared, copied = [0], []

    class Counted(int):
        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            compared[0] += 1
            return int(self) == other

        def __lt__(self, other: int) -> bool:
            compared[0] += 1
            return int(self) < int(other)

    order = torch.randperm(n, generator=torch.Generator().manual_seed(0)) % groups
    names = np.array([Counted(k) for k in order.tolist()], dtype=object)
    to_cpu = torch.Tensor.cpu

    def cpu(self: torch.Tensor) -> torch.Tensor:
        copied.append(len(self))
        return to_cpu(self)

    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    found = members(names, n, torch.ones(n, dtype=torch.float64))
    assert [len(own) for own in found.values()] == [n // groups] * groups
    assert compared[0] < 30 * n
    assert copied == [n]
