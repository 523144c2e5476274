"""Limits that a pipeline sets: `--fail-above ece.low=0.05`, `--fail-below accuracy=0.9`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan

import torch

from .._checks import did_you_mean
from ..evaluation import Summary
from ..evaluation._interval import fewest_draws
from ..logs import Batch

# A level of intervals that nobody reads.
_ANY = 0.5

_ABOVE, _BELOW = "--fail-above", "--fail-below"
_ENDS = ("low", "high")


@dataclass(frozen=True)
class Limits:
    """What rows must not be above, and what they must not be below, by their names."""

    above: Mapping[str, float]
    below: Mapping[str, float]

    def __bool__(self) -> bool:
        return bool(self.above or self.below)

    @property
    def named(self) -> Iterator[tuple[str, str]]:
        """Each option with a name it was given."""
        for option, limits in ((_ABOVE, self.above), (_BELOW, self.below)):
            yield from ((option, name) for name in limits)


def parse_limits(above: Sequence[str], below: Sequence[str] = ()) -> Limits:
    """Limits as they were typed; of several on one row the strictest.

    >>> parse_limits(["ece.low=0.05", "nll=1"], ["accuracy=0.9"])
    Limits(above={'ece.low': 0.05, 'nll': 1.0}, below={'accuracy': 0.9})
    """
    return Limits(
        _parsed(_ABOVE, "ece=0.05", above, min), _parsed(_BELOW, "accuracy=0.9", below, max)
    )


def _parsed(
    option: str, example: str, given: Sequence[str], strictest: Callable[[float, float], float]
) -> dict[str, float]:
    limits: dict[str, float] = {}
    for text in given:
        name, equals, number = text.partition("=")
        try:
            limit = float(number)
        except ValueError:
            limit = nan
        if not name or not equals or isnan(limit):
            raise ValueError(f"{option} must be like {example}; got {text!r}.")
        limits[name] = strictest(limit, limits.get(name, limit))
    return limits


def rows_to_come(classes: int | None, *, streamed: bool = False) -> list[str]:
    """What the rows of an evaluation will be called, as those of three made-up predictions are.

    - `classes`: how many; nothing for events. `streamed`: whether a summary counts the rows.

    >>> len(rows_to_come(10)), len(rows_to_come(10, streamed=True))
    (22, 13)
    """
    truth = torch.tensor([0, 1, 1])
    made_up = (
        Batch("confidence", torch.full((3,), 0.5), truth)
        if classes is None
        else Batch("logits", torch.zeros(3, 2), truth)
    )
    if not streamed:
        return list(made_up.evaluate(draws=fewest_draws(_ANY), level=_ANY))
    summary = Summary(None if classes is None else 2)
    made_up.add_to(summary)
    return list(summary.values())


def check_limits(
    limits: Limits, rows: Collection[str], missing: str = "", *, intervals: bool = False
) -> None:
    """Every limit must be that of a row, or of an end of its interval.

    - `missing`: why one may not be there. `intervals`: whether rows have any.
    """
    for option, name in limits.named:
        row, _, end = name.rpartition(".")
        is_end = row in rows and end in _ENDS
        if name in rows or (intervals and is_end):
            continue
        if is_end:
            raise ValueError(
                f"{option} must name a row alone where there are no intervals; got {name!r}."
                f"{missing or f' Set a limit on {row}.'}"
            )
        raise ValueError(
            f"{option} must name a row of the table; got {name!r}. There are "
            f"{', '.join(rows) or 'none'}.{missing or did_you_mean(name, rows)}"
        )


def with_ends(rows: Mapping[str, tuple[float, float, float]]) -> dict[str, float]:
    """What limits may be set on, of the value of each row and the two ends of its interval.

    >>> with_ends({"ece": (0.07, 0.04, 0.09)})
    {'ece': 0.07, 'ece.low': 0.04, 'ece.high': 0.09}
    """
    names = ("", *(f".{end}" for end in _ENDS))
    return {
        f"{row}{name}": number
        for row, numbers in rows.items()
        for name, number in zip(names, numbers, strict=True)
    }


def crossed(limits: Limits, values: Mapping[str, float]) -> list[str]:
    """A sentence for each limit that is crossed, as what is not a number crosses any.

    >>> crossed(parse_limits(["ece=0.05"], ["accuracy=0.9"]), {"ece": 0.0712, "accuracy": 0.95})
    ['ece is 0.0712, above the limit of 0.05.']
    """
    return [
        f"{name} is {values[name]:.4g}, above the limit of {limit:g}."
        for name, limit in limits.above.items()
        if not values[name] <= limit
    ] + [
        f"{name} is {values[name]:.4g}, below the limit of {limit:g}."
        for name, limit in limits.below.items()
        if not values[name] >= limit
    ]
