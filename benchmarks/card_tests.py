"""Run the tests of the kernels on a GPU, and keep what they say: results/card-tests.log."""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE, STDOUT

import torch
import triton
from record import circumstances

HERE = Path(__file__).parent
_SECONDS = 300
_GREEN = "exit 0"
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
    # Most of the time goes into compiling kernels, one core each.
    with ThreadPoolExecutor(len(FILES)) as pool:
        for name, (outcome, output) in zip(FILES, pool.map(_run, FILES), strict=True):
            failed += outcome != _GREEN
            lines += ["", f"{name}, {outcome}", output.strip()]
            print("\n".join(lines[-2:]), flush=True)
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(failed > 0)


def _run(name: str) -> tuple[str, str]:
    tests = str(HERE.parent / "tests" / f"{name}.py")
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", tests]
    try:
        told = subprocess.run(command, stdout=PIPE, stderr=STDOUT, text=True, timeout=_SECONDS)
        return f"exit {told.returncode}", told.stdout
    except subprocess.TimeoutExpired as late:
        return f"not done after {_SECONDS} s", str(late.stdout or "")


if __name__ == "__main__":
    main()
