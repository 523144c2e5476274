"""A result as text, on the standard output or in a file."""

import os
import re
from enum import StrEnum
from pathlib import Path
from textwrap import fill

from .._writing import written_whole


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
    for file in read:
        if out is not None and out.exists() and file.exists() and _is_of(out, file):
            within = "" if out.samefile(file) else "in "
            raise ValueError(
                f"--out must not be a file that is read; got {str(out)!r}, which is "
                f"{within}{file.name!r}. Write to another name."
            )


def _is_of(out: Path, file: Path) -> bool:
    """Whether it is that file, or of that folder."""
    return out.samefile(file) or any(parent.samefile(file) for parent in out.absolute().parents)


def write(text: str, out: Path | None) -> None:
    """To the standard output; into a file, the whole text or none of it."""
    if out is None:
        print(text)
    else:
        with written_whole(out) as file:
            file.write(f"{text}\n".encode())
