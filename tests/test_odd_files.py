"""Files as people write them: spaces, other machines' text, odd types, changes while reading."""

import gzip
import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import calibrant as cal
from calibrant.cli import main
from calibrant.logs import open_log, recalibrate_log

pa, parquet, feather = map(import_module, ("pyarrow", "pyarrow.parquet", "pyarrow.feather"))


@pytest.mark.parametrize(
    "text",
    [
        "confidence, correct\n0.9, 1\n0.8, 0\n",
        "confidence , correct \n 0.9 ,1 \n0.8 ,   0\n",
        "confidence, correct\n0.9, true\n0.8, False\n",
        "\ufeffconfidence, correct\r\n0.9, 1\r\n0.8, 0\r\n",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_spaces_after_commas_are_nobodys(text: str, packed: bool, tmp_path: Path) -> None:
    file = tmp_path / ("log.csv.gz" if packed else "log.csv")
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    log = open_log(file)
    assert log.columns.all == ["confidence", "correct"]
    assert log.read().forecast.tolist() == [0.9, 0.8]
    assert log.read().truth.tolist() == [1, 0]


def test_spaces_around_groups_make_no_other_groups(tmp_path: Path) -> None:
    lines = "confidence, correct, g\n0.9, 1, north\n0.8, 0,north \n0.7, 1,  south\n"
    (tmp_path / "log.csv").write_text(lines)
    found = open_log(tmp_path / "log.csv", groups="g").read().groups
    assert found is not None
    assert found.tolist() == ["north", "north", "south"]


@pytest.mark.parametrize("word", ["", " ", " NA", " nan"])
def test_a_value_missing_after_a_space_is_missing(word: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(f"confidence, correct\n0.9, 1\n0.8,{word}\n")
    missing = r"column 'correct' of log\.csv must have a value in every row; row 1 "
    with pytest.raises(ValueError, match=missing):
        open_log(tmp_path / "log.csv").read()


def test_two_columns_that_differ_by_a_space_are_two_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("confidence,correct, correct\n0.9,1,1\n")
    with pytest.raises(ValueError, match=r"must have one column called 'correct'; found 2"):
        open_log(tmp_path / "log.csv")


def test_a_space_before_a_quotation_mark_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text('"confidence", "correct"\n0.9, 1\n')
    sentence = r"no space before a quotation mark; its first line has one before \"correct\"\. Wr"
    with pytest.raises(ValueError, match=sentence):
        open_log(tmp_path / "log.csv")


def test_recalibrated_text_keeps_its_spaces(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("logit_0, logit_1, note\n1.5, 0.5, so so\n")
    same = cal.Identity().fit(torch.rand(4, 2), torch.arange(4) % 2)
    recalibrate_log(same, tmp_path / "log.csv", tmp_path / "new.csv")
    assert (tmp_path / "new.csv").read_text() == "logit_0, logit_1, note\n1.5,0.5, so so\n"


def test_endings_may_be_in_capitals(tmp_path: Path) -> None:
    (tmp_path / "LOG.TSV").write_text("confidence\tcorrect\n0.9\t1\n")
    assert open_log(tmp_path / "LOG.TSV").read().truth.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("confidence,größe\n0.9,1\n".encode("latin-1"), "it has other bytes"),
        ("confidence,correct,g\n0.9,1,größe\n".encode("latin-1"), "it has other bytes"),
        ("confidence,correct\n0.9,1\n".encode("utf-16"), "it begins as UTF-16 does"),
    ],
)
def test_other_text_than_utf_8_is_named(text: bytes, found: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(text)
    groups = "g" if b",g\n" in text else None
    with pytest.raises(ValueError, match=rf"log\.csv must be text in UTF-8; {found}\. Write it"):
        open_log(tmp_path / "log.csv", groups=groups).read()
    assert (
        main(["evaluate", str(tmp_path / "log.csv"), *(["--groups", "g"] if groups else [])]) == 2
    )


LOGITS = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 3.0]], dtype=np.float32)
Save = Callable[[Path, dict[str, Any]], Path]


def as_npz(folder: Path, columns: dict[str, Any]) -> Path:
    np.savez(folder / "log.npz", **columns)
    return folder / "log.npz"


def as_safetensors(folder: Path, columns: dict[str, Any]) -> Path:
    told = {name: torch.as_tensor(np.asarray(x)) for name, x in columns.items()}
    save_file(told, folder / "log.safetensors")
    return folder / "log.safetensors"


def table_of(columns: dict[str, Any]) -> Any:
    return pa.table({k: list(x) if np.ndim(x) == 2 else x for k, x in columns.items()})


def as_parquet(folder: Path, columns: dict[str, Any]) -> Path:
    parquet.write_table(table_of(columns), folder / "log.parquet")
    return folder / "log.parquet"


def as_arrow(folder: Path, columns: dict[str, Any]) -> Path:
    feather.write_feather(table_of(columns), str(folder / "log.feather"))
    return folder / "log.feather"


every_format = pytest.mark.parametrize("save", [as_npz, as_safetensors, as_parquet, as_arrow])


@every_format
def test_groups_of_nan_and_of_several_numbers_are_refused(save: Save, tmp_path: Path) -> None:
    log = {"logits": LOGITS, "label": np.array([1, 0, 1])}
    file = save(tmp_path, log | {"g": np.array([1.0, np.nan, 1.0])})
    with pytest.raises(
        ValueError, match=r"'g' of log\.\w+ must have a value .*; row 1 .* has none"
    ):
        open_log(file, groups="g").read()
    file = save(tmp_path, log | {"g": np.array([[1, 2], [1, 2], [1, 2]])})
    with pytest.raises(ValueError, match=r"'g' of log\.\w+ must hold one name or number per row"):
        open_log(file, groups="g").read()


@every_format
@pytest.mark.parametrize("kind", ["i1", "u2", "u8", "?"])
def test_labels_are_whole_numbers_of_any_width(kind: str, save: Save, tmp_path: Path) -> None:
    file = save(tmp_path, {"logits": LOGITS, "label": np.array([1, 0, 1], dtype=kind)})
    assert open_log(file).read().truth.tolist() == [1, 0, 1]


@every_format
@pytest.mark.parametrize(
    ("label", "got"),
    [
        (np.array([0, 1, 2**64 - 1], "u8"), "1.84467e+19"),
        (np.array([0, 1, 1e300]), "1e+300"),
        (np.array([0, 1, np.inf]), "inf"),
    ],
)
def test_a_label_too_large_is_shown_as_it_is(
    label: Any, got: str, save: Save, tmp_path: Path
) -> None:
    file = save(tmp_path, {"logits": LOGITS, "label": label})
    with pytest.raises(ValueError, match=r"must lie between 0 and 1, .* in row 2 ") as wrong:
        open_log(file).read()
    assert f"; got {got} in row 2" in str(wrong.value)


def test_names_that_are_bytes_are_utf_8(tmp_path: Path) -> None:
    for save in (as_npz, as_parquet, as_arrow):
        log: dict[str, Any] = {"logits": LOGITS, "label": np.array([1, 0, 1])}
        file = save(tmp_path, log | {"g": [name.encode() for name in ("ä", "b", "ä")]})
        found = open_log(file, groups="g").read().groups
        assert found is not None
        assert found.tolist() == ["ä", "b", "ä"]
        file = save(tmp_path, log | {"g": [b"a", b"b", b"\xff"]})
        with pytest.raises(ValueError, match=r"'g' of log\.\w+ must hold names in UTF-8"):
            open_log(file, groups="g").read()


def test_numbers_that_are_kept_once_each_are_read(tmp_path: Path) -> None:
    once = pa.array([0.5, 0.7, 0.5]).dictionary_encode()
    feather.write_feather(
        pa.table({"confidence": once, "correct": [1, 0, 1]}), tmp_path / "e.arrow"
    )
    assert open_log(tmp_path / "e.arrow").read().forecast.tolist() == [0.5, 0.7, 0.5]
    same = cal.Identity().fit(torch.rand(4), torch.arange(4) % 2)
    recalibrate_log(same, tmp_path / "e.arrow", tmp_path / "new.arrow")
    assert feather.read_table(tmp_path / "new.arrow")["confidence"].to_pylist() == [0.5, 0.7, 0.5]


def test_numbers_of_eight_bits_are_refused_and_short_groups_read(tmp_path: Path) -> None:
    label = torch.tensor([1, 0, 1])
    logits = torch.from_numpy(LOGITS)
    save_file(
        {"logits": logits.to(torch.float8_e4m3fn), "label": label}, tmp_path / "a.safetensors"
    )
    with pytest.raises(TypeError, match=r"numbers of at least 16 bits; got float8_e4m3fn\. Write"):
        open_log(tmp_path / "a.safetensors").read()
    save_file({"logits": logits, "label": label, "g": label.bfloat16()}, tmp_path / "b.safetensors")
    found = open_log(tmp_path / "b.safetensors", groups="g").read().groups
    assert found is not None
    assert found.tolist() == ["1.0", "0.0", "1.0"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(tmp_path: Path) -> None:
    file = as_npz(tmp_path, {"logits": LOGITS, "label": np.array([1, 0, 1])})
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("label.npy", archive.read("label.npy"))
    with pytest.raises(ValueError, match=r"must have one array called 'label'; found 2"):
        open_log(file)


def test_an_archive_that_is_locked_gets_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = as_npz(tmp_path, {"logits": LOGITS, "label": np.array([1, 0, 1])})
    whole = bytearray(file.read_bytes())
    for sign, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        whole[whole.index(sign) + flags] |= 1  # says that a password locks it
    file.write_bytes(whole)
    assert main(["evaluate", str(file)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "log.npz must be a whole NPZ file; reading it failed: File 'logits.npy' is encr" in err


@pytest.mark.parametrize("packing", ["STORED", "DEFLATED", "BZIP2", "LZMA"])
@pytest.mark.parametrize("damage", [b"\x80", b"("])
def test_an_archive_with_a_damaged_byte_gets_one_sentence_or_is_read(
    packing: str, damage: bytes, tmp_path: Path
) -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", getattr(zipfile, f"ZIP_{packing}")) as archive:
        for name, array in {"logits": LOGITS, "label": np.array([1, 0, 1])}.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, array)
    file, whole = tmp_path / "log.npz", written.getvalue()
    said = []
    for place in range(0, len(whole), 4):
        file.write_bytes(whole[:place] + damage + whole[place + 1 :])
        try:
            open_log(file).read()
        except (ValueError, TypeError) as wrong:
            said.append(str(wrong))
    assert all(re.search(r" must .*\. [A-Z].*\.$", sentence) for sentence in said)
    assert any("must be a whole NPZ file" in sentence for sentence in said)


def test_an_array_whose_header_has_no_end_gets_one_sentence(tmp_path: Path) -> None:
    # So large that its sum is not checked before its header is read.
    file = as_npz(tmp_path, {"logits": np.zeros((4000, 3)), "label": np.zeros(4000, dtype=int)})
    file.write_bytes(file.read_bytes().replace(b"), }", b"), (", 1))
    with pytest.raises(
        ValueError, match=r"must be a whole NPZ file; .*\. Copy or write it again\."
    ):
        open_log(file)


def test_pickled_groups_are_to_be_saved_as_text(tmp_path: Path) -> None:
    groups = np.array(["a", "b", "a"], dtype=object)
    given = {"logits": LOGITS, "label": np.array([1, 0, 1])}
    log = open_log(as_npz(tmp_path, {**given, "g": groups}), groups="g")
    with pytest.raises(TypeError, match=r"must hold names or numbers; .* Save g\.astype\(str\)"):
        log.read()
    log = open_log(as_npz(tmp_path, {**given, "g": groups.astype(str)}), groups="g")
    assert log.read().groups is not None


def test_a_name_that_no_file_can_have_gets_one_short_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["evaluate", "a" * 5000 + ".csv"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("calibrant: there is no file 'aaa")
    assert err.endswith("aaa…'. Check the path.\n")
    assert len(err) < 300


@every_format
def test_a_file_replaced_while_it_is_read_is_noticed(save: Save, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    long = {"logits": np.tile(LOGITS, (4, 1)), "label": np.array([1, 0, 1] * 4)}
    longer = {"logits": np.tile(LOGITS, (5, 1)), "label": np.array([1, 0, 1] * 5)}
    file, new = save(tmp_path, long), save(tmp_path / "new", longer)
    log = open_log(file)
    batches = log.batches(5)
    next(batches)
    os.replace(new, file)
    with pytest.raises(ValueError, match=r"must stay as it is while it is read; .* Open it again"):
        list(batches)
    with pytest.raises(ValueError, match=r"must stay as it is while it is read"):
        log.summary()
    assert len(open_log(file).summary()) == 15
    save(tmp_path, {"others": LOGITS, "label": np.array([1, 0, 1])})
    with pytest.raises(ValueError, match=r"must stay as it is while it is read"):
        next(log.batches())


def test_text_may_grow_and_must_keep_its_columns(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("confidence,correct\n0.9,1\n0.8,0\n0.7,1\n")
    log = open_log(file)
    with file.open("a") as more:
        more.write("0.6,1\n")
    assert len(log.summary()) == 4
    file.write_text("sure,right\n0.9,1\n")
    with pytest.raises(ValueError, match=r"log\.csv must be a whole CSV file; reading it failed"):
        log.summary()


def test_an_arrow_stream_of_other_columns_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "log.arrow"

    def write(**columns: Any) -> None:
        table = pa.table(columns)
        with pa.ipc.new_stream(str(file), table.schema) as sink:
            sink.write_table(table)

    write(confidence=[0.5, 0.6], correct=[0, 1])
    log = open_log(file)
    write(sure=[0.5, 0.6], right=[0, 1])
    with pytest.raises(ValueError, match=r"log\.arrow must be a whole Arrow file; reading it fail"):
        log.read()


def test_a_list_that_lies_beyond_its_numbers_is_noticed_and_does_not_end_the_process(
    tmp_path: Path,
) -> None:
    """By a process of its own, since Arrow ends it where nobody has looked first."""
    file = tmp_path / "log.feather"
    rows = [[1.0, 2.0], [3.0, 1.0], [0.0, 5.0]]
    feather.write_feather(
        pa.table({"logits": rows, "label": [0, 1, 1]}), file, compression="uncompressed"
    )
    whole = file.read_bytes()
    ends = np.array([0, 2, 4, 6], np.int32).tobytes()
    assert whole.count(ends) == 1
    file.write_bytes(whole.replace(ends, (np.array([0, 2, 4, 6], np.int32) + 2**24).tobytes()))
    read = f"from calibrant.logs import open_log; open_log({str(file)!r}).read()"
    run = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, timeout=120)
    assert run.returncode == 1
    assert "ValueError: log.feather must be a whole Arrow file; reading it failed" in run.stderr


def test_names_that_are_not_utf_8_are_noticed(tmp_path: Path) -> None:
    table = pa.table({"confidence": [0.5, 0.6], "correct": [0, 1], "café": ["né", "né"]})
    for name, write in (
        ("log.feather", feather.write_feather),
        ("log.parquet", parquet.write_table),
    ):
        write(table, tmp_path / name, compression="NONE" if "parquet" in name else "uncompressed")
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole.replace("né".encode(), b"n\xff\xff"))
        with pytest.raises(ValueError, match=r"names in UTF-8; got bytes|must be a whole Arrow fi"):
            open_log(tmp_path / name, groups="café").read()
        (tmp_path / name).write_bytes(whole.replace("café".encode(), b"caf\xff\xff"))
        with pytest.raises(
            ValueError, match=rf"{name} must be a whole \w+ file; reading .* decode"
        ):
            open_log(tmp_path / name)


@pytest.mark.parametrize("save", ["npz", "parquet"])
def test_lists_of_one_number_and_missing_ones_are_named(save: str, tmp_path: Path) -> None:
    file, one = tmp_path / f"log.{save}", np.array([[1.0], [2.0], [3.0]])
    if save == "npz":
        np.savez(file, logits=one, labels=[0, 1, 1])
    else:
        parquet.write_table(pa.table({"logits": list(one), "labels": [0, 1, 1]}), file)
        parquet.write_table(
            pa.table({"logits": [None, [1.0, 2.0]], "labels": [0, 1]}), tmp_path / "v.pq"
        )
        with pytest.raises(ValueError, match=r"'logits' of v\.pq must have a value .* row 0 "):
            open_log(tmp_path / "v.pq")
    with pytest.raises(ValueError, match=r"plain numbers for class 1 of two; got lists of 1\. Wri"):
        open_log(file)
