"""How long a temperature takes to fit where the logits are.

`python benchmarks/temperature.py [--device cuda|cpu] [--out FILE.csv]`

50,000 × 1,000 logits of a simulated network that is overconfident by a factor of two and a half.
With `folds=0` only the fit; by default also five fits more, by which `report_` judges it on
held-out parts. The likelihood found is compared with that of a search in double precision.
"""

import argparse
from pathlib import Path

import torch
from record import RESULTS, Row, circumstances, number, write
from timing import by_turns
from torch import Tensor

from calibrant import Predictions, TemperatureScaling, nll

SIZES = {"cuda": (50_000, 1_000), "cpu": (10_000, 100)}


def main() -> None:
    """Fit by turns with and without held-out folds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, help="default: results/temperature-DEVICE.csv")
    options = parser.parse_args()
    device: str = options.device
    n, classes = SIZES[device]
    logits, labels = simulated(n, classes, device)
    spreads = by_turns(
        {
            "fit, folds=0": [lambda: _fit(logits, labels, 0)],
            "fit": [lambda: _fit(logits, labels, 5)],
            "one read of the logits": [lambda: _read(logits)],
        },
        device,
        seconds=5,
    )
    excess = _excess(logits, labels)
    rows: list[Row] = [
        {
            "work": work,
            "n": str(n),
            "classes": str(classes),
            "device": device,
            "ms_median": number(spread.median),
            "ms_quartile_low": number(spread.low),
            "ms_quartile_high": number(spread.high),
            "excess_nll": f"{excess:.1e}" if work.startswith("fit") else "",
        }
        | circumstances(device)
        for work, spread in spreads.items()
    ]
    for row in rows:
        print("{work:24} {ms_median:>9} ms".format(**row))
    print(f"excess NLL over a search in double precision: {excess:.1e}")
    write(options.out or RESULTS / f"temperature-{device}.csv", rows)


def simulated(n: int, classes: int, device: str) -> tuple[Tensor, Tensor]:
    """Overconfident logits, and labels drawn from what they would be at the right temperature."""
    rng = torch.Generator(device).manual_seed(0)
    honest = 3 * torch.randn(n, classes, generator=rng, device=device)
    labels = torch.multinomial(honest.softmax(dim=1), 1, generator=rng)[:, 0]
    return 2.5 * honest, labels


def _fit(logits: Tensor, labels: Tensor, folds: int) -> None:
    TemperatureScaling().fit(logits, labels, folds=folds)


def _read(logits: Tensor) -> None:
    logits.amax(dim=1)


def _excess(logits: Tensor, labels: Tensor) -> float:
    """NLL at the temperature found less that at the best of a golden-section search, in float64."""
    wide = logits.double()

    def loss(temperature: float) -> float:
        return nll(Predictions(wide / temperature, labels)).item()

    ratio = (5**0.5 - 1) / 2
    low, high = 0.5, 10.0
    while high - low > 1e-7:
        inner, outer = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, outer) if loss(inner) < loss(outer) else (inner, high)
    found = TemperatureScaling().fit(logits, labels, folds=0).temperature_.item()
    return loss(found) - loss((low + high) / 2)


if __name__ == "__main__":
    main()
