"""Files of named arrays with a row per sample."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._table import Table, not_names, void


class ArrayTable(Table):
    """Arrays by name; those that are used must have the same number of rows."""

    shapes: dict[str, tuple[int, ...]]

    @property
    def names(self) -> list[str]:  # type: ignore[override]
        """The arrays that have rows."""
        return [name for name, shape in self.shapes.items() if shape]

    def width(self, name: str) -> int | None:
        """The second dimension, where there is one."""
        return self.shapes[name][1] if len(self.shapes[name]) > 1 else None

    def count(self, names: Sequence[str]) -> int:
        """The rows these arrays share."""
        for name in names:
            if len(self.shapes[name]) > 2:
                raise ValueError(
                    f"array {name!r} of {self.where} must have the shape (rows,) or (rows, "
                    f"classes); got {self.shapes[name]}. Flatten pixels or tokens before saving."
                )
        rows = {name: self.shapes[name][0] for name in names}
        if len(set(rows.values())) > 1:
            told = ", ".join(f"{name} {count:,}" for name, count in rows.items())
            raise ValueError(
                f"the arrays of {self.where} must have a row per sample; got rows {told}."
            )
        return next(iter(rows.values()))


def group_names(array: NDArray[Any], name: str, where: str, first: int) -> NDArray[Any]:
    """The name of each row's group, as text; bytes are UTF-8."""
    if array.ndim != 1:
        raise ValueError(
            f"array {name!r} of {where} must hold one name or number per row, the group of each; "
            f"got {array.shape[1]}."
        )
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError as wrong:
            raise not_names(name, where) from wrong
    found = array.astype(str)
    nameless = np.flatnonzero((found == "") | (array != array))  # NaN is no name either
    if len(nameless):
        raise void(name, where, first + int(nameless[0]))
    return found
