"""The page of the command line, made of what `--help` says."""

import io
import os
from contextlib import redirect_stdout

import typer

from calibrant.cli import main
from calibrant.cli._app import app

HEAD = """# Command line

    pip install 'calibrant[cli]'

Exit codes: 0, it ran; 1, it ran and found what it was asked to look for (`--fail-above`,
`--fail-below`, an alarm);
2, bad input, with one sentence on the standard error; 3, a defect of calibrant, with its traceback.
`--json` prints the result as JSON. Nothing but the result goes to the standard output, and progress
is shown on terminals only. Completion for your shell: `calibrant --install-completion`.
"""


def command_page() -> str:
    """What every command says of itself, in 80 columns."""
    os.environ["COLUMNS"] = "80"
    names = ["", *_commands(typer.main.get_command(app))]
    parts = [HEAD]
    for name in names:
        heading = f"calibrant {name}".strip()
        parts.append(f"## {heading}\n\n```text\n{_help(name)}\n```")
    return "\n\n".join(parts)


def _commands(group: object, before: str = "") -> list[str]:
    """Names of commands, those of groups after the name of their group."""
    found = []
    for name, command in getattr(group, "commands", {}).items():
        found.append(f"{before}{name}")
        found += _commands(command, f"{before}{name} ")
    return found


def _help(name: str) -> str:
    said = io.StringIO()
    with redirect_stdout(said):
        main([*name.split(), "--help"])
    return said.getvalue().strip()
