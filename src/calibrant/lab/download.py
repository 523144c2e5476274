"""Fetch the files of a data set, where there is a network."""

import hashlib
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import IO, Any

from .._writing import written_whole
from .data import DATASETS, Dataset, Source
from .data._files import found

BLOCK = 2**20


def download(
    dataset: str | Dataset[Any], folder: str | PathLike[str], *, progress: bool = True
) -> list[Path]:
    """Put the files of a data set where `load` looks for them; returns those that were fetched.

    - `dataset`: a name in `DATASETS`, or a `Dataset`.
    - `folder`: made if it is not there. Files that are there already are left alone.
    - `progress`: whether to show a bar, in a terminal, if rich is installed.

    What has been fetched must have the published checksum, and takes its place only then. After
    an interruption it goes on where it stopped, if the server can.
    """
    if isinstance(dataset, str):
        if dataset not in DATASETS:
            raise ValueError(
                f"dataset must be one of {', '.join(sorted(DATASETS))}; got {dataset!r}."
            )
        dataset = DATASETS[dataset]
    place = Path(folder)
    if not dataset.sources:
        raise ValueError(
            f"{dataset.name} cannot be downloaded by a program. {dataset.advice}".strip()
        )
    place.mkdir(parents=True, exist_ok=True)
    fetched = []
    for source in dataset.sources:
        if not all(_is_there(place, name) for name in source.members or (source.place,)):
            fetched += _put(source, place, progress)
    return fetched


def _is_there(folder: Path, name: str) -> bool:
    try:
        return bool(found(folder, name.removesuffix(".gz")))
    except FileNotFoundError:
        return False


def _put(source: Source, folder: Path, progress: bool) -> list[Path]:
    """Fetch a source, and take out of it what is wanted."""
    archive = folder / source.place
    archive.parent.mkdir(parents=True, exist_ok=True)
    if not archive.exists():
        fetch(source.url, archive, source.checksum, progress=progress)
    else:
        _check(archive, source.checksum, source.url)
    for name in source.members:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with _member(archive, name) as packed, written_whole(folder / name) as file:
            while block := packed.read(BLOCK):
                file.write(block)
    return [folder / name for name in source.members or (source.place,)]


@contextmanager
def _member(archive: Path, name: str) -> Iterator[IO[bytes]]:
    """One file of an archive, found by its whole name; nothing else is taken out."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as box, box.open(name) as packed:
                yield packed
            return
        with tarfile.open(archive) as tape:
            taken = tape.extractfile(name)
            if taken is None:
                raise KeyError(f"{name} is not a file")
            with taken:
                yield taken
    except (KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise ValueError(f"{archive} must hold {name}; could not be read: {error}.") from error


def fetch(url: str, path: Path, checksum: str, *, progress: bool = True) -> None:
    """A file from the network, whole and with the given checksum, or not at all.

    - `checksum`: `md5:` or `sha256:` and the digest.
    """
    draft = path.with_name(f".{path.name}.part")
    have = draft.stat().st_size if draft.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            goes_on = answer.status == 206
            length = answer.headers.get("Content-Length")
            total = None if length is None else int(length) + (have if goes_on else 0)
            with (
                open(draft, "ab" if goes_on else "wb") as file,
                _bar(path.name, total, have if goes_on else 0, progress) as show,
            ):
                while block := answer.read(BLOCK):
                    file.write(block)
                    show(len(block))
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise ConnectionError(
            f"{url} must be reachable; it is not: {error}. Fetch it elsewhere, and put it at "
            f"{path}."
        ) from error
    try:
        _check(draft, checksum, url)
    except ValueError:
        draft.unlink()  # else the next attempt would go on from it
        raise
    draft.replace(path)


def _check(path: Path, checksum: str, url: str) -> None:
    kind, _, expected = checksum.partition(":")
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, kind).hexdigest()
    if digest != expected:
        raise ValueError(
            f"{path} must have the {kind} checksum {expected}, as published for {url}; got "
            f"{digest}. It is damaged or another file; remove it and fetch it again."
        )


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
