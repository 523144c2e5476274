"""How far two models are apart: what a comparison gives, to print and to keep."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import isclose
from os import PathLike
from typing import Any

from .. import _html as html
from .._json import as_number
from ._by_name import ByName, check_kept, frame, written
from ._table import markdown, number, p_value, plain

# Last digits that two ways of computing one value may differ by.
_ROUNDED = 8

_HEADER = ("criterion", "first", "second", "difference", "low", "high", "p-value")


@dataclass(frozen=True)
class Difference:
    """One criterion of two models on the same samples.

    - `first`, `second`: its value for each model.
    - `difference`: first less second.
    - `low`, `high`: the interval that holds the true difference, at the level asked for.
    - `p_value`: how often models that are equally good would differ by as much.

    >>> apart = Difference(0.12, 0.05, 0.07, 0.04, 0.09, p_value=0.002)
    >>> apart.low > 0  # the first is worse, and not by chance alone
    True
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float

    def within(self, furthest: float) -> "Difference":
        """The same, the interval without differences that no two models can have."""
        low, high = (0.0 + min(max(end, -furthest), furthest) for end in (self.low, self.high))
        return replace(self, low=low, high=high)

    def beyond_rounding(self, precision: float) -> "Difference":
        """The same, without an alarm where the two values are one but for their last digits.

        - `precision`: of the values, as a share of them.
        """
        if not isclose(self.first, self.second, rel_tol=_ROUNDED * precision):
            return self
        return replace(self, low=min(self.low, 0.0), high=max(self.high, 0.0), p_value=1.0)


@dataclass(frozen=True, repr=False)
class Comparison(ByName[Difference]):
    """Differences between two models on the same samples; printed, a table.

    A mapping of the names of the criteria: `comparison["ece"]`, `"nll" in comparison`, and so on.

    - `rows`: by name, in the order of the table.
    - `n`: how many samples.
    - `draws`: resamples behind the intervals.
    - `level`: of the intervals.

    >>> apart = Difference(0.12, 0.05, 0.07, 0.04, 0.09, p_value=0.002)
    >>> comparison = Comparison({"ece": apart}, n=5000, draws=1000, level=0.95)
    >>> comparison["ece"].difference
    0.07
    >>> comparison
    criterion   first  second  difference     low    high  p-value
    ece        0.1200  0.0500      0.0700  0.0400  0.0900   0.0020
    """

    rows: dict[str, Difference]
    n: int
    draws: int
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and numbers."""
        rows = {name: asdict(row) for name, row in self.rows.items()}
        return {"rows": rows, "n": self.n, "draws": self.draws, "level": self.level}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Comparison":
        """What `to_dict` gave, or what was read from `to_json`."""
        check_kept(kept, ("rows", "n", "draws", "level"))
        rows = {
            name: Difference(**{part: as_number(value) for part, value in row.items()})
            for name, row in kept["rows"].items()
        }
        return cls(rows, kept["n"], kept["draws"], kept["level"])

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """As JSON, and into a file where a path is given: the whole file or none of it.

        What is infinite is null there, and `from_dict` reads it as NaN.
        """
        return written(self.to_dict(), path)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line per row."""
        return frame([{"row": name} | asdict(row) for name, row in self.rows.items()])

    def to_markdown(self) -> str:
        """A table for a page."""
        return markdown(_HEADER, self._cells())

    def _repr_html_(self) -> str:
        """The same table in a notebook."""
        return html.table(_HEADER, self._cells())

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (name, *map(number, list(vars(row).values())[:-1]), p_value(row.p_value))
            for name, row in self.rows.items()
        ]

    def __str__(self) -> str:
        return plain(_HEADER, self._cells())
