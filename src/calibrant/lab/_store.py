"""Finished trials on disk, a line each, so that nothing but the running one can be lost."""

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO


@dataclass(frozen=True)
class Receipt:
    """Proof that a choice is on disk; with it, and not before, the test split opens.

    - `path`: the file. `identity`: of the trial whose choice it was.
    """

    path: Path
    identity: str


class Store:
    """A folder with the rows of finished trials, the choices made before tests, and the splits.

    `rows.jsonl` has one JSON object a line. A row is appended and flushed to the disk in one
    piece while the file is locked, so several processes may append to it. What a kill leaves of
    a half-written line is recognised when the file is next opened, and dropped with a warning.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.append({"identity": "a1", "test": {"ece": 0.05}})
    ...     Store(folder).rows()["a1"]["test"]
    {'ece': 0.05}
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def splits(self) -> Path:
        """The folder that tells which samples each seed trains on and chooses by."""
        return self.folder / "splits"

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a finished trial; it is on the disk when this returns."""
        _append(self.folder / "rows.jsonl", row)

    def rows(self) -> dict[str, dict[str, Any]]:
        """Every finished trial by its identity; of one that ran twice, the last."""
        path = self.folder / "rows.jsonl"
        rows = read_lines(path)
        for number, row in enumerate(rows, start=1):
            if not isinstance(row.get("identity"), str):
                raise ValueError(
                    f"{path} must hold finished trials, each with its identity; line {number} has "
                    "none. Remove that line, or name another store."
                )
        return {row["identity"]: row for row in rows}

    def choose(self, identity: str, choice: Mapping[str, Any]) -> Receipt:
        """Write down which weights were chosen, before anything is tested."""
        path = self.folder / "selections.jsonl"
        _append(path, {"identity": identity, **choice})
        return Receipt(path, identity)


def check_receipt(receipt: Receipt | None) -> None:
    """Refuse unless the choice it stands for is on disk."""
    if not isinstance(receipt, Receipt) or receipt.identity not in {
        line.get("identity") for line in read_lines(receipt.path)
    }:
        raise PermissionError(
            "the test split opens once the selection is written, and not before; "
            f"got {receipt!r}. Write the choice with Store.choose and pass its receipt."
        )


def read_lines(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines; none if there is no file.

    A last line that is not whole is dropped with a warning; any other is refused.
    """
    place = Path(path)
    if not place.exists():
        return []
    whole, torn = _split(place.read_bytes())
    if torn:
        warnings.warn(
            f"{place} ends in half a line of {len(torn)} bytes, left by an interruption; it was "
            "dropped. The trial it belonged to runs again.",
            RuntimeWarning,
            stacklevel=2,
        )
    return parse_lines(place, whole)


def parse_lines(place: Path, content: bytes) -> list[dict[str, Any]]:
    """The objects of JSON lines; one that is none is refused by its place and number."""
    rows = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            row = json.loads(line.decode("utf-8-sig"))
            wrong = None if isinstance(row, dict) else f"it holds {line.decode()}"
        except UnicodeDecodeError:
            wrong = "it is not text as UTF-8"
        except json.JSONDecodeError as broken:
            wrong = broken.msg
        if wrong is not None:
            raise ValueError(
                f"{place} must hold a JSON object on every line; line {number} is not one: "
                f"{wrong}. Remove that line."
            )
        rows.append(row)
    return rows


def _split(content: bytes) -> tuple[bytes, bytes]:
    """Whole lines, and what follows the last of them."""
    end = content.rfind(b"\n") + 1
    return content[:end], content[end:]


def _append(path: Path, row: Mapping[str, Any]) -> None:
    line = json.dumps(row, allow_nan=False).encode() + b"\n"
    with locked(path) as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def _last_byte(file: BinaryIO) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


@contextmanager
def locked(path: Path) -> Iterator[BinaryIO]:
    """A file of lines that nobody else appends to meanwhile; the lock dies with its process."""
    with open(path, "a+b") as file:
        if os.name == "posix":  # elsewhere only one process may append
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        # The next line must not be glued to what a kill left of another.
        if file.seek(0, os.SEEK_END) and _last_byte(file) != b"\n":
            file.seek(0)
            file.truncate(len(_split(file.read())[0]))
        file.seek(0, os.SEEK_END)
        yield file  # closing it gives the lock back
