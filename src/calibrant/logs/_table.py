"""A file as a table: named columns, read a block of rows at a time."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray
from torch import Tensor

Block: TypeAlias = dict[str, Tensor | NDArray[Any]]
"""Some rows by column: numbers as tensors, the names of groups as arrays."""


class Table(ABC):
    """Columns of a file, which is opened anew for every pass and never read whole.

    - `names`: of the columns.
    """

    path: Path
    names: list[str]

    @property
    def where(self) -> str:
        """What a sentence calls the file."""
        return self.path.name

    def place(self, row: int) -> tuple[str, int]:
        """What a sentence calls the file that holds a row, and the row's number there."""
        return self.where, row

    def stamp(self) -> object:
        """Something that is another once the file has been written again."""
        found = self.path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns

    @abstractmethod
    def count(self, names: Sequence[str]) -> int | None:
        """How many rows these columns have; `None` where only a pass can tell."""

    @abstractmethod
    def width(self, name: str) -> int | None:
        """Numbers per row: `None` for a plain column, else the length of its vectors."""

    @abstractmethod
    def blocks(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Block]:
        """All rows in order, at most `rows` of them at a time."""


def arrow(module: str) -> Any:
    """A module of pyarrow, which is imported only by those who read such files."""
    try:
        return import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ImportError as missing:
        raise ImportError(
            "reading Parquet, Arrow and CSV files needs pyarrow: pip install 'calibrant[files]'"
        ) from missing


def broken(where: str, form: str, reason: object) -> ValueError:
    """The sentence for a file that is cut short, or is not what its name says."""
    # The first sentence of it, and of a line that does not parse only what can be shown.
    first = str(reason).split(". ")[0][:120].rstrip(". ")
    said = "".join(c if c.isprintable() else "?" for c in first) or type(reason).__name__
    return ValueError(
        f"{where} must be a whole {form} file; reading it failed: {said}. Copy or write it again."
    )


def void(name: str, where: str, row: int) -> ValueError:
    """The sentence for a missing value."""
    return ValueError(
        f"column {name!r} of {where} must have a value in every row; "
        f"row {row} (counted from 0) has none. Leave such rows out."
    )


def not_numbers(name: str, where: str, form: object) -> TypeError:
    """The sentence for a column of text, dates or anything else that is not a number."""
    return TypeError(
        f"column {name!r} of {where} must hold numbers; it holds {form}. "
        "Classes are given by index, counted from 0, and outcomes as 0 or 1."
    )


def not_names(name: str, where: str) -> ValueError:
    """The sentence for a column of groups that are bytes and no text."""
    return ValueError(
        f"column {name!r} of {where} must hold names in UTF-8; got bytes that are not. "
        "Write them as text."
    )
