"""Tables as people have them: odd names and types, views, other databases; and what is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch.testing import assert_close

from calibrant import Summary
from calibrant.logs import _sql_rows, summarise_table

N = 40
LOGITS = 2 * torch.randn(N, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.randint(3, (N,), generator=torch.Generator().manual_seed(1))
SMALL: dict[str, Any] = {"bins": 5, "cells": 16}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    """DuckDB with a table of three columns of logits, and one of lists."""
    before, connection = ibis.options.default_backend, ibis.duckdb.connect()
    ibis.set_backend(connection)
    log = {f"logit_{j}": LOGITS[:, j].numpy() for j in range(3)} | {"label": LABELS.numpy()}
    told = {"logits": LOGITS.tolist(), "label": LABELS.numpy()}
    for name, table in (("told", log), ("lists", told)):
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
        connection.raw_sql(f"create table {name} as select * from '{tmp_path}/{name}.parquet'")
    yield connection
    ibis.options.default_backend = before
    connection.disconnect()


def view(engine: Any, query: str) -> Any:
    engine.raw_sql(f"create or replace view shown as {query}")
    return engine.table("shown")


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select * from told", {}),
        ("select logits::double[3] as logits, label from lists", {}),
        ("select logits::decimal(30, 17)[] as logits, label from lists", {}),
        ("select * replace (logit_1::decimal(38, 17) as logit_1) from told", {}),
        ("select * replace (label::utinyint as label) from told", {}),
        ('select *, 1 as cell, 2 as step, 3 as n, 4 as key, 5 as "last" from told', {}),
        (
            """select logit_0 as "a ""b", logit_1 as "it's {x}; --", logit_2 as "größe漢",
            label as "select" from told""",
            {"logits": ['a "b', "it's {x}; --", "größe漢"], "labels": "select"},
        ),
        (
            "select logit_0 as truth, logit_1 as given_0, logit_2 as whole, label as nll from told",
            {"logits": ["truth", "given_0", "whole"], "labels": "nll"},
        ),
    ],
)
def test_what_a_table_is_called_and_made_of_changes_nothing(
    query: str, columns: dict[str, Any], engine: Any
) -> None:
    found = summarise_table(view(engine, query), **columns, **SMALL)
    expected = Summary(3, **SMALL).update(LOGITS, LABELS)
    for name, part in expected.state.items():
        assert_close(found.state[name][..., 0], part[..., 0], rtol=0, atol=0)
        assert_close(found.state[name], part, rtol=1e-9, atol=1e-9)


def test_a_table_of_another_database_is_read(engine: Any, tmp_path: Path) -> None:
    engine.raw_sql(f"attach '{tmp_path}/other.duckdb' as other")
    engine.raw_sql("create table other.main.log as select * from told")
    found = summarise_table(engine.table("log", database=("other", "main")), **SMALL)
    assert found.values() == summarise_table(engine.table("told"), **SMALL).values()


TWINS: list[tuple[list[str], dict[str, Any], str]] = [
    (["label", "Label"], {}, "more than one column that may hold labels: label, Label"),
    (["Label", "label"], {"labels": "label"}, r"more than capitals, .* found Label and label\."),
    (["label", "LABEL"], {"labels": "label"}, r"more than capitals, .* found label and LABEL\."),
]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize(("names", "asked", "sentence"), TWINS)
def test_columns_that_differ_by_capitals_are_not_taken_for_each_other(
    names: list[str], asked: dict[str, Any], sentence: str, in_file: bool, tmp_path: Path
) -> None:
    """DuckDB, and Spark as it comes, would read either."""
    log = {f"logit_{j}": LOGITS[:, j].numpy() for j in range(3)}
    table = pa.table(log | dict(zip(names, (LABELS.numpy(), 0 * LABELS.numpy()), strict=True)))
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=sentence):
        summarise_table(tmp_path / "log.parquet" if in_file else ibis.memtable(table), **asked)


def test_a_file_with_brackets_in_its_name_is_that_file(tmp_path: Path) -> None:
    twins = {"confidence": [0.5, 0.9, 0.7], "outcome": [0, 1, 1], "Outcome": [1, 0, 0]}
    pq.write_table(pa.table(twins), tmp_path / "log[1].parquet")
    with pytest.raises(ValueError, match=r"that may hold outcome: outcome, Outcome\."):
        summarise_table(tmp_path / "log[1].parquet")
    (tmp_path / "log[1].parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"log\[1\]\.parquet must be a whole Parquet file; it is"):
        summarise_table(tmp_path / "log[1].parquet")


def test_other_columns_may_differ_by_capitals(tmp_path: Path) -> None:
    log = {
        "confidence": [0.5, 0.9, 0.7],
        "outcome": [0, 1, 1],
        "Note": [1, 2, 3],
        "note": [4, 5, 6],
    }
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    assert len(summarise_table(tmp_path / "log.parquet")) == 3


def test_folders_that_make_columns_may_hold_the_labels(tmp_path: Path) -> None:
    for label in (0, 1):
        (tmp_path / f"label={label}").mkdir()
        told = pa.table({"logit_0": [1.0, 2.0], "logit_1": [0.5, 3.0]})
        pq.write_table(told, tmp_path / f"label={label}" / "a.parquet")
    found = summarise_table(f"{tmp_path}/*/*.parquet")
    assert (len(found), found.values()["accuracy"].value) == (4, 0.5)


def test_a_thousand_classes_do_not_go_too_deep(engine: Any) -> None:
    """A sum of many terms, which Ibis and databases take apart by calling themselves."""
    told = engine.table("told")
    total = _sql_rows._sum(told.logit_0 * k for k in range(1003)).sum().to_pyarrow().as_py()
    assert total == pytest.approx(LOGITS[:, 0].sum().item() * 1003 * 1002 / 2)


def test_a_table_of_no_connection_gets_a_sentence() -> None:
    told = ibis.table({"confidence": "float64", "outcome": "int64"}, name="nowhere")
    with pytest.raises(ValueError, match=r"must be of one connection, .* connection\.table\(name"):
        summarise_table(told)


def test_a_path_that_is_none_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"the path of a Parquet file; got an empty text\."):
        summarise_table("")
    with pytest.raises(ValueError, match=r"must be a Parquet file, or a glob of some; there is no"):
        summarise_table("a" * 5000 + ".parquet")
