"""What the columns of a table must hold, and the sentence a person reads when they do not."""

from collections.abc import Sequence
from typing import Any

from .._checks import ROUNDED
from ._columns import Columns
from ._sql_rows import Rows


def check_bound(ibis: Any, table: Any) -> None:
    """A table lies somewhere."""
    try:
        table.get_backend()
    except ibis.common.exceptions.IbisError as wrong:
        raise ValueError(
            "table must be of one connection, which reads it; got one of none, or of several. "
            "Make it by connection.table(name)."
        ) from wrong


def check_apart(names: Sequence[str], chosen: Columns, where: str) -> None:
    """Databases take names that differ in capitals only for one, and read either column."""
    for name in chosen.all:
        alike = [each for each in names if each.lower() == name.lower()]
        if len(alike) > 1:
            raise ValueError(
                f"the columns of {where} must have names that differ by more than capitals, which "
                f"databases do not look at; found {' and '.join(alike)}. Rename one of them."
            )


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
                f"{chosen.kind} must be numbers; got {', '.join(chosen.forecast[:3])} of "
                f"{_spoken(x.type())}. Name other columns, or cast these."
            )


def _spoken(kind: Any) -> str:
    """A type; that of a column without any value has a name in no other place than its engine."""
    return "a type that holds no values" if kind.is_unknown() or kind.is_null() else f"type {kind}"


def faults(rows: Rows, table: Any, chosen: Columns) -> Any:
    """Whether a row will not do: one flag, to be counted in the pass that adds up.

    - `table`: that of `rows`, perhaps with more columns.
    """
    truth = table.truth
    judged = truth.isin([0, 1]) if rows.classes is None else truth.between(0, rows.classes - 1)
    told = {
        "logits": (table.confidence > 0) & (table.confidence <= 1),
        "probabilities": is_normed(table) & _is_finite(table.total),
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


def is_nan(x: Any) -> Any:
    """Whether a number is NaN, found out in the same way."""
    return ~_is_finite(x) & ~x.isinf()


def look_like_probabilities(table: Any) -> tuple[Any, Any]:
    """Of logits: whether a row sums to one, and whether it holds more than zeros and a one."""
    graded = (table.top < 1) & (table.low < table.top)
    return is_normed(table).fill_null(False), graded.fill_null(False)


def is_normed(table: Any) -> Any:
    """Whether a row holds probabilities: none negative, and all together one."""
    return (table.low >= 0) & (table.total - 1 <= ROUNDED) & (1 - table.total <= ROUNDED)


def refuse_probabilities() -> None:
    """They were named as logits."""
    raise ValueError(
        "logits must be unnormalised scores; got rows that are probabilities: none negative, "
        "each sums to one. Name them with probabilities=..."
    )
