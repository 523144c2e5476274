"""A summary as one safetensors file, with its settings as JSON; no pickle."""

import json
from hashlib import sha256
from os import PathLike
from typing import TYPE_CHECKING, Any

from safetensors.torch import save
from torch import Tensor

from .._writing import written_whole
from ..recalibration._persistence import contents

if TYPE_CHECKING:
    from ._summary import Summary

FORMAT = "calibrant-summary"
VERSION = 1


def write(summary: "Summary", path: str | PathLike[str]) -> None:
    """All of it or nothing: a reader never meets half a file."""
    settings = json.dumps(
        {"classes": summary.classes, "bins": summary.bins, "cells": summary.cells}
    )
    state = {name: part.cpu().contiguous() for name, part in summary.state.items()}
    told = {
        "format": FORMAT,
        "version": str(VERSION),
        "settings": settings,
        "digest": _digest(settings, state),
    }
    with written_whole(path) as file:
        file.write(save(state, metadata=told))


def read(kind: type["Summary"], path: str | PathLike[str]) -> "Summary":
    """The summary that `write` wrote, to the last bit."""
    told, state = contents(path)
    if told.get("format") != FORMAT:
        raise ValueError(
            f"{path} must be a file that Summary.save wrote; got another safetensors file. "
            "For a recalibrator call Recalibrator.load."
        )
    version = told.get("version", "")
    if version != str(VERSION):
        raise ValueError(
            f"{path} must have version {VERSION} of the format; got {version!r}. "
            "Update calibrant to read it."
        )
    settings = told.get("settings", "")
    try:
        summary = kind(**json.loads(settings))
    except (TypeError, ValueError) as wrong:
        raise _not_whole(path, f"settings of none ({wrong})") from wrong
    if _kinds(state) != _kinds(summary.state):
        raise _not_whole(path, "the sums of one with other settings")
    if told.get("digest") != _digest(settings, state):
        raise _not_whole(path, "one that was changed after it was written")
    summary.state = {name: state[name] for name in summary.state}
    return summary


def _digest(settings: str, state: dict[str, Tensor]) -> str:
    """Of everything that a summary is made from, so that no number changes unnoticed."""
    digest = sha256(settings.encode())
    for name, part in sorted(state.items()):
        digest.update(name.encode())
        digest.update(part.numpy().tobytes())
    return digest.hexdigest()


def _kinds(state: dict[str, Tensor]) -> dict[str, Any]:
    return {name: (part.dtype, part.shape) for name, part in state.items()}


def _not_whole(path: str | PathLike[str], found: str) -> ValueError:
    return ValueError(f"{path} must hold a whole summary; got {found}. Save it again.")
