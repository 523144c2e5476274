"""`calibrant demo`: from nothing to a report."""

from pathlib import Path
from typing import Annotated

import typer

from .._json import as_json
from . import _options as options
from ._output import check_writable, write
from ._progress import working

DEMO_EXAMPLES = """
\b
Examples:
  calibrant demo
  calibrant demo --out digits.html
  calibrant demo --json
"""


def demo(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the report there.")] = Path(
        "calibrant-demo.html"
    ),
    json: options.AsJson = False,
) -> int:
    """Train small networks in seven ways, and write a report.

    Handwritten digits seen through noise; each network is also repaired by a temperature. Takes
    under two minutes on two cores. Needs scikit-learn: pip install 'calibrant[demo]'.
    """
    from ..demo import main, run  # trains, so it is not imported by the other commands
    from ..demo._show import report

    check_writable(out)
    if not json:
        main(out)
        return 0
    with working("training"):
        found = run()
        report(found, out)
    ways = {name: judged.to_dict() for name, judged in found.items()}
    write(as_json({"report": str(out.resolve()), "ways": ways}), None)
    return 0
