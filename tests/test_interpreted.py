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
def test_kernels_agree_with_the_definitions() -> None:
    files = [str(HERE / name) for name in ("test_kernels.py", "test_linear.py")]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *files],
        env=os.environ | {"CALIBRANT_UNCHECKED": "1", "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    summary = run.stdout.splitlines()[-1]
    assert "passed" in summary
    assert ", 1 skipped in " in summary  # the example of linear layers, run elsewhere
