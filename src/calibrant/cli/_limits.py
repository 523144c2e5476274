"""Limits that a pipeline sets: `--fail-above ece=0.05`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isnan

from .._checks import did_you_mean


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


def crossed(
    limits: Mapping[str, float], values: Mapping[str, float], missing: str = ""
) -> list[str]:
    """A sentence for each row above its limit; one that is not a number is above any.

    >>> crossed({"ece": 0.05}, {"ece": 0.0712})
    ['ece is 0.0712, above the limit of 0.05.']
    """
    check_limits(limits, values, missing)
    return [
        f"{name} is {values[name]:.4g}, above the limit of {limit:g}."
        for name, limit in limits.items()
        if not values[name] <= limit
    ]
