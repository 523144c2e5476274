"""What an engine raises when it cannot read a table, in words that are not its own."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

# By these PySpark writes hundreds of lines of Java for each error, beside raising it.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_WARNING = "toPandas attempted Arrow optimization"


@contextmanager
def readable_by_its_engine() -> Iterator[None]:
    """One sentence for whatever DuckDB or Spark raises, if somebody has imported them."""
    try:
        with _spark_in_silence():
            yield
    except _raised("duckdb", "Error") as reason:
        raise _unreadable("DuckDB") from reason
    except (*_raised("pyspark.errors", "PySparkException"), *_raised("py4j.protocol", "Py4JError")):
        # The traces of Java would stand above the sentence, and hide it.
        raise _unreadable("Spark") from None


def _raised(module: str, name: str) -> tuple[type[Exception], ...]:
    found = sys.modules.get(module)
    return () if found is None else (getattr(found, name),)


def _unreadable(engine: str) -> ValueError:
    return ValueError(
        f"table must be one that its engine can read to the end; {engine} could not. Look at "
        "table.execute(), which fails alike: a file may be gone or damaged, a value not fit the "
        "type it is cast to, or the connection be closed."
    )


@contextmanager
def _spark_in_silence() -> Iterator[None]:
    module: Any = sys.modules.get("pyspark.logger")
    with warnings.catch_warnings(), ExitStack() as after:
        warnings.filterwarnings("ignore", _WARNING, UserWarning)
        for name in _LOGGERS if module else ():
            logger = module.PySparkLogger.getLogger(name)
            after.callback(setattr, logger, "disabled", logger.disabled)
            logger.disabled = True
        yield
