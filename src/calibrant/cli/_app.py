"""The commands, and what becomes of what they raise."""

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .. import __version__
from .._checks import did_you_mean
from .._text import shown
from ._apply import APPLY_EXAMPLES, apply
from ._compare import COMPARE_EXAMPLES, compare
from ._demo import DEMO_EXAMPLES, demo
from ._doctor import DOCTOR_EXAMPLES, doctor
from ._evaluate import EVALUATE_EXAMPLES, evaluate
from ._monitor import MONITOR_EXAMPLES, monitor
from ._recalibrate import RECALIBRATE_EXAMPLES, recalibrate
from ._report import REPORT_EXAMPLES, report
from ._study import study_app
from ._train import TRAIN_EXAMPLES, train
from ._unread import unread_is_fine

EXAMPLES = """
\b
Examples:
  calibrant evaluate predictions.npz
  calibrant report predictions.parquet -o report.html
  calibrant recalibrate validation.npz --out model.safetensors
"""

app = typer.Typer(
    epilog=EXAMPLES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=EVALUATE_EXAMPLES)(evaluate)
app.command(epilog=RECALIBRATE_EXAMPLES)(recalibrate)
app.command(epilog=APPLY_EXAMPLES)(apply)
app.command(epilog=COMPARE_EXAMPLES)(compare)
app.command(epilog=REPORT_EXAMPLES)(report)
app.command(epilog=MONITOR_EXAMPLES)(monitor)
app.command(epilog=DEMO_EXAMPLES)(demo)
app.command(epilog=DOCTOR_EXAMPLES)(doctor)
app.command(epilog=TRAIN_EXAMPLES)(train)
app.add_typer(study_app, name="study")


def _show_version(asked: bool) -> bool:
    if asked:
        print(f"calibrant {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def calibrant(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show it and leave."),
    ] = False,
) -> None:
    """Measure whether a classifier's confidence can be believed."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what was wrong with its input is said in one sentence."""
    with unread_is_fine():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    command = typer.main.get_command(app)
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in ([], ["study"]):  # commands of which none was named
        given.append("--help")
    try:
        code = command.main(args=given, prog_name="calibrant", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Abort:
        return 130
    except (ValueError, TypeError, OSError, ImportError) as wrong:
        return _refuse(str(wrong))
    except Exception as wrong:
        # What the parser of the command line raises says itself what was wrong.
        if not hasattr(wrong, "format_message"):
            # A defect, which must not look like a limit that was crossed.
            traceback.print_exc()
            return 3
        return _refuse(f"{_mistyped(wrong)} For the options add --help.")


def _mistyped(wrong: Any) -> str:
    """What the parser says, with the option or the command that was probably meant."""
    option = getattr(wrong, "option_name", None)
    if option is not None and "possibilities" in vars(wrong):
        return f"No such option: {option}.{did_you_mean(option, wrong.possibilities or ())}"
    said = str(wrong.format_message()).rstrip(".")
    return said if said.endswith("?") else f"{said}."


def _refuse(sentence: str) -> int:
    print(f"calibrant: {shown(' '.join(sentence.split()))}", file=sys.stderr)
    return 2
