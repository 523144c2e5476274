"""What is wrong with what no tensor can be made of, and what makes numbers of it."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..predictions import Predictions

# Words that are shown of a column of words.
_SHOWN = 3
# Of predictions, where it is not the logits and the labels that are asked for.
_PARTS = {name: ("confidence", "correct") for name in ("confidence", "outcome")}


def how_to_count(name: str, x: object) -> str:
    """What was found, and advice that works; to follow the type of it.

    >>> how_to_count("outcome", ["yes", "no"])
    " of 'no' and 'yes'. Pass np.asarray(outcome) == word, with the word that means 1"
    """
    if (row := first_missing(x)) is not None:
        return f" with no value in row {row} (counted from 0). Leave such rows out"
    if isinstance(x, Predictions):
        first, second = _PARTS.get(name, ("logits", "labels"))
        return f". Pass predictions.{first} and predictions.{second}"
    if hasattr(x, "toarray"):
        return f". Pass {name}.toarray()"
    if isinstance(x, Iterator):
        return f". Pass list({name})"
    if len(_rows(x)) and _are_numbers(x, float):
        return f". Pass np.asarray({name}, dtype=float)"
    words = sorted({each for each in _entries(x) if isinstance(each, str)})
    found = " and ".join(repr(word) for word in words[:_SHOWN])
    more = f" and {len(words) - _SHOWN:,} more" if len(words) > _SHOWN else ""
    if name == "outcome" and words:
        return f" of {found}{more}. Pass np.asarray(outcome) == word, with the word that means 1"
    return f"{f' of {found}{more}' if words else ''}. Pass numbers"


def which_index(labels: object) -> str:
    """What was found where class indices should be, and advice that works."""
    if (row := first_missing(labels)) is not None:
        return f"no value in row {row} (counted from 0). Leave such rows out"
    each = _entries(labels)
    if each and all(isinstance(x, Integral) for x in each) and _are_numbers(labels, int):
        return "objects. Pass np.asarray(labels, dtype=int)"
    if not each:
        return f"{type(labels).__name__}. Pass one for each sample, in an array or a list"
    return (
        f"{type(each[0]).__name__} {str(each[0])!r}. Map names to indices first, for instance "
        "np.searchsorted(model.classes_, labels)"
    )


def first_missing(x: object) -> int | None:
    """The first row without a value, such as None, NaN or the NA of pandas."""
    rows = _rows(x)
    return next((i for i, row in enumerate(rows) if any(map(is_missing, np.ravel(row)))), None)


def is_missing(x: object) -> bool:
    """Whether it stands for a value that is not known.

    >>> [is_missing(x) for x in (None, float("nan"), 0, "")]
    [True, True, False, False]
    """
    if isinstance(x, float | np.floating):
        return bool(x != x)
    if isinstance(x, Decimal):  # some of which refuse to be compared
        return x.is_nan()
    return x is None or type(x).__name__ in ("NAType", "NaTType")


def _are_numbers(x: Any, kind: type) -> bool:
    try:
        np.asarray(x, dtype=kind)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _entries(x: object) -> list[Any]:
    """The numbers or names of a column; a text is one, and a table has none."""
    if isinstance(x, str):
        return [x]
    rows = _rows(x)
    return list(rows) if rows.ndim == 1 else []


def _rows(x: object) -> NDArray[Any]:
    """The entries of a column or the rows of a table; none of what is neither."""
    none = np.empty(0, dtype=object)
    if isinstance(x, str | bytes | dict) or not isinstance(x, Iterable):
        return none
    try:
        array = np.asarray(x, dtype=object)
    except (ValueError, RuntimeError):  # rows that differ in length, tensors on a graph
        return none
    return array if array.ndim else none  # a generator, or a matrix of another package
