"""A column of Arrow as a tensor; one sentence where it cannot be."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..evaluation._groups import apart
from ._table import arrow, not_names, not_numbers, void


def numbers(column: Any, name: str, where: str, first: int) -> Tensor:
    """A column as a tensor; lists as the rows of a matrix."""
    types, kind = arrow("types"), column.type
    _check_full(column, name, where, first)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        flat = column.flatten()
        lengths = arrow("compute").list_value_length(column).to_numpy(zero_copy_only=False)
        uneven = np.flatnonzero(lengths != lengths[:1])
        if len(uneven):
            raise ValueError(
                f"column {name!r} of {where} must hold lists of one length, a number per "
                f"class; row {first} has {lengths[0]} and row {first + uneven[0]} has "
                f"{lengths[uneven[0]]}."
            )
        width = int(lengths[0]) if len(lengths) else 0
        if flat.null_count:
            raise void(name, where, first + int(flat.is_null().index(True).as_py()) // width)
        return _plain(flat, name, where).reshape(len(column), width)
    return _plain(column, name, where)


def _plain(column: Any, name: str, where: str) -> Tensor:
    types, kind = arrow("types"), column.type
    if types.is_dictionary(kind):
        return _plain(column.dictionary_decode(), name, where)
    if types.is_decimal(kind):
        column = column.cast(arrow("").float64())
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise not_numbers(name, where, kind)
    return torch.from_numpy(np.array(column.to_numpy(zero_copy_only=False)))


def names(column: Any, name: str, where: str, first: int) -> NDArray[Any]:
    """The name of each row's group, as text."""
    _check_full(column, name, where, first)
    types, kind = arrow("types"), column.type
    if types.is_nested(kind):
        raise ValueError(
            f"column {name!r} of {where} must hold one name or number per row, the group of each; "
            f"it holds {kind}."
        )
    # Times as text, many at once; and text that its writer did not call so.
    if types.is_timestamp(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        try:
            column = column.cast(arrow("").string())
        except arrow("").ArrowInvalid as wrong:
            raise not_names(name, where) from wrong
    try:
        found = apart([str(group) for group in column.to_pylist()])
    except UnicodeDecodeError as wrong:
        raise not_names(name, where) from wrong
    nameless = found == ""
    if types.is_floating(kind):
        nameless |= np.isnan(column.to_numpy(zero_copy_only=False))
    if nameless.any():
        raise void(name, where, first + int(nameless.argmax()))
    return found


def _check_full(column: Any, name: str, where: str, first: int) -> None:
    if column.null_count:
        raise void(name, where, first + int(column.is_null().index(True).as_py()))
