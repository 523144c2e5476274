"""What an epoch of each training procedure costs beside a plain one.

`python benchmarks/procedures.py [--device cuda|cpu] [--out FILE.csv]`

ResNet-18, bf16 autocast, channels last, SGD with momentum, on random images of CIFAR-10's shape
that lie on the device: 40,500 in batches of 512 are fitted in every procedure, and one batch of
512 of a held-out slice is drawn per step where there is one. On a CPU only a smoke test.
"""

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from record import RESULTS, Row, circumstances, number, write
from resnet import resnet18
from timing import Spread
from torch import Tensor, nn
from torch.optim import SGD

from calibrant import (
    AdaptiveWeight,
    Penalised,
    Predictions,
    esd,
    fit,
    fit_interleaved,
    fit_meta,
    nll,
    rooted,
    top_label,
)
from calibrant.training import Epoch

PLAIN = "fit, nll"
CALIBRATION = top_label(rooted(esd))
Batches = list[tuple[Tensor, Tensor]]
Procedure = Callable[[nn.Sequential, SGD, int, Callable[[Epoch], object]], object]


def procedures(majority: Batches, held_out: Batches) -> dict[str, Procedure]:
    """Each procedure as a call that only needs a model, its optimiser and a number of epochs."""
    common: dict[str, Any] = {"autocast": torch.bfloat16, "progress": False}

    def joint(objective: Callable[[Tensor, Tensor], Tensor]) -> Procedure:
        return lambda model, optimiser, epochs, told: fit(
            model,
            majority,
            objective=objective,
            optimiser=optimiser,
            epochs=epochs,
            after_epoch=told,
            **common,
        )

    def interleaved(adaptive: bool) -> Procedure:
        return lambda model, optimiser, epochs, told: fit_interleaved(
            model,
            majority,
            held_out,
            calibration=CALIBRATION,
            weight=AdaptiveWeight() if adaptive else 1.0,
            optimiser=optimiser,
            epochs=epochs,
            after_epoch=told,
            **common,
        )

    def meta(leak: bool) -> Procedure:
        return lambda model, optimiser, epochs, told: fit_meta(
            model,
            majority,
            held_out,
            optimiser=optimiser,
            epochs=epochs,
            after_epoch=told,
            leak=leak,
            **common,
        )

    return {
        PLAIN: joint(lambda logits, labels: nll(Predictions(logits, labels))),
        "fit, nll + esd": joint(Penalised(nll, CALIBRATION, 1.0)),
        "fit_interleaved, every step": interleaved(adaptive=False),
        "fit_interleaved, adaptive weight": interleaved(adaptive=True),
        "fit_meta": meta(leak=False),
        "fit_meta, with the released code's leak": meta(leak=True),
    }


def main() -> None:
    """A few epochs of each procedure in turn, several times over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/procedures-cuda.csv")
    options = parser.parse_args()
    device: str = options.device
    out: Path | None = options.out
    if out is None and device == "cuda":
        out = RESULTS / "procedures-cuda.csv"
    batch, steps, epochs, rounds = (512, 79, 3, 4) if device == "cuda" else (8, 2, 2, 1)

    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    majority, held_out = (_batches(batch, count, device) for count in (steps, max(steps // 9, 2)))
    timed: dict[str, list[float]] = {}
    for turn in range(rounds):
        for name, procedure in procedures(majority, held_out).items():
            seconds = _epoch_seconds(procedure, device, epochs)
            if turn > 0 or rounds == 1:  # the first round compiles and chooses algorithms
                timed.setdefault(name, []).extend(seconds)
    plain = Spread.of(timed[PLAIN])
    rows = [_row(name, seconds, plain, device, batch, steps) for name, seconds in timed.items()]
    for row in rows:
        print("{procedure:40} {seconds_median:>8} s an epoch, {ratio:>6} times plain".format(**row))
    if out is not None:
        write(out, rows)


def _batches(size: int, count: int, device: str) -> Batches:
    return [
        (
            torch.randn(size, 3, 32, 32).to(device, memory_format=torch.channels_last),
            torch.randint(10, (size,)).to(device),
        )
        for _ in range(count)
    ]


def _epoch_seconds(procedure: Procedure, device: str, epochs: int) -> list[float]:
    """Of every epoch but the first, in which the procedure also looks at what it was given."""
    model = resnet18().to(device)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    moments: list[float] = []

    def told(_: Epoch) -> None:
        if device == "cuda":
            torch.cuda.synchronize()
        moments.append(time.perf_counter())

    procedure(model, SGD(model.parameters(), lr=0.01, momentum=0.9), epochs, told)
    return [end - start for start, end in pairwise(moments)]


def _row(
    name: str, seconds: list[float], plain: Spread, device: str, batch: int, steps: int
) -> Row:
    spread = Spread.of(seconds)
    return {
        "procedure": name,
        "network": "ResNet-18",
        "device": device,
        "batch": str(batch),
        "steps": str(steps),
        "epochs": str(len(seconds)),
        "seconds_median": number(spread.median),
        "seconds_quartile_low": number(spread.low),
        "seconds_quartile_high": number(spread.high),
        "ratio": f"{spread.median / plain.median:.3f}",
    } | circumstances(device)


if __name__ == "__main__":
    main()
