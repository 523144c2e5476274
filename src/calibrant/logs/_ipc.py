"""Files and streams in Arrow's own format, also called Feather."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from ._arrow import ArrowTable
from ._mapped import Mapped
from ._table import arrow

# What files begin with, filled up with zeros.
_MAGIC, _STEP = b"ARROW1", 8


class IpcTable(ArrowTable):
    """Batch by batch, and within a batch slice by slice of the mapped file.

    A compressed batch has no slices: the columns that are asked for are unpacked whole, one batch
    after the other.
    """

    form = "Arrow"

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self.is_file = file.read(len(_MAGIC)) == _MAGIC
        with self._readable():
            opened = arrow("ipc").open_file if self.is_file else arrow("ipc").open_stream
            self._schema = opened(arrow("").py_buffer(Mapped(path).memory)).schema
            self.names = list(self._schema.names)

    def count(self, names: Sequence[str]) -> int | None:
        """The sum over the batches of a file; a stream does not tell."""
        if not self.is_file:
            return None
        with self._readable():
            batches = self._whole(Mapped(self.path), names[-1:])
            return sum(map(int, map(attrgetter("num_rows"), batches)))

    def _batches(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Any]:
        wanted = [*numbers] if groups is None else [*numbers, groups]
        with self._readable():
            mapped = Mapped(self.path)
            for batch in self._whole(mapped, wanted):
                for start in range(0, batch.num_rows, rows):
                    mapped.check_whole()
                    part = batch.slice(start, rows)
                    # Lists that lie beyond their numbers would end the whole process.
                    part.validate(full=True)
                    yield part
                    mapped.forget()
                batch = part = None  # before the next is unpacked

    def _whole(self, mapped: Mapped, wanted: Sequence[str]) -> Iterator[Any]:
        """The batches as they were written, which lie in the mapped file unless compressed."""
        ipc, memory = arrow("ipc"), arrow("").py_buffer(mapped.memory)
        fields = [self._schema.get_field_index(name) for name in wanted]
        options = ipc.IpcReadOptions(included_fields=fields)
        if not self.is_file:
            yield from ipc.open_stream(memory, options=options)
            return
        # A file is a stream with a footer, by which columns would be chosen from copies of batches.
        count = ipc.open_file(memory).num_record_batches
        stream = ipc.open_stream(memory.slice(_beginning(mapped)), options=options)
        try:
            for _ in range(count):
                yield stream.read_next_batch()
        except StopIteration as end:
            raise OSError(f"it has fewer than the {count} batches it tells of") from end


def _beginning(mapped: Mapped) -> int:
    """Where the stream in a file begins: writers fill up to 8 bytes, or to more."""
    at = _STEP
    while mapped.memory[at : at + _STEP] == bytes(_STEP):
        at += _STEP
    return at
