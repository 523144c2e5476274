"""Safetensors files, slice by slice."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from ._arrays import ArrayTable, group_names
from ._table import Block, broken


class SafetensorsTable(ArrayTable):
    """Slices of tensors. The file is mapped anew for each, or what was read would stay mapped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            self.shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118

    @contextmanager
    def _open(self) -> Iterator[Any]:
        try:
            with safe_open(self.path, framework="pt") as file:
                yield file
        except SafetensorError as reason:
            raise broken(self.where, "safetensors", reason) from reason

    def blocks(self, numbers: Sequence[str], groups: str | None, rows: int) -> Iterator[Block]:
        """All rows in order, at most `rows` of them at a time."""
        wanted = [*numbers] if groups is None else [*numbers, groups]
        total = self.count(wanted)
        for start in range(0, total, rows):
            with self._open() as file:
                some = {name: file.get_slice(name)[start : start + rows] for name in wanted}
            block: Block = {name: some[name] for name in numbers}
            if groups is not None:
                told = some[groups]
                # NumPy has no bfloat16 and nothing shorter.
                array = (told.float() if told.is_floating_point() else told).numpy()
                block[groups] = group_names(array, groups, self.where, start)
            yield block
