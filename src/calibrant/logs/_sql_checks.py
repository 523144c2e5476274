"""What the columns of a table must hold, and the sentence a person reads when they do not."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from .._checks import ROUNDED
from ._columns import Columns
from ._sql_rows import Rows


def as_truth(column: Any, chosen: Columns) -> Any:
    """Class indices as integers; outcomes in double precision."""
    kind = column.type()
    if chosen.kind == "confidence":
        if not (kind.is_numeric() or kind.is_boolean()):
            raise TypeError(
                f"outcome must be 0 or 1, or true or false; got column {chosen.truth!r} of type "
                f"{kind}. Compare it with the right answer first."
            )
        return (column.cast("int64") if kind.is_boolean() else column).cast("float64")
    if not (kind.is_integer() or kind.is_boolean()):
        raise TypeError(
            f"labels must be integers, the index of each true class; got column {chosen.truth!r} "
            f"of type {kind}. Cast it, for instance with table.{chosen.truth}.cast('int64')."
        )
    return column.cast("int64")


def check_numbers(given: Sequence[Any], chosen: Columns) -> None:
    """Forecasts are numbers, whatever their precision."""
    for x in given:
        if not x.type().is_numeric():
            raise TypeError(
                f"{chosen.kind} must be numbers; got {', '.join(chosen.forecast[:3])} of type "
                f"{x.type()}. Name other columns, or cast these."
            )


def faults(rows: Rows, table: Any, chosen: Columns) -> Any:
    """Whether a row will not do: one flag, to be counted in the pass that adds up.

    - `table`: that of `rows`, perhaps with more columns.
    """
    truth = table.truth
    judged = truth.isin([0, 1]) if rows.classes is None else truth.between(0, rows.classes - 1)
    told = {
        "logits": (table.confidence > 0) & (table.confidence <= 1),
        "probabilities": _normed(table) & _is_finite(table.total),
        "confidence": (table.low >= 0) & (table.top <= 1) & _is_finite(table.confidence),
    }[chosen.kind]
    # What is compared with a missing value is null; NaN is above every number, or fails.
    return ~(table.whole & judged & told).fill_null(False)


def _is_finite(x: Any) -> Any:
    """Whether a number is neither infinite nor NaN, by arithmetic.

    What Parquet files say of their columns leaves NaN out, and DuckDB believes them: it finds
    that all are at most one, and that none is NaN, without a look.
    """
    return x - x == 0


def _is_nan(x: Any) -> Any:
    return ~_is_finite(x) & ~x.isinf()


def look_like_probabilities(table: Any) -> tuple[Any, Any]:
    """Of logits: whether a row sums to one, and whether it holds more than zeros and a one."""
    graded = (table.top < 1) & (table.low < table.top)
    return _normed(table).fill_null(False), graded.fill_null(False)


def _normed(table: Any) -> Any:
    return (table.low >= 0) & (table.total - 1 <= ROUNDED) & (1 - table.total <= ROUNDED)


def refuse_probabilities() -> None:
    """They were named as logits."""
    raise ValueError(
        "logits must be unnormalised scores; got rows that are probabilities: none negative, "
        "each sums to one. Name them with probabilities=..."
    )


def refuse(rows: Rows, chosen: Columns, where: str) -> None:
    """Find out, in another pass, what is wrong with the rows that will not do, and say so."""
    table, kind = rows.table, chosen.kind
    given = [table[f"given_{j}"] for j in range(rows.classes or 1)]
    flags = {
        "broken": ~table.whole,
        "missing": reduce(or_, (x.isnull() for x in [*given, table.truth])),
        "nan": reduce(or_, (_is_nan(x) for x in [*given, table.confidence])),
        "odd": ~table.truth.isin([0, 1]),
    }
    found = table.aggregate(
        **{name: flag.cast("int64").sum() for name, flag in flags.items()},
        truth_low=table.truth.min(),
        truth_high=table.truth.max(),
        low=table.low.min(),
        high=table.top.max(),
        least=table.total.min(),
        most=table.total.max(),
    ).to_pyarrow()
    seen = found.to_pylist()[0]
    low, high = seen["truth_low"], seen["truth_high"]
    if seen["broken"]:
        raise ValueError(
            f"the arrays of {chosen.forecast[0]!r} must have one length, the number of classes; "
            f"got {seen['broken']:,} rows of another than the first. Leave such rows out."
        )
    if seen["missing"]:
        raise ValueError(
            f"{where} must have a value in every row of its {kind} and of {chosen.truth!r}; "
            f"got {seen['missing']:,} rows without. Leave such rows out."
        )
    if seen["nan"]:
        raise ValueError(
            f"{kind} must hold numbers; got NaN, or infinity where it has no meaning, in "
            f"{seen['nan']:,} rows. Leave such rows out, or find where they come from."
        )
    if rows.classes is None and seen["odd"]:
        raise ValueError(
            f"outcome must be 0 or 1, whether each event happened; got {low:g} to {high:g} in "
            f"{chosen.truth!r}."
        )
    if rows.classes is not None and (low < 0 or high >= rows.classes):
        raise ValueError(
            f"labels must lie between 0 and {rows.classes - 1}, since {kind} have {rows.classes} "
            f"classes; got {low if low < 0 else high} in {chosen.truth!r}. "
            "Classes count from 0; leave out ignored positions first."
        )
    if kind == "confidence":
        raise ValueError(
            f"confidence must lie between 0 and 1; got {seen['low']:.3g} to {seen['high']:.3g}. "
            "For percentages divide by 100; for log-odds take the sigmoid."
        )
    off = max(seen["most"] - 1, 1 - seen["least"])
    raise ValueError(
        f"{kind} must not be negative and each row must sum to one; got values from "
        f"{seen['low']:.3g} to {seen['high']:.3g}, a row off by {off:.3g}. If these are logits, "
        "name them with logits=..."
    )
