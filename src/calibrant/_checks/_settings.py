"""Numbers and functions that a person chooses."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def check_positive(**settings: float) -> None:
    """Settings that divide or scale must be above zero."""
    for name, value in settings.items():
        if not 1e-12 <= value < float("inf"):
            raise ValueError(f"{name} must be positive and finite; got {value!r}. Least is 1e-12.")


def check_callable(name: str, x: Function) -> Function:
    """Something to call; a name from the catalogue is not."""
    if not callable(x):
        raise TypeError(
            f"{name} must be a function; got {x!r}. For a name use SCORES, MEASURES or CRITERIA."
        )
    return x


def check_bins(bins: int) -> None:
    """A whole number of bins, one at least."""
    check_count("bins", bins, usual=15)


def check_count(name: str, count: int, *, usual: int) -> None:
    """How many of something, one at least."""
    if not _is_whole(count) or count < 1:
        raise ValueError(
            f"{name} must be a whole number, at least 1; got {count!r}. Usual is {usual:,}."
        )


def check_share(name: str, share: float, advice: str = "") -> None:
    """A part of the whole that is neither nothing nor all of it."""
    if not _is(Real, share) or not 0 < share < 1:
        raise ValueError(f"{name} must lie between 0 and 1; got {share!r}.{advice}")


def check_flag(name: str, flag: object) -> None:
    """Yes or no; of a text, even of "no", Python thinks that it is true."""
    if not isinstance(flag, bool | np.bool_):
        found = repr(flag) if flag is None or np.isscalar(flag) else type(flag).__name__
        raise ValueError(f"{name} must be True or False; got {found}.")


def check_seed(seed: int) -> None:
    """What generators of random numbers start from."""
    if not _is_whole(seed) or not 0 <= seed < 2**63:
        raise ValueError(f"seed must be a whole number from 0 to 2**63 - 1; got {seed!r}.")


def check_norm(norm: float) -> None:
    """A p of at least one, for which the p-th root of a mean of p-th powers is a norm."""
    if not _is(Real, norm) or not 1 <= norm < float("inf"):
        raise ValueError(
            f"norm must be at least 1 and finite; got {norm!r}. "
            "Usual are 1 and 2; for the largest gap use mce."
        )


def _is_whole(x: object) -> bool:
    return _is(Integral, x) and not isinstance(x, bool)


def _is(kind: type, x: object) -> bool:
    """Whether a number is of a kind, NumPy's own included."""
    return isinstance(x, kind)
