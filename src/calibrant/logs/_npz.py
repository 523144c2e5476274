"""NPZ files, each array streamed from its place in the archive."""

import lzma
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._arrays import ArrayTable, group_names
from ._table import Block, broken, not_numbers

# What damage may raise. A file that is locked by a password is a RuntimeError, one packed in a way
# unknown too.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    UnicodeDecodeError,
)
# Bytes unpacked at once.
_PIECE = 2**20


class NpzTable(ArrayTable):
    """NumPy's archive, each array streamed from its place in the zip; pickles are refused.

    An array that was saved in Fortran order has no rows to stream and is read whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._readable(), zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.endswith(".npy")]
            self._check_once(members)
            self._headers = {name.removesuffix(".npy"): _header(archive, name) for name in members}
        self.shapes = {name: shape for name, (shape, _, _) in self._headers.items()}

    def _check_once(self, members: list[str]) -> None:
        """An archive may hold two arrays of one name, of which a reader would see the last."""
        twice = [name for name, times in Counter(members).items() if times > 1]
        if twice:
            raise ValueError(
                f"{self.where} must have one array called {twice[0].removesuffix('.npy')!r}; "
                f"found {members.count(twice[0])}. Write it again."
            )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGED as reason:
            raise broken(self.where, "NPZ", reason) from reason
        except OSError as reason:
            # Of bytes that are not what they should be; a file that cannot be opened has a name.
            if reason.filename is not None:
                raise
            raise broken(self.where, "NPZ", reason) from reason

    def _pickled(self, groups: str) -> TypeError:
        return TypeError(
            f"column {groups!r} of {self.where} must hold names or numbers; it holds pickled "
            f"objects, which are never loaded. Save {groups}.astype(str) under that name."
        )

    def blocks(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Block]:
        """All rows in order, at most `rows` of them at a time."""
        wanted = [*numbers] if groups is None else [*numbers, groups]
        total = self.count(wanted)
        with self._readable(), zipfile.ZipFile(self.path) as archive, ExitStack() as open_files:
            streams = {
                name: _Rows(open_files.enter_context(archive.open(f"{name}.npy")))
                for name in wanted
            }
            for name in numbers:
                if streams[name].dtype.kind not in "biuf":
                    raise not_numbers(name, self.where, _spoken(streams[name].dtype))
            for start in range(0, total, rows):
                count = min(rows, total - start)
                block: Block = {name: _tensor(streams[name].take(count)) for name in numbers}
                if groups is not None:
                    if streams[groups].dtype.hasobject:
                        raise self._pickled(groups)
                    names = streams[groups].take(count)
                    block[groups] = group_names(names, groups, self.where, start)
                yield block


@runtime_checkable
class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """The next `size` bytes, or all that are left."""


class _Rows:
    """The rows of one array in a zip, taken from first to last."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self.shape, self._by_column, self.dtype = _read_header(file)
        self._kept: NDArray[Any] | None = None
        self._taken = 0

    def take(self, count: int) -> NDArray[Any]:
        """The next rows."""
        if self._by_column:
            if self._kept is None:
                columns = self._array(int(np.prod(self.shape))).reshape(self.shape[::-1])
                self._kept = columns.T
            self._taken += count
            return np.ascontiguousarray(self._kept[self._taken - count : self._taken])
        width = int(np.prod(self.shape[1:]))
        return self._array(count * width).reshape(count, *self.shape[1:])

    def _array(self, entries: int) -> NDArray[Any]:
        size, data = entries * self.dtype.itemsize, bytearray()
        # By pieces, since an array may be all there is, which is not to be held twice.
        while piece := self._file.read(min(_PIECE, size - len(data))):
            data += piece
        if len(data) < size:
            raise EOFError(f"{size - len(data)} bytes are missing")
        return np.frombuffer(data, dtype=self.dtype, count=entries)


Header = tuple[tuple[int, ...], bool, np.dtype[Any]]


def _header(archive: zipfile.ZipFile, member: str) -> Header:
    with archive.open(member) as file:
        return _read_header(file)


def _read_header(file: Readable) -> Header:
    try:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        return read(file)
    except (ValueError, TypeError, SyntaxError, tokenize.TokenError, OverflowError) as reason:
        raise EOFError(str(reason)) from reason


def _spoken(dtype: np.dtype[Any]) -> str:
    if dtype.hasobject:
        return "pickled objects, which are never loaded"
    return "text" if dtype.kind in "SU" else str(dtype)


def _tensor(array: NDArray[Any]) -> Tensor:
    """In the byte order of this machine, and in a type that torch has."""
    kind = array.dtype.newbyteorder("=")
    return torch.from_numpy(array.astype(np.float64 if kind.itemsize > 8 else kind, copy=False))
