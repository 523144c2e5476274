"""The same things from a shell."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0: it ran. 1: it ran and found what it was asked to look for. 2: bad input, of which one
    sentence on the standard error says what is wrong. 3: a defect of calibrant itself, with its
    traceback.

    - `arguments`: those of the shell, unless given.
    """
    try:
        from ._app import run
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        needed = "the command line needs typer and rich: pip install 'calibrant[cli]'"
        print(f"calibrant: {needed}", file=sys.stderr)
        return 2
    return run(arguments)
