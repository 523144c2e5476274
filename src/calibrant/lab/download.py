"""Fetch the files of a data set, where there is a network."""

import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any

from .._writing import written_whole
from ._fetch import BLOCK, check_digest, fetch
from .data import DATASETS, Dataset, Source
from .data._files import found


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
        names = dict.fromkeys(name for own in dataset.files.values() for name in own)
        raise ValueError(
            f"{dataset.name} cannot be downloaded by a program; {place} must hold "
            f"{', '.join(names)}. {dataset.advice}".strip()
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
        check_digest(archive, source.checksum, source.url)
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
