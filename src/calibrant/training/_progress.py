"""A bar in a terminal; silence elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Protocol

from ._parallel import is_first


class Show(Protocol):
    """Called after each step with what to say of it."""

    def __call__(self, said: str, /) -> None: ...


@contextmanager
def progress_bar(steps: int | None, done: int, wanted: bool | None) -> Iterator[Show]:
    """Something to call after each step.

    - `steps`: in all, where the loaders know.
    - `done`: before an interruption.
    - `wanted`: by default a bar is shown by the first process, in a terminal, if rich is
      installed; `False` never shows one, `True` insists, and leaves it there in the end.
    """
    if wanted and not find_spec("rich"):
        raise ValueError("progress=True needs rich; got none. Run: pip install rich")
    if wanted is False or not is_first() or not find_spec("rich"):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    hidden = not (wanted or console.is_terminal)
    with Progress(console=console, transient=wanted is None, disable=hidden) as bar:
        task = bar.add_task("training", total=steps, completed=done)
        yield lambda said: bar.update(task, advance=1, description=said)
