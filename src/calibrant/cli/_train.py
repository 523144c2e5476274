"""`calibrant train`: a model of the lab, by any objective and procedure."""

import json as plain_json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..lab import Store, Trial, run_trial
from ..training import Epoch
from ._output import as_json, write
from ._study_choice import devices

TRAIN_EXAMPLES = """
\b
Examples:
  calibrant train digits mlp --epochs 20 --batch 64
  calibrant train mnist lenet5 --data ~/data --epochs 5
  calibrant train cifar10 resnet18 --data ~/data --procedure interleaved \\
      --calibration rooted_esd --weight 1 --precision bfloat16 --out runs/esd
  calibrant train digits mlp --fit focal --set fit_settings='{"gamma": 2}'
"""


def train(
    data_set: Annotated[
        str, typer.Argument(metavar="DATA_SET", help="digits, mnist, cifar10, ...")
    ],
    model: Annotated[str, typer.Argument(metavar="MODEL", help="mlp, lenet5, resnet18, ...")],
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the data sets are.")
    ] = None,
    procedure: Annotated[
        str, typer.Option(help="plain, joint, interleaved, two_phase or meta.")
    ] = "plain",
    fit: Annotated[str, typer.Option(metavar="SCORE", help="What makes answers right.")] = "nll",
    calibration: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="What makes confidence true.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Of calibration, or adaptive.")
    ] = None,
    epochs: Annotated[int, typer.Option(metavar="N")] = 30,
    batch: Annotated[int, typer.Option(metavar="N")] = 512,
    lr: Annotated[float, typer.Option(metavar="RATE")] = 1e-3,
    optimiser: Annotated[str, typer.Option(help="adamw or sgd.")] = "adamw",
    precision: Annotated[str, typer.Option(help="float32 or bfloat16.")] = "float32",
    keep: Annotated[str, typer.Option(help="Which epoch: last, calibrated or accurate.")] = "last",
    seed: Annotated[int, typer.Option(metavar="N")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=JSON", help="Any other setting of a trial."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Such as cuda; by default what there is.")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="For the row, the weights and predictions.")
    ] = Path("runs/train"),
    json: Annotated[bool, typer.Option("--json", help="The whole row, as JSON.")] = False,
) -> int:
    """Train a model of the lab, choose an epoch by validation data, then test it.

    Leaves `rows.jsonl`, `model.safetensors` and `test.npz`, which `calibrant evaluate` reads.
    """
    trial = Trial.from_dict(
        {
            "data": data_set,
            "model": model,
            "seed": seed,
            "procedure": procedure,
            "fit": fit,
            "calibration": calibration,
            "weight": _weight(weight),
            "epochs": epochs,
            "batch": batch,
            "lr": lr,
            "optimiser": optimiser,
            "precision": precision,
            "keep": keep,
            **_parsed(settings or []),
        }
    )
    (place, *_) = devices(device)
    row = run_trial(trial, data, Store(out), device=place, after_epoch=_told, out=out)
    if json:
        write(as_json(row), None)
    elif "error" not in row:
        print(f"{trial}\nkept epoch {row['choice']['epoch']}: {row['choice']['rule']}")
        for name, figures in row.get("test", {}).items():
            print(_line(name, figures))
    if "error" in row:
        print(f"calibrant: {row['error']}", file=sys.stderr)
        return 1
    return 0


def _weight(given: str | None) -> float | str | None:
    if given is None or given == "adaptive":
        return given
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"--weight must be a number or adaptive; got {given!r}.") from None


def _parsed(settings: list[str]) -> dict[str, Any]:
    found = {}
    for text in settings:
        name, equals, value = text.partition("=")
        try:
            found[name] = plain_json.loads(value)
        except plain_json.JSONDecodeError:
            equals = ""
        if not equals:
            raise ValueError(f"--set must be like flip=true; got {text!r}.")
    return found


def _told(epoch: Epoch) -> None:
    print(epoch, file=sys.stderr, flush=True)


def _line(name: str, figures: dict[str, Any]) -> str:
    label = "test" if name == "none" else f"after {name}"
    if "accuracy" not in figures:
        return f"{label}: {figures['error']}"
    return (
        f"{label}: accuracy {figures['accuracy']:.2%}, ECE {figures['ece20']:.2%}, "
        f"NLL {figures['nll']:.4f}"
    )
