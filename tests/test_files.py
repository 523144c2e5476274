"""Logs in files: what was written is read, in batches, and what cannot be is said in a sentence."""

import gzip
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor
from torch.testing import assert_close

import calibrant as cal
from calibrant.logs import PredictionLog, _grouped, _log, open_log
from calibrant.logs._columns import choose

pa, parquet, feather = map(import_module, ("pyarrow", "pyarrow.parquet", "pyarrow.feather"))

N, CLASSES = 200, 4
Write = Callable[[Path, Tensor, Tensor], Path]


def told() -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(3)
    return torch.randn(N, CLASSES, generator=rng), torch.randint(CLASSES, (N,), generator=rng)


def npz(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    np.savez(folder / "log.npz", logits=logits.numpy(), labels=labels.numpy().astype(np.uint8))
    return folder / "log.npz"


def foreign_npz(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    """Packed, column by column, in another machine's order of bytes."""
    by_column = np.asfortranarray(logits.numpy().astype(">f4"))
    np.savez_compressed(folder / "log.npz", logits=by_column, labels=labels.numpy().astype(">i2"))
    return folder / "log.npz"


def listed(logits: Tensor, labels: Tensor) -> object:
    return pa.table(
        {"logits": pa.array(logits.tolist(), pa.list_(pa.float32())), "y": labels.numpy()}
    )


def parquet_of_lists(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    parquet.write_table(listed(logits, labels), folder / "log.parquet", row_group_size=33)
    return folder / "log.parquet"


def parquet_of_vectors(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    vectors = pa.FixedSizeListArray.from_arrays(logits.numpy().reshape(-1), logits.shape[1])
    table = pa.table({"id": np.arange(len(labels)), "Logits": vectors, "target": labels.numpy()})
    parquet.write_table(table, folder / "log.pq", row_group_size=33)
    return folder / "log.pq"


def parquet_of_columns(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    columns = {f"logit_{k}": column.numpy() for k, column in enumerate(logits.unbind(dim=1))}
    mixed = dict(sorted(columns.items(), reverse=True)) | {"label": labels.numpy()}
    parquet.write_table(pa.table(mixed), folder / "log.parquet")
    return folder / "log.parquet"


def arrow_file(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    feather.write_feather(listed(logits, labels), str(folder / "log.feather"), chunksize=60)
    return folder / "log.feather"


def arrow_stream(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    table = listed(logits, labels)
    with pa.ipc.new_stream(str(folder / "log.arrow"), table.schema) as file:  # type: ignore[attr-defined]
        file.write_table(table, max_chunksize=60)
    return folder / "log.arrow"


def text(logits: Tensor, labels: Tensor, by: str = ",") -> str:
    head = [f"logit_{k}" for k in range(logits.shape[1])]
    lines = [
        [*map(repr, row), str(label)]
        for row, label in zip(logits.tolist(), labels.tolist(), strict=True)
    ]
    return "".join(by.join(line) + "\n" for line in [[*head, "label"], *lines])


def csv(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    (folder / "log.csv").write_text(text(logits, labels))
    return folder / "log.csv"


def tsv(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    (folder / "log.tsv").write_text(text(logits, labels, by="\t"))
    return folder / "log.tsv"


def packed_csv(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    (folder / "log.csv.gz").write_bytes(gzip.compress(text(logits, labels).encode()))
    return folder / "log.csv.gz"


def safetensors(folder: Path, logits: Tensor, labels: Tensor) -> Path:
    save_file({"logits": logits, "labels": labels.int()}, folder / "log.safetensors")
    return folder / "log.safetensors"


WRITERS: list[Write] = [
    npz,
    foreign_npz,
    parquet_of_lists,
    parquet_of_vectors,
    parquet_of_columns,
    arrow_file,
    arrow_stream,
    csv,
    tsv,
    packed_csv,
    safetensors,
]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("rows", [None, 7])
def test_what_was_written_is_read(write: Write, rows: int | None, tmp_path: Path) -> None:
    logits, labels = told()
    log = open_log(write(tmp_path, logits, labels))
    assert (log.classes, log.columns.kind) == (CLASSES, "logits")
    assert log.rows in (N, None)
    batches = list(log.batches(rows))
    assert all(len(batch) <= (rows or N) for batch in batches)
    assert_close(torch.cat([b.forecast for b in batches]).float(), logits, rtol=0, atol=0)
    assert_close(torch.cat([b.truth for b in batches]), labels, rtol=0, atol=0)
    whole = log.read()
    assert_close(whole.forecast.float(), logits, rtol=0, atol=0)


@pytest.mark.parametrize("write", WRITERS)
def test_its_summary_is_that_of_the_same_numbers_in_memory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_log, "_NUMBERS", 50 * CLASSES)
    logits, labels = told()
    log = open_log(write(tmp_path, logits, labels))
    assert len(list(log.batches())) > 1
    # What is text has been read in double precision.
    wide = log.read().forecast.dtype == torch.float64
    found = log.summary()
    truth = cal.Summary(CLASSES).update(logits.double() if wide else logits, labels)
    assert len(found) == N
    for name, bounded in truth.values().items():
        assert found.values()[name].value == pytest.approx(bounded.value, abs=1e-14, rel=1e-12)
    events = cal.Predictions(logits.double() if wide else logits, labels)
    for name in ("ece", "class_wise_ece", "per_class_ece", "mce"):
        exact = cal.MEASURES[name](events) if name != "mce" else cal.top_label(cal.mce)(events)
        assert found.values()[name].value == pytest.approx(exact.item(), abs=1e-6), name


def test_evaluating_a_log_is_evaluating_its_numbers(tmp_path: Path) -> None:
    logits, labels = (x[:30] for x in told())
    groups = np.array(["b", "a"])[np.arange(30) % 2]
    weights = np.linspace(0.5, 2, 30)
    np.savez(tmp_path / "log.npz", probs=logits.softmax(1), label=labels, g=groups, w=weights)
    log = open_log(tmp_path / "log.npz", weights="w", groups="g")
    direct = cal.evaluate(
        logits.softmax(1), labels, probabilities=True, weights=weights, groups=groups, draws=39
    )
    assert log.evaluate(draws=39).to_dict() == direct.to_dict()


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_one_number_per_row_is_about_class_one(kind: str, tmp_path: Path) -> None:
    scores, labels = torch.linspace(-3, 3, 50), torch.arange(50) % 2
    given = scores if kind == "logits" else scores.sigmoid()
    save_file({kind: given, "labels": labels}, tmp_path / "log.safetensors")
    forecasts = open_log(tmp_path / "log.safetensors").read().forecasts
    assert isinstance(forecasts, cal.Predictions)
    assert_close(forecasts.probs, cal.Predictions.from_binary(scores, labels).probs)


@pytest.mark.parametrize(
    ("name", "by", "sentence"),
    [
        ("log.csv", ";", r"log\.csv must separate its columns by commas; .* has semicolons\."),
        ("log.csv.gz", ";", r"log\.csv\.gz must separate its columns by commas; .* semicolons"),
        ("log.csv", "\t", r"by commas; its first line has tabs"),
        ("log.tsv", ",", r"by tabs; its first line has commas"),
    ],
)
def test_another_separator_is_named(name: str, by: str, sentence: str, tmp_path: Path) -> None:
    lines = [by.join(("logit", "label")), *(by.join(("1,5", str(k % 2))) for k in range(9))]
    told = "\n".join(lines).encode("utf-8-sig")  # as spreadsheets write it
    (tmp_path / name).write_bytes(gzip.compress(told) if name.endswith(".gz") else told)
    with pytest.raises(ValueError, match=sentence):
        open_log(tmp_path / name)


def test_blocks_of_log_odds_may_lie_between_0_and_1(tmp_path: Path) -> None:
    scores, labels = torch.linspace(-5, 5, 500), torch.arange(500) % 2
    save_file({"logits": scores, "labels": labels}, tmp_path / "sorted.safetensors")
    read = open_log(tmp_path / "sorted.safetensors").batches(rows=40)
    assert sum(len(batch.forecast) for batch in read) == 500


def events(folder: Path, n: int = 300) -> tuple[PredictionLog, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(5)
    confidence = torch.rand(n, generator=rng)
    outcome = (torch.rand(n, generator=rng) < confidence).long()
    table = {"confidence": confidence.numpy(), "correct": outcome.bool().numpy()}
    group = [("x", "y", "z")[k % 3] for k in range(n)]
    parquet.write_table(pa.table(table | {"g": group}), folder / "e.parquet", row_group_size=41)
    return open_log(folder / "e.parquet", groups="g"), confidence, outcome


def test_confidence_and_outcome_alone_are_a_log(tmp_path: Path) -> None:
    log, confidence, outcome = events(tmp_path)
    assert log.classes is None
    assert "300 rows, events" in repr(log)
    found, truth = log.summary().values(), cal.evaluate_events(confidence, outcome, draws=39)
    exact = {"accuracy", "nll", "brier", "mean_confidence", "ece", "ece_l2", "mce"}
    assert exact < found.keys()
    for name, bounded in found.items():
        assert abs(bounded.value - truth[name].value) <= bounded.error + 1e-6, name
        assert name not in exact or bounded.error == 0


def test_summaries_of_groups_merge_into_that_of_the_file(tmp_path: Path) -> None:
    log, confidence, outcome = events(tmp_path)
    parts = log.summaries()
    assert list(parts) == ["x", "y", "z"]
    own = torch.arange(300) % 3 == 1
    alone = cal.Summary(None).add_events(confidence[own], outcome[own])
    assert_close(parts["y"].state, alone.state)
    whole = parts["x"].merge(parts["y"]).merge(parts["z"])
    assert_close(whole.state, log.summary().state)


def test_progress_is_told_after_each_batch(tmp_path: Path) -> None:
    log, _, _ = events(tmp_path)
    seen: list[tuple[int, int | None]] = []
    list(log.batches(100, progress=lambda done, total: seen.append((done, total))))
    assert seen[-1] == (300, 300)
    assert seen == sorted(seen)


BOUNDED = """
import sys
from pathlib import Path
import calibrant.logs as logs

def peak_of(log):
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    assert len(log.summary()) == log.rows
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

small, large = map(logs.open_log, sys.argv[1:])
peak_of(small)  # what the first use of torch and pyarrow takes, it takes here
print(-peak_of(small) + peak_of(large))
"""


def as_vectors(path: Path, logits: NDArray[Any], labels: NDArray[Any]) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(logits.reshape(-1), logits.shape[1])
    in_one_row_group(path, {"logits": vectors, "labels": labels})


def as_columns(path: Path, logits: NDArray[Any], labels: NDArray[Any]) -> None:
    columns = {f"logit_{k}": column for k, column in enumerate(logits.T)}
    in_one_row_group(path, columns | {"labels": labels})


def in_one_row_group(path: Path, columns: Mapping[str, Any]) -> None:
    parquet.write_table(
        pa.table(columns),
        path,
        row_group_size=len(columns["labels"]),
        data_page_size=2**14,
        compression="none",
        use_dictionary=False,
    )


def in_fortran_order(path: Path, logits: NDArray[Any], labels: NDArray[Any]) -> None:
    with path.open("wb") as file:
        np.savez(file, logits=np.asfortranarray(logits), labels=labels)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    ("write", "megabytes"),
    [(as_vectors, 24), (as_columns, 24), (in_fortran_order, 61 + 24)],
)
def test_a_long_file_is_summarised_in_bounded_memory(
    write: Callable[..., None], megabytes: int, tmp_path: Path
) -> None:
    """Also where a file has nothing smaller than a row group; an array by column is held once."""
    rng = np.random.default_rng(0)
    files = []
    for rows in (6_000, 160_000):
        logits = rng.standard_normal((rows, 100), dtype=np.float32)
        files.append(tmp_path / f"{rows}.{'npz' if write is in_fortran_order else 'parquet'}")
        write(files[-1], logits, rng.integers(0, 100, rows))
    run = subprocess.run(
        [sys.executable, "-c", BOUNDED, *map(str, files)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert logits.nbytes > 60 * 2**20
    assert int(run.stdout) * 2**10 < megabytes * 2**20


@pytest.mark.parametrize(
    ("names", "asked", "found"),
    [
        (["logits", "labels"], {}, ("logits", ("logits",), "labels")),
        (["prob_0", "prob_1", "y"], {}, ("probabilities", ("prob_0", "prob_1"), "y")),
        (["id", "confidence", "correct"], {}, ("confidence", ("confidence",), "correct")),
        (["a", "b"], {"confidence": "a", "outcome": "b"}, ("confidence", ("a",), "b")),
        (["z.0", "z.1", "y"], {"logits": "z"}, ("logits", ("z.0", "z.1"), "y")),
        (["b", "a", "y"], {"logits": ["b", "a"]}, ("logits", ("b", "a"), "y")),
        (["logits", "probs", "y"], {"probabilities": "probs"}, ("probabilities", ("probs",), "y")),
        (["logits", "confidence", "t"], {"labels": "t"}, ("logits", ("logits",), "t")),
        (["logits", "confidence", "t"], {"outcome": "t"}, ("confidence", ("confidence",), "t")),
        (
            [f"logit_{k}" for k in (10, *range(10))] + ["label"],
            {},
            ("logits", tuple(f"logit_{k}" for k in range(11)), "label"),
        ),
    ],
)
def test_columns_are_known_by_name(
    names: list[str], asked: dict[str, str | list[str]], found: tuple[object, ...]
) -> None:
    chosen = choose(names, "log", dict(asked))
    assert (chosen.kind, chosen.forecast, chosen.truth) == found
    assert (chosen.weights, chosen.groups) == (None, None)


@pytest.mark.parametrize(
    ("names", "asked", "sentence"),
    [
        (["a", "b"], {}, r"log must have columns of logits .* found a, b\. Name yours as"),
        (["logits", "a"], {}, r"must have a column of labels, .* found logits, a\."),
        (["logits", "probs", "y"], {}, r"more than one kind .*: logits \(logits\) and prob"),
        (["logits", "y", "label"], {}, r"more than one column that may hold labels: y, label"),
        (["logits", "logit_0", "logit_1"], {}, r"more than one column that may hold logits"),
        (["logit_0", "logit_2", "y"], {}, r"from 0 without a gap; .* but no logit_1"),
        (["logit_1", "logit_2", "y"], {}, r"but no logit_0"),
        (
            ["Logit_0", "logit_0", "logit_1", "y"],
            {},
            r"log must have one column for class 0; found Logit_0 and logit_0\. Name the columns",
        ),
        (["z0", "z1", "z_1", "y"], {"logits": "z"}, r"for class 1; found z1 and z_1\."),
        (["logits", "y", "y"], {}, r"must have one column called 'y'; found 2"),
        (["logits", "y"], {"labels": "Y"}, r"log has no column 'Y'; found logits, y\."),
        (["logits", "y"], {"weights": "w"}, r"log has no column 'w'"),
        (["logits", "y"], {"weights": "y"}, r"one thing only; got 'y' for two of logits, labels"),
        (["a", "b"], {}, r"in a shell by --logits, --probabilities or --confidence\."),
        (["logits"], {}, r"Name yours as labels, in a shell by --labels\."),
        (["logits", "y"], {"outcome": "y"}, r"must have columns of logits"),
        (
            ["logits", "y"],
            {"logits": "logits", "outcome": "y"},
            r"judged by labels, not by outcome",
        ),
        (["a", "b"], {"logits": "a", "confidence": "b"}, r"one kind of forecast; got logits and"),
        (["a", "b", "y"], {"labels": ["a", "b"], "logits": "y"}, r"labels must be one column"),
        ([f"c{k}" for k in range(20)], {}, r"c11 and 8 more"),
    ],
)
def test_a_column_in_doubt_gets_one_sentence(
    names: list[str], asked: dict[str, str | list[str]], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        choose(names, "log", dict(asked))


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("confidence,correct\n", r"log\.csv must hold at least one row; it has none"),
        ("confidence,correct\n0.5,1\n0.6\n", r"whole CSV file; .* Expected 2 columns, got 1"),
        ("confidence,correct\n0.5,1\n,1\n", r"'confidence' .* a value in every row; row 1 "),
        ("confidence,correct\n0.5,1\n1.0011,1\n", r"between 0 and 1; got 1\.0011 in row 1"),
        ("confidence,correct\n0.5,1\n50,1\n", r"between 0 and 1; got 50 in row 1 .* divide by 100"),
        (
            "confidence,correct\n0.5,1\n0.5,2\n",
            r"outcome \(column correct .* 0 or 1; got 2 in row 1",
        ),
        ("confidence,correct\n0.5,1\n0.5,0.5\n", r"must be whole numbers; got 0\.5 in row 1"),
        ("prob_0,prob_1,y\n0.5,0.5,0\n0.5,0.6,0\n", r"sum to one in every row; got 1\.1 in row 1"),
        ("prob_0,prob_1,y\n0.5,0.5,0\n1.5,-0.5,0\n", r"not be negative; got -0\.5 in row 1"),
        (
            "logit_0,logit_1,y\n5,3,0\n5,3,2\n",
            r"between 0 and 1, since .* 2 classes; got 2 in row 1",
        ),
        ("logit_0,logit_1,y\n5,3,0\n5,3,-1\n", r"got -1 in row 1 "),
        ("logit_0,logit_1,y\n5,3,0\n5,inf,1\n", r"finite in some class; got infinity in row 1"),
        (
            "logit_0,logit_1,y\n.5,.5,0\n.4,.6,0\n",
            r"rows that are probabilities.*Name them as prob",
        ),
    ],
)
def test_a_bad_row_is_named(lines: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(lines)
    with pytest.raises(ValueError, match=sentence):
        open_log(tmp_path / "log.csv").read()


@pytest.mark.parametrize("head", ["confidence", " confidence"])
def test_the_first_text_among_numbers_is_named(head: str, tmp_path: Path) -> None:
    rows = [f"{head},correct", "0.5,1", ",1", "1e-3,0", " 0.25,1", "n/a,0", "high,1", "low,0"]
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    told = r"must hold numbers; it holds text, 'high' in row 5 \(counted from 0\)\. Classes are"
    with pytest.raises(TypeError, match=told):
        open_log(tmp_path / "log.csv").read()


@pytest.mark.parametrize("name", ["confidence", "probability"])
def test_what_rounding_adds_to_certainty_is_taken_from_a_file(name: str, tmp_path: Path) -> None:
    asked = {"confidence": name} if name == "confidence" else {"probabilities": name}
    told, exact = tmp_path / "told.csv", tmp_path / "exact.csv"
    told.write_text(f"{name},y\n1.0000001,1\n-0.0000001,0\n0.5,1\n")
    exact.write_text(f"{name},y\n1,1\n0,0\n0.5,1\n")
    truth = {"outcome" if name == "confidence" else "labels": "y"}
    read, same = (open_log(path, **asked, **truth).read() for path in (told, exact))
    assert read.forecast.equal(same.forecast)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"logits": [[1.0, 2], [1, 2], [1, 2, 3]], "y": [0, 1, 1]}, r"3 in row 2|row 2 has 3"),
        ({"logits": [[1.0, 2], [1, None]], "y": [0, 1]}, r"value in every row; row 1 "),
        ({"logits": [[1.0, 2], None], "y": [0, 1]}, r"value in every row; row 1 "),
        ({"logits": [[1.0, 2], [1.0, np.nan]], "y": [0, 1]}, r"got NaN in row 1 "),
        (
            {"logits": [[1.0, 2], [1, 2]], "y": [[0, 1], [1, 0]]},
            r"labels .* one number per row; got 2",
        ),
        ({"logits": [[1.0, 2], [1, 2]], "y": [[0], [1]]}, r"plain numbers; got a list of one in"),
        ({"logits": [[1.0], [2.0]], "y": [0, 1]}, r"at least two classes .* got lists of 1\."),
        ({"confidence": [0.5, 0.6, 0.7], "correct": [1, 0, None]}, r"row 2 \(counted from 0\)"),
    ],
)
def test_a_bad_row_is_named_beyond_the_first_batch_too(
    columns: dict[str, list[object]], sentence: str, tmp_path: Path
) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "log.parquet")
    for rows in (1, 100):
        with pytest.raises(ValueError, match=sentence):
            list(open_log(tmp_path / "log.parquet").batches(rows))


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"confidence": [0.5, 1.0], "correct": ["yes", "no"]},
            r"must hold numbers; it holds string.*and outcomes as 0 or 1",
        ),
        ({"confidence": [0, 1], "correct": [0, 1]}, r"floating-point numbers; got int64"),
    ],
)
def test_a_column_of_another_type_gets_one_sentence(
    columns: dict[str, list[object]], sentence: str, tmp_path: Path
) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "log.parquet")
    with pytest.raises(TypeError, match=sentence):
        open_log(tmp_path / "log.parquet").read()


@pytest.mark.parametrize("write", [w for w in WRITERS if w not in (csv, tsv, packed_csv)])
@pytest.mark.parametrize("share", [0.5, 0.97])
def test_a_file_cut_short_gets_one_sentence(write: Write, share: float, tmp_path: Path) -> None:
    file = write(tmp_path, *told())
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"log\.\w+ must be a whole \w+ file; reading it failed: "):
        open_log(file).read()


@pytest.mark.parametrize("end", [".parquet", ".feather", ".npz", ".safetensors", ".csv"])
def test_a_foreign_file_gets_one_sentence(end: str, tmp_path: Path) -> None:
    file = tmp_path / f"log{end}"
    file.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(ValueError, match=r"must be a whole \w+ file") as wrong:
        open_log(file).read()
    assert str(wrong.value).isprintable()


def test_a_file_that_is_none_gets_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere\.npz"):
        open_log(tmp_path / "nowhere.npz")
    (tmp_path / "log.txt").write_text("x")
    with pytest.raises(ValueError, match=r"ends in .*; got 'log\.txt'"):
        open_log(tmp_path / "log.txt")
    (tmp_path / "log.csv").touch()
    with pytest.raises(ValueError, match=r"log\.csv must hold at least one row; the file is empty"):
        open_log(tmp_path / "log.csv")


def test_arrays_must_fit_together(tmp_path: Path) -> None:
    file = tmp_path / "log.npz"
    np.savez(file, logits=np.zeros((3, 2)), labels=np.zeros(4))
    with pytest.raises(ValueError, match=r"a row per sample; got rows logits 3, labels 4"):
        open_log(file)
    np.savez(file, logits=np.zeros((3, 2, 2)), labels=np.zeros(3))
    with pytest.raises(ValueError, match=r"\(rows, classes\); got \(3, 2, 2\)"):
        open_log(file)
    np.savez(file, logits=np.zeros((0, 2)), labels=np.zeros(0))
    with pytest.raises(ValueError, match="at least one row"):
        open_log(file)


class Trap:
    """Unpickled, it would say so."""

    def __reduce__(self) -> tuple[object, ...]:
        return pytest.fail, ("a pickle was loaded",)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    traps = np.array([Trap()] * 3, dtype=object)
    np.savez(tmp_path / "log.npz", logits=np.eye(3), labels=traps, allow_pickle=True)
    with pytest.raises(TypeError, match=r"pickled objects, which are never loaded"):
        open_log(tmp_path / "log.npz").read()


def test_a_damaged_archive_is_noticed(tmp_path: Path) -> None:
    file = npz(tmp_path, *told())
    whole = bytearray(file.read_bytes())
    whole[1000] ^= 1  # one bit of one logit
    file.write_bytes(whole)
    with pytest.raises(ValueError, match="Bad CRC-32"):
        open_log(file).read()


def test_an_array_shorter_than_it_says_is_noticed(tmp_path: Path) -> None:
    file = npz(tmp_path, *told())
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("logits.npy", parts["logits.npy"][:-80])
        archive.writestr("labels.npy", parts["labels.npy"])
    with pytest.raises(ValueError, match="whole NPZ file; reading it failed: 80 bytes are missing"):
        open_log(file).read()


def test_weights_have_no_summary_and_groups_need_a_column(tmp_path: Path) -> None:
    np.savez(tmp_path / "log.npz", confidence=np.full(3, 0.5), correct=np.ones(3), w=np.ones(3))
    with pytest.raises(ValueError, match=r"counts every row once; got weights='w'"):
        open_log(tmp_path / "log.npz", weights="w").summary()
    with pytest.raises(ValueError, match=r"name a column"):
        open_log(tmp_path / "log.npz").summaries()


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("rows", [0, -1, "7", 7.5])
def test_rows_of_a_batch_must_be_a_whole_number(rows: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "log.npz", confidence=np.full(3, 0.5), correct=np.ones(3))
    sentence = rf"rows must be a whole number, at least 1; got {rows!r}\."
    with pytest.raises(ValueError, match=sentence):
        next(open_log(tmp_path / "log.npz").batches(rows))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("name", ["", 0, 3, [], ["a", 3], ["a", ""]])
@pytest.mark.parametrize("role", ["logits", "labels", "groups"])
def test_a_column_must_be_named(role: str, name: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "log.npz", logits=np.eye(3), labels=np.arange(3), a=np.ones(3))
    sentence = rf"{role} must be the name of a column, or of several; got {re.escape(repr(name))}\."
    with pytest.raises(TypeError, match=sentence):
        open_log(tmp_path / "log.npz", **{role: name})


def test_too_many_groups_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_grouped, "_MOST_GROUPS", 5)
    groups, n = np.arange(6), 6
    np.savez(tmp_path / "log.npz", confidence=np.full(n, 0.5), correct=groups % 2, g=groups)
    with pytest.raises(ValueError, match=r"at most 5 groups"):
        open_log(tmp_path / "log.npz", groups="g").summaries()


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = csv(tmp_path, *told())
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[files\]'"):
        open_log(file)
