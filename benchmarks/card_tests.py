"""Run the tests of the kernels on a GPU, and keep what they say: results/card-tests.log."""

import argparse
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT

import torch
import triton
from record import circumstances

HERE = Path(__file__).parent
_SECONDS = 300
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
    failed = 0
    for name in FILES:
        tests = str(HERE.parent / "tests" / f"{name}.py")
        command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", tests]
        try:
            told = subprocess.run(command, stdout=PIPE, stderr=STDOUT, text=True, timeout=_SECONDS)
            outcome, output = f"exit {told.returncode}", told.stdout
            failed += told.returncode != 0
        except subprocess.TimeoutExpired as late:
            outcome, output = f"not done after {_SECONDS} s", str(late.stdout or "")
            failed += 1
        lines += ["", f"{name}, {outcome}", output.strip()]
        print("\n".join(lines[-2:]), flush=True)
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
