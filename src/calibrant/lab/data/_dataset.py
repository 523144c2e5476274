"""What there is to know about a data set before any of it is read."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from .._samples import Content
from ..augment import Augmentation
from ._files import found


@dataclass(frozen=True)
class Source:
    """A file to fetch.

    - `url`: where from.
    - `checksum`: `md5:` or `sha256:` and the digest, as its publisher or several users of it
      state it.
    - `place`: where it goes, relative to the folder.
    - `members`: for an archive, which files are taken out of it, relative to the folder.
    """

    url: str
    checksum: str
    place: str
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset(Generic[Content]):
    """A data set: its files, its splits, and what the papers do with it.

    - `classes`: how many there are.
    - `sizes`: of the training, validation and test split. Where no file holds the validation
      split, it is drawn from the training file.
    - `files`: those of each part (`train`, `test`, perhaps `validation`, and shifts by their
      names), relative to the folder.
    - `read`: gives the samples of a part, from the folder.
    - `model`: the one that the papers train on it.
    - `sources`: where the files come from; none where they cannot be fetched by anyone.
    - `augmentation`: of images.
    - `length`: of texts, in tokens.
    - `advice`: what to do about a missing file, where there are no sources.
    """

    name: str
    classes: int
    sizes: tuple[int, int, int]
    files: Mapping[str, tuple[str, ...]]
    read: Callable[[Path, str], Content]
    model: str
    sources: tuple[Source, ...] = ()
    augmentation: Augmentation | None = None
    length: int | None = None
    advice: str = ""

    @property
    def shifts(self) -> tuple[str, ...]:
        """The parts that come from elsewhere."""
        return tuple(part for part in self.files if part not in ("train", "validation", "test"))

    def check_files(self, folder: Path) -> None:
        """Every file must be there; a sentence says which is not, and where it comes from."""
        if not folder.is_dir():
            raise FileNotFoundError(
                f"the folder of {self.name} must exist; got {folder}. {self._remedy(folder)}"
            )
        for names in self.files.values():
            for name in names:
                try:
                    found(folder, name)
                except FileNotFoundError as error:
                    raise FileNotFoundError(f"{error} {self._remedy(folder)}") from error

    def _remedy(self, folder: Path) -> str:
        if not self.sources:
            return self.advice or "Put it there."
        urls = ", ".join(source.url for source in self.sources)
        return (
            f"Where there is a network: calibrant study data {self.name} --data "
            f"{shlex.quote(str(folder))}; elsewhere put there what {urls} holds."
        )
