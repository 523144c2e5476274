"""Where and with what a row was made, so that a number carries its evidence."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import torch


def circumstances(device: torch.device) -> dict[str, str | int]:
    """The device, the threads, the versions, the commit and the time.

    Sums of floats depend on the number of threads in their last digits, and so does training.
    """
    return {
        "device": name_of(device),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "calibrant": _version(),
        "commit": _commit(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def name_of(device: torch.device) -> str:
    """What the maker calls it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return platform.processor() or platform.machine()


def _version() -> str:
    from .. import __version__  # when it is asked for, since the package is whole by then

    return __version__


@cache
def _commit() -> str:
    """Of the checkout the package is run from; nothing where it is installed.

    A copy without its history is told by `CALIBRANT_COMMIT` in the environment.
    """
    told = os.environ.get("CALIBRANT_COMMIT")
    if told:
        return told
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # a machine without git
        return ""
    return found.stdout.strip()
