"""A trial as it was typed, and how it went."""

import json as plain_json
import sys
from math import isfinite, nan
from pathlib import Path
from typing import Any

from ..lab import Store, Trial, run_trial
from ..training import Epoch


def run(trial: Trial, data: Path | None, device: str, out: Path) -> dict[str, Any]:
    """Run a trial and return its row; in a terminal every epoch is told."""
    begun: list[Epoch] = []

    def told(epoch: Epoch) -> None:
        begun.append(epoch)
        if sys.stderr.isatty():
            print(epoch, file=sys.stderr, flush=True)

    try:
        return run_trial(trial, data, Store(out), device=device, after_epoch=told, out=out)
    except RuntimeError as wrong:
        if begun:  # model and data did go together
            raise
        raise ValueError(
            f"MODEL must be one that can be trained on {trial.data}; {trial.model} cannot: "
            f"{str(wrong).splitlines()[0].rstrip('.')}. Choose another."
        ) from wrong


def weight_of(given: str | None) -> float | str | None:
    """The weight of calibration as it was typed.

    >>> weight_of("0.5"), weight_of("adaptive")
    (0.5, 'adaptive')
    """
    if given is None or given == "adaptive":
        return given
    try:
        weight = float(given)
    except ValueError:
        weight = nan
    if not isfinite(weight):
        raise ValueError(f"--weight must be a finite number or adaptive; got {given!r}.")
    return weight


def settings_of(settings: list[str]) -> dict[str, Any]:
    """Settings typed as NAME=JSON, by their names.

    >>> settings_of(["flip=true"])
    {'flip': True}
    """
    found = {}
    for text in settings:
        name, equals, value = text.partition("=")
        try:
            found[name] = plain_json.loads(value)
        except plain_json.JSONDecodeError:
            equals = ""
        if not equals:
            raise ValueError(f"--set must be like flip=true; got {text!r}.")
    return found
