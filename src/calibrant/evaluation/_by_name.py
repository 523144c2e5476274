"""Results whose rows are looked up by name; at a prompt they show the table they print."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from os import PathLike
from typing import Any, TypeVar

from .._json import as_json
from .._writing import written_whole

Row = TypeVar("Row")


class ByName(Mapping[str, Row]):
    """A mapping of the names of its rows, in the order of the table."""

    rows: Mapping[str, Row]

    def __getitem__(self, name: str) -> Row:
        if name not in self.rows:
            raise KeyError(f"no row is called {name!r}; there are {', '.join(self.rows)}.")
        return self.rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return str(self)


def check_kept(kept: Mapping[str, Any], parts: Iterable[str]) -> None:
    """What a `to_dict` gave, which has all of these parts."""
    if missing := [part for part in parts if part not in kept]:
        raise ValueError(
            f"kept must be what to_dict gave; got nothing under {missing[0]!r}. For text of "
            "to_json pass json.loads(text)."
        )


def written(told: dict[str, Any], path: str | PathLike[str] | None) -> str:
    """As JSON, and into a file where a path is given: the whole file or none of it."""
    text = as_json(told) + "\n"
    if path is not None:
        with written_whole(path) as file:
            file.write(text.encode())
    return text


def frame(lines: list[dict[str, Any]]) -> Any:
    """A pandas DataFrame of these lines."""
    try:
        pandas: Any = import_module("pandas")
    except ImportError as missing:
        raise ImportError("to_frame needs pandas: pip install 'calibrant[frame]'") from missing
    return pandas.DataFrame(lines)
