"""What was measured: every number with its interval, to print and to keep."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

from .. import _html as html
from .._json import as_number
from .._writing import written_whole
from . import _table as table
from ._by_name import ByName, check_kept, frame, written
from ._estimates import Estimate


@dataclass(frozen=True, repr=False)
class Evaluation(ByName[Estimate]):
    """One row per score and measure, each with an interval; printed, a table.

    A mapping of the names of the rows: `evaluation["ece"]`, `"nll" in evaluation`, and so on.
    At a prompt it shows the table that it prints.

    - `rows`: by name, in the order of the table.
    - `n`: how many samples.
    - `settings`: what was asked for (`bins`, `draws`, `level`, `seed`).
    - `groups`: an evaluation of each group, by name, where groups were given.

    >>> evaluation = Evaluation({"ece": Estimate(0.05, 0.04, 0.06, 1000)}, 5000, {"draws": 1000})
    >>> evaluation["ece"].value
    0.05
    """

    rows: Mapping[str, Estimate]
    n: int
    settings: Mapping[str, float]
    groups: Mapping[str, "Evaluation"] = field(default_factory=dict)

    @property
    def worst_group(self) -> str | None:
        """The group with the largest lower end of the `ece` interval.

        Ties go to the larger value. The plain value would favour small groups.
        """

        def error(name: str) -> tuple[float, float]:
            ece = self.groups[name]["ece"]
            return ece.low, ece.value

        return max(self.groups, key=error, default=None)

    @property
    def worst_gap(self) -> Estimate | None:
        """The `ece` of the worst group."""
        return None if self.worst_group is None else self.groups[self.worst_group]["ece"]

    def __str__(self) -> str:
        return "\n".join(self._parts(table.plain, str))

    def to_markdown(self) -> str:
        """The same table for a page."""
        return "\n\n".join(self._parts(table.markdown, table.as_it_is))

    def _repr_html_(self) -> str:
        """The same table in a notebook."""
        return "".join(self._parts(html.table, html.paragraph))

    def to_html(self, path: str | PathLike[str], *, title: str = "Evaluation") -> None:
        """The same table as a page of its own, in one file: the whole file or none of it.

        An evaluation holds numbers and no predictions, so there is nothing to draw a diagram
        from; for a page with diagrams give the predictions to `calibrant.report.write_report`.
        """
        with written_whole(path) as file:
            page = html.whole_page(title, self._parts(html.table, html.paragraph))
            file.write(page.encode("utf-8", "replace"))

    def _parts(
        self,
        render: Callable[[list[str], list[list[str]]], str],
        say: Callable[[str], str],
    ) -> list[str]:
        draws = int(self.settings.get("draws", 0))
        percent = f"{100 * self.settings.get('level', 0.95):g}% interval"
        parts = [
            say(f"{self.n:,} samples, {draws:,} draws"),
            render(["", "value", percent, ""], table.lines(self.rows, draws=draws)),
        ]
        if any(map(table.is_outside, self.rows.values())):
            parts.append(say(table.OUTSIDE))
        if self.groups:
            body = [
                [name, f"{one.n:,}", *table.lines({name: one["ece"]}, draws=draws)[0][1:3]]
                for name, one in self.groups.items()
            ]
            parts.append(render(["group", "samples", "ece", percent], body))
            parts.append(say(self._worst()))
        return parts

    def _worst(self) -> str:
        worst = str(self.worst_group)
        gap, of_all = (table.number(one["ece"].value) for one in (self.groups[worst], self))
        named = table.name(worst, among=self.groups)
        return f"worst gap: ece {gap} in {named}, {of_all} in all samples"

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and numbers."""
        found: dict[str, Any] = {
            "n": self.n,
            "settings": dict(self.settings),
            "rows": {name: asdict(row) for name, row in self.rows.items()},
        }
        if self.worst_gap is not None:
            found["groups"] = {name: one.to_dict() for name, one in self.groups.items()}
            named = {"group": self.worst_group, "row": "ece", "of_all": self["ece"].value}
            found["worst_gap"] = named | asdict(self.worst_gap)
        return found

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Evaluation":
        """What `to_dict` gave, or what was read from `to_json`."""
        check_kept(kept, ("rows", "n", "settings"))
        return cls(
            {name: _estimate(**row) for name, row in kept["rows"].items()},
            kept["n"],
            kept["settings"],
            {name: cls.from_dict(one) for name, one in kept.get("groups", {}).items()},
        )

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """As JSON, and into a file where a path is given: the whole file or none of it.

        What is infinite is null there, and `from_dict` reads it as NaN.
        """
        return written(self.to_dict(), path)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line per row (and group)."""
        lines = [{"group": "", "row": name} | asdict(row) for name, row in self.rows.items()]
        for group, one in self.groups.items():
            lines += [{"group": group, "row": name} | asdict(row) for name, row in one.rows.items()]
        if not self.groups:
            lines = [{key: line[key] for key in line if key != "group"} for line in lines]
        return frame(lines)


def _estimate(value: float | None, low: float | None, high: float | None, draws: int) -> Estimate:
    return Estimate(as_number(value), as_number(low), as_number(high), draws)
