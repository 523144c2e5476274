"""Folders of Parquet parts: one log, read in order, and the part that will not do is named."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_files import BOUNDED
from torch.testing import assert_close

import calibrant as cal
from calibrant.cli import main
from calibrant.logs import _log, open_log, recalibrate_log

pa, parquet, dataset = map(import_module, ("pyarrow", "pyarrow.parquet", "pyarrow.dataset"))

N = 90


def rows() -> Any:
    rng = np.random.default_rng(4)
    logits = rng.standard_normal((N, 3), dtype=np.float32)
    days = [f"2026-11-{1 + k // 30:02d}" for k in range(N)]
    return pa.table({"logits": list(logits), "label": rng.integers(0, 3, N), "day": days})


def logits_of(table: Any) -> torch.Tensor:
    return torch.tensor(table["logits"].to_pylist())


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Three parts, written last to first, beside the notes that writers leave."""
    folder = tmp_path / "log"
    folder.mkdir()
    for k in (2, 1, 0):
        parquet.write_table(rows().slice(30 * k, 30), folder / f"part-{k}.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "_metadata.parquet").write_bytes(b"a note")
    (folder / ".part-0.parquet").write_bytes(b"half of it")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part-9.parquet").write_bytes(b"half of it")
    return folder


def test_parts_are_read_as_one_log_in_order_of_their_names(parts: Path) -> None:
    log, table = open_log(parts), rows()
    assert repr(log) == "PredictionLog('log': 90 rows, logits of 3 classes)"
    for size in (None, 7, 100):
        batches = list(log.batches(size))
        assert all(len(batch) <= min(size or 30, 30) for batch in batches)
        assert_close(torch.cat([b.forecast for b in batches]), logits_of(table), rtol=0, atol=0)
        assert torch.cat([b.truth for b in batches]).tolist() == table["label"].to_pylist()


def test_its_summary_is_that_of_one_file(parts: Path, tmp_path: Path) -> None:
    parquet.write_table(rows(), tmp_path / "whole.parquet")
    whole = open_log(tmp_path / "whole.parquet", groups="day")
    found = open_log(parts, groups="day")
    assert_close(found.summary().state, whole.summary().state)
    assert {name: len(one) for name, one in found.summaries().items()} == {
        f"2026-11-0{k}": 30 for k in (1, 2, 3)
    }


def test_folders_called_key_and_value_make_a_column(tmp_path: Path) -> None:
    for key in ("day", "label"):
        place = tmp_path / key
        dataset.write_dataset(
            rows(), place, format="parquet", partitioning=[key], partitioning_flavor="hive"
        )
        log = open_log(place, groups="day")
        assert (log.rows, log.columns.truth) == (N, "label")
        assert {name: len(one) for name, one in log.summaries().items()} == {
            f"2026-11-0{k}": 30 for k in (1, 2, 3)
        }
        pairs = sorted(zip(log.read().truth.tolist(), log.read().forecast.tolist(), strict=True))
        assert pairs == sorted(
            zip(rows()["label"].to_pylist(), rows()["logits"].to_pylist(), strict=True)
        )


def events(n: int = 4) -> Any:
    return pa.table({"confidence": np.linspace(0.2, 0.8, n), "x": np.arange(n) % 2})


def test_what_a_folder_says_is_text_for_groups_and_a_number_for_numbers(tmp_path: Path) -> None:
    for name in ("v=1.10", "v=1.1", "v=a%20b%2Fc"):
        (tmp_path / "text" / name).mkdir(parents=True)
        parquet.write_table(events(), tmp_path / "text" / name / "p.parquet")
    log = open_log(tmp_path / "text", outcome="x", groups="v")
    assert list(log.summaries()) == ["1.1", "1.10", "a b/c"]
    for name in ("right=true", "right=False", "right=1"):
        (tmp_path / "truth" / name).mkdir(parents=True)
        parquet.write_table(events(), tmp_path / "truth" / name / "p.parquet")
    truth = open_log(tmp_path / "truth", outcome="right").read().truth
    assert truth.tolist() == [1] * 4 + [0] * 4 + [1] * 4  # 1, False, true, in that order
    (tmp_path / "truth" / "right=yes").mkdir()
    parquet.write_table(events(), tmp_path / "truth" / "right=yes" / "p.parquet")
    with pytest.raises(TypeError, match=r"'right' of truth/right=yes/p\.parquet must hold numbers"):
        open_log(tmp_path / "truth", outcome="right").read()


def test_a_folder_of_rows_without_a_value_has_none(tmp_path: Path) -> None:
    place = tmp_path / "log" / "g=__HIVE_DEFAULT_PARTITION__"
    place.mkdir(parents=True)
    parquet.write_table(events(), place / "p.parquet")
    with pytest.raises(ValueError, match=r"column 'g' of log/g=__HIVE.*; row 0 .* has none"):
        open_log(tmp_path / "log", outcome="x", groups="g").read()
    with pytest.raises(ValueError, match=r"column 'g' of log/g=__HIVE.*; row 0 .* has none"):
        open_log(tmp_path / "log", outcome="g").read()


def test_parts_without_rows_are_nothing_and_need_no_types(parts: Path) -> None:
    nothing: dict[str, list[object]] = {"logits": [], "label": [], "day": []}
    parquet.write_table(pa.table(nothing), parts / "part--1.parquet")
    parquet.write_table(pa.table(nothing), parts / "part-3.parquet")
    log = open_log(parts)
    assert (log.rows, log.classes) == (N, 3)
    assert len(log.summary()) == N
    for part in parts.glob("part-*"):
        parquet.write_table(rows().slice(0, 0), part)
    with pytest.raises(ValueError, match=r"log must hold at least one row; it has none"):
        open_log(parts)


def test_a_bad_row_is_named_with_its_part(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_log, "_NUMBERS", 3 * 7)
    labels = np.zeros(30, dtype=np.int64)
    labels[25] = 7
    table = rows().slice(0, 30)
    parquet.write_table(table.set_column(1, "label", pa.array(labels)), parts / "part-1.parquet")
    sentence = r"labels \(column label of log/part-1\.parquet\) .* got 7 in row 25 \(counted"
    with pytest.raises(ValueError, match=sentence):
        open_log(parts).read()
    short = [[1.0, 2.0]] * 30
    parquet.write_table(
        table.set_column(0, "logits", pa.array(short, pa.list_(pa.float32()))),
        parts / "part-1.parquet",
    )
    with pytest.raises(ValueError, match=r"log/part-1\.parquet must have 3 logits .* in row 0 "):
        open_log(parts).read()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.97])
def test_a_part_cut_short_is_named(share: float, parts: Path) -> None:
    file = parts / "part-1.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"log/part-1\.parquet must be a whole Parquet file"):
        open_log(parts)


def test_a_damaged_part_is_named(parts: Path) -> None:
    table = events(400)
    for k in (0, 1, 2):
        parquet.write_table(
            table,
            parts / f"part-{k}.parquet",
            compression="none",
            use_dictionary=False,
            write_page_checksum=True,
        )
    whole = bytearray((parts / "part-1.parquet").read_bytes())
    whole[1000] ^= 1  # one bit of one confidence
    (parts / "part-1.parquet").write_bytes(whole)
    with pytest.raises(ValueError, match=r"log/part-1\.parquet must be a whole Parquet file"):
        open_log(parts, outcome="x").read()


def test_parts_that_disagree_are_named(parts: Path) -> None:
    own, file = rows().slice(30, 30), parts / "part-1.parquet"
    parquet.write_table(own.drop(["label"]), file)
    sentence = r"the same columns; log/part-1\.parquet has no 'label', unlike log/part-0\.parquet"
    with pytest.raises(ValueError, match=sentence):
        open_log(parts)
    parquet.write_table(own.append_column("more", own["label"]), file)
    with pytest.raises(ValueError, match=r"log/part-1\.parquet has 'more' besides, unlike log/pa"):
        open_log(parts)
    parquet.write_table(own.set_column(0, "logits", pa.array([[1.0, 2.0, 3.0]] * 30)), file)
    sentence = r"'logits' of log must be of one type .* float in log/part-0.* double in log/part-1"
    with pytest.raises(ValueError, match=sentence):
        open_log(parts)
    parquet.write_table(own, file)
    (parts / "who=me").mkdir()
    parquet.write_table(own, parts / "who=me" / "part-0.parquet")
    with pytest.raises(ValueError, match=r"log/who=me/part-0\.parquet has 'who' besides, unlike"):
        open_log(parts)


def test_order_of_columns_and_width_of_whole_numbers_may_differ(parts: Path) -> None:
    own = rows().slice(30, 30).select(["day", "label", "logits"])
    short = own["label"].cast(pa.int8())
    parquet.write_table(own.set_column(1, "label", short), parts / "part-1.parquet")
    found = open_log(parts).read()
    assert found.truth.tolist() == rows()["label"].to_pylist()
    assert_close(found.forecast, logits_of(rows()), rtol=0, atol=0)


def test_a_folder_that_is_no_log_gets_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "told.csv").write_text("confidence,correct\n0.5,1\n")
    with pytest.raises(ValueError, match=r"must hold Parquet files, .*; bare has none\. Name the"):
        open_log(tmp_path / "bare")
    parquet.write_table(events(), tmp_path / "bare" / "log.parquet")
    with pytest.raises(ValueError, match=r"found .*/bare/log\.parquet\. Open bare by itself"):
        open_log(tmp_path)
    with pytest.raises(ValueError, match=r"path must name a file or a folder; got an empty text"):
        open_log("")


@pytest.mark.parametrize(
    ("journal", "kind"),
    [("_delta_log", "Delta"), (".hoodie", "Hudi"), ("metadata", "Iceberg")],
)
def test_tables_with_a_journal_are_not_read_past_it(journal: str, kind: str, parts: Path) -> None:
    (parts / journal).mkdir()
    (parts / journal / "v1.metadata.json").touch()
    with pytest.raises(ValueError, match=rf"log is a {kind} table, where files that were replaced"):
        open_log(parts)


def test_the_folder_at_hand_has_a_name(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(parts)
    assert repr(open_log(".")).startswith("PredictionLog('log': 90 rows")


def test_a_part_that_changes_while_it_is_read_is_noticed(parts: Path) -> None:
    log = open_log(parts)
    batches = log.batches(10)
    next(batches)
    parquet.write_table(rows(), parts / "part-2.parquet")
    with pytest.raises(ValueError, match=r"log must stay as it is while it is read"):
        list(batches)


def test_recalibrated_it_becomes_one_file(tmp_path: Path) -> None:
    parts, days = tmp_path / "log", ("01", "02", "03")
    for k, day in enumerate(days):
        (parts / f"day={day}").mkdir(parents=True)
        table = rows().slice(30 * k, 30).drop(["day"])
        if k == 1:  # in another order, and in another type
            table = table.select(["label", "logits"])
            table = table.set_column(0, "label", table["label"].cast(pa.int8()))
        parquet.write_table(table, parts / f"day={day}" / "part.parquet")
    map_ = cal.TemperatureScaling().fit(*_fitting())
    assert recalibrate_log(map_, parts, tmp_path / "better.parquet") == N
    better = parquet.read_table(tmp_path / "better.parquet")
    assert better["day"].to_pylist() == [day for day in days for _ in range(30)]
    assert better["label"].to_pylist() == rows()["label"].to_pylist()
    assert_close(logits_of(better), map_.transform(logits_of(rows())))
    with pytest.raises(ValueError, match=r"must not lie in the folder that is read"):
        recalibrate_log(map_, parts, parts / "better.parquet")
    with pytest.raises(ValueError, match=r"format of the old one, \.parquet; got 'better\.npz'"):
        recalibrate_log(map_, parts, tmp_path / "better.npz")


def _fitting() -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(300, 3, generator=rng)
    return 2 * logits, logits.softmax(dim=1).multinomial(1, generator=rng)[:, 0]


def test_every_command_that_takes_a_log_takes_its_folder(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet.write_table(rows(), tmp_path / "log.parquet")
    file = str(tmp_path / "log.parquet")
    asked = (
        ["evaluate", "--draws", "39", "--groups", "day"],
        ["evaluate", "--stream"],
        ["monitor", "--time", "day"],
    )
    for command, *options in asked:
        found = []
        for place in (str(parts), file):
            code = main([command, place, *options])
            found.append((code, capsys.readouterr().out.replace("log.parquet", "log")))
        assert found[0] == found[1]
    assert main(["compare", str(parts), file, "--draws", "40"]) == 0
    assert capsys.readouterr().out.startswith("first log, second log.parquet\n90 samples")


@pytest.mark.parametrize("command", ["evaluate", "compare", "monitor"])
def test_a_bad_folder_is_refused_in_one_line(
    command: str, parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"compare": [str(parts)], "monitor": ["--time", "day"]}.get(command, [])
    (tmp_path / "bare").mkdir()
    assert main([command, str(tmp_path / "bare"), *more]) == 2
    assert "bare has none" in capsys.readouterr().err
    (parts / "part-1.parquet").write_bytes(b"PAR1")
    assert main([command, str(parts), *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("calibrant: log/part-1.parquet must be a whole Parquet file")
    assert err.count("\n") == 1


def test_a_time_that_is_none_is_named_with_its_part(
    parts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    days = pa.array(["2026-11-01"] * 29 + ["soon"])
    own = rows().slice(30, 30).set_column(2, "day", days)
    parquet.write_table(own, parts / "part-1.parquet")
    assert main(["monitor", str(parts), "--time", "day"]) == 2
    assert "column 'day' of log/part-1.parquet must" in (err := capsys.readouterr().err)
    assert "got 'soon' in row 29 (counted from 0)" in err


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_a_long_folder_is_summarised_in_bounded_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((20_000, 100), dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(logits.reshape(-1), 100)
    table = pa.table({"logits": vectors, "labels": rng.integers(0, 100, 20_000)})
    for name, count in (("small", 1), ("large", 8)):
        (tmp_path / name).mkdir()
        for k in range(count):
            parquet.write_table(table, tmp_path / name / f"{k}.parquet", use_dictionary=False)
    run = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(tmp_path / "small"), str(tmp_path / "large")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 8 * logits.nbytes > 60 * 2**20
    assert int(run.stdout) * 2**10 < 24 * 2**20
