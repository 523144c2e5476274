"""Rows on disk: whole, locked, and dropped with a sentence where a kill left half of one."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from calibrant.lab import Receipt, Store
from calibrant.lab._store import check_receipt, read_lines


def test_a_row_comes_back_as_it_was(tmp_path: Path) -> None:
    row = {"identity": "a", "test": {"none": {"ece20": 0.1 + 0.2}}, "history": [None, 1]}
    Store(tmp_path).append(row)
    assert Store(tmp_path).rows() == {"a": row}


def test_of_a_trial_that_ran_twice_the_last_row_counts(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append({"identity": "a", "seconds": 1})
    store.append({"identity": "a", "seconds": 2})
    assert store.rows()["a"]["seconds"] == 2


def test_half_a_last_line_is_dropped_with_a_sentence(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append({"identity": "a"})
    with (tmp_path / "rows.jsonl").open("ab") as file:
        file.write(b'{"identity": "b", "tes')
    with pytest.warns(RuntimeWarning, match="ends in half a line of 22 bytes, left by an interr"):
        assert set(store.rows()) == {"a"}


def test_a_row_after_half_a_line_is_whole(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append({"identity": "a"})
    with (tmp_path / "rows.jsonl").open("ab") as file:
        file.write(b'{"identity": "b"')
    store.append({"identity": "c"})
    assert set(store.rows()) == {"a", "c"}


def test_nothing_but_half_a_line_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'{"iden')
    store = Store(tmp_path)
    store.append({"identity": "a"})
    assert set(store.rows()) == {"a"}


def test_a_broken_line_in_the_middle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"identity": "a"}\nnot json\n{"identity": "b"}\n')
    with pytest.raises(ValueError, match="line 2 is not one"):
        Store(tmp_path).rows()


def test_appends_at_the_same_time_leave_every_row_whole(tmp_path: Path) -> None:
    # A lock belongs to an open file, and every append opens its own, in threads as in processes.
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda i: Store(tmp_path).append({"identity": str(i), "long": "x" * 9999}),
                range(80),
            )
        )
    assert set(Store(tmp_path).rows()) == {str(i) for i in range(80)}


def test_an_append_waits_for_another_process_to_finish_its_own(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "rows.jsonl"
    path.write_text('{"identity": "a"}\n{"iden')  # another process is in the middle of a row
    with path.open("ab") as file, ThreadPoolExecutor(1) as pool:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = pool.submit(Store(tmp_path).append, {"identity": "c"})
        time.sleep(0.2)
        file.write(b'tity": "b"}\n')
        file.flush()
        fcntl.flock(file, fcntl.LOCK_UN)
        waiting.result()
    assert set(Store(tmp_path).rows()) == {"a", "b", "c"}


def test_a_row_is_on_the_disk_when_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    real = os.fsync

    def noting(handle: int) -> None:
        real(handle)
        flushed.append((tmp_path / "rows.jsonl").read_text())

    monkeypatch.setattr(os, "fsync", noting)
    Store(tmp_path).append({"identity": "a"})
    assert [json.loads(text) for text in flushed] == [{"identity": "a"}]


def test_a_number_that_json_cannot_hold_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="Out of range float"):
        store.append({"identity": "a", "nll": float("nan")})
    assert read_lines(tmp_path / "rows.jsonl") == []


def test_a_receipt_holds_only_for_what_is_written(tmp_path: Path) -> None:
    receipt = Store(tmp_path).choose("a", {"epoch": 3})
    check_receipt(receipt)
    for forged in (None, Receipt(receipt.path, "b"), Receipt(tmp_path / "nowhere", "a")):
        with pytest.raises(PermissionError, match="opens once the selection is written"):
            check_receipt(forged)


def test_a_row_without_an_identity_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(ValueError, match="line 1 has none"):
        Store(tmp_path).rows()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"identity": "\xff"}', "line 2 is not one: it is not text as UTF-8"),
        (b"[]", r"line 2 is not one: it holds \[\]"),
        (b'{"identity": []}', "line 2 has none"),
    ],
)
def test_a_line_that_is_no_row_is_named(line: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'{"identity": "a"}\n' + line + b"\n")
    with pytest.raises(ValueError, match=f"rows.jsonl must hold .* {said}"):
        Store(tmp_path).rows()


def test_choices_of_others_do_not_hide_ours(tmp_path: Path) -> None:
    (tmp_path / "selections.jsonl").write_text('{"a": 1}\n')
    check_receipt(Store(tmp_path).choose("a", {"epoch": 3}))
