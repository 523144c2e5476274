"""NPZ and safetensors files written again, block by block, with other forecasts in them."""

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from ._arrays import ArrayTable
from ._log import Progress, alike
from ._npz import NpzTable
from ._safetensors import SafetensorsTable

Mapped = Callable[[Tensor, int], Tensor]

_CHUNK = 2**20


def rewrite_npz(
    table: NpzTable,
    forecast: Sequence[str],
    mapped: Mapped,
    out: BinaryIO,
    rows: int,
    progress: Progress | None,
) -> int:
    """Arrays one after the other, compressed as they were."""
    with zipfile.ZipFile(table.path) as old, zipfile.ZipFile(out, "w", allowZip64=True) as new:
        for member in old.infolist():
            name = member.filename.removesuffix(".npy")
            told = zipfile.ZipInfo(member.filename, member.date_time)
            told.compress_type = member.compress_type
            with new.open(told, "w", force_zip64=True) as file:
                if name not in forecast:
                    with old.open(member) as kept:
                        shutil.copyfileobj(kept, file, _CHUNK)
                    continue
                head: dict[str, Any] = {"fortran_order": False, "shape": table.shapes[name]}
                for block in _column(table, forecast, name, mapped, rows, progress):
                    array = block.contiguous().numpy()
                    if "descr" not in head:
                        head["descr"] = array.dtype.str
                        np.lib.format.write_array_header_1_0(file, head)
                    file.write(array.tobytes())
    return table.count(forecast)


def rewrite_safetensors(
    table: SafetensorsTable,
    forecast: Sequence[str],
    mapped: Mapped,
    out: BinaryIO,
    rows: int,
    progress: Progress | None,
) -> int:
    """The same header, since names, shapes and types stay; other bytes where the forecasts lie."""
    with table.path.open("rb") as old:
        size = old.read(8)
        header = old.read(int.from_bytes(size, "little"))
        out.write(size + header)
        start = 8 + len(header)
        tensors = {k: v for k, v in json.loads(header).items() if k != "__metadata__"}
        for name, told in sorted(tensors.items(), key=lambda each: each[1]["data_offsets"]):
            first, last = told["data_offsets"]
            if name in forecast:
                for block in _column(table, forecast, name, mapped, rows, progress):
                    out.write(block.contiguous().view(torch.uint8).numpy().tobytes())
                continue
            old.seek(start + first)
            left = last - first
            while left > 0:
                chunk = old.read(min(_CHUNK, left))
                out.write(chunk)
                left -= len(chunk)
    return table.count(forecast)


def _column(
    table: ArrayTable,
    forecast: Sequence[str],
    name: str,
    mapped: Mapped,
    rows: int,
    progress: Progress | None,
) -> Iterator[Tensor]:
    """New blocks of one array; where every class has an array of its own, all are read."""
    done, total = 0, table.count(forecast)
    for block in table.blocks(forecast, None, rows):
        told = [torch.as_tensor(block[each]) for each in forecast]
        if len(told) == 1:
            better = mapped(told[0], done)
        else:
            place = list(forecast).index(name)
            better = mapped(torch.stack(alike(told), dim=1), done)[:, place].to(told[place].dtype)
        done += len(better)
        yield better
        if progress is not None:
            progress(done, total)
