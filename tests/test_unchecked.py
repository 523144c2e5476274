"""What run-time checks of types and shapes would hide is tested in a process without them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(
    bool(os.environ.get("CALIBRANT_UNCHECKED")), reason="this is the process without checks"
)
@pytest.mark.parametrize("file", ["test_compile.py", "test_predictions.py"])
def test_passes_without_the_checks(file: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / file)],
        env=os.environ | {"CALIBRANT_UNCHECKED": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
