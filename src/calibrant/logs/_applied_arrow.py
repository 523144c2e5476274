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
from ._arrow import ArrowTable, CsvTable, IpcTable
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
            told = [column.numbers(batch.column(n), n, table.path, done) for n in forecast]
            together = told[0] if len(told) == 1 else torch.stack(alike(told), dim=1)
            better = mapped(together, done)
            for k, name in enumerate(forecast):
                own = better if len(told) == 1 else better[:, k]
                place = batch.schema.get_field_index(name)
                batch = batch.set_column(place, batch.field(place), _array(own, batch.column(name)))
            write(batch)
            done += batch.num_rows
            if progress is not None:
                progress(done, total)
    if done == 0:
        raise ValueError(f"{table.path.name} must hold at least one row; it has none.")
    return done


def _array(values: Tensor, like: Any) -> Any:
    """A column of the same type."""
    pa, types = arrow(""), arrow("types")
    flat = pa.array(values.reshape(-1).contiguous().numpy())
    if values.ndim == 1:
        return flat.cast(like.type)
    width = values.shape[1]
    listed = pa.FixedSizeListArray.from_arrays(flat.cast(like.type.value_type), width)
    return listed if types.is_fixed_size_list(like.type) else listed.cast(like.type)


@contextmanager
def _writer(
    table: ArrowTable, forecast: Sequence[str], out: BinaryIO
) -> Iterator[Callable[[Any], Any]]:
    """A function that takes record batches."""
    if isinstance(table, CsvTable):
        with _text(table, out) as file:
            tabs = ".tsv" in table.path.suffixes
            lines = csv.writer(file, delimiter="\t" if tabs else ",", lineterminator="\n")
            lines.writerow(table.names)
            yield lambda batch: lines.writerows(
                zip(*(each.to_pylist() for each in batch.columns), strict=True)
            )
    elif isinstance(table, IpcTable):
        ipc = arrow("ipc")
        opened = ipc.new_file if table.is_file else ipc.new_stream
        with opened(out, table.schema) as sink:
            yield sink.write_batch
    else:
        with arrow("parquet").ParquetWriter(out, table.schema) as sink:
            yield sink.write_batch


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
