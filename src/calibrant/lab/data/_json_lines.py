"""Texts as JSON lines: one object to a line, with a label and one sentence or two."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from .._samples import Texts
from ._files import found, text


@dataclass(frozen=True)
class JsonLines:
    """How texts are written down.

    - `files`: of each part.
    - `fields`: that hold the sentences, one or two.
    - `label`: the field that holds the label.
    - `names`: what stands there for each class in turn; `None` takes the labels of the training
      part in alphabetical order.
    - `unlabelled`: what stands there where no class is right, or nobody could agree on one.
    - `split`: the field that says which part a line belongs to, where one file holds several,
      and what stands there for each part.

    Called with a folder and the name of a part it gives the texts of that part; lines of other
    parts are passed over.
    """

    files: Mapping[str, tuple[str, ...]]
    fields: tuple[str, ...]
    label: str = "label"
    names: tuple[str, ...] | None = None
    unlabelled: tuple[str, ...] = ()
    split: str | None = None
    parts: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, folder: Path, part: str) -> Texts:
        rows = self._rows(folder, part)
        # Labels of the training part name the classes, unless they are known beforehand.
        known = rows if part == "train" or self.names else self._rows(folder, "train")
        names = self.names or sorted({label for _, label, _ in known} - set(self.unlabelled))
        index = {name: number for number, name in enumerate(names)}
        index |= dict.fromkeys(self.unlabelled, -1)
        for where, label, _ in rows:
            if label not in index:
                raise ValueError(
                    f"{where} must have one of {len(names)} labels, such as {names[0]!r}; got "
                    f"{label!r}."
                )
        labels = torch.tensor([index[label] for _, label, _ in rows], dtype=torch.int64)
        return Texts(tuple(texts for _, _, texts in rows), labels)

    def _rows(self, folder: Path, part: str) -> list[tuple[str, str, tuple[str, ...]]]:
        """Of each line of a part where it stands, its label and its sentences."""
        wanted, rows = self.parts.get(part, part), []
        for name in self.files[part]:
            path = found(folder, name)
            for number, line in enumerate(_lines(path), start=1):
                where = f"line {number} of {path}"
                try:
                    row = json.loads(line)
                    if self.split is None or row[self.split] == wanted:
                        texts = tuple(str(row[each]) for each in self.fields)
                        rows.append((where, str(row[self.label]), texts))
                except (json.JSONDecodeError, KeyError, TypeError) as error:
                    raise ValueError(
                        f"{where} must be a JSON object with the fields {self._all_fields()}; "
                        f"could not be read: {error!r}."
                    ) from error
        return rows

    def _all_fields(self) -> str:
        own = (self.split, self.label, *self.fields)
        return ", ".join(each for each in own if each is not None)


def _lines(path: Path) -> list[str]:
    return [line for line in text(path).split("\n") if line.strip()]
