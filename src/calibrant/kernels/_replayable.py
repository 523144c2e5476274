"""Which criteria do the same at every call, so that a graph may stand for them."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from types import FunctionType
from typing import Any

from ..criteria import across_ranks
from ..scores import Score, nll

_NUMBERS = (bool, int, float, str, type(None))


def replayable(criterion: Callable[..., Any]) -> bool:
    """Whether a criterion is this package's own, through and through.

    Somebody else's may print, draw or remember, which a graph would do once.

    >>> from calibrant import ece, esd, nll, rooted, top_label
    >>> replayable(nll), replayable(rooted(top_label(partial(ece, bins=20))))
    (True, True)
    >>> replayable(top_label(lambda confidence, outcome: esd(confidence, outcome)))
    False
    """
    if isinstance(criterion, partial):
        settings = (*criterion.args, *criterion.keywords.values())
        return replayable(criterion.func) and all(isinstance(each, _NUMBERS) for each in settings)
    if not _is_own(criterion):
        return False
    if not is_dataclass(criterion):
        return isinstance(criterion, (FunctionType, Score))
    parts = [getattr(criterion, each.name) for each in fields(criterion)]
    return not isinstance(criterion, _WAITS) and all(
        isinstance(part, _NUMBERS) or (callable(part) and replayable(part)) for part in parts
    )


def _is_own(criterion: Callable[..., Any]) -> bool:
    module = getattr(criterion, "__module__", None) or ""
    return module.partition(".")[0] == __name__.partition(".")[0]


# What ranks exchange is no part of a graph.
_WAITS = type(across_ranks(nll))
