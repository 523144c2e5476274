"""The summary of a table, computed by a database, is the summary in memory."""

import gc
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_summary import drawn
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions, Summary, evaluate, evaluate_events
from calibrant.logs import open_log, summarise_table

pytestmark = [
    # Ibis 12 and PySpark 4.0 use what pandas 3 has deprecated.
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),
    pytest.mark.filterwarnings("ignore:The .future.infer_string. option is deprecated"),
]

Log = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[None]:
    """DuckDB, for tables that lie nowhere else, closed when it is needed no more."""
    before, connection = ibis.options.default_backend, ibis.duckdb.connect()
    ibis.set_backend(connection)
    yield
    ibis.options.default_backend = before
    connection.disconnect()


def columns(stem: str, table: Tensor) -> Log:
    return {f"{stem}_{j}": column.numpy() for j, column in enumerate(table.T.contiguous())}


def lists(table: Tensor) -> Any:
    return pa.array(table.tolist(), pa.list_(pa.from_numpy_dtype(table.numpy().dtype)))


def as_table(log: Log) -> Any:
    return ibis.memtable(pa.table(log))


def same(found: Summary, expected: Summary, *, narrow: bool = False) -> None:
    """Counts to the last sample, sums up to the order in which they were added.

    Where float32 forecasts are added up in memory, the terms are float32 themselves.
    """
    tolerance = 1e-6 if narrow else 1e-9
    assert found.state.keys() == expected.state.keys()
    for name, part in expected.state.items():
        assert_close(found.state[name][..., 0], part[..., 0], rtol=0, atol=0)
        assert_close(found.state[name], part, rtol=tolerance, atol=tolerance)


def several(n: int = 400) -> dict[str, tuple[Log, Summary]]:
    """A log of every form, with the summary of the same numbers in memory."""
    logits, labels = drawn(n, seed=0)
    wide = logits.double()
    probabilities = wide.softmax(dim=1)
    chance, happened = probabilities[:, 1].contiguous(), labels == 1
    score = wide[:, 1] - wide[:, 0]
    label = {"label": labels.numpy()}
    pair, several = Summary(2), Summary(4)
    told = Predictions.from_probabilities(probabilities, labels)
    binary = happened.long()
    truth = {"label": binary.numpy()}
    outcome = {"outcome": happened.numpy()}
    return {
        "logits": (columns("logit", wide) | label, several.update(wide, labels)),
        "logits in float32": (columns("logit", logits) | label, several),
        "logits in arrays": ({"logits": lists(wide), **label}, several),
        "probabilities": (columns("prob", probabilities) | label, Summary(4).add(told)),
        "one logit": (
            {"logit": score.numpy(), **truth},
            pair.add(Predictions.from_binary(score, binary)),
        ),
        "one probability": (
            {"prob": chance.numpy(), **truth},
            Summary(2).add(Predictions.from_probabilities(chance, binary)),
        ),
        "one probability in float32": (
            {"prob": chance.float().numpy(), **truth},
            Summary(2).add(Predictions.from_probabilities(chance.float(), binary)),
        ),
        "events": (
            {"confidence": chance.numpy(), **outcome},
            Summary(None).add_events(chance, happened),
        ),
    }


@pytest.mark.parametrize("form", several(3))
def test_every_form_of_log_gives_the_summary_in_memory(form: str) -> None:
    log, expected = several()[form]
    found = summarise_table(as_table(log))
    same(found, expected, narrow=form == "one probability in float32")
    assert found.values().keys() == expected.values().keys()


def near(edges: Tensor) -> Tensor:
    """Zero, one, every edge, and the numbers next to it on either side."""
    least, most = edges.new_tensor([0.0, 1.0])
    around = [edges, torch.nextafter(edges, least), torch.nextafter(edges, most)]
    return torch.cat([*around, least[None], most[None]]).clamp(0, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("bins", "cells"), [(15, 8192), (1, 1), (10, 1), (500, 32)])
def test_edges_fall_where_they_fall_in_memory(bins: int, cells: int, dtype: torch.dtype) -> None:
    expected = Summary(None, bins=bins, cells=cells)
    confidence = near(expected.edges.to(dtype))
    outcome = torch.arange(len(confidence)) % 2
    expected.add_events(confidence, outcome)
    log = {"confidence": confidence.numpy(), "outcome": outcome.numpy()}
    found = summarise_table(as_table(log), bins=bins, cells=cells)
    assert_close(found.state["cells"][:, 0], expected.state["cells"][:, 0], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bins", [1, 15, 1000])
def test_classes_on_the_edges_of_bins_fall_where_they_fall_in_memory(
    bins: int, dtype: torch.dtype
) -> None:
    chance = near(torch.arange(1, bins, dtype=dtype) / bins)
    labels = torch.arange(len(chance)) % 2
    told = Predictions.from_probabilities(chance, labels)
    expected = Summary(2, bins=bins, cells=64).add(told)
    log = columns("prob", told.probs) | {"label": labels.numpy()}
    found = summarise_table(as_table(log), bins=bins, cells=64)
    for name in ("marginals", "predicted"):
        assert_close(
            found.state[name][..., 0], expected.state[name][..., 0], rtol=0, atol=0, msg=name
        )


# Logits on a coarse grid, so that ties are common.
small_logs = st.integers(2, 4).flatmap(
    lambda classes: st.lists(
        st.tuples(
            st.integers(0, classes - 1),
            st.lists(st.integers(-2, 2), min_size=classes, max_size=classes),
        ),
        min_size=1,
        max_size=12,
    )
)


@settings(max_examples=12)
@given(small_logs, st.integers(1, 20))
def test_agrees_on_small_tables_with_ties(log: list[tuple[int, list[int]]], bins: int) -> None:
    labels = torch.tensor([label for label, _ in log])
    logits = 1.1 * torch.tensor([row for _, row in log], dtype=torch.float64)
    expected = Summary(logits.shape[1], bins=bins, cells=16).update(logits, labels)
    table = as_table(columns("logit", logits) | {"label": labels.numpy()})
    same(summarise_table(table, bins=bins, cells=16), expected)


def test_logits_far_apart_and_ruled_out_lose_nothing() -> None:
    logits = torch.tensor(
        [[1e4, -1e4, 0.0], [-torch.inf, 3.0, 2.0], [800.0, 799.0, -800.0]], dtype=torch.float64
    )
    labels = torch.tensor([0, 2, 1])
    table = as_table(columns("logit", logits) | {"label": labels.numpy()})
    same(summarise_table(table), Summary(3).update(logits, labels))


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    session = pytest.importorskip("pyspark.sql", reason="needs pip install 'calibrant[spark]'")
    if which("java") is None:
        pytest.skip("Spark needs Java")
    builder = session.SparkSession.builder.master("local[1]").appName("calibrant")
    quiet = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.codegen.wholeStage": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in quiet.items():
        builder = builder.config(name, value)
    running = builder.getOrCreate()
    running.sparkContext.setLogLevel("OFF")
    yield ibis.pyspark.connect(running)
    running.stop()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # PySpark leaves sockets to the collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("form", ["one logit", "one probability in float32", "events"])
def test_spark_gives_the_summary_in_memory(form: str, spark: Any, tmp_path: Path) -> None:
    log, expected = several()[form]
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    found = summarise_table(spark.read_parquet(tmp_path / "log.parquet"))
    same(found, expected, narrow=form == "one probability in float32")


def test_measures_parquet_files_where_they_lie(tmp_path: Path) -> None:
    log, expected = several()["logits"]
    whole = pa.table(log)
    pq.write_table(whole.slice(0, 150), tmp_path / "a.parquet")
    pq.write_table(whole.slice(150), tmp_path / "b.parquet")
    same(summarise_table(tmp_path / "*.parquet"), expected)


def test_columns_need_no_usual_names() -> None:
    log, expected = several()["logits"]
    renamed = {f"z{j}": log[f"logit_{j}"] for j in range(4)} | {
        "right": log["label"],
        "id": np.arange(400),
    }
    found = summarise_table(as_table(renamed), logits=[f"z{j}" for j in range(4)], labels="right")
    same(found, expected)


GOOD: dict[str, list[Any]] = {
    "prob_0": [0.5, 0.2, 1.0],
    "prob_1": [0.5, 0.8, 0.0],
    "label": [0, 1, 0],
}
EVENTS: dict[str, list[Any]] = {"confidence": [0.5, 0.9, 1.0], "outcome": [0, 1, 1]}
nan, inf = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (GOOD | {"prob_0": [0.5, None, 1.0]}, r"must have a value .* none in 'prob_0' where label"),
        (GOOD | {"label": [0, None, 1]}, r"of 'label'; got none in 'label', the only such row\."),
        (GOOD | {"label": [0, 2, 1]}, r"between 0 and 1, since probabilities have 2 .* got 2 in"),
        (GOOD | {"label": [0, -100, 1]}, r"labels must lie between 0 and 1.* got -100 in 'label'"),
        (
            GOOD | {"prob_0": [0.5, nan, 1.0]},
            r"got NaN in 'prob_0' where label is 1, the only such",
        ),
        (GOOD | {"prob_0": [0.5, 0.3, 1.0]}, r"must sum to one; .* a sum of 1.1 where label is 1"),
        (
            GOOD | {"prob_0": [1.5, 0.2, 1], "prob_1": [-0.5, 0.8, 0]},
            r"got values from -0.5 to 1.5",
        ),
        (EVENTS | {"confidence": [0.5, 90.0, 1.0]}, r"got 90 where outcome is 1, .* For percent"),
        (EVENTS | {"confidence": [0.5, 1.0011, 1]}, r"between 0 and 1; got 1\.0011 where"),
        (EVENTS | {"confidence": [0.5, -0.1, 1.0]}, r"between 0 and 1; got -0.1 where"),
        (EVENTS | {"confidence": [0.5, nan, 1.0]}, r"confidence must hold numbers; got NaN"),
        (EVENTS | {"confidence": [None, 0.5, 1.0]}, r"must have a value in every row"),
        (EVENTS | {"outcome": [0, 2, 1]}, r"outcome must be 0 or 1.* got 2 in 'outcome', the"),
        (EVENTS | {"outcome": [0, 0.5, 1]}, r"outcome must be 0 or 1"),
        ({"logit": [1.0, inf], "label": [0, 1]}, r"must hold numbers; got infinity in 'logit' wh"),
        (
            {"logit_0": [1.0, -inf], "logit_1": [0.0, -inf], "label": [0, 1]},
            r"got minus infinity in every class where label is 1",
        ),
        ({"logits": [[1.0, 2.0], [1.0]], "label": [0, 1]}, r"'logits' must have one length"),
        ({"logits": [[1.0], [2.0]], "label": [0, 1]}, r"at least two classes; got 1\. Pass single"),
        ({"logits": [None, [1.0, 2.0]], "label": [0, 1]}, r"got none in 'logits\[0\]' where label"),
        (
            {"logits": [[1.0, 2.0], [1.0, 2.0, 3.0]], "label": [0, 1]},
            r"another than that of the first where label is 1",
        ),
        (
            {"logit_0": [0.5, 0.2], "logit_1": [0.5, 0.8], "label": [0, 1]},
            r"got rows that are probabilities: .* Name them with probabilities=",
        ),
    ],
)
def test_bad_values_get_one_sentence(log: dict[str, list[Any]], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        summarise_table(as_table(log))


@pytest.mark.parametrize(
    "log",
    [
        EVENTS | {"confidence": [0.5, nan, 1.0]},
        GOOD | {"prob_0": [0.5, nan, 1.0]},
        GOOD | {"prob_0": [0.5, nan, 1.0], "prob_1": [0.5, nan, 0.0]},
        {"logit_0": [1.0, nan, 2.0], "logit_1": [3.0, 1.0, 2.0], "label": [0, 1, 1]},
    ],
)
def test_nan_is_seen_in_files_whose_statistics_leave_it_out(
    log: dict[str, list[Any]], tmp_path: Path
) -> None:
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=r"must hold numbers; got NaN"):
        summarise_table(tmp_path / "log.parquet")


BROKEN: dict[str, list[Any]] = {
    "logit_0": [1.0, 2.0, nan, nan],
    "logit_1": [0.5, nan, 1.0, 0.0],
    "label": [0, 1, 1, 0],
}


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({}, r"'logit_[01]' where label is [01], one of 3 such rows\."),
        ({"user_id": [4, 3, 2, 1], "note": list("wxyz")}, r"'logit_0' where user_id is 1, the fi"),
        ({"note": ["", "z", "y\n", "漢字"]}, r"'logit_0' where note is 'y\\n', the first of 3"),
        ({"a": [9, 3, 3, 3], "b": list("xyxx"), "c": [0, 1, 2, 1], "d": [1] * 4},
         r"'logit_0' where a is 3 and b is 'x' and c is 1, the first of 3 such rows\."),
    ],
)  # fmt: skip
def test_a_row_that_will_not_do_is_named_by_what_tells_it_from_others(
    more: dict[str, list[Any]], place: str
) -> None:
    with pytest.raises(ValueError, match=rf"logits must hold numbers; got NaN in {place}"):
        summarise_table(as_table(BROKEN | more))


def test_a_row_of_a_file_that_will_not_do_is_named_by_its_number(tmp_path: Path) -> None:
    whole = pa.table(BROKEN | {"id": [1, 2, 3, 4]})
    pq.write_table(whole.slice(0, 1), tmp_path / "a.parquet")
    pq.write_table(whole.slice(1), tmp_path / "b.parquet")
    place = r"'logit_1' in row 0 \(counted from 0\) of b\.parquet, the first of 3 such rows"
    with pytest.raises(ValueError, match=f"got NaN in {place}"):
        summarise_table(tmp_path / "*.parquet")
    taken = whole.append_column("filename", [list("wxyz")])
    pq.write_table(taken, tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="got NaN in 'logit_1' where id is 2, the first of 3"):
        summarise_table(tmp_path / "c.parquet")


def test_an_entry_of_an_array_is_named() -> None:
    log = {"logits": [[1.0, 2.0], [1.0, nan]], "label": [0, 1], "id": ["a", "b"]}
    with pytest.raises(ValueError, match=r"got NaN in 'logits\[1\]' where id is 'b', the only"):
        summarise_table(as_table(log))


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # PySpark leaves sockets to the collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_spark_names_a_row_that_will_not_do(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table(BROKEN | {"id": list("wxyz")}), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="got NaN in 'logit_1' where id is 'x', the first of 3"):
        summarise_table(spark.read_parquet(tmp_path / "log.parquet"))
    pq.write_table(pa.table(GOOD | {"prob_1": [0.5, 0.8, None]}), tmp_path / "void.parquet")
    with pytest.raises(ValueError, match="got none in 'prob_1' where label is 0, the only such"):
        summarise_table(spark.read_parquet(tmp_path / "void.parquet"))


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # PySpark leaves sockets to the collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("wrong", [[1.0], [1.0, 2.0, 3.0], []])
def test_spark_names_an_array_of_another_length(
    wrong: list[float], spark: Any, tmp_path: Path
) -> None:
    log = {"logits": [[1.0, 2.0], [3.0, 1.0], wrong], "label": [0, 1, 1], "id": list("xyz")}
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="another than that of the first where id is 'z', the onl"):
        summarise_table(spark.read_parquet(tmp_path / "log.parquet"))


def test_rows_of_zeros_and_a_one_may_be_logits() -> None:
    log = {"logit_0": [1.0, 0.0, 1.0], "logit_1": [0.0, 1.0, 0.0], "label": [0, 1, 1]}
    assert len(summarise_table(as_table(log))) == 3


def test_bad_tables_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the table has no column 'z'; found prob_0, prob_1"):
        summarise_table(as_table(GOOD), logits=["prob_0", "z"])
    with pytest.raises(ValueError, match=r"the table must hold at least one row; got none"):
        summarise_table(as_table(GOOD).limit(0))
    with pytest.raises(TypeError, match=r"labels must be integers.* got column 'label' of type fl"):
        summarise_table(as_table(GOOD | {"label": [0.0, 1.0, 1.0]}))
    with pytest.raises(TypeError, match=r"outcome must be 0 or 1, .* of type string"):
        summarise_table(as_table(EVENTS | {"outcome": ["yes", "no", "no"]}))
    with pytest.raises(TypeError, match=r"confidence must be numbers; got confidence of type str"):
        summarise_table(as_table(EVENTS | {"confidence": ["high", "low", "low"]}))
    with pytest.raises(TypeError, match=r"confidence must be numbers; .* a type that holds no val"):
        summarise_table(as_table(EVENTS | {"confidence": [None, None, None]}))
    with pytest.raises(TypeError, match=r"an Ibis table or the path .* got dict. For a data frame"):
        summarise_table(GOOD)


WHOLE = "must be a whole Parquet file; it is cut short, damaged or something else. Write"
ALIKE = "must have the same columns of the same types; "
FITTING = "must hold values that fit the types of their columns"


@pytest.mark.parametrize(
    ("case", "place", "sentence"),
    [
        (
            "absent",
            "absent.parquet",
            "absent.parquet must be a Parquet file, or a glob of some; th",
        ),
        ("absent", "absent*.parquet", "must be a Parquet file, or a glob of some; there is none."),
        ("cut short", "b.parquet", f"b.parquet {WHOLE}"),
        ("cut short", "*.parquet", f"b.parquet {WHOLE}"),
        ("another format", "b.parquet", f"b.parquet {WHOLE}"),
        ("no footer", "b.parquet", f"b.parquet {WHOLE}"),
        ("a column less", "*.parquet", ALIKE),
        ("another type", "*.parquet", ALIKE),
        ("too large", "b.parquet", FITTING),
        ("damaged", "b.parquet", FITTING),
        ("remote", "nowhere://host/b.parquet", "that can be read from here; reading failed. Fetch"),
    ],
)
def test_files_that_cannot_be_read_get_a_sentence_without_the_words_of_the_engine(
    case: str, place: str, sentence: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table(GOOD), tmp_path / "a.parquet")
    whole, other = (tmp_path / "a.parquet").read_bytes(), tmp_path / "b.parquet"
    match case:
        case "cut short":
            other.write_bytes(whole[: len(whole) // 2])
        case "another format":
            other.write_text("prob_0,prob_1,label\n" + "0.5,0.5,1\n" * 9)
        case "no footer":
            other.write_bytes(whole[:4] + bytes(100) + whole[-4:])
        case "a column less":
            pq.write_table(pa.table({name: GOOD[name] for name in ("prob_0", "label")}), other)
        case "another type":
            pq.write_table(pa.table(GOOD | {"prob_1": ["a", "b", "c"]}), other)
        case "too large":
            large = pa.array([0, 1, 2**64 - 1], pa.uint64())
            pq.write_table(pa.table(GOOD | {"label": large}), other)
        case "damaged":
            other.write_bytes(whole[:4] + b"\xff" * 56 + whole[60:])
    with pytest.raises(ValueError, match=re.escape(sentence)) as refused:
        summarise_table(place if "://" in place else tmp_path / place)
    assert isinstance(refused.value.__cause__, duckdb.Error)
    said = str(refused.value)
    assert not re.search(r"Error|LINE|SELECT|DuckDB|magic|glob:|\n", said)
    assert ("b.parquet differs from" in said) == (sentence == ALIKE)


def test_a_table_that_duckdb_cannot_read_gets_a_sentence(tmp_path: Path) -> None:
    pq.write_table(pa.table(GOOD), tmp_path / "gone.parquet")
    connection = ibis.duckdb.connect()
    table = connection.read_parquet(tmp_path / "gone.parquet")
    (tmp_path / "gone.parquet").unlink()
    with pytest.raises(ValueError, match=r"can read to the end; DuckDB could not\.") as refused:
        summarise_table(table)
    assert isinstance(refused.value.__cause__, duckdb.Error)
    connection.disconnect()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # PySpark leaves sockets to the collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", ["gone", "damaged", "does not fit", "view is gone"])
def test_a_table_that_spark_cannot_read_gets_a_sentence_and_no_trace(
    case: str, spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table(GOOD), file)
    table, whole = spark.read_parquet(file), file.read_bytes()
    match case:
        case "gone":
            file.unlink()
        case "damaged":
            file.write_bytes(whole[:4] + b"\xff" * 56 + whole[60:])
        case "does not fit":
            table = table.mutate(label=ibis.literal("one").cast("int64"))
        case "view is gone":
            spark._session.catalog.dropTempView(table.get_name())
    capfd.readouterr()  # what Spark says when it starts
    with pytest.raises(ValueError, match=r"can read to the end; Spark could not\.") as refused:
        summarise_table(table)
    shown = "".join(traceback.format_exception(refused.value)) + "".join(capfd.readouterr())
    assert not re.search(r"java|org\.apache|Py4J|SQLSTATE", shown)
    del refused  # which holds the socket of the failed query, that is warned of here
    gc.collect()


def test_engines_are_imported_only_when_used() -> None:
    check = (
        "import sys, calibrant, calibrant.logs; "
        "print(sorted({'ibis', 'duckdb', 'pyspark', 'pyarrow'} & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=120)
    assert run.stdout.strip() == "[]", run.stderr


@pytest.mark.parametrize(
    ("dtype", "most"), [(np.float16, 87.3365), (np.float32, 87.3365), (np.float64, 708.3964)]
)
def test_what_no_chance_costs_is_one_number_in_memory_in_files_and_in_tables(
    dtype: type, most: float, tmp_path: Path
) -> None:
    """As `evaluate_events` says: by the smallest normal number of the type that was given."""
    sure: Any = np.array([1, 0, 1, 0, 1, 0], dtype=dtype)
    right = np.array([0, 1, 0, 1, 1, 0])
    pq.write_table(pa.table({"confidence": sure, "outcome": right}), tmp_path / "e.pq")
    log = open_log(tmp_path / "e.pq")
    told = np.stack([1 - sure, sure], axis=1)
    pq.write_table(
        pa.table(columns("prob", torch.from_numpy(told)) | {"y": right}), tmp_path / "p.pq"
    )
    predictions = Predictions.from_probabilities(torch.from_numpy(told), torch.from_numpy(right))
    found = [
        evaluate_events(sure, right, draws=39)["nll"].value,
        evaluate(told, right, probabilities=True, draws=39)["nll"].value,
        log.evaluate(draws=39)["nll"].value,
        log.summary().values()["nll"].value,
        Summary(None).add_events(sure, right).values()["nll"].value,
        Summary(2).add(predictions).values()["nll"].value,
        summarise_table(str(tmp_path / "e.pq")).values()["nll"].value,
        summarise_table(str(tmp_path / "p.pq")).values()["nll"].value,
    ]
    assert_close(found, [4 / 6 * most] * len(found), rtol=1e-6, atol=0)


def test_a_folder_is_no_table_and_the_sentence_says_what_is(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"confidence": [0.9, 0.8, 0.6], "outcome": [1, 1, 0]}), tmp_path / "a.parquet"
    )
    with pytest.raises(ValueError, match=r"is a folder\. For the files in it pass '.*\*\.parquet'"):
        summarise_table(tmp_path)
    every = summarise_table(tmp_path / "*.parquet").values()["ece"].value
    assert every == pytest.approx(open_log(tmp_path).summary().values()["ece"].value)


@pytest.mark.parametrize("name", ["confidence", "probability"])
def test_what_rounding_adds_to_certainty_is_taken_from_a_table(name: str) -> None:
    truth = "outcome" if name == "confidence" else "label"
    kind = "confidence" if name == "confidence" else "probabilities"
    asked: dict[str, Any] = {kind: name}
    found, exact = (
        summarise_table(as_table({name: sure, truth: [1, 0, 1]}), **asked).values()
        for sure in ([1.0000001, -1e-7, 0.5], [1.0, 0.0, 0.5])
    )
    assert found == exact
