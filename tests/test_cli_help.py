"""What every command says of itself: in 80 columns, with examples, and completed by a shell."""

import re
import shlex

import pytest
import typer

from calibrant.cli import main
from calibrant.cli._app import app

COMMANDS = list(vars(typer.main.get_command(app))["commands"])


@pytest.fixture(autouse=True)
def a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


STUDY = [f"study {name}" for name in ("list", "data", "run", "status", "pending", "render")]


@pytest.mark.parametrize("name", ["", *COMMANDS, *STUDY])
def test_help_fits_into_80_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "Examples:" in out
    assert out.startswith(f"Usage: calibrant {name}".rstrip())


@pytest.mark.parametrize("group", ["", "study"])
def test_no_summary_of_a_command_is_cut_short(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*group.split(), "--help"]) == 0
    asked = capsys.readouterr().out
    listed = asked.split("Commands:")[1].split("Examples:")[0]
    assert len(listed.splitlines()) > 5
    assert "..." not in listed
    # Whoever names no command is shown the same.
    assert main(group.split()) == 0
    assert capsys.readouterr().out == asked


@pytest.mark.parametrize("name", ["evaluate", "recalibrate", "apply", "compare", "monitor"])
def test_examples_are_understood(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is missing is the file, and nothing else is wrong."""
    main([name, "--help"])
    text = re.sub(r" \\\n +", " ", capsys.readouterr().out)
    examples = re.findall(rf"^ +calibrant ({name} .*)$", text, flags=re.MULTILINE)
    assert len(examples) >= 2
    for example in examples:
        assert main(shlex.split(example)) == 2
        assert re.search(r"there is (no file|none)", capsys.readouterr().err), example


@pytest.mark.parametrize(
    ("words", "expected"),
    [("calibrant reca", "recalibrate"), ("calibrant recalibrate --method dir", "dirichlet")],
)
def test_a_shell_completes_commands_and_methods(
    words: str,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("_CALIBRANT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == [expected]
