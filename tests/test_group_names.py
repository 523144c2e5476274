"""Groups whose names differ are apart, also where NumPy would spell them alike."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import calibrant as cal
from calibrant.evaluation._groups import members
from calibrant.logs import open_log
from calibrant.report._groups import groups_of
from calibrant.report._models import told
from calibrant.report._settings import Settings

pa, parquet, feather = map(import_module, ("pyarrow", "pyarrow.parquet", "pyarrow.feather"))

EACH = 4
LOGITS = torch.randn(3 * EACH, 2, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(3 * EACH) % 2


class Region(str, Enum):  # noqa: UP042 (people write it so)
    """Names that equal their values, and are not called so."""

    NORTH = "south"
    EAST = "e"


def as_objects(names: list[Any]) -> Any:
    return np.array(names, dtype=object)


@pytest.mark.parametrize("as_given", [list, tuple, as_objects])
@pytest.mark.parametrize(
    "names",
    [
        ["a", "a\0", "a\0\0"],
        [b"a", b"a\0", b"b"],
        [2**63, 2**63 + 1, -1],
        [2**53, 2**53 + 1, 0.5],
        [np.uint64(2**63), np.uint64(2**63 + 1), np.int64(-1)],
        [Region.NORTH, Region.EAST, "south"],
        ["a", b"a", "b"],
    ],
)
def test_names_that_differ_are_different_groups(
    names: list[Any], as_given: Callable[[list[Any]], Any]
) -> None:
    expected = {str(name): EACH for name in names}
    found = members(as_given(names * EACH), 3 * EACH)
    assert {name: len(own) for name, own in found.items()} == expected
    if as_given is list:  # whoever asks
        asked = cal.evaluate(LOGITS, LABELS, groups=names * EACH, draws=39).groups
        assert {name: one.n for name, one in asked.items()} == expected
    reported = groups_of(
        told("model", (LOGITS, LABELS)), as_given(names * EACH), Settings(draws=39)
    )
    assert {one.name: one.count for one in reported} == expected


def test_numbers_and_names_that_are_equal_are_one_group() -> None:
    for names in ([1, True, 1.0], [np.str_("a"), "a", "a"], [0.5, np.float32(0.5), 0.5]):
        found = cal.evaluate(LOGITS, LABELS, groups=names * EACH, draws=39).groups
        assert [one.n for one in found.values()] == [3 * EACH]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("as_given", [list, tuple, as_objects, "series"])
@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan")])
@pytest.mark.parametrize("other", ["nan", 7])
def test_a_sample_without_a_group_is_refused_and_never_a_group_called_nan(
    as_given: Any, missing: Any, other: Any
) -> None:
    if as_given == "series":
        as_given = pytest.importorskip("pandas").Series
    groups = as_given([other] * 5 + [missing] * 4 + [other] * 3)
    said = (
        r"^groups must hold a name or a number for every sample; got no value in row 5 \(counted "
        r"from 0\), the first of 4\. Give samples without a group one of their own, or leave them "
    )
    with pytest.raises(ValueError, match=said):
        cal.evaluate(LOGITS, LABELS, groups=groups, draws=39)
    with pytest.raises(ValueError, match=said):
        groups_of(told("model", (LOGITS, LABELS)), groups, Settings(draws=39))
    kept = [row for row in range(3 * EACH) if not 5 <= row < 9]
    named = [groups[row] for row in kept]
    found = cal.evaluate(LOGITS[kept], LABELS[kept], groups=named, draws=39)
    assert {name: one.n for name, one in found.groups.items()} == {str(named[0]): 8}


def test_groups_without_an_order_are_spelt() -> None:
    groups: Any = [date(2026, 1, 1), datetime(2026, 1, 2)] * (3 * EACH // 2)
    with pytest.raises(TypeError, match=r"got date, datetime\. Spell every one of them: \[str\("):
        cal.evaluate(LOGITS, LABELS, groups=groups, draws=39)
    assert len(cal.evaluate(LOGITS, LABELS, groups=[str(x) for x in groups], draws=39).groups) == 2


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "several", [[[1], [2, 3], [4]], [torch.ones((), requires_grad=True)] * 3, "arrays", "tuples"]
)
def test_groups_that_can_be_no_names_are_spelt(several: Any) -> None:
    groups = several * EACH
    if several == "arrays":
        groups = pytest.importorskip("pandas").Series([np.arange(2), np.arange(3)] * 6)
    if several == "tuples":
        groups = pytest.importorskip("pandas").MultiIndex.from_tuples([("a", 1), (1, 2)] * 6)
    with pytest.raises(TypeError, match=r"^groups must .*Spell every one of them: \[str\(x\)"):
        cal.evaluate(LOGITS, LABELS, groups=groups, draws=39)
    assert cal.evaluate(LOGITS, LABELS, groups=[str(x) for x in groups], draws=39).groups


def test_numbers_that_differ_and_are_spelt_alike_are_refused() -> None:
    groups = as_objects([np.float32(0.1), np.float64(0.1), np.float64(0.2)] * EACH)
    with pytest.raises(ValueError, match=r"must be called differently .* two are '0\.1'\. Pass"):
        cal.evaluate(LOGITS, LABELS, groups=groups, draws=39)


@pytest.mark.parametrize("missing", [Decimal("nan"), Decimal("snan")])
def test_a_decimal_without_a_value_is_no_group(missing: Decimal) -> None:
    groups: Any = [Decimal(1), missing, Decimal(2)] * EACH
    with pytest.raises(ValueError, match=r"got no value in row 1 \(counted from 0\)"):
        cal.evaluate(LOGITS, LABELS, groups=groups, draws=39)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("as_given", [list, np.array, "frame"])
def test_several_columns_of_groups_become_one(as_given: Any) -> None:
    if as_given == "frame":
        as_given = pytest.importorskip("pandas").DataFrame
    groups = as_given([("old", 1), ("young", 1), ("old", 2)] * EACH)
    with pytest.raises(ValueError, match=r"got shape \(12, 2\)\. For several columns pass \['/'"):
        cal.evaluate(LOGITS, LABELS, groups=groups, draws=39)
    joined = ["/".join(map(str, row)) for row in np.asarray(groups)]
    found = cal.evaluate(LOGITS, LABELS, groups=joined, draws=39)
    assert list(found.groups) == ["old/1", "old/2", "young/1"]


@pytest.mark.parametrize("end", ["parquet", "feather", "csv"])
def test_names_that_end_in_nul_are_apart_in_files(end: str, tmp_path: Path) -> None:
    names, sure = ["a\0", "a", "b"] * EACH, np.linspace(0.1, 0.9, 3 * EACH)
    file = tmp_path / f"log.{end}"
    if end == "csv":
        rows = zip(sure, LABELS.tolist(), names, strict=True)
        lines = [f"{c},{y},{name}\n" for c, y, name in rows]
        file.write_text("".join(["confidence,correct,g\n", *lines]))
    else:
        write = parquet.write_table if end == "parquet" else feather.write_feather
        write(pa.table({"confidence": sure, "correct": LABELS.numpy(), "g": names}), str(file))
    log = open_log(file, groups="g")
    sizes = {"a": EACH, "a\0": EACH, "b": EACH}
    assert {name: len(one) for name, one in log.summaries().items()} == sizes
    assert {name: one.n for name, one in log.evaluate(draws=39).groups.items()} == sizes
