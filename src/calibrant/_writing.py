"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write into, which takes its place once everything is in it.

    Until then, and after an error, the place holds what it held before: a reader never meets
    half a file, and an interruption loses nothing.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "note.txt"
    ...     with written_whole(place) as file:
    ...         _ = file.write(b"all of it")
    ...     place.read_text()
    'all of it'
    """
    place = Path(os.path.realpath(path))  # a link stays one, and its target is written
    if place.exists() and not place.is_file():
        raise ValueError(f"{path} must be a file that can be written anew; it is something else.")
    try:
        handle, draft = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    except OSError as wrong:  # of the draft, of which nobody has heard
        raise OSError(wrong.errno, wrong.strerror, os.fspath(path)) from None
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, place.stat().st_mode & 0o777 if place.exists() else _usual_mode())
        os.replace(draft, place)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _usual_mode() -> int:
    """What a new file of this user's may be read by: a draft is nobody else's business."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
