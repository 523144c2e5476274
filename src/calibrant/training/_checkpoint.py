"""A run on disk: written whole or not at all, read without running anybody's code."""

import os
import pickle
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import nn
from torch.optim import Optimizer

from .._writing import written_whole

FORMAT = 1


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
                _read(file, self.path)
                file.seek(0, os.SEEK_END)
                self._proven = True

    def read(self) -> dict[str, Any] | None:
        """What the file holds, or `None` where there is none."""
        if not self.path.exists():
            return None
        state = _read(self.path, self.path)
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise ValueError(
                f"{self.path} must be a checkpoint of this package, format {FORMAT}; got "
                "something else. Name another file, or move this one away."
            )
        return state


def _read(source: Path | BinaryIO, path: Path) -> Any:
    try:
        return torch.load(source, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{path} must hold tensors, numbers and strings, written by a run; could not be read: "
            f"{first} A weight or learning-rate schedule whose state_dict holds other things "
            "cannot be checkpointed."
        ) from error


def check_same_run(
    state: dict[str, Any], procedure: str, model: nn.Module, optimiser: Optimizer, ranks: int
) -> None:
    """The run in a checkpoint must be the one that is to go on; nothing is changed before."""
    shapes = {name: list(part.shape) for name, part in model.state_dict().items()}
    groups = [len(group["params"]) for group in optimiser.param_groups]
    ours = {
        "procedure": procedure,
        "model": shapes,
        "optimiser": [type(optimiser).__name__, groups],
        "processes": ranks,
    }
    theirs = {
        "procedure": state["procedure"],
        "model": {name: list(part.shape) for name, part in state["model"].items()},
        "optimiser": state["optimiser_kind"],
        "processes": len(state["ranks"]),
    }
    for name, own in ours.items():
        if own != theirs[name]:
            shown = "" if name == "model" else f": {theirs[name]}, and here {own}"
            raise ValueError(
                f"checkpoint must hold a run with the same {name}; got another{shown}. "
                "Name another file to begin anew."
            )
