"""What is written is written whole, in its place and nowhere else."""

import os
from pathlib import Path

import pytest

from calibrant._writing import written_whole


def write(path: Path, text: bytes) -> None:
    with written_whole(path) as file:
        file.write(text)


def test_a_link_stays_one_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    path = tmp_path / "private"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="must be a file that can be written anew"):
        write(pipe, b"new")
    assert pipe.is_fifo()


def test_a_folder_that_is_not_there_is_told_by_the_name_that_was_given(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "x.json"
    with pytest.raises(FileNotFoundError) as wrong:
        write(path, b"new")
    assert wrong.value.filename == str(path)
    assert str(wrong.value) == f"[Errno 2] No such file or directory: {str(path)!r}"


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), written_whole(path) as file:
        file.write(b"half" + bytes([1 // 0]))
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
