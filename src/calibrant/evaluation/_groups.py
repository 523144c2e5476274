"""Groups of samples: their names, and who is in each; one sentence where that cannot be told."""

from collections.abc import Iterable, Sequence
from numbers import Integral, Number
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._checks import check_not_masked
from ._arrays import Numbers, check_held
from ._inputs import MOST_COUNTED, check_enough
from ._not_numbers import is_missing

_WITHOUT_GROUP = "Give samples without a group one of their own, or leave them out."
_JOIN = " For several columns pass ['/'.join(map(str, row)) for row in np.asarray(groups)]."
_SPELL = "Spell every one of them: [str(x) for x in groups]."

# Names that are nothing but their text.
_PLAIN = {str, np.str_}


def apart(names: Sequence[Any]) -> NDArray[Any]:
    """Names or numbers as an array in which those that differ do so still.

    NumPy's text of a fixed width has lost the NUL that some end in, and its double precision the
    last digits of large whole numbers.
    """
    array = np.asarray(names)
    match array.dtype.kind:
        case "U" | "S":
            lossy = any(isinstance(x, str | bytes) and x[-1:] in ("\0", b"\0") for x in names)
        case "f":
            lossy = any(isinstance(x, Integral) and abs(int(x)) > MOST_COUNTED for x in names)
        case _:
            lossy = False
    return np.array(names, dtype=object) if lossy else array


def _names_of(groups: Numbers, n: int) -> NDArray[Any]:
    """One name or number per sample; not both, since NumPy spells 1 and "1" alike."""
    if isinstance(groups, Tensor):
        check_held("groups", groups)
        held = groups.detach().cpu()
        names = (held.float() if held.dtype == torch.bfloat16 else held).numpy()
    else:
        check_not_masked("groups", groups)
        names = np.asarray(groups) if isinstance(groups, np.ndarray) else _listed(groups)
    if names.shape != (n,):
        remedy = _JOIN if names.ndim == 2 else ""
        raise ValueError(
            f"groups must hold one entry per sample, {n} in all; got shape {names.shape}.{remedy}"
        )
    if names.dtype == object or (names.dtype.kind in "US" and not isinstance(groups, np.ndarray)):
        given = names if names.dtype == object else groups
        # Of a list of names NumPy would spell NaN as one of them.
        _check_no_gap(np.fromiter(map(is_missing, given), dtype=bool, count=n))
        kinds = {type(x) for x in given}
        spelt = {kind for kind in kinds if issubclass(kind, str | bytes)}
        if spelt and any(issubclass(kind, Number | np.generic) for kind in kinds - spelt):
            raise TypeError(_neither(kinds, _SPELL))
        if kinds == spelt and not kinds <= _PLAIN:
            # A member of an enumeration equals its value, and is called something else.
            names = np.array([str(x) for x in given], dtype=object)
    else:
        _check_no_gap(names != names)
    return names


def _listed(groups: Sequence[Any]) -> NDArray[Any]:
    try:
        return apart(groups)
    except (RuntimeError, TypeError, ValueError) as wrong:  # such as entries of several lengths
        raise TypeError(
            "groups must hold one name or number per sample; got entries that NumPy makes no "
            f"column of. {_SPELL}"
        ) from wrong


def _check_no_gap(missing: NDArray[np.bool_]) -> None:
    if missing.any():
        raise ValueError(
            "groups must hold a name or a number for every sample; got no value in row "
            f"{int(missing.argmax())} (counted from 0), the first of {int(missing.sum())}. "
            f"{_WITHOUT_GROUP}"
        )


def _neither(kinds: Iterable[type], remedy: str) -> str:
    named = ", ".join(sorted({kind.__name__ for kind in kinds}))
    return f"groups must be all names or all numbers; got {named}. {remedy}"


def parted(groups: Numbers, n: int) -> dict[str, NDArray[np.int64]]:
    """The samples of each group by its name, in the order of the names."""
    names = _names_of(groups, n)
    try:
        different, place = np.unique(names, return_inverse=True)
    except (TypeError, ValueError) as wrong:  # what cannot be put in order
        raise TypeError(_neither(map(type, names), _SPELL)) from wrong
    ends = np.bincount(place).cumsum()[:-1]
    each = np.split(place.argsort(kind="stable"), ends)
    # Of no samples there is one part, which is empty, and no name.
    found: dict[str, NDArray[np.int64]] = {}
    for name, own in zip(map(str, different), each, strict=False):
        if name in found:
            raise ValueError(
                f"groups must be called differently where they differ; two are {name!r}. Pass "
                "names, or numbers of one type."
            )
        found[name] = own
    return found


def members(groups: Numbers, n: int, weights: Tensor | None = None) -> dict[str, NDArray[np.int64]]:
    """The same, where there is enough of each to judge it.

    - `weights`: some samples may not count.
    """
    found = parted(groups, n)
    counts = None if weights is None else weights.cpu().numpy() > 0
    for name, own in found.items():
        check_enough(len(own), f" in every group, also in {name!r}")
        if counts is not None:
            counting = int(counts[own].sum())
            if not counting:
                raise ValueError(
                    f"weights must not all be zero in any group; they are in {name!r}. Leave it "
                    "out."
                )
            check_enough(counting, f" that count in every group, also in {name!r}")
    return found
