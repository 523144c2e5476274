"""How far two models are apart: what a comparison gives, to print and to keep."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from math import isclose
from typing import Any

from .. import _html as html
from .._json import as_json
from ._table import markdown, number, p_value, plain

# Last digits that two ways of computing one value may differ by.
_ROUNDED = 8

_HEADER = ("criterion", "first", "second", "difference", "low", "high", "p-value")


@dataclass(frozen=True)
class Difference:
    """One criterion of two models: their values, first less second, interval and p-value."""

    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float

    def within(self, furthest: float) -> "Difference":
        """The same, the interval without differences that no two models can have."""
        low, high = (min(max(end, -furthest), furthest) for end in (self.low, self.high))
        return replace(self, low=low, high=high)

    def beyond_rounding(self, precision: float) -> "Difference":
        """The same, without an alarm where the two values are one but for their last digits.

        - `precision`: of the values, as a share of them.
        """
        if not isclose(self.first, self.second, rel_tol=_ROUNDED * precision):
            return self
        return replace(self, low=min(self.low, 0.0), high=max(self.high, 0.0), p_value=1.0)


@dataclass(frozen=True)
class Comparison(Mapping[str, Difference]):
    """Differences between two models on the same samples, by the name of the criterion."""

    rows: dict[str, Difference]
    n: int
    draws: int
    level: float

    def __getitem__(self, name: str) -> Difference:
        if name not in self.rows:
            raise KeyError(f"no row is called {name!r}; there are {', '.join(self.rows)}.")
        return self.rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)

    def to_json(self) -> str:
        """The same as text; what is infinite is null there."""
        return as_json(self.to_dict())

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
