"""What `calibrant evaluate` found: intervals and tests, or the values of a summary."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from ..evaluation import CalibrationTests, Evaluation, Summary
from ..evaluation import _table as table
from ._limits import with_ends
from ._output import wrapped

Render: TypeAlias = Callable[[list[str], list[list[str]]], str]

_QUESTION = (
    "Is it calibrated? Each p-value is the chance that a calibrated model would look at least "
    "this far off:"
)


@dataclass(frozen=True)
class Resampled:
    """Rows that fitted in memory: every number with an interval, and four tests.

    - `tests`: or the reason why there are none.
    """

    evaluation: Evaluation
    tests: CalibrationTests | str

    @property
    def values(self) -> dict[str, float]:
        """Every number by the name of its row, and the ends of its interval."""
        rows = self.evaluation.rows.items()
        return with_ends({name: (row.value, row.low, row.high) for name, row in rows})

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        tests = None if isinstance(self.tests, str) else self.tests.to_dict()
        return {"streamed": False} | self.evaluation.to_dict() | {"tests": tests}

    def parts(self, *, markdown: bool) -> list[str]:
        """Paragraphs and tables."""
        found = self.evaluation.to_markdown() if markdown else str(self.evaluation)
        said = f"No tests: {self.tests}" if isinstance(self.tests, str) else _QUESTION
        said = said if markdown else wrapped(said)
        if isinstance(self.tests, str):
            return [found, said]
        body = [
            [name, table.number(test["statistic"]), table.p_value(test["p_value"])]
            for name, test in self.tests.to_dict().items()
            if isinstance(test, dict)
        ]
        render: Render = table.markdown if markdown else table.plain
        return [found, said, render(["test", "statistic", "p-value"], body)]


@dataclass(frozen=True)
class Streamed:
    """Rows that were counted and forgotten: every number with the most it may be off."""

    whole: Summary
    groups: Mapping[str, Summary] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, float]:
        """Every number by the name of its row."""
        return {name: row.value for name, row in self.whole.values().items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""

        def plain(summary: Summary) -> dict[str, Any]:
            rows = {name: asdict(row) for name, row in summary.values().items()}
            return {"n": len(summary), "rows": rows}

        found = {"streamed": True, "settings": {"bins": self.whole.bins}} | plain(self.whole)
        if self.groups:
            found["groups"] = {name: plain(one) for name, one in self.groups.items()}
        return found

    def parts(self, *, markdown: bool) -> list[str]:
        """Paragraphs and tables."""
        render: Render = table.markdown if markdown else table.plain
        body = [
            [name, table.number(row.value), table.bound(row.error)]
            for name, row in self.whole.values().items()
        ]
        found = [
            f"{len(self.whole):,} samples, streamed: no intervals and no tests.",
            render(["", "value", "off by at most"], body),
        ]
        if self.groups:
            found.append(render(["group", "samples", "ece"], _of_groups(self.groups)))
        return found


def _of_groups(groups: Mapping[str, Summary]) -> list[list[str]]:
    return [
        [name, f"{len(one):,}", table.number(one.values()["ece"].value)]
        for name, one in groups.items()
    ]
