"""One file from the network, whole or not at all."""

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

BLOCK = 2**20
# What a server answers that sends a part of a file, or that has nothing from that place on.
PARTIAL, BEYOND = 206, 416


def fetch(url: str, path: Path, checksum: str, *, progress: bool = True) -> None:
    """A file from the network, whole and with the given checksum, or not at all.

    - `checksum`: `md5:` or `sha256:` and the digest.

    What has come when the connection ends is kept beside its place, and the next attempt goes on
    from there.
    """
    draft = path.with_name(f".{path.name}.part")
    if not (draft.exists() and _digest(draft, checksum) == checksum):
        _receive(url, path, draft, progress)
    try:
        check_digest(draft, checksum, url)
    except ValueError:
        draft.unlink()  # else the next attempt would go on from it
        raise
    draft.replace(path)


def check_digest(path: Path, checksum: str, url: str) -> None:
    """Refuse a file that is not the one that was published."""
    digest = _digest(path, checksum)
    if digest != checksum:
        kind, _, expected = checksum.partition(":")
        raise ValueError(
            f"{path} must have the {kind} checksum {expected}, as published for {url}; got "
            f"{digest.removeprefix(f'{kind}:')}. It is damaged or another file; remove it and "
            "fetch it again."
        )


def _digest(path: Path, checksum: str) -> str:
    """The checksum of a file, of the kind that another is."""
    kind = checksum.partition(":")[0]
    with open(path, "rb") as file:
        return f"{kind}:{hashlib.file_digest(file, kind).hexdigest()}"


def _receive(url: str, path: Path, draft: Path, progress: bool) -> None:
    """Append to the draft what it lacks."""
    with _answer(url, path, draft) as answer:
        begun = draft.stat().st_size if answer.status == PARTIAL else 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else int(length) + begun
        cut = None
        with (
            open(draft, "ab" if begun else "wb") as file,
            _bar(path.name, total, begun, progress) as show,
        ):
            try:
                while block := answer.read(BLOCK):
                    file.write(block)
                    show(len(block))
            except (ConnectionError, TimeoutError, http.client.IncompleteRead) as error:
                cut = error
    have = draft.stat().st_size
    if cut is not None or (total is not None and have < total):
        raise ConnectionError(
            f"{url} must be received whole; the connection ended after {have:,}"
            f"{'' if total is None else f' of {total:,}'} bytes. They are kept: the same again "
            "goes on from there."
        ) from cut


def _answer(url: str, path: Path, draft: Path) -> Any:
    """What a server sends of a file, from the end of the draft on."""
    have = draft.stat().st_size if draft.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        return urllib.request.urlopen(request, timeout=60)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        if have and getattr(error, "code", None) == BEYOND:
            draft.unlink()  # as long as the file or longer, and not the file
            return _answer(url, path, draft)
        raise ConnectionError(
            f"{url} must be reachable; it is not: {error}. Fetch it elsewhere, and put it at "
            f"{path}."
        ) from error


@contextmanager
def _bar(
    name: str, total: int | None, done: int, wanted: bool
) -> Iterator[Callable[[int], object]]:
    """Something to call with the number of bytes that have come."""
    if not wanted or not find_spec("rich"):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=total, completed=done)
        yield lambda count: bar.update(task, advance=count)
