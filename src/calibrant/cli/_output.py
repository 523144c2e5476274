"""A result as text, on the standard output or in a file."""

import os
import re
from enum import StrEnum
from pathlib import Path
from textwrap import fill

from .._writing import written_whole
from ..logs._part_files import ENDINGS, parts_in


class Format(StrEnum):
    """How a result is written."""

    table = "table"
    markdown = "markdown"
    json = "json"


def wrapped(text: str) -> str:
    """A paragraph in lines of at most 80 columns, in none of which a p-value ends halfway.

    >>> print(wrapped("word " * 17))
    word word word word word word word word word word word word word word word word
    word
    """
    tied = re.sub(r"\bp ([=<]) ", "p\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", text)
    lines = fill(tied, 80, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\N{NO-BREAK SPACE}", " ")


def check_writable(out: Path | None) -> None:
    """Before the work, so that none is lost."""
    if out is None:
        return
    if out.is_dir() or not out.parent.is_dir():
        raise ValueError(f"--out must be a file in a folder that exists; got {str(out)!r}.")
    if not os.access(out.parent, os.W_OK):
        raise ValueError(
            f"--out must be in a folder that you may write to; got {str(out)!r}. Name another."
        )


def check_apart(out: Path | None, *read: Path) -> None:
    """What is read must still be there afterwards, by whatever name `out` calls it."""
    if out is None:
        return
    for file in read:
        if os.path.isdir(file) and _is_part(out, file):
            raise ValueError(
                f"--out must not be a Parquet file of a folder that is read; got {str(out)!r}, "
                f"which belongs to {str(file)!r}. Write to another folder."
            )
        if os.path.exists(out) and os.path.exists(file) and out.samefile(file):
            raise ValueError(
                f"--out must not be a file that is read; got {str(out)!r}, which is {file.name!r}. "
                "Write to another name."
            )


def _is_part(out: Path, folder: Path) -> bool:
    """Whether it is one of the files of a folder, or would be one from then on."""
    place = Path(os.path.realpath(out))  # where a link leads is what would be written
    if place.suffix.lower() in ENDINGS and any(above.samefile(folder) for above in place.parents):
        return True
    return place.is_file() and str(place) in map(os.path.realpath, parts_in(folder))


def write(text: str, out: Path | None) -> None:
    """To the standard output; into a file, the whole text or none of it."""
    if out is None:
        print(text)
    else:
        with written_whole(out) as file:
            file.write(f"{text}\n".encode())
