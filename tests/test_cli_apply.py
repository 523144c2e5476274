"""`calibrant apply`: the same file with better forecasts, in every format."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.testing import assert_close

import calibrant as cal
from calibrant.cli import main
from calibrant.logs import _applied, recalibrate_log


@pytest.fixture
def scaling(rng: torch.Generator) -> cal.Recalibrator:
    """A map that is no mere temperature: classes are shifted too."""
    logits = 2 * torch.randn(400, 3, generator=rng)
    labels = (logits + torch.tensor([1.0, 0, 0])).softmax(dim=1).multinomial(1, generator=rng)
    return cal.VectorScaling().fit(logits, labels[:, 0], folds=0)


@pytest.fixture
def logits(rng: torch.Generator) -> Tensor:
    return torch.randn(50, 3, generator=rng)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that fifty rows are several blocks."""
    monkeypatch.setattr(_applied, "_NUMBERS", 21)


def written(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=20)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table, max_chunksize=20)
    else:
        pyarrow.csv.write_csv(table, path)


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path)
    if path.suffix == ".feather":
        return pyarrow.feather.read_table(path)
    if path.suffix == ".arrow":
        with pa.OSFile(str(path)) as source:
            return pa.ipc.open_stream(source).read_all()
    return pyarrow.csv.read_csv(path)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow", ".csv"])
def test_numbered_columns_are_mapped_and_the_rest_is_kept(
    suffix: str, scaling: cal.Recalibrator, logits: Tensor, tmp_path: Path
) -> None:
    columns: dict[str, Any] = {"id": [f'<a,"{k}">' for k in range(50)], "label": [0] * 50}
    columns |= {f"logit_{k}": logits[:, k].double().numpy() for k in range(3)}
    table = pa.table(columns)
    old, new = tmp_path / f"old{suffix}", tmp_path / f"new{suffix}"
    written(table, old)
    assert recalibrate_log(scaling, old, new) == 50
    found = read(new)
    assert found.column_names == table.column_names
    assert found["id"].to_pylist() == columns["id"]
    assert found["label"].to_pylist() == columns["label"]
    better = np.stack([found[f"logit_{k}"].to_numpy() for k in range(3)], axis=1)
    assert_close(torch.from_numpy(better), scaling.transform(logits.double()))


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize("kind", [pa.list_(pa.float32(), 3), pa.list_(pa.float32())])
def test_vectors_stay_vectors_of_their_type(
    suffix: str, kind: pa.DataType, scaling: cal.Recalibrator, logits: Tensor, tmp_path: Path
) -> None:
    table = pa.table({"logits": pa.array(logits.tolist(), kind), "n": list(range(50))})
    old, new = tmp_path / f"old{suffix}", tmp_path / f"new{suffix}"
    written(table, old)
    recalibrate_log(scaling, old, new)
    found = read(new)
    assert found.schema == table.schema
    better = torch.tensor(found["logits"].to_pylist())
    assert_close(better, scaling.transform(logits))


def test_text_columns_of_a_compressed_csv_stay_letter_by_letter(
    scaling: cal.Recalibrator, tmp_path: Path
) -> None:
    lines = ["z_0,note,z_1,z_2", "1.5,007,0,-1", '0,"a, b",1e0,2', "3,,0,0"]
    with gzip.open(tmp_path / "old.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    recalibrate_log(scaling, tmp_path / "old.csv.gz", tmp_path / "new.csv.gz", logits="z")
    with gzip.open(tmp_path / "new.csv.gz", "rt") as file:
        found = file.read().splitlines()
    assert found[0] == lines[0]
    assert [line.split(",", 1)[1].rsplit(",", 2)[0] for line in found[1:]] == ["007", '"a, b"', ""]
    first = scaling.transform(torch.tensor([[1.5, 0, -1]], dtype=torch.float64))[0]
    told = found[1].split(",")
    assert_close(torch.tensor([float(told[0]), float(told[2])], dtype=torch.float64), first[:2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("packed", [False, True])
def test_npz_arrays_keep_type_order_and_company(
    dtype: torch.dtype, packed: bool, scaling: cal.Recalibrator, logits: Tensor, tmp_path: Path
) -> None:
    save = np.savez_compressed if packed else np.savez
    images = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    save(tmp_path / "old.npz", first=images, logits=logits.to(dtype), labels=np.zeros(50, int))
    recalibrate_log(scaling, tmp_path / "old.npz", tmp_path / "new.npz")
    found = np.load(tmp_path / "new.npz")
    assert found.files == ["first", "logits", "labels"]
    assert np.array_equal(found["first"], images)
    assert_close(torch.from_numpy(found["logits"]), scaling.transform(logits.to(dtype)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_safetensors_differ_only_where_the_forecasts_lie(
    dtype: torch.dtype, scaling: cal.Recalibrator, logits: Tensor, tmp_path: Path
) -> None:
    told = {"b": torch.arange(7), "logits": logits.to(dtype), "a": torch.ones(3, 2)}
    save_file(told, tmp_path / "old.safetensors", metadata={"who": "me"})
    recalibrate_log(scaling, tmp_path / "old.safetensors", tmp_path / "new.safetensors")
    found = load_file(tmp_path / "new.safetensors")
    assert torch.equal(found["a"], told["a"])
    assert torch.equal(found["b"], told["b"])
    assert_close(found["logits"], scaling.transform(logits.to(dtype)))


def test_an_array_per_class_is_mapped_with_the_others(
    scaling: cal.Recalibrator, logits: Tensor, tmp_path: Path
) -> None:
    columns: dict[str, Any] = {f"logit_{k}": logits[:, k] for k in range(3)}
    np.savez(tmp_path / "old.npz", **columns)
    recalibrate_log(scaling, tmp_path / "old.npz", tmp_path / "new.npz")
    found = np.load(tmp_path / "new.npz")
    better = np.stack([found[f"logit_{k}"] for k in range(3)], axis=1)
    assert_close(torch.from_numpy(better), scaling.transform(logits))


def test_probabilities_stay_probabilities_and_scores_stay_one_column(
    scaling: cal.Recalibrator, logits: Tensor, tmp_path: Path, rng: torch.Generator
) -> None:
    chances = logits.softmax(dim=1)
    np.savez(tmp_path / "p.npz", probs=chances)
    recalibrate_log(scaling, tmp_path / "p.npz", tmp_path / "p.npz")  # onto itself
    found = torch.from_numpy(np.load(tmp_path / "p.npz")["probs"])
    assert_close(found, scaling.predict_proba(cal.as_logits(chances)))
    odds, clicked = torch.randn(200, generator=rng), torch.randint(2, (200,), generator=rng)
    platt = cal.PlattScaling().fit(odds, clicked, folds=0)
    np.savez(tmp_path / "z.npz", logits=odds, confidence=odds.sigmoid())
    recalibrate_log(platt, tmp_path / "z.npz", tmp_path / "y.npz", logits="logits")
    assert_close(torch.from_numpy(np.load(tmp_path / "y.npz")["logits"]), platt.transform(odds))
    recalibrate_log(platt, tmp_path / "z.npz", tmp_path / "y.npz", confidence="confidence")
    better = torch.from_numpy(np.load(tmp_path / "y.npz")["confidence"])
    assert_close(better, platt.predict_proba(cal.as_logits(odds.sigmoid())))


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_progress_and_complaints_count_rows_over_all_blocks(
    suffix: str, scaling: cal.Recalibrator, logits: Tensor, tmp_path: Path
) -> None:
    def write() -> None:
        if suffix == ".npz":
            np.savez(tmp_path / "old.npz", logits=logits)
        else:
            written(pa.table({"logits": logits.tolist()}), tmp_path / "old.parquet")

    write()
    told: list[tuple[int, int | None]] = []
    old, new = tmp_path / f"old{suffix}", tmp_path / f"new{suffix}"
    recalibrate_log(scaling, old, new, progress=lambda *now: told.append(now))
    assert told[0] == (7, 50)
    assert told[-1] == (50, 50)
    logits[30, 1] = torch.nan
    write()
    with pytest.raises(ValueError, match=r"got NaN in row 30 \(counted from 0\)"):
        recalibrate_log(scaling, old, new)


def test_the_command_says_what_it_did(
    scaling: cal.Recalibrator, logits: Tensor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "raw.npz", scores=logits)
    scaling.save(tmp_path / "map.safetensors")
    out = tmp_path / "better.npz"
    asked = ["apply", str(tmp_path / "map.safetensors"), str(tmp_path / "raw.npz")]
    asked += ["--logits", "scores", "--out", str(out)]
    assert main(asked) == 0
    assert capsys.readouterr() == (f"50 rows through VectorScaling(), written to {out}\n", "")
    assert_close(torch.from_numpy(np.load(out)["scores"]), scaling.transform(logits))
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["out"]) == (50, str(out))


@pytest.mark.parametrize("out", ["raw.safetensors", "link.safetensors", "map.safetensors"])
def test_neither_the_predictions_nor_the_map_are_overwritten(
    out: str,
    scaling: cal.Recalibrator,
    logits: Tensor,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    raw, model = tmp_path / "raw.safetensors", tmp_path / "map.safetensors"
    save_file({"logits": logits}, raw)
    scaling.save(model)
    (tmp_path / "link.safetensors").symlink_to(raw)
    before = raw.read_bytes(), model.read_bytes()
    assert main(["apply", str(model), str(raw), "--out", out]) == 2
    printed, err = capsys.readouterr()
    assert printed == ""
    assert re.fullmatch(
        rf"calibrant: --out must not be a file that is read; got '{out}', which is "
        r"'(raw|map)\.safetensors'\. Write to another name\.\n",
        err,
    )
    assert (raw.read_bytes(), model.read_bytes()) == before
    assert (tmp_path / "link.safetensors").is_symlink()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"out": "better.csv"}, r"must have the format of the old one, \.npz; got 'better\.csv'"),
        ({"file": "no.npz"}, r"there is no file"),
        ({"model": "no.safetensors"}, r"must be a file; there is none"),
        ({"more": ["--logits", "nope"]}, r"raw\.npz has no column 'nope'"),
        ({"logits": torch.zeros(5, 4)}, r"logits must have 3 classes, as when fitted; got 4"),
        ({"logits": torch.full((5, 3), torch.nan)}, r"must hold numbers; got NaN in row 0"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_the_place_as_it_was(
    change: dict[str, Any],
    sentence: str,
    scaling: cal.Recalibrator,
    logits: Tensor,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.savez(tmp_path / "raw.npz", logits=change.get("logits", logits))
    scaling.save(tmp_path / "map.safetensors")
    (tmp_path / "better.npz").write_text("as it was")
    model, file = change.get("model", "map.safetensors"), change.get("file", "raw.npz")
    out = tmp_path / change.get("out", "better.npz")
    asked = ["apply", str(tmp_path / model), str(tmp_path / file), "--out", str(out)]
    assert main([*asked, *change.get("more", [])]) == 2
    printed, err = capsys.readouterr()
    assert printed == ""
    assert re.match(rf"calibrant: .*{sentence}", err)
    assert err.count("\n") == 1
    assert (tmp_path / "better.npz").read_text() == "as it was"


def test_a_file_without_rows_is_refused(scaling: cal.Recalibrator, tmp_path: Path) -> None:
    none, no_labels = torch.zeros(0, 3), torch.zeros(0, dtype=torch.long)
    np.savez(tmp_path / "old.npz", logits=none.numpy(), labels=no_labels.numpy())
    save_file({"logits": none, "labels": no_labels}, tmp_path / "old.safetensors")
    for form in ("npz", "safetensors"):
        with pytest.raises(
            ValueError, match=rf"old\.{form} must hold at least one row; it has none"
        ):
            recalibrate_log(scaling, tmp_path / f"old.{form}", tmp_path / f"new.{form}")
        assert not (tmp_path / f"new.{form}").exists()
