"""Signs of life on a terminal; silence where the output goes to a file or a pipe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..logs._log import Progress as Told


@contextmanager
def reading(name: str) -> Iterator[Told | None]:
    """A bar over the rows of a file, gone when it is read."""
    if not sys.stderr.isatty():
        yield None
        return
    name_as_it_is = TextColumn("{task.description}", markup=False)
    columns = (name_as_it_is, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        rows = shown.add_task(name, total=None)
        yield lambda done, total: shown.update(rows, completed=done, total=total)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner over work whose length is unknown."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(what):
        yield
