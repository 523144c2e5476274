"""A folder of Parquet files as one table, as Spark, DuckDB and pyarrow write them."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from ._arrow import ArrowTable, ParquetTable
from ._part_files import keys_of, part_files
from ._table import Block, arrow

_TRUTH = {"false": 0.0, "true": 1.0}


class PartsTable(ArrowTable):
    """The parts one after the other, in order of their names, each read like a file of its own."""

    form = "Parquet"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts = [_Part(file, path) for file in part_files(path)]
        for part in self._parts[1:]:
            self._check_names(part)
        # An empty part may have been written without knowing of what type its columns are.
        self._full = [part for part in self._parts if part.rows] or self._parts[:1]
        self.names, self._schema = self._full[0].names, self._full[0].schema
        # The number of the row that each part begins with.
        self._begins = list(accumulate((part.rows for part in self._parts), initial=0))[:-1]

    def _check_names(self, part: "_Part") -> None:
        first = self._parts[0]
        missing, more = set(first.names) - set(part.names), set(part.names) - set(first.names)
        if missing or more:
            which = f"no {min(missing)!r}" if missing else f"{min(more)!r} besides"
            raise ValueError(
                f"the parts of {self.where} must have the same columns; {part.where} has {which}, "
                f"unlike {first.where}. Write them alike, or move it elsewhere."
            )

    def place(self, row: int) -> tuple[str, int]:
        """The part that holds a row, and the row's number in it."""
        k = bisect_right(self._begins, row) - 1
        return self._parts[k].where, row - self._begins[k]

    def stamp(self) -> object:
        """Another once any part has been written again."""
        return [part.stamp() for part in self._parts]

    def count(self, names: Sequence[str]) -> int | None:
        """As all footers say; numbers in these columns must be of one type in every part."""
        floating, first = arrow("types").is_floating, self._full[0]
        for name in names:
            kind = first.kind(name)
            for part in self._full:
                other = part.kind(name)
                if other != kind and (floating(kind) or floating(other)):
                    raise ValueError(
                        f"column {name!r} of {self.where} must be of one type in all parts; it is "
                        f"{kind} in {first.where} and {other} in {part.where}. Write them alike."
                    )
        return sum(part.rows for part in self._parts)

    def blocks(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Block]:
        """All rows in order, at most `rows` of them at a time and never of two parts."""
        for part in self._parts:
            yield from part.blocks(numbers, groups, rows)

    def _batches(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Any]:
        for part in self._parts:
            with part._readable():
                yield from part._batches(numbers, groups, rows)

    def records(self, forecast: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of every column, in the types of the first part."""
        for part in self._parts:
            with part._readable():
                for batch in part.records(forecast, rows):
                    yield batch.select(self.names).cast(self._schema)


class _Part(ParquetTable):
    """One file of a folder; what the folders between say of it is in columns too."""

    def __init__(self, file: Path, folder: Path) -> None:
        self._folder, self._keys = folder, keys_of(file, folder)
        super().__init__(file)
        self.rows = int(self._rows)
        text = arrow("").string()
        for key in self._keys:
            self._schema = self._schema.append(arrow("").field(key, text))
        self.names = list(self._schema.names)

    @property
    def where(self) -> str:
        """With its folder, since parts of several folders may be called alike."""
        return f"{self._folder.name}/{self.path.relative_to(self._folder).as_posix()}"

    def kind(self, name: str) -> Any:
        """The type of a column's numbers, in lists or not."""
        kind = self._schema.field(name).type
        return getattr(kind, "value_type", kind)

    def _batches(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Any]:
        wanted = [*numbers] if groups is None else [*numbers, groups]
        told = {key: _scalar(text, number=key in numbers) for key, text in self._keys.items()}
        return self._with(told, wanted, rows)

    def records(self, forecast: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of every column; what folders say as the text that it is."""
        with self._readable():
            told = {key: _scalar(text, number=False) for key, text in self._keys.items()}
            yield from self._with(told, self.names, rows)

    def _with(self, told: dict[str, Any], wanted: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of columns, those of `told` the same in every row."""
        pa = arrow("")
        for batch in super()._batches([name for name in wanted if name not in told], None, rows):
            columns = [
                pa.repeat(told[name], batch.num_rows) if name in told else batch.column(name)
                for name in wanted
            ]
            yield pa.RecordBatch.from_arrays(columns, names=list(wanted))


def _scalar(text: str | None, *, number: bool) -> Any:
    """What a folder says, as text or as a number; what is no number stays text, to be refused."""
    pa = arrow("")
    if number and text:
        try:
            return pa.scalar(_TRUTH[text.lower()] if text.lower() in _TRUTH else float(text))
        except ValueError:
            pass
    return pa.scalar(text, pa.string())
