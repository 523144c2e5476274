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
    place = Path(path)
    handle, draft = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, _usual_mode())
        os.replace(draft, place)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _usual_mode() -> int:
    """What a new file of this user's may be read by: a draft is nobody else's business."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
