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
def test_every_objective_compiles() -> None:
    of_linear = "test_linear.py::test_a_compiler_takes_the_passes_into_one_graph"
    chosen = [str(HERE / name) for name in ("test_compile.py", of_linear)]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen],
        env=os.environ | {"CALIBRANT_UNCHECKED": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
