"""Numbers and functions that a person chooses."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

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
    if not _is(Integral, bins) or isinstance(bins, bool) or bins < 1:
        raise ValueError(f"bins must be a whole number, at least 1; got {bins!r}. Usual is 15.")


def check_norm(norm: float) -> None:
    """A p of at least one, for which the p-th root of a mean of p-th powers is a norm."""
    if not _is(Real, norm) or not 1 <= norm < float("inf"):
        raise ValueError(
            f"norm must be at least 1 and finite; got {norm!r}. "
            "Usual are 1 and 2; for the largest gap use mce."
        )


def _is(kind: type, x: object) -> bool:
    """Whether a number is of a kind, NumPy's own included."""
    return isinstance(x, kind)
