"""`calibrant apply`: a file of predictions, recalibrated."""

from pathlib import Path
from typing import Annotated

import typer

from .._json import as_json
from ..logs import recalibrate_log
from ..recalibration import Recalibrator
from . import _options as options
from ._output import check_apart, check_writable, write
from ._progress import reading

APPLY_EXAMPLES = """
\b
Examples:
  calibrant apply scaling.safetensors predictions.npz --out better.npz
  calibrant apply map.safetensors log.parquet --logits z --out better.parquet
"""


def apply(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="What `calibrant recalibrate` wrote.")
    ],
    file: options.File,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Write there; its name ends like FILE's.")
    ],
    logits: options.Logits = None,
    probabilities: options.Probabilities = None,
    confidence: options.Confidence = None,
    json: options.AsJson = False,
) -> int:
    """Write a file of predictions again, recalibrated.

    Labels are not needed. The new file has the same columns and rows: logits become recalibrated
    logits, probabilities recalibrated probabilities, and whatever else is there is kept. Memory
    does not grow with the file.
    """
    check_writable(out)
    check_apart(out, file, model)
    recalibrator = Recalibrator.load(model)
    with reading(file.name) as progress:
        rows = recalibrate_log(
            recalibrator,
            file,
            out,
            logits=options.one_or_more(logits),
            probabilities=options.one_or_more(probabilities),
            confidence=confidence,
            progress=progress,
        )
    if json:
        told = {"model": str(model), "method": repr(recalibrator), "rows": rows, "out": str(out)}
        write(as_json(told), None)
    else:
        write(f"{rows:,} rows through {recalibrator!r}, written to {out}", None)
    return 0
