"""How often the intervals of `compare` hold the true difference, and how often it cries wolf.

Two models judge the samples of a world of ten classes: each sees the true logits through noise
of its own and reports them times a temperature. The true difference comes from a population in
which every outcome is replaced by its chance.

    python benchmarks/paired_coverage.py --repetitions 120   # twenty minutes on two cores
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch
from interval_coverage import CLASSES, LEVEL, SPREAD, without_noise
from record import RESULTS, circumstances, number, write
from torch import Tensor

from calibrant.evaluation import compare
from calibrant.evaluation._differences import Difference
from calibrant.evaluation._named import FAST, named

POPULATION, DRAWS = 1_000_000, 500
WORLDS = ((1.0, 1.0), (1.1, 1.0), (1.5, 1.0), (1.5, 1.3), (1.5, 1.5), (2.0, 1.5))
NOISE = 0.5
CRITERIA = {name: named(name) for name in FAST} | {"ece, 50 bins": named("ece", 50)}


def world(
    temperatures: tuple[float, float], n: int, rng: torch.Generator
) -> tuple[list[Tensor], Tensor]:
    """What each model reports, and the chances behind the labels.

    The noisy logits are shrunk towards zero, so that at a temperature of one a model is nearly
    calibrated; how nearly is measured on the population, not assumed.
    """
    logits = SPREAD * torch.randn(n, CLASSES, generator=rng, dtype=torch.float64)
    seen = [logits + NOISE * torch.randn(logits.shape, generator=rng).double() for _ in range(2)]
    shrink = SPREAD**2 / (SPREAD**2 + NOISE**2)
    return [t * shrink * z for t, z in zip(temperatures, seen, strict=True)], logits.softmax(dim=1)


def truths(temperatures: tuple[float, float], rng: torch.Generator) -> dict[str, float]:
    """First less second on the population."""
    models, chances = world(temperatures, POPULATION, rng)
    first, second = (without_noise(logits, chances) for logits in models)
    return {name: first[name] - second[name] for name in CRITERIA}


def repetitions(
    temperatures: tuple[float, float], arguments: argparse.Namespace, worker: int
) -> dict[str, list[Difference]]:
    """One worker's share."""
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(arguments.seed + 1 + worker)
    found: dict[str, list[Difference]] = {name: [] for name in CRITERIA}
    for k in range(worker, arguments.repetitions, arguments.processes):
        (first, second), chances = world(temperatures, arguments.n, rng)
        labels = torch.multinomial(chances, 1, generator=rng)[:, 0]
        comparison = compare(
            first, second, labels, criteria=CRITERIA, draws=DRAWS, level=LEVEL, seed=k
        )
        for name, row in comparison.rows.items():
            found[name].append(row)
    return found


def study(temperatures: tuple[float, float], arguments: argparse.Namespace) -> list[dict[str, str]]:
    """Coverage and alarms of every criterion in one world."""
    truth = truths(temperatures, torch.Generator().manual_seed(arguments.seed))
    found: dict[str, list[Difference]] = {name: [] for name in CRITERIA}
    share = partial(repetitions, temperatures, arguments)
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as workers:
        for part in workers.map(share, range(arguments.processes)):
            for name, some in part.items():
                found[name] += some
    return [
        {"first": number(temperatures[0]), "second": number(temperatures[1]), "criterion": name}
        | _summary(truth[name], found[name])
        | {"n": str(arguments.n), "draws": str(DRAWS), "seed": str(arguments.seed)}
        | circumstances("cpu")
        for name in CRITERIA
    ]


def _summary(truth: float, found: list[Difference]) -> dict[str, str]:
    times = len(found)
    covered = sum(one.low <= truth <= one.high for one in found) / times
    return {
        "truth": number(truth),
        "coverage": number(covered),
        "monte_carlo_error": number((covered * (1 - covered) / times) ** 0.5),
        "alarms": number(sum(one.p_value <= 1 - LEVEL for one in found) / times),
        "mean_width": number(sum(one.high - one.low for one in found) / times),
        "repetitions": str(times),
    }


def main() -> None:
    """Run the worlds and record them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261115)
    parser.add_argument("--out", type=Path, default=RESULTS / "paired_coverage.csv")
    arguments = parser.parse_args()
    rows: list[dict[str, str]] = []
    for temperatures in WORLDS:
        rows += study(temperatures, arguments)
        write(arguments.out, rows)
        for row in rows[-len(CRITERIA) :]:
            print(*list(row.values())[:8], flush=True)


if __name__ == "__main__":
    main()
