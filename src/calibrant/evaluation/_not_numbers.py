"""What is wrong with what no tensor can be made of, and what makes numbers of it."""

from collections.abc import Iterable
from math import isnan
from numbers import Integral
from typing import Any

import numpy as np

# Words that are shown of a column of words.
_SHOWN = 3


def how_to_count(name: str, x: object) -> str:
    """What was found, and advice that works; to follow the type of it.

    >>> how_to_count("outcome", ["yes", "no"])
    " of 'no' and 'yes'. Pass np.asarray(outcome) == word, with the word that means 1"
    """
    if (row := first_missing(x)) is not None:
        return f" with no value in row {row} (counted from 0). Leave such rows out"
    if hasattr(x, "toarray"):
        return f". Pass {name}.toarray()"
    if _are_numbers(x, float):
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
    first = each[0] if each else labels
    return (
        f"{type(first).__name__} {str(first)!r}. Map names to indices first, for instance "
        "np.searchsorted(model.classes_, labels)"
    )


def first_missing(x: object) -> int | None:
    """The first row without a value, such as None, NaN or the NA of pandas."""
    if isinstance(x, str | bytes | dict) or not isinstance(x, Iterable):
        return None
    try:
        rows = np.asarray(x, dtype=object)
    except ValueError:  # rows that differ in length
        return None
    return next((i for i, row in enumerate(rows) if any(map(_is_missing, np.ravel(row)))), None)


def _is_missing(x: object) -> bool:
    if isinstance(x, float):
        return isnan(x)
    return x is None or type(x).__name__ in ("NAType", "NaTType")


def _are_numbers(x: Any, kind: type) -> bool:
    try:
        np.asarray(x, dtype=kind)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _entries(x: object) -> list[Any]:
    """The numbers or names of a column; a text is one, and a table has none."""
    if isinstance(x, str | bytes | dict) or not isinstance(x, Iterable):
        return [x] if isinstance(x, str) else []
    try:
        array = np.asarray(x, dtype=object)
    except ValueError:
        return []
    return list(array) if array.ndim == 1 else []
