"""`calibrant recalibrate`: fit a map to held-out predictions and keep it in a file."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import Tensor

from .._json import as_json
from ..recalibration import RECALIBRATORS, FitReport, Recalibrator
from . import _options as options
from ._limits import Limits, check_limits, crossed, parse_limits
from ._named import check_named
from ._output import check_apart, check_writable, write
from ._progress import reading, working

RECALIBRATE_EXAMPLES = """
\b
Examples:
  calibrant recalibrate held_out.npz --out scaling.safetensors
  calibrant recalibrate held_out.npz --objective sb_ece --out s.safetensors
  calibrant recalibrate log.parquet --method isotonic --out map.safetensors
  calibrant recalibrate answers.csv --confidence sure --outcome right \\
    --method beta --out map.safetensors --fail-above ece=0.05
"""


# What a limit may be set on.
_JUDGED = ("nll", "ece")


def recalibrate(
    file: options.File,
    out: Annotated[
        Path, typer.Option(metavar="MODEL", help="Write the map there: a .safetensors file.")
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(RECALIBRATORS)}.",
            autocompletion=lambda: list(RECALIBRATORS),
        ),
    ] = "temperature",
    objective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What a temperature minimises: nll, sb_ece, ece, ..."),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(metavar="N", help="Of histogram and scaling_binning.")
    ] = None,
    strength: Annotated[
        float | None, typer.Option(metavar="X", help="Of the penalty of matrix and dirichlet.")
    ] = None,
    candidate: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="For best_of to choose among. Repeat.")
    ] = None,
    score: Annotated[
        str | None, typer.Option(metavar="NAME", help="By which best_of chooses: nll or brier.")
    ] = None,
    logits: options.Logits = None,
    probabilities: options.Probabilities = None,
    labels: options.Labels = None,
    confidence: options.Confidence = None,
    outcome: options.Outcome = None,
    weights: options.Weights = None,
    folds: Annotated[
        int, typer.Option(metavar="N", help="Parts held out in turn to judge the fit; 0 for none.")
    ] = 5,
    fail_above: Annotated[
        list[str] | None, options.fail_above("nll or ece after the fit, on held-out folds,")
    ] = None,
    json: options.AsJson = False,
) -> int:
    """Fit a recalibrator to held-out predictions, and keep it.

    The predictions must be of samples that the model was not trained on. What is gained is judged
    on held-out folds. `calibrant apply` uses the file it writes, and so does `Recalibrator.load`
    in Python.
    """
    limits = parse_limits(fail_above or [])
    check_limits(limits, _JUDGED if folds else ())
    check_writable(out)
    check_apart(out, file)
    if out.suffix != ".safetensors":
        raise ValueError(f"--out must end in .safetensors; got {out.name!r}.")
    settings: dict[str, Any] = {
        "objective": objective,
        "bins": bins,
        "strength": strength,
        "candidates": [_made(name) for name in candidate] if candidate else None,
        "score": score,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    recalibrator = _made(method).set_params(**given)
    log = options.opened(file, logits, probabilities, labels, confidence, outcome, weights=weights)
    with reading(log.path.name) as progress:
        told = log.read(progress=progress)
    with working(f"fitting {recalibrator!r}"):
        recalibrator.fit(
            told.forecast,
            told.truth,
            weights=told.weights,
            probabilities=told.kind != "logits",
            folds=folds,
        )
    recalibrator.save(out)
    report = recalibrator.report_
    broken = _broken(limits, report)
    if json:
        found = {"model": str(out), "learnt": _learnt(recalibrator), **asdict(report)}
        write(as_json(found), None)
    else:
        learnt = [f"{name} = {value:.4g}" for name, value in _learnt(recalibrator).items()]
        write("\n".join([str(report), *learnt, f"written to {out}"]), None)
    for sentence in broken:
        print(f"calibrant: {sentence}", file=sys.stderr)
    return 1 if broken else 0


def _made(name: str) -> Recalibrator:
    check_named("method", name, RECALIBRATORS)
    return RECALIBRATORS[name]()


def _broken(limits: Limits, report: FitReport) -> list[str]:
    """A sentence for each limit that is not kept; none is where a fold could not be fitted."""
    if report.nll_after is None or report.ece_after is None:
        return [
            f"{name} must be at most {limit:g} on held-out folds; it is not known, since one of "
            "them could not be fitted, for the reason given."
            for name, limit in limits.above.items()
        ]
    return crossed(limits, dict(zip(_JUDGED, (report.nll_after, report.ece_after), strict=True)))


def _learnt(recalibrator: Recalibrator) -> dict[str, float]:
    """What was learnt, where it is a single number."""
    found = {name: getattr(recalibrator, name, None) for name in recalibrator.learnt}
    return {
        name: each.item()
        for name, each in found.items()
        if isinstance(each, Tensor) and each.numel() == 1 and each.is_floating_point()
    }
