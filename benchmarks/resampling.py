"""How long intervals take: a thousand resamples of ten thousand predictions of ten classes.

    python benchmarks/resampling.py [--quick] [--threads 2] [--out FILE.csv]

First every row of `evaluate` alone, then those that are resampled by totals of bins or of an order
together, then all of them as a user asks for them, by `evaluate`. A row that is slow to resample
has fewer draws, and says how many.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from record import RESULTS, Row, circumstances, number, write

from calibrant import Predictions, evaluate
from calibrant.evaluation._estimates import Estimate, estimates
from calibrant.evaluation._rows import rows_of_predictions

N, CLASSES, DRAWS, BINS = 10_000, 10, 1_000, 15
TOGETHER = (
    *("ece", "ece_l2", "mce", "ece_mass", "ece_mass_l2", "label_binned_ece", "debiased_ece"),
    *("class_wise_ece", "ks_error", "esd"),
)
REPEATS = 3


def main() -> None:
    """Time each way, and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/, unless --quick")
    parser.add_argument("--quick", action="store_true", help="of two hundred predictions")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    out = options.out or (None if options.quick else RESULTS / "resampling-cpu.csv")
    logits, labels = drawn(200 if options.quick else N)
    ones = torch.ones(len(labels), dtype=torch.float64)

    def some(names: tuple[str, ...]) -> dict[str, Estimate]:
        rows = rows_of_predictions(Predictions(logits, labels), ones, BINS)
        chosen = {name: rows[name] for name in names}
        return estimates(chosen, ones, draws=DRAWS, level=0.95, seed=0)

    every = rows_of_predictions(Predictions(logits, labels), ones, BINS)
    ways: dict[str, Callable[[], dict[str, Estimate]]] = {
        name: partial(some, (name,)) for name in every
    }
    ways["bins, ESD and KS together"] = lambda: some(TOGETHER)
    ways["all, by evaluate"] = lambda: dict(evaluate(logits, labels, draws=DRAWS).rows)
    seen: list[Row] = []
    for what, way in ways.items():
        found, seconds = timed(way)
        fewest = min(estimate.draws for estimate in found.values())
        row = {"what": what, "rows": str(len(found)), "fewest_draws": str(fewest)}
        size = {"n": str(len(labels)), "classes": str(CLASSES), "draws": str(DRAWS)}
        seen.append({**row, "seconds": number(seconds), **size, **circumstances("cpu")})
        print(f"{what}: {seconds:.3g} s ({fewest} draws)", flush=True)
    if out is not None:
        write(out, seen)


def drawn(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Over-confident predictions, the same at each call."""
    rng = torch.Generator().manual_seed(0)
    truth = 2 * torch.randn(n, CLASSES, generator=rng)
    labels = torch.multinomial(truth.softmax(dim=1), 1, generator=rng)[:, 0]
    return 1.5 * truth, labels


def timed(way: Callable[[], dict[str, Estimate]]) -> tuple[dict[str, Estimate], float]:
    """What it finds, and the middle of some times."""
    times = []
    found: dict[str, Estimate] = {}
    for _ in range(REPEATS):
        start = time.perf_counter()
        found = way()
        times.append(time.perf_counter() - start)
    return found, sorted(times)[REPEATS // 2]


if __name__ == "__main__":
    main()
