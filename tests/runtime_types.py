"""The checker that the tests lay over every function of the package."""

from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype

# As static checkers do, let an int stand where a float is expected.
_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
_of_signature: dict[Any, Callable[..., Any]] = {}


def checked(stand_in: Callable[..., Any]) -> Callable[..., Any]:
    """What checks the arguments of a function of the package, or what it returns.

    What comes is not that function but one with its signature alone. A function within another
    is made anew at each call of the other; those with one signature are checked by one checker.
    """
    if "<locals>" not in stand_in.__qualname__ or stand_in.__defaults__ or stand_in.__kwdefaults__:
        return _checked(stand_in)
    types = tuple(stand_in.__annotations__.items())
    signature = (stand_in.__module__, stand_in.__qualname__, stand_in.__code__, types)
    try:
        return _of_signature[signature]
    except KeyError:
        return _of_signature.setdefault(signature, _checked(stand_in))
    except TypeError:  # a type without a hash
        return _checked(stand_in)
