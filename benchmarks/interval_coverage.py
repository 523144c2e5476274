"""How often the intervals of `evaluate` hold the truth.

Worlds of ten or a hundred classes, whose logits are drawn at random and whose labels are drawn from
their softmax; the model reports the logits times a factor, so at 1 it is calibrated and above 1
over-confident. In two worlds the factor depends on how sure the truth is, so that gaps have
both signs, or lie in few bins. The truth of a row is its value on a population of two million with
every outcome replaced by its chance, which leaves no noise.

    python benchmarks/interval_coverage.py --processes 16                  # all worlds, an hour
    python benchmarks/interval_coverage.py --worlds "T = 1" "T = 2"        # some of them
    python benchmarks/interval_coverage.py --worlds "T = 1" --n 20 100     # of few samples
    python benchmarks/interval_coverage.py --repetitions 20 --out look.csv # a look

What is drawn takes its place in the table there is, by world, row and size of sample, so a record
can be drawn by as many calls as one likes. Every repetition has a seed of its own: a call draws the
same, however many processes or worlds it has.
"""

import argparse
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch
from record import RESULTS, Row, circumstances, number, read, write
from torch import Tensor

from calibrant import (
    Predictions,
    ece,
    esd_naive,
    ks_error,
    label_binned_ece,
    mce,
    mmce,
    smooth_ece,
)
from calibrant.evaluation._estimates import Estimate, estimates
from calibrant.evaluation._ranking import auroc, risk_coverage_area
from calibrant.evaluation._rows import rows_of_predictions

CLASSES, SPREAD, POPULATION, DRAWS, LEVEL = 10, 2.0, 2_000_000, 1000, 0.95
SLOW = ("smooth_ece",)


@dataclass(frozen=True)
class World:
    """By the chance of the likeliest class, what the logits are multiplied by."""

    factor: Callable[[Tensor], Tensor | float]
    classes: int = CLASSES


WORLDS = {
    "T = 1": World(lambda _: 1.0),
    "T = 1.1": World(lambda _: 1.1),
    "T = 1.5": World(lambda _: 1.5),
    "T = 2": World(lambda _: 2.0),
    "both signs": World(lambda chance: torch.where(chance > 0.5, 1.3, 0.8)),
    "few bins": World(lambda chance: torch.where((chance > 0.7) & (chance < 0.8), 1.5, 1.0)),
    "100 classes, T = 1": World(lambda _: 1.0, 100),
    "100 classes, T = 1.5": World(lambda _: 1.5, 100),
}


def world(name: str, n: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Logits that the model reports, and the true chances behind the labels."""
    size = (n, WORLDS[name].classes)
    logits = SPREAD * torch.randn(size, generator=rng, dtype=torch.float64, device=rng.device)
    chances = logits.softmax(dim=1)
    return WORLDS[name].factor(chances.amax(dim=1, keepdim=True)) * logits, chances


def truths(name: str, rng: torch.Generator) -> dict[str, float]:
    """Every row on the population."""
    return without_noise(*world(name, POPULATION, rng))


def without_noise(logits: Tensor, chances: Tensor) -> dict[str, float]:
    """Every row of what a model reports, outcomes replaced by their chances."""
    classes = logits.shape[1]
    probs = logits.softmax(dim=1)
    predicted = logits.argmax(dim=1)
    confidence = probs.gather(1, predicted[:, None])[:, 0]
    hit = chances.gather(1, predicted[:, None])[:, 0]
    entropy = -(probs * probs.log()).sum(dim=1)
    certain = entropy < math.log(classes) / 2

    def each(measure: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        return torch.stack([measure(probs[:, j], chances[:, j]) for j in range(classes)])

    by_class = [predicted == j for j in range(classes)]
    root_mean_square = partial(ece, norm=2, binning="mass")
    found = {
        "accuracy": hit.mean(),
        "nll": -(chances * probs.log()).sum(dim=1).mean(),
        "brier": (probs.square().sum(dim=1) - 2 * (probs * chances).sum(dim=1) + 1).mean(),
        "ece": ece(confidence, hit),
        "ece_l2": ece(confidence, hit, norm=2),
        "mce": mce(confidence, hit),
        "ece_mass": ece(confidence, hit, binning="mass"),
        "ece_mass_l2": root_mean_square(confidence, hit),
        "debiased_ece": root_mean_square(confidence, hit),
        "label_binned_ece": label_binned_ece(confidence, hit),
        "sweep_ece": root_mean_square(confidence, hit, bins=300),
        "smooth_ece": smooth_ece(confidence, hit),
        "ks_error": ks_error(confidence, hit),
        "esd": esd_naive(confidence, hit),
        "mmce": mmce(confidence, hit),
        "auroc": auroc(confidence, hit),
        "risk_coverage_area": risk_coverage_area(confidence, hit),
        "class_wise_ece": each(ece).mean(),
        "marginal_ece": each(root_mean_square).square().mean().sqrt(),
        "per_class_ece": torch.stack(
            [own.double().mean() * ece(confidence[own], hit[own]) for own in by_class]
        ).sum(),
        "avu": torch.where(certain, hit, 1 - hit).mean(),
        "mean_entropy": entropy.mean(),
        "ece, 50 bins": ece(confidence, hit, bins=50),
    }
    return {name: value.item() for name, value in found.items()}


def repetition(
    name: str, n: int, rng: torch.Generator, seed: int, rows: Iterable[str] | None
) -> dict[str, Estimate]:
    """One sample from the world, and its intervals."""
    logits, chances = world(name, n, rng)
    labels = torch.multinomial(chances, 1, generator=rng)[:, 0]
    predictions = Predictions(logits, labels)
    everyone = torch.ones(n, dtype=torch.float64, device=rng.device)
    every = rows_of_predictions(predictions, everyone, 15)
    chosen = {row: every[row] for row in rows or every}
    return estimates(chosen, everyone, draws=DRAWS, level=LEVEL, seed=seed)


def repetitions(
    name: str, n: int, rows: list[str], arguments: argparse.Namespace, worker: int
) -> dict[str, list[Estimate]]:
    """One worker's share of the repetitions, the slow rows in the first few only."""
    torch.set_num_threads(1)
    rng = torch.Generator(arguments.device)
    found: dict[str, list[Estimate]] = {row: [] for row in rows}
    quick = [row for row in rows if row not in SLOW]
    for k in range(worker, arguments.repetitions, arguments.processes):
        chosen = rows if k < arguments.slow_repetitions else quick
        # Samples of its own for every world and repetition, however many processes there are.
        rng.manual_seed(arguments.seed + 1 + list(WORLDS).index(name) * 1_000_000 + k)
        for row, one in repetition(name, n, rng, k, chosen).items():
            found[row].append(one)
    return found


def study(name: str, arguments: argparse.Namespace) -> Iterator[list[Row]]:
    """Coverage of every row in one world, for one size of sample after another."""
    rng = torch.Generator(arguments.device).manual_seed(arguments.seed)
    truth = {
        row: value
        for row, value in truths(name, rng).items()
        if arguments.rows is None or row in arguments.rows
    }
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as workers:
        for n in arguments.n:
            found: dict[str, list[Estimate]] = {row: [] for row in truth}
            share = partial(repetitions, name, n, list(truth), arguments)
            for part in workers.map(share, range(arguments.processes)):
                for row, some in part.items():
                    found[row] += some
            yield [
                {"world": name, "row": row}
                | summary(truth[row], found[row])
                | {"n": str(n), "seed": str(arguments.seed)}
                | circumstances(arguments.device)
                for row in truth
                if found[row]
            ]


def summary(truth: float, found: list[Estimate]) -> dict[str, str]:
    """Coverage with its Monte-Carlo error, where it fails, and how wide the intervals are."""
    times = len(found)
    # What rounding makes of a truth of zero is not outside an interval that begins there.
    slack = 1e-9
    above = sum(one.low > truth + slack for one in found) / times
    below = sum(one.high < truth - slack for one in found) / times
    covered = 1 - above - below
    return {
        "truth": number(truth),
        "mean_value": number(sum(one.value for one in found) / times),
        "coverage": number(covered),
        "monte_carlo_error": number((covered * (1 - covered) / times) ** 0.5),
        "too_high": number(above),
        "too_low": number(below),
        "mean_width": number(sum(one.high - one.low for one in found) / times),
        "repetitions": str(times),
        "draws": str(found[0].draws),
    }


def replaced(kept: list[Row], rows: list[Row]) -> list[Row]:
    """The rows there are, those drawn anew in their places, and then the new ones."""
    before, after = ({(row["world"], row["row"], row["n"]): row for row in x} for x in (kept, rows))
    return list((before | after).values())


def main() -> None:
    """Run the worlds and record them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--n", type=int, nargs="+", default=[2000], help="sizes of samples")
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--slow-repetitions", type=int, default=100)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--rows", nargs="+", help="such as ece; all, unless given")
    parser.add_argument("--seed", type=int, default=20261115)
    parser.add_argument("--out", type=Path, default=RESULTS / "coverage.csv")
    arguments = parser.parse_args()
    for name in arguments.worlds:
        for rows in study(name, arguments):
            # Read again each time: other calls may have written since.
            kept = read(arguments.out) if arguments.out.exists() else []
            write(arguments.out, replaced(kept, rows))
            for row in rows:
                print(row["n"], *list(row.values())[:9], flush=True)


if __name__ == "__main__":
    main()
