"""Why Parquet files could not be read by a database, in words that are not its own."""

import os
from collections.abc import Callable, Sequence
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any


def names_in(path: str, found: Sequence[str]) -> list[str]:
    """What a file calls its columns. Of two that differ in capitals only, DuckDB renames one.

    - `found`: what DuckDB calls them, and those that it adds for folders.
    """
    failures = (import_module("pyarrow").ArrowException, OSError, UnicodeDecodeError)
    files = _files(path)
    try:
        own = import_module("pyarrow.parquet").read_schema(files[0]).names if files else []
    except failures:
        own = []
    return [*own, *found[len(own) :]]


def _files(path: str) -> list[str]:
    if os.path.isfile(path):  # whose name may hold signs that mean more in a glob
        return [path]
    return sorted(name for name in glob(path, recursive=True) if Path(name).is_file())


def unreadable(path: str, schema: Callable[[str], Any], failure: type[Exception]) -> str:
    """The sentence for files of which an engine has said that it cannot read them.

    - `path`: of a file, or a glob of several. `schema`: the columns of one file, with their types,
      or a `failure`.
    """
    if "://" in path:
        return (
            f"{path} must be a Parquet file that can be read from here; reading failed. Fetch it "
            "first, and pass the file."
        )
    files = _files(path)
    if not files:
        return f"{path} must be a Parquet file, or a glob of some; there is none."
    first = None
    for name in files:
        found = _schema_of(name, schema, failure)
        if found is None:
            return (
                f"{name} must be a whole Parquet file; it is cut short, damaged or something else. "
                "Write it again, or leave it out."
            )
        first = found if first is None else first
        if found != first:
            return (
                f"the files of {path} must have the same columns of the same types; {name} differs "
                f"from {files[0]}. Pass files that agree."
            )
    return (
        f"{path} must hold values that fit the types of their columns, and can be read; some are "
        "too large, or damaged. Write it again with other types, or from the source."
    )


def _schema_of(name: str, schema: Callable[[str], Any], failure: type[Exception]) -> Any:
    try:
        return schema(name)
    except failure:
        return None
