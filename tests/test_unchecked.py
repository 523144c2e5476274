"""A compiler cannot see through the run-time checks of types, so it gets a process without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(
    bool(os.environ.get("CALIBRANT_UNCHECKED")), reason="this is the process without checks"
)
@pytest.mark.parametrize("chosen", [["test_compile.py"], ["test_linear.py", "-kcompiler"]], ids=str)
def test_every_objective_compiles(chosen: list[str]) -> None:
    name, *options = chosen
    file = str(HERE / name)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file, *options],
        env=os.environ | {"CALIBRANT_UNCHECKED": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
