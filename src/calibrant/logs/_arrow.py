"""What pyarrow reads, and Parquet files."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import _arrow_columns as column
from ._table import Block, Table, arrow, broken, void

# Bytes of each column read ahead, of which there may be thousands.
_AHEAD = 2**16


class ArrowTable(Table):
    """What pyarrow reads as record batches."""

    form: str
    _schema: Any

    @abstractmethod
    def _batches(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Any]:
        """Record batches with these columns at least."""

    def blocks(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Block]:
        """All rows in order, at most `rows` of them at a time."""
        first = 0
        with self._readable():
            for batch in self._batches(numbers, groups, rows):
                for start in range(0, batch.num_rows, rows):
                    part = batch.slice(start, rows)
                    block: Block = {
                        name: column.numbers(part.column(name), name, self.where, first)
                        for name in numbers
                    }
                    if groups is not None:
                        block[groups] = column.names(part.column(groups), groups, self.where, first)
                    yield block
                    first += part.num_rows
                batch = part = None  # before the next is read

    def records(self, forecast: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of every column, to be written again with another forecast."""
        with self._readable():
            for batch in self._batches(self.names, None, rows):
                yield from (batch.slice(at, rows) for at in range(0, batch.num_rows, rows))

    @property
    def schema(self) -> Any:
        """Types of all columns."""
        return self._schema

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (arrow("").ArrowException, OSError, KeyError, UnicodeDecodeError) as reason:
            if isinstance(reason, FileNotFoundError | PermissionError):
                raise
            raise broken(self.where, self.form, reason) from reason

    def width(self, name: str) -> int | None:
        """From the schema, or from the first row where lists may be of any length."""
        types, kind = arrow("types"), self._schema.field(name).type
        if types.is_fixed_size_list(kind):
            return int(kind.list_size)
        if not (types.is_list(kind) or types.is_large_list(kind)):
            return None
        with self._readable():
            for batch in self._batches([name], None, 1):
                for vector in batch.column(name)[:1].to_pylist():
                    if vector is None:
                        raise void(name, *self.place(0))
                    return len(vector)
        return None


class ParquetTable(ArrowTable):
    """Row group by row group, and within a row group page by page."""

    form = "Parquet"

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._readable(), self._open() as file:
            self._rows, self._schema = file.metadata.num_rows, file.schema_arrow
            self.names = list(self._schema.names)

    def _open(self) -> Any:
        return arrow("parquet").ParquetFile(
            self.path,
            buffer_size=_AHEAD,
            pre_buffer=False,
            page_checksum_verification=True,
        )

    def count(self, names: Sequence[str]) -> int | None:
        """As the footer says."""
        return int(self._rows)

    def _batches(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Any]:
        wanted = [*numbers] if groups is None else [*numbers, groups]
        with self._open() as file:
            yield from file.iter_batches(batch_size=rows, columns=wanted, use_threads=False)
