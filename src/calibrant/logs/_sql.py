"""A prediction log measured where it lies: a database adds up, and only the summary moves."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..evaluation import Summary
from . import _sql_rows as rows_of
from ._columns import Columns, choose
from ._sql_checks import as_truth, check_apart, check_bound, check_numbers
from ._sql_engines import readable_by_its_engine
from ._sql_files import names_in, unreadable
from ._sql_parts import add_cells, add_marginals, add_predicted
from ._sql_refusals import FILE, NUMBER, refuse, telling
from ._sql_rows import Rows


def summarise_table(
    table: Any,
    *,
    logits: str | Sequence[str] | None = None,
    probabilities: str | Sequence[str] | None = None,
    confidence: str | None = None,
    labels: str | None = None,
    outcome: str | None = None,
    bins: int = 15,
    cells: int = 8192,
) -> Summary:
    """The `Summary` of a table of any size, computed by the engine that holds it.

    - `table`: an Ibis table, on DuckDB, Spark or whatever else Ibis speaks to; or the path of a
      Parquet file, or a glob of several, which DuckDB reads here.
    - `logits` or `probabilities`: a column per class, or one column of arrays, or one column of
      numbers for class 1 of two; with `labels`, a column of class indices.
    - `confidence`: how sure; with `outcome`, whether it happened.
    - `bins`, `cells`: as in `Summary`.

    Columns with the usual names (`logit_0`, `logit_1`, ..., `label`; `confidence`, `outcome`) need
    not be named. Three aggregations run in the engine, one for events; a few thousand rows come
    back. Logits are taken in double precision; probabilities and confidences as they are, so that
    even one on the edge of a bin falls where it falls in memory. Engines do not tell columns apart
    that differ in capitals only: such are refused. Each class makes the queries longer: to plan
    them for a thousand takes about a minute on DuckDB, and four on Spark.

    >>> import tempfile, pyarrow, pyarrow.parquet
    >>> file = tempfile.mkdtemp() + "/log.parquet"
    >>> log = {"confidence": [0.9, 0.8, 0.6, 0.6], "outcome": [1, 1, 1, 0]}
    >>> pyarrow.parquet.write_table(pyarrow.table(log), file)
    >>> summary = summarise_table(file)
    >>> len(summary), round(summary.values()["ece"].value, 4)
    (4, 0.125)
    """
    asked = {
        "logits": logits,
        "probabilities": probabilities,
        "confidence": confidence,
        "labels": labels,
        "outcome": outcome,
    }
    if isinstance(table, str | Path):
        return _of_parquet(str(table), asked, bins, cells)
    ibis = _ibis()
    if not isinstance(table, ibis.Table):
        raise TypeError(
            f"table must be an Ibis table or the path of a Parquet file; got "
            f"{type(table).__name__}. For a data frame pass ibis.memtable(frame)."
        )
    with readable_by_its_engine():
        check_bound(ibis, table)
        return _summarise(ibis, table, table.columns, "the table", asked, bins, cells)


def _ibis() -> Any:
    try:
        return import_module("ibis")
    except ImportError as missing:
        raise ImportError(
            "measuring tables needs Ibis: pip install 'calibrant[sql]' for DuckDB, "
            "or 'calibrant[spark]' for Spark"
        ) from missing


def _of_parquet(path: str, asked: dict[str, Any], bins: int, cells: int) -> Summary:
    if not path:
        raise ValueError("table must be the path of a Parquet file; got an empty text.")
    if os.path.isdir(path):
        raise ValueError(
            f"table must be a Parquet file, or a glob of some; {path} is a folder. For the files "
            f"in it pass {str(Path(path) / '*.parquet')!r}; for a log in parts use "
            f"open_log({path!r}).summary()."
        )
    ibis = _ibis()
    engine = ibis.duckdb.connect()
    failure = import_module("duckdb").Error
    try:
        table = engine.read_parquet(path)

        def numbered() -> Any:
            taken = {FILE, NUMBER} & set(table.columns)
            return table if taken else engine.read_parquet(path, **{FILE: True, NUMBER: True})

        names = names_in(path, table.columns)
        return _summarise(ibis, table, names, Path(path).name, asked, bins, cells, numbered)
    except failure as reason:
        said = unreadable(path, lambda name: engine.read_parquet(name).schema(), failure)
        raise ValueError(said) from reason
    finally:
        engine.disconnect()


def _summarise(
    ibis: Any,
    table: Any,
    names: Sequence[str],
    where: str,
    asked: dict[str, Any],
    bins: int,
    cells: int,
    numbered: Callable[[], Any] | None = None,
) -> Summary:
    """The same for either.

    - `names`: of its columns, as they were written.
    - `numbered`: the table once more, with where each row lies; asked for when some will not do.
    """
    chosen = choose(names, where, asked)
    check_apart(names, chosen, where)
    rows = _rows(ibis, table, chosen)
    summary = Summary(rows.classes, bins=bins, cells=cells)
    if not add_cells(ibis, summary, rows, chosen, where):
        again = table if numbered is None else numbered()
        refuse(_rows(ibis, again, chosen, telling(again, chosen)), chosen, where)
    if rows.classes is not None:
        add_predicted(ibis, summary, rows)
        add_marginals(ibis, summary, rows, rows.classes)
    return summary


def _rows(ibis: Any, table: Any, chosen: Columns, own: tuple[str, ...] = ()) -> Rows:
    """The columns that were chosen, under names that are ours, and what follows from them."""
    given, names = [table[name] for name in chosen.forecast], chosen.forecast
    whole = ibis.literal(True)
    if chosen.kind != "confidence" and len(given) == 1 and given[0].type().is_array():
        (arrays,) = given
        width = _width(table, arrays, chosen)
        whole = arrays.length() == width
        # Where an array is too short, Spark would stop at what it has not.
        given = [ibis.ifelse(whole, arrays[j], None) for j in range(width)]
        names = tuple(f"{names[0]}[{j}]" for j in range(width))
    check_numbers(given, chosen)
    narrow = chosen.kind != "logits" and all(
        x.type().is_float16() or x.type().is_float32() for x in given
    )
    given = [x.cast("float64") for x in given]
    if len(given) == 1 and chosen.kind == "logits":
        given = [ibis.literal(0.0), *given]
    elif len(given) == 1 and chosen.kind == "probabilities":
        chance = rows_of.within(ibis, given[0])
        given = [rows_of.complement(chance, narrow=narrow), chance]
    names = names if len(names) == len(given) else names * len(given)
    told = table.select(
        truth=as_truth(table[chosen.truth], chosen),
        whole=whole,
        **{f"given_{j}": x for j, x in enumerate(given)},
        **{f"own_{k}": table[name] for k, name in enumerate(own)},
    )
    if chosen.kind == "confidence":
        rows = rows_of.of_events(ibis, told, narrow=narrow)
    elif chosen.kind == "logits":
        rows = rows_of.of_logits(ibis, told, len(given))
    else:
        rows = rows_of.of_probabilities(ibis, told, len(given), narrow=narrow)
    return replace(rows, names=names, own=own)


def _width(table: Any, arrays: Any, chosen: Columns) -> int:
    """The length of the first array that is there."""
    lengths = table.filter(arrays.notnull()).select(width=arrays.length())
    first = lengths.limit(1).to_pyarrow()["width"].to_pylist()
    width = int(first[0]) if first else 2
    if width < 2:
        raise ValueError(
            f"the arrays of {chosen.forecast[0]!r} must have a number for each of at least two "
            f"classes; got {width}. Pass single numbers as a column of numbers."
        )
    return width
