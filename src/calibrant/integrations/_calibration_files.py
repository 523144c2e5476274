"""What calibration adds to a checkpoint of transformers' Trainer."""

from pathlib import Path
from typing import Any

from ..training._checkpoint import Checkpoint
from ..training._weight import Weight
from ._calibration_slice import CalibrationSlice

# Beside Trainer's own files; of the stream, one for each process.
_WEIGHT, _STREAM = "calibration_weight.pt", "calibration_stream_{}.pt"


def write_calibration(folder: Path, args: Any, weight: Weight, held_out: CalibrationSlice) -> None:
    """What the weight has learnt, and the place in the calibration data."""
    folder.mkdir(parents=True, exist_ok=True)  # the first process may not have got there yet
    learnt, place = weight.state_dict(), held_out.state_dict()
    if learnt and args.should_save:
        Checkpoint(folder / _WEIGHT).write({"weight": learnt})
    if place is not None:
        Checkpoint(folder / _STREAM.format(args.process_index)).write({"held_out": place})


def read_calibration(
    folder: Path, args: Any, weight: Weight, held_out: CalibrationSlice | None, size: int
) -> None:
    """Go on from what `write_calibration` wrote, if it is there.

    - `held_out`: `None` where nothing is calibrated any more.
    - `size`: samples in a batch of it.
    """
    learnt = Checkpoint(folder / _WEIGHT).read()
    if learnt is not None:
        weight.load_state_dict(learnt["weight"])
    place = Checkpoint(folder / _STREAM.format(args.process_index)).read()
    if place is not None and held_out is not None:
        held_out.load_state_dict(place["held_out"], size)
