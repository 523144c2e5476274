"""Kernels without a GPU: Triton interprets them, in a process that is told so from the start."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels are tested on the GPU itself")
@pytest.mark.skipif(
    find_spec("triton") is None, reason="needs Triton: pip install calibrant[kernels]"
)
@pytest.mark.parametrize("name", ["test_kernels.py", "test_linear.py"])
def test_kernels_agree_with_the_definitions(name: str) -> None:
    file = str(HERE / name)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", file],
        env=os.environ | {"CALIBRANT_UNCHECKED": "1", "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    summary = run.stdout.splitlines()[-1]
    assert "passed" in summary
    assert ("skipped" in summary) == (name == "test_linear.py")  # its example, run elsewhere
