"""Run the tests of the kernels on a GPU, and keep what they say: results/card-tests.log."""

import argparse
import subprocess
import sys
from pathlib import Path

import torch
import triton
from record import circumstances

HERE = Path(__file__).parent
FILES = ("test_kernels", "test_captured", "test_linear", "test_switch")


def main() -> None:
    """Every file in a process of its own, so that one that hangs the card ends alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "card-tests.log")
    out = parser.parse_args().out
    if not torch.cuda.is_available():
        raise SystemExit("A GPU must be there; got none. The same tests run under the interpreter.")
    here = circumstances("cuda")
    lines = [
        f"{here['machine']}, torch {here['torch']}, triton {triton.__version__}, "
        f"Python {sys.version.split()[0]}, commit {here['commit']}"
    ]
    for name in FILES:
        told = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", str(HERE.parent / "tests" / f"{name}.py")],
            capture_output=True,
            text=True,
            check=False,
        )
        lines += ["", f"{name}, exit {told.returncode}", told.stdout.strip()]
        print("\n".join(lines[-2:]), flush=True)
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
