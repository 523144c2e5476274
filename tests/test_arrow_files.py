"""Arrow files and streams of batches of any length are read slice by slice."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_files import BOUNDED

from calibrant.cli import main
from calibrant.logs import open_log

pa, ipc, feather = map(import_module, ("pyarrow", "pyarrow.ipc", "pyarrow.feather"))

CLASSES = 100


def table(rows: int) -> Any:
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((rows, CLASSES), dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(logits.reshape(-1), CLASSES)
    return pa.table({"logits": vectors, "labels": rng.integers(0, CLASSES, rows)})


def write(file: Path, told: Any, compression: str | None = None, batch: int | None = None) -> Path:
    """In one batch, as a stream where the name ends in `.arrow`."""
    opened = ipc.new_stream if file.suffix == ".arrow" else ipc.new_file
    options = ipc.IpcWriteOptions(compression=compression)
    with opened(str(file), told.schema, options=options) as sink:
        sink.write_table(told, max_chunksize=batch or len(told))
    return file


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("end", ["feather", "arrow"])
def test_one_huge_batch_is_summarised_in_bounded_memory(end: str, tmp_path: Path) -> None:
    long = table(160_000)
    files = [
        str(write(tmp_path / f"{name}.{end}", long.slice(0, rows)))
        for name, rows in (("small", 6_000), ("large", 160_000))
    ]
    counted = BOUNDED
    if end == "arrow":  # which does not say how many rows it has
        counted = BOUNDED.replace("== log.rows", "in (6_000, 160_000)")
    run = subprocess.run(
        [sys.executable, "-c", counted, *files], capture_output=True, text=True, check=True
    )
    assert long.nbytes > 60 * 2**20
    assert int(run.stdout) * 2**10 < 24 * 2**20


UNPACKED = """
import sys, pyarrow
from calibrant.logs import open_log
log = open_log(sys.argv[1])
assert len(log.summary()) == 40_000
print(pyarrow.default_memory_pool().max_memory())
"""


def test_of_compressed_batches_one_is_unpacked_at_a_time_and_no_other_column(
    tmp_path: Path,
) -> None:
    long = table(40_000)
    more = long.append_column("features", long["logits"]).append_column("more", long["logits"])
    file = write(tmp_path / "log.feather", more, compression="lz4", batch=10_000)
    run = subprocess.run(
        [sys.executable, "-c", UNPACKED, str(file)], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 1.2 * long.nbytes / 4


@pytest.mark.parametrize("compression", [None, "lz4"])
@pytest.mark.parametrize("end", ["feather", "arrow"])
@pytest.mark.parametrize("batch", [1, 7, 50])
def test_slices_of_batches_are_the_rows_that_were_written(
    batch: int, end: str, compression: str | None, tmp_path: Path
) -> None:
    told = table(50)
    file = write(tmp_path / f"log.{end}", told, compression=compression, batch=batch)
    for rows in (3, 100):
        read = [(b.forecast.tolist(), b.truth.tolist()) for b in open_log(file).batches(rows)]
        assert all(len(labels) <= rows for _, labels in read)
        assert [row for logits, _ in read for row in logits] == told["logits"].to_pylist()
        assert [label for _, labels in read for label in labels] == told["labels"].to_pylist()


def test_a_file_that_is_filled_up_to_more_than_eight_bytes_is_read(tmp_path: Path) -> None:
    """As by writers in other languages, which begin on a cache line."""
    told = table(20)
    whole = write(tmp_path / "log.feather", told, batch=6).read_bytes()
    (tmp_path / "log.feather").write_bytes(whole[:8] + bytes(56) + whole[8:])
    log = open_log(tmp_path / "log.feather")
    assert log.rows == 20
    assert log.read().truth.tolist() == told["labels"].to_pylist()


def test_a_file_without_batches_that_its_end_tells_of_is_noticed(tmp_path: Path) -> None:
    told = table(20)
    short = write(tmp_path / "short.feather", told.slice(0, 10), batch=5).read_bytes()
    long = write(tmp_path / "long.feather", told, batch=5).read_bytes()

    def footer(file: bytes) -> int:
        return len(file) - 10 - int.from_bytes(file[-10:-6], "little")

    (tmp_path / "log.feather").write_bytes(short[: footer(short)] + long[footer(long) :])
    with pytest.raises(
        ValueError, match=r"whole Arrow file; .*: it has fewer than the 4 batches it tells of\. "
    ):
        open_log(tmp_path / "log.feather")


CUT = """
import os, sys
from calibrant.logs import open_log
for file, left in zip(sys.argv[1:], (0, 4096), strict=True):
    read = open_log(file).batches(9)
    next(read)
    os.truncate(file, left)
    try:
        next(read)
    except ValueError as error:
        print(error)
"""


def test_a_file_cut_short_while_it_is_read_gets_a_sentence(tmp_path: Path) -> None:
    """By a process of its own, since looking beyond the end of a file ends it."""
    files = [str(write(tmp_path / f"{left}.feather", table(2_000))) for left in (0, 4096)]
    run = subprocess.run(
        [sys.executable, "-c", CUT, *files], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    for said, name in zip(run.stdout.splitlines(), ("0.feather", "4096.feather"), strict=True):
        assert said.startswith(f"{name} must be a whole Arrow file; ")
        assert "reading it failed: it was cut short while it was read. Copy or" in said


def test_a_file_emptied_after_it_was_opened_gets_a_sentence(tmp_path: Path) -> None:
    file = write(tmp_path / "log.arrow", table(20))
    log = open_log(file)
    os.truncate(file, 0)
    with pytest.raises(ValueError, match=r"log\.arrow must be a whole Arrow file; .*: it is empty"):
        log.read()


SLICES = """
import sys
from calibrant.logs import open_log
for file in sys.argv[1:]:
    try:
        list(open_log(file).batches(int(file[-len("1.feather")])))
    except ValueError as error:
        print(error)
"""


def test_a_list_that_lies_beyond_its_numbers_is_noticed_in_any_slice(tmp_path: Path) -> None:
    """By a process of its own, which looking there could end."""
    told = pa.table({"logits": [[1.0, 2.0], [3.0, 1.0], [0.0, 5.0]], "label": [0, 1, 1]})
    files = []
    for rows, place in ((1, 3), (2, 3), (3, 2)):
        file = write(tmp_path / f"{rows}.feather", told)
        whole, ends = file.read_bytes(), np.array([0, 2, 4, 6], np.int32)
        assert whole.count(ends.tobytes()) == 1
        beyond = ends.copy()
        beyond[place] = 2**24
        file.write_bytes(whole.replace(ends.tobytes(), beyond.tobytes()))
        files.append(str(file))
    run = subprocess.run(
        [sys.executable, "-c", SLICES, *files], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    for said, name in zip(run.stdout.splitlines(), ("1", "2", "3"), strict=True):
        assert said.startswith(f"{name}.feather must be a whole Arrow file; reading it failed")
    assert [main(["evaluate", file]) for file in files] == [2, 2, 2]
