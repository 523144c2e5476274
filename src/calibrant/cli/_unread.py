"""Output of which a reader takes no more, as `head` does."""

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any


class _Pipe(io.FileIO):
    """Whatever is written after its reader has left is lost, which is no failure."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


@contextmanager
def unread_is_fine() -> Iterator[None]:
    """A command goes on to its own exit code where nobody reads its output or its errors."""
    with ExitStack() as redirected:
        if (out := _to_pipe(sys.stdout)) is not None:
            redirected.enter_context(redirect_stdout(out))
            redirected.callback(out.flush)
        if (errors := _to_pipe(sys.stderr)) is not None:
            redirected.enter_context(redirect_stderr(errors))
            redirected.callback(errors.flush)
        yield


def _to_pipe(stream: object) -> io.TextIOWrapper | None:
    """The same stream with such an end; nothing where it is not that of the process."""
    if type(stream) is not io.TextIOWrapper or stream.isatty():
        return None
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
    )
