"""`calibrant train`: a model of the lab, by any objective and procedure."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .._json import as_json
from ..lab import Trial
from ..lab.data import DATASETS
from ..lab.models import MODELS
from ._named import check_named
from ._output import write
from ._study_choice import devices
from ._typed_trial import run, settings_of, weight_of

TRAIN_EXAMPLES = """
\b
Examples:
  calibrant train digits mlp --epochs 20 --batch 64
  calibrant train mnist lenet5 --data ~/data --epochs 5
  calibrant train cifar10 resnet18 --data ~/data --procedure interleaved \\
      --calibration rooted_esd --weight 1 --precision bfloat16 --out runs/esd
  calibrant train digits mlp --fit focal --set fit_settings='{"gamma": 2}'
"""

LEFT = ("rows.jsonl", "model.safetensors", "test.npz")
"""What is in the folder afterwards."""


def train(
    data_set: Annotated[
        str,
        typer.Argument(
            metavar="DATA_SET",
            help="digits, mnist, cifar10, ...",
            autocompletion=lambda: ["digits", *DATASETS],
        ),
    ],
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="mlp, lenet5, resnet18, ...",
            autocompletion=lambda: list(MODELS),
        ),
    ],
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
    epochs: Annotated[int, typer.Option(metavar="N", help="Times through the data.")] = 30,
    batch: Annotated[int, typer.Option(metavar="N", help="Samples of each step.")] = 512,
    lr: Annotated[float, typer.Option(metavar="RATE", help="Of learning, at first.")] = 1e-3,
    optimiser: Annotated[str, typer.Option(help="adamw or sgd.")] = "adamw",
    precision: Annotated[str, typer.Option(help="float32 or bfloat16.")] = "float32",
    keep: Annotated[str, typer.Option(help="Which epoch: last, calibrated, accurate.")] = "last",
    seed: Annotated[int, typer.Option(metavar="N", help="Of all that is drawn.")] = 0,
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
    """Train a model of the lab, choose an epoch, then test it.

    After each epoch the model is judged on validation data: its accuracy, and its calibration
    error over 20 bins. --keep says which epoch is tested: the last; the one of the lowest
    calibration error among those that lose less than 1.5 points of accuracy to the most
    accurate (calibrated); or the most accurate. Test data are opened after that choice.

    Leaves rows.jsonl, model.safetensors and test.npz, which calibrant evaluate reads, in --out,
    and in its folder splits which samples were kept for validation.
    """
    check_named("DATA_SET", data_set, sorted(("digits", *DATASETS)))
    check_named("MODEL", model, sorted(MODELS))
    trial = Trial.from_dict(
        {
            "data": data_set,
            "model": model,
            "seed": seed,
            "procedure": procedure,
            "fit": fit,
            "calibration": calibration,
            "weight": weight_of(weight),
            "epochs": epochs,
            "batch": batch,
            "lr": lr,
            "optimiser": optimiser,
            "precision": precision,
            "keep": keep,
            **settings_of(settings or []),
        }
    )
    (place, *_) = devices(device)
    row = run(trial, data, place, out)
    if json:
        write(as_json(row), None)
    elif "error" not in row:
        print(f"{trial}\nkept epoch {row['choice']['epoch']}: {row['choice']['rule']}")
        for name, figures in row.get("test", {}).items():
            print(_line(name, figures))
        print(f"written to {out}: {', '.join(name for name in LEFT if (out / name).is_file())}")
    if "error" in row:
        print(f"calibrant: {row['error']}", file=sys.stderr)
        return 1
    return 0


def _line(name: str, figures: dict[str, Any]) -> str:
    label = "test" if name == "none" else f"after {name}"
    if "accuracy" not in figures:
        return f"{label}: {figures['error']}"
    return (
        f"{label}: accuracy {figures['accuracy']:.2%}, ECE {figures['ece20']:.2%}, "
        f"NLL {figures['nll']:.4f}"
    )
