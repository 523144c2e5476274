"""Rows of results, each with the circumstances it was measured in."""

import csv
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import torch

RESULTS = Path(__file__).parent / "results"

Row = dict[str, str]


@cache
def circumstances(device: str) -> Row:
    """Versions, machine, threads, commit and date."""
    return {
        "torch": torch.__version__,
        "machine": _machine(device),
        "threads": str(torch.get_num_threads()),
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def write(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """One CSV file, its columns those of the first row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def read(path: Path) -> list[Row]:
    """The rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def number(x: float | None) -> str:
    """Four significant digits, or nothing."""
    return "" if x is None else f"{float(f'{x:.4g}'):.12g}"


def _machine(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """The commit of the checkout, or the one named to a copy of it that has no repository."""
    named = os.environ.get("CALIBRANT_COMMIT")
    if named:
        return named
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()
