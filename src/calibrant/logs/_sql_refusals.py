"""What is wrong with a table whose rows will not do, and which row to look at."""

import re
from dataclasses import dataclass
from functools import reduce
from math import inf, isnan
from operator import or_
from typing import Any, NoReturn

from .._text import short, shown
from ._columns import Columns
from ._sql_checks import is_nan, is_normed
from ._sql_rows import Rows
from ._values import near

# Where DuckDB says a row of a Parquet file lies.
FILE, NUMBER = "filename", "file_row_number"
# Names of columns by which people find a row again, how many are told, and how much of a value.
_TELLING = re.compile(r"(.*[_ .-])?(id|key|uuid|guid|index|number|row|time|timestamp|date)", re.I)
_MOST, _WIDEST = 3, 40


def telling(table: Any, chosen: Columns) -> tuple[str, ...]:
    """The columns that tell one row from another; none where there are none beside the rest."""
    if {FILE, NUMBER} <= set(table.columns):
        return FILE, NUMBER
    others = [name for name in table.columns if name not in chosen.all and _is_name(table[name])]
    return tuple([name for name in others if _TELLING.fullmatch(name)] or others)[:_MOST]


def _is_name(column: Any) -> bool:
    kind = column.type()
    return bool(kind.is_integer() or kind.is_string() or kind.is_temporal() or kind.is_uuid())


def refuse(rows: Rows, chosen: Columns, where: str) -> NoReturn:
    """Find out in two more passes what is wrong, and with which row, and say so.

    - `rows`: with the columns that tell one from another.
    """
    table, classes = rows.table, rows.classes
    given = [table[f"given_{j}"] for j in range(classes or 1)]
    truth = table.truth.isin([0, 1]) if classes is None else table.truth.between(0, classes - 1)
    chances = (table.low >= 0) & (table.top <= 1) if classes is None else is_normed(table)
    flags = {
        "broken": ~table.whole,
        # As text, since to Ibis NaN is null on Spark.
        "missing": reduce(or_, (x.cast("string").isnull() for x in [*given, table.truth])),
        "nan": reduce(or_, (is_nan(x) for x in [*given, table.confidence])),
        "truth": ~truth,
        "chances": ~chances,
    }
    counts = table.aggregate(**{name: flag.cast("int64").sum() for name, flag in flags.items()})
    seen = counts.to_pyarrow().to_pylist()[0]
    fault = next(name for name in flags if seen[name])
    bad = Bad.of(rows, chosen, table.filter(flags[fault]), seen[fault])
    raise ValueError(_sentence(fault, bad, where))


@dataclass(frozen=True)
class Bad:
    """One of the rows that will not do: its values, and how many there are.

    - `given`, `truth`: its forecasts, by class, and what was true.
    - `own`: what tells it from others, by column.
    """

    rows: Rows
    chosen: Columns
    given: list[Any]
    truth: Any
    own: dict[str, Any]
    times: int

    @staticmethod
    def of(rows: Rows, chosen: Columns, bad: Any, times: int) -> "Bad":
        """The first of them, or any where nothing puts them in order."""
        numbers = ["truth", *(f"given_{j}" for j in range(rows.classes or 1))]
        own = {name: f"own_{k}" for k, name in enumerate(rows.own)}
        ordered = bad.order_by(list(own.values())) if own else bad
        # As text, since NaN would come back from Spark as nothing.
        told = {name: ordered[name].cast("string") for name in numbers}
        found = ordered.select(*own.values(), **told).limit(1).to_pyarrow().to_pylist()[0]
        truth, *given = (None if found[name] is None else float(found[name]) for name in numbers)
        place = {name: found[column] for name, column in own.items()}
        return Bad(rows, chosen, given, truth, place, times)

    @property
    def place(self) -> str:
        """Where people find it: by its place in a file, by its identifier, or else by its truth."""
        if {FILE, NUMBER} <= self.own.keys():
            file = shown(re.split(r"[/\\]", str(self.own[FILE]))[-1])
            where = f"in row {self.own[NUMBER]} (counted from 0) of {file}"
        else:
            named = self.own or {self.chosen.truth: self.truth}
            where = "where " + " and ".join(f"{x} is {_told(value)}" for x, value in named.items())
        return f"{where}, {self.such}"

    @property
    def such(self) -> str:
        """Of how many it is one."""
        if self.times == 1:
            return "the only such row"
        return f"{'the first' if self.own else 'one'} of {self.times:,} such rows"

    @property
    def empty(self) -> str:
        """The column of its forecasts that has no value."""
        return self.rows.names[self.given.index(None)]


def _told(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return short(shown(repr(value) if isinstance(value, str) else str(value)), _WIDEST)


def _sentence(fault: str, bad: Bad, where: str) -> str:
    kind, truth, classes = bad.chosen.kind, bad.chosen.truth, bad.rows.classes
    # A label that is wrong itself is no help in finding its row.
    judged = f" {bad.place}" if bad.own else f", {bad.such}"
    if fault == "broken":
        return (
            f"the arrays of {bad.chosen.forecast[0]!r} must have one length, the number of "
            f"classes; got another than that of the first {bad.place}. Leave such rows out."
        )
    if fault == "missing":
        empty, place = (truth, judged) if bad.truth is None else (bad.empty, f" {bad.place}")
        return (
            f"{where} must have a value in every row of its {kind} and of {truth!r}; got none in "
            f"{empty!r}{place}. Leave such rows out."
        )
    if fault == "nan":
        return (
            f"{kind} must hold numbers; got {_no_number(bad)} {bad.place}. Leave such rows out, or "
            "find where they come from."
        )
    if fault == "truth" and classes is None:
        return (
            f"outcome must be 0 or 1, whether each event happened; got {bad.truth:g} in "
            f"{truth!r}{judged}."
        )
    if fault == "truth":
        return (
            f"labels must lie between 0 and {len(bad.given) - 1}, since {kind} have {classes} "
            f"classes; got {bad.truth:.0f} in {truth!r}{judged}. Classes count from 0; leave out "
            "ignored positions first."
        )
    if classes is None:
        return (
            f"confidence must lie between 0 and 1; got {near(bad.given[0])} {bad.place}. For "
            "percentages divide by 100; for log-odds take the sigmoid."
        )
    low, high, total = min(bad.given), max(bad.given), sum(bad.given)
    return (
        f"{kind} must not be negative and each row must sum to one; got values from {low:.3g} to "
        f"{high:.3g} with a sum of {total:.6g} {bad.place}. If these are logits, name them with "
        "logits=..."
    )


def _no_number(bad: Bad) -> str:
    """What stands where a number should, and in which column."""
    for word, is_it in (("NaN", isnan), ("infinity", inf.__eq__)):
        wrong = [name for name, x in zip(bad.rows.names, bad.given, strict=True) if is_it(x)]
        if wrong:
            return f"{word} in {wrong[0]!r}"
    return "minus infinity in every class"
