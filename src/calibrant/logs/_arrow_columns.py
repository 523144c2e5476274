"""A column of Arrow as a tensor; one sentence where it cannot be."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._table import arrow, not_numbers, void


def numbers(column: Any, name: str, path: Path, first: int) -> Tensor:
    """A column as a tensor; lists as the rows of a matrix."""
    types, kind = arrow("types"), column.type
    _check_full(column, name, path, first)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        flat = column.flatten()
        lengths = arrow("compute").list_value_length(column).to_numpy(zero_copy_only=False)
        uneven = np.flatnonzero(lengths != lengths[:1])
        if len(uneven):
            raise ValueError(
                f"column {name!r} of {path.name} must hold lists of one length, a number per "
                f"class; row {first} has {lengths[0]} and row {first + uneven[0]} has "
                f"{lengths[uneven[0]]}."
            )
        width = int(lengths[0]) if len(lengths) else 0
        if flat.null_count:
            raise void(name, path, first + int(flat.is_null().index(True).as_py()) // width)
        return _plain(flat, name, path).reshape(len(column), width)
    return _plain(column, name, path)


def _plain(column: Any, name: str, path: Path) -> Tensor:
    types, kind = arrow("types"), column.type
    if types.is_decimal(kind):
        column = column.cast(arrow("").float64())
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise not_numbers(name, path, kind)
    return torch.from_numpy(np.array(column.to_numpy(zero_copy_only=False)))


def names(column: Any, name: str, path: Path, first: int) -> NDArray[Any]:
    """The name of each row's group, as text."""
    _check_full(column, name, path, first)
    if arrow("types").is_timestamp(column.type):  # as text, many at once
        column = column.cast(arrow("").string())
    found = np.array([str(group) for group in column.to_pylist()], dtype=str)
    nameless = np.flatnonzero(found == "")
    if len(nameless):
        raise void(name, path, first + int(nameless[0]))
    return found


def _check_full(column: Any, name: str, path: Path, first: int) -> None:
    if column.null_count:
        raise void(name, path, first + int(column.is_null().index(True).as_py()))
