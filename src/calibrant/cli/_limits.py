"""Limits that a pipeline sets: `--fail-above ece=0.05`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isnan

import torch

from .._checks import did_you_mean
from ..evaluation import Summary
from ..evaluation._interval import fewest_draws
from ..logs import Batch

# A level of intervals that nobody reads.
_ANY = 0.5


def parse_limits(given: Sequence[str]) -> dict[str, float]:
    """Each limit by the name of its row.

    >>> parse_limits(["ece=0.05", "nll=1"])
    {'ece': 0.05, 'nll': 1.0}
    """
    limits = {}
    for text in given:
        name, equals, number = text.partition("=")
        try:
            limits[name] = float(number)
        except ValueError:
            equals = ""
        if not name or not equals or isnan(limits[name]):
            raise ValueError(f"--fail-above must be like ece=0.05; got {text!r}.")
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


def check_limits(limits: Iterable[str], rows: Collection[str], missing: str = "") -> None:
    """Every limit must be that of a row.

    - `missing`: why one may not be there.
    """
    unknown = [name for name in limits if name not in rows]
    if unknown:
        raise ValueError(
            f"--fail-above must name a row of the table; got {unknown[0]!r}. "
            f"There are {', '.join(rows) or 'none'}.{missing or did_you_mean(unknown[0], rows)}"
        )


def crossed(limits: Mapping[str, float], values: Mapping[str, float]) -> list[str]:
    """A sentence for each row above its limit; one that is not a number is above any.

    >>> crossed({"ece": 0.05}, {"ece": 0.0712})
    ['ece is 0.0712, above the limit of 0.05.']
    """
    check_limits(limits, values)
    return [
        f"{name} is {values[name]:.4g}, above the limit of {limit:g}."
        for name, limit in limits.items()
        if not values[name] <= limit
    ]
