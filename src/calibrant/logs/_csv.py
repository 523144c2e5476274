"""CSV files, by way of pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._arrow import ArrowTable
from ._table import arrow, not_numbers

# Bytes looked at for a first line, and bytes of text parsed at once.
_AHEAD, _TEXT = 2**20, 2**22
# Signs of a text that are shown.
_SHOWN = 40
_SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class CsvTable(ArrowTable):
    """Text by commas, or by tabs in a `.tsv`; the first line names the columns.

    Spaces around names and numbers are nobody's: `a, b` are the columns a and b.

    - `head`: the names as they are written.
    """

    form = "CSV"

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._readable(), arrow("").input_stream(str(path)) as text:
            self._check_beginning(text.read(_AHEAD))
        with self._readable(), self._open(None) as reader:
            self.head = list(reader.schema.names)
            self.names = [name.strip() for name in self.head]
            self._schema = _renamed(reader.schema, self.names)
        self._check_quotes()

    @property
    def separator(self) -> str:
        """What stands between columns."""
        return "\t" if ".tsv" in [end.lower() for end in self.path.suffixes] else ","

    def _check_beginning(self, beginning: bytes) -> None:
        """Spreadsheets of many countries write semicolons, which would pass for one long name."""
        if beginning.startswith(_UTF_16):
            raise self._foreign_text("it begins as UTF-16 does")
        names = (beginning.splitlines() or [b""])[0].decode("utf-8-sig", errors="replace")
        others = [sign for sign in _SEPARATORS if sign in names]
        is_text = names.replace("\t", "").isprintable()
        if is_text and others and self.separator not in names:
            raise ValueError(
                f"{self.where} must separate its columns by {_SEPARATORS[self.separator]}; "
                f"its first line has {_SEPARATORS[others[0]]}. Write it again with "
                f"{_SEPARATORS[self.separator]}, and with points in decimals."
            )

    def _check_quotes(self) -> None:
        """A quotation mark quotes at the very beginning of a field, and is text elsewhere."""
        quoted = [name for name in self.names if name.startswith('"')]
        if quoted:
            raise ValueError(
                f"{self.where} must have no space before a quotation mark; its first line has one "
                f"before {quoted[0]}. Write it again without spaces after "
                f"{_SEPARATORS[self.separator]}."
            )

    def _foreign_text(self, found: str) -> ValueError:
        return ValueError(f"{self.where} must be text in UTF-8; {found}. Write it again in UTF-8.")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            with super()._readable():
                yield
        except ValueError as wrong:
            undecoded = isinstance(wrong.__cause__, UnicodeDecodeError)
            if not undecoded and "invalid UTF8" not in str(wrong):
                raise
            raise self._foreign_text("it has other bytes") from wrong

    def count(self, names: Sequence[str]) -> int | None:
        """Nobody knows before the last line."""
        return None

    def _open(self, types: dict[str, Any] | None) -> Any:
        """Columns by the names that are written, in these types or in what they look like."""
        csv = arrow("csv")
        usual = csv.ConvertOptions()
        return csv.open_csv(
            str(self.path),
            # Without threads an error says which row it is in.
            read_options=csv.ReadOptions(use_threads=False, block_size=_TEXT),
            parse_options=csv.ParseOptions(delimiter=self.separator),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types) if types else None,
                null_values=_spaced(usual.null_values),
                true_values=_spaced(usual.true_values),
                false_values=_spaced(usual.false_values),
            ),
        )

    def _read(self, types: dict[str, Any]) -> Iterator[Any]:
        """Record batches of these columns, by the names without spaces."""
        written = dict(zip(self.names, self.head, strict=True))
        with self._open({written[name]: kind for name, kind in types.items()}) as reader:
            for batch in reader:
                yield arrow("").RecordBatch.from_arrays(batch.columns, names=list(types))

    def _batches(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Any]:
        pa, types = arrow(""), arrow("types")
        # A column is of one type from the first row to the last, whatever its first rows hold.
        inferred = {name: self._schema.field(name).type for name in numbers}
        wanted = {
            name: kind if types.is_boolean(kind) else pa.float64()
            for name, kind in inferred.items()
        }
        for name, kind in inferred.items():
            if types.is_string(kind) or types.is_temporal(kind):
                text = types.is_string(kind)
                raise not_numbers(name, self.where, self._first_text(name) if text else kind)
        if groups is not None and groups not in wanted:
            wanted[groups] = pa.string()
        for batch in self._read(wanted):
            if groups is None:
                yield batch
                continue
            place = batch.schema.get_field_index(groups)
            bare = arrow("compute").utf8_trim_whitespace(batch.column(groups))
            yield batch.set_column(place, groups, bare)

    def _first_text(self, name: str) -> str:
        """The first cell of a column that is no number, and its row."""
        first, none = 0, _spaced(arrow("csv").ConvertOptions().null_values)
        for batch in self._read({name: arrow("").string()}):
            for row, cell in enumerate(batch.column(0).to_pylist(), first):
                if cell not in none and not _is_number(cell):
                    return f"text, {cell[:_SHOWN]!r} in row {row} (counted from 0)"
            first += batch.num_rows
        return "text"

    def records(self, forecast: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of every column; all but the forecast as the text that is there."""
        pa = arrow("")
        types = {name: pa.float64() if name in forecast else pa.string() for name in self.names}
        with self._readable():
            for batch in self._read(types):
                yield from (batch.slice(at, rows) for at in range(0, batch.num_rows, rows))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _renamed(schema: Any, names: Sequence[str]) -> Any:
    fields = (field.with_name(name) for field, name in zip(schema, names, strict=True))
    return arrow("").schema(fields)


def _spaced(words: Sequence[str]) -> list[str]:
    """The same words with a space before them too; numbers pyarrow reads with any spaces."""
    return [*words, *(f" {word}" for word in words)]
