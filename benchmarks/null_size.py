"""How often the tests of calibration alarm: falsely, and rightly.

`python benchmarks/null_size.py [--out FILE.csv]`, about a minute.

Confidences are fixed and one null of 10,000 draws is made for them. *Size*: 5,000 draws of
calibrated outcomes are tested at 5%. *Power*: logits of ten classes are sharpened by a
temperature of 1.2, 2,000 draws of labels from the true chances are tested. Errors are the
standard errors of the shares; the null is common to all trials, and its own blur of the 5%
point is part of the size error. Beside the tests stand the laws of the limit, which the tests
use only beyond 16,384 distinct confidences.
"""

import argparse
import time
from math import erfc, sqrt
from pathlib import Path

import numpy as np
import torch
from record import RESULTS, Row, circumstances, number, write
from torch import Tensor

from calibrant import esd, ks_error
from calibrant.evaluation._null_laws import beyond_range, beyond_supremum, draw_null
from calibrant.measures._order import Ascending

LEVEL = 0.05
DRAWS = 10_000
SEED = 20261115
CLASSES = 10


def shapes(n: int, rng: torch.Generator) -> dict[str, Tensor]:
    """Confidences of a few kinds of model."""

    def network(scale: float) -> Tensor:
        logits = scale * torch.randn(n, CLASSES, generator=rng, dtype=torch.float64)
        return logits.softmax(dim=1).amax(dim=1)

    uniform = torch.rand(n, generator=rng, dtype=torch.float64)
    return {
        "uniform": uniform,
        "network": network(6.0),
        "network near 1": network(20.0),
        "tenths": (9 * uniform + 0.5).ceil().clamp(1, 9) / 10,
    }


def p_values(confidence: Tensor, outcomes: Tensor, null_seed: int) -> dict[str, np.ndarray]:
    """Of every test, for each row of outcomes."""
    n = len(confidence)
    null = draw_null(confidence.numpy(), draws=DRAWS, seed=null_seed)
    blocks = outcomes.split(max(1, 2**22 // n))
    values = {
        name: torch.cat([torch.vmap(lambda y, of=of: of(confidence, y))(b) for b in blocks])
        for name, of in {"ks": ks_error, "kuiper": kuiper, "esd": esd}.items()
    }

    def drawn(name: str) -> np.ndarray:
        ascending = np.sort(getattr(null, name))
        as_large = DRAWS - np.searchsorted(ascending, values[name].numpy() - 1e-12)
        return (1 + as_large) / (1 + DRAWS)

    scale = n / (confidence * (1 - confidence)).sum().sqrt().item()
    tilt = 1 - 2 * confidence
    spread = (tilt.square() * confidence * (1 - confidence)).sum().sqrt()
    z = torch.cat([(b - confidence) @ tilt for b in blocks]) / spread
    return {
        "ks": drawn("ks"),
        "kuiper": drawn("kuiper"),
        "spiegelhalter": np.array([erfc(abs(x) / sqrt(2)) for x in z.tolist()]),
        "esd": drawn("esd"),
        "ks, law of the limit": np.array(
            [beyond_supremum(scale * x) for x in values["ks"].tolist()]
        ),
        "kuiper, law of the limit": np.array(
            [beyond_range(scale * x) for x in values["kuiper"].tolist()]
        ),
    }


def kuiper(confidence: Tensor, outcome: Tensor) -> Tensor:
    """Range of the running sums of gaps, zero among them."""
    ascending = Ascending.of(confidence)
    sums = (outcome - confidence)[ascending.source].cumsum(0)[ascending.last_tied]
    return (sums.max().clamp(min=0) - sums.min().clamp(max=0)) / len(confidence)


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "null_size.csv")
    out = parser.parse_args().out
    rng = torch.Generator().manual_seed(SEED)
    cases: list[tuple[str, str, Tensor, Tensor]] = []
    for shape, confidence in shapes(2_000, rng).items():
        outcomes = torch.bernoulli(confidence.expand(5_000, -1), generator=rng)
        cases.append(("size", shape, confidence, outcomes))
    for n in (500, 2_000, 10_000):
        logits = 2 * torch.randn(n, CLASSES, generator=rng, dtype=torch.float64)
        confidence = (1.2 * logits).softmax(dim=1).amax(dim=1)
        truth = logits.softmax(dim=1).amax(dim=1)
        outcomes = torch.bernoulli(truth.expand(2_000, -1), generator=rng)
        cases.append(("power", "temperature 1.2", confidence, outcomes))
    rows: list[Row] = []
    for kind, shape, confidence, outcomes in cases:
        start = time.perf_counter()
        found = p_values(confidence, outcomes, null_seed=SEED + len(rows))
        seconds = time.perf_counter() - start
        for test, p in found.items():
            share = float((p <= LEVEL).mean())
            error = share * (1 - share) / len(p)
            if kind == "size" and "limit" not in test and test != "spiegelhalter":
                error += LEVEL * (1 - LEVEL) / DRAWS
            rows.append(
                {
                    "kind": kind,
                    "confidences": shape,
                    "n": str(len(confidence)),
                    "expected_errors": number((1 - confidence).sum().item()),
                    "test": test,
                    "alarms": number(share),
                    "error": number(sqrt(error)),
                    "trials": str(len(p)),
                    "null_draws": str(DRAWS),
                    "seed": str(SEED),
                    "numpy": np.__version__,
                    **circumstances("cpu"),
                }
            )
            print(f"{kind:6} {shape:16} n={len(confidence):<6} {test:26} {share:.4f}", flush=True)
        print(f"  {seconds:.1f} s", flush=True)
    write(out, rows)


if __name__ == "__main__":
    main()
