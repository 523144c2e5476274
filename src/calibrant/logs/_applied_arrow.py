"""Parquet, Arrow and CSV files written again, batch by batch, with other forecasts in them."""

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import torch
from torch import Tensor

from . import _arrow_columns as column
from ._arrow import ArrowTable
from ._csv import CsvTable
from ._ipc import IpcTable
from ._log import Progress, alike
from ._table import arrow

Mapped = Callable[[Tensor, int], Tensor]


def rewrite_arrow(
    table: ArrowTable,
    forecast: Sequence[str],
    mapped: Mapped,
    out: BinaryIO,
    rows: int,
    progress: Progress | None,
) -> int:
    """Every batch with its forecast columns replaced, in the types they had."""
    done, total = 0, table.count(table.names)
    with _writer(table, forecast, out) as write:
        for batch in table.records(forecast, rows):
            told = [column.numbers(batch.column(n), n, *table.place(done)) for n in forecast]
            together = told[0] if len(told) == 1 else torch.stack(alike(told), dim=1)
            better = mapped(together, done)
            for k, name in enumerate(forecast):
                own = better if len(told) == 1 else better[:, k]
                place = batch.schema.get_field_index(name)
                field = _plain(batch.field(place))
                batch = batch.set_column(place, field, _array(own, field.type))
            write(batch)
            done += batch.num_rows
            if progress is not None:
                progress(done, total)
    if done == 0:
        raise ValueError(f"{table.where} must hold at least one row; it has none.")
    return done


def _plain(field: Any) -> Any:
    """The same column, of which every number is written: few are now alike."""
    coded = arrow("types").is_dictionary(field.type)
    return field.with_type(field.type.value_type) if coded else field


def _array(values: Tensor, kind: Any) -> Any:
    """A column of this type."""
    pa, types = arrow(""), arrow("types")
    flat = pa.array(values.reshape(-1).contiguous().numpy())
    if values.ndim == 1:
        return flat.cast(kind)
    width = values.shape[1]
    listed = pa.FixedSizeListArray.from_arrays(flat.cast(kind.value_type), width)
    return listed if types.is_fixed_size_list(kind) else listed.cast(kind)


@contextmanager
def _writer(
    table: ArrowTable, forecast: Sequence[str], out: BinaryIO
) -> Iterator[Callable[[Any], Any]]:
    """A function that takes record batches."""
    if isinstance(table, CsvTable):
        with _text(table, out) as file:
            lines = csv.writer(file, delimiter=table.separator, lineterminator="\n")
            lines.writerow(table.head)
            yield lambda batch: lines.writerows(
                zip(*(each.to_pylist() for each in batch.columns), strict=True)
            )
    elif isinstance(table, IpcTable):
        ipc = arrow("ipc")
        opened = ipc.new_file if table.is_file else ipc.new_stream
        with opened(out, _schema(table, forecast)) as sink:
            yield sink.write_batch
    else:
        with arrow("parquet").ParquetWriter(out, _schema(table, forecast)) as sink:
            yield sink.write_batch


def _schema(table: ArrowTable, forecast: Sequence[str]) -> Any:
    fields = [_plain(each) if each.name in forecast else each for each in table.schema]
    return arrow("").schema(fields, metadata=table.schema.metadata)


@contextmanager
def _text(table: ArrowTable, out: BinaryIO) -> Iterator[io.TextIOWrapper]:
    packed = table.path.suffix.lower() == ".gz"
    inner: Any = gzip.GzipFile(fileobj=out, mode="wb") if packed else out
    file = io.TextIOWrapper(inner, encoding="utf-8", newline="")
    yield file
    file.flush()
    file.detach()
    if packed:
        inner.close()
