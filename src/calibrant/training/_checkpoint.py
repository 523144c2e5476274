"""A run on disk: written whole or not at all, read without running anybody's code."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from zipfile import is_zipfile

import torch
from torch import nn

from .._writing import written_whole
from ._parallel import gathered

FORMAT = 3

_ANOTHER_FILE = "Name another file, or move this one away."
_FOREIGN_STATE = (
    "A weight or learning-rate schedule whose state_dict holds other things cannot be checkpointed."
)


class Checkpoint:
    """One file that holds a run at its last kept step.

    It is written beside its place and then moved there, so an interruption leaves the old one.
    It is read with `weights_only=True`: tensors, numbers and strings, no code. What is written
    first is read back at once, so that state which could not be read is found out at the
    beginning and not when it is needed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._proven = False
        if self.path.is_dir():
            raise ValueError(
                f"checkpoint must be a file; got the folder {self.path}. Name a file in it."
            )
        if not self.path.parent.is_dir():
            raise ValueError(
                f"checkpoint must be a file in a folder that exists; got {self.path}. "
                f"Make {self.path.parent} first."
            )

    def write(self, state: dict[str, Any]) -> None:
        """Replace the file."""
        with written_whole(self.path) as file:
            torch.save({"format": FORMAT, **state}, file)
            if not self._proven:
                file.seek(0)
                _read(file, f"what a run writes to {self.path}", _FOREIGN_STATE)
                file.seek(0, os.SEEK_END)
                self._proven = True

    def read(self) -> dict[str, Any] | None:
        """What the file holds, or `None` where there is none."""
        if not self.path.exists():
            return None
        with self.path.open("rb") as file:
            if not is_zipfile(file):
                empty = self.path.stat().st_size == 0
                self._refuse("an empty file" if empty else "another kind of file, or half of one")
            file.seek(0)
            state = _read(file, str(self.path), _ANOTHER_FILE)
        if not isinstance(state, dict) or "format" not in state:
            self._refuse("something else")
        if state["format"] != FORMAT:
            self._refuse(f"format {state['format']}")
        return dict(state)

    def _refuse(self, found: str) -> NoReturn:
        raise ValueError(
            f"{self.path} must be a checkpoint of this package, format {FORMAT}; got {found}. "
            f"{_ANOTHER_FILE}"
        )


def _read(file: BinaryIO, name: str, remedy: str) -> Any:
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # what torch makes of a strange file may be any at all
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{name} must hold tensors, numbers and strings; could not be read: {first} {remedy}"
        ) from error


def check_one_file(steps: int | None, together: bool) -> None:
    """All processes that train together must go on from one step, or all begin.

    - `steps`: in the file that this process sees, or `None` if it sees none.
    """
    everyone = gathered(steps, together)
    if any(each != everyone[0] for each in everyone):
        seen = " and ".join("none" if each is None else f"step {each}" for each in everyone)
        raise ValueError(
            f"checkpoint must be one file that every process sees; got {seen}, in the order of "
            "ranks. Name a file on a disk that all of them share."
        )


def check_same_run(
    state: dict[str, Any], run: dict[str, Any], modules: Mapping[str, nn.Module]
) -> None:
    """The run in a checkpoint must be the one that is to go on; nothing is changed before.

    - `run`: what the two must share, by the name it has in a sentence.
    - `modules`: those with parts of the same shapes.
    """
    for name, module in modules.items():
        if _shapes(module.state_dict()) != _shapes(state.get(name, {})):
            _refuse_run(name)
    for name, own in run.items():
        if own != state["run"].get(name):
            _refuse_run(name, f": {state['run'].get(name)}, and here {own}")


def _refuse_run(name: str, shown: str = "") -> NoReturn:
    raise ValueError(
        f"checkpoint must hold a run with the same {name}; got another{shown}. "
        "Name another file to begin anew."
    )


def _shapes(parts: Mapping[str, Any]) -> dict[str, list[int]]:
    # A module may keep other things than tensors, and those have none.
    return {name: list(getattr(part, "shape", ())) for name, part in parts.items()}
