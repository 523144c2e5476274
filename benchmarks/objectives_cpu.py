"""What an objective costs on a CPU, forward and backward, beside cross-entropy alone.

`python benchmarks/objectives_cpu.py [--out FILE.csv] [--threads 1 2] [--seconds 20]`

From float32 logits to one number and back. Every form is checked against the definition before it
is timed.
"""

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import torch
from objectives_memory import extra_mib
from record import RESULTS, Row, circumstances, number, write
from timing import Spread, Work, by_turns
from torch import Tensor
from torch.nn import functional as F

from calibrant import (
    Penalised,
    Predictions,
    brier,
    dece,
    esd,
    kernels,
    nll,
    soft_avuc,
    soft_binned_ece,
    top_label,
)

SIZES = ((131_072, 10), (16_384, 100), (4_096, 1_000), (1_024, 32_000))
YARDSTICK = ("nll", "F.cross_entropy")

Objective = Callable[[Tensor, Tensor], Tensor]
Form = tuple[str, str]


def _nll(logits: Tensor, labels: Tensor) -> Tensor:
    return nll(Predictions(logits, labels))


OBJECTIVES: dict[str, Objective] = {
    "nll": _nll,
    "nll + esd": Penalised(nll, top_label(esd), 1.0),
    "nll + soft_binned_ece": Penalised(nll, top_label(soft_binned_ece), 1.0),
    "nll + soft_avuc": Penalised(nll, soft_avuc, 1.0),
    "nll + dece": Penalised(nll, dece, 1.0),
    "brier + esd": Penalised(brier, top_label(esd), 1.0),
}
FORMS: list[Form] = [YARDSTICK]
FORMS += [(name, form) for name in OBJECTIVES for form in ("definition", "by default")]


def main() -> None:
    """Every form at every size, by turns; rows are written as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "objectives-cpu.csv")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=20.0, help="for all forms at one size")
    options = parser.parse_args()
    rows: list[Row] = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        for n, classes in SIZES:
            rows += measure(n, classes, options.seconds)
            write(options.out, rows)


def measure(n: int, classes: int, seconds: float) -> list[Row]:
    """All forms at one size."""
    logits, labels = inputs(n, classes)
    works: dict[Form, Work] = {form: partial(step, form, logits, labels) for form in FORMS}
    _assert_agreement(works, logits)
    turns = by_turns({str(form): [work] for form, work in works.items()}, "cpu", seconds)
    times = {form: turns[str(form)] for form in FORMS}
    rows = [_row(form, n, classes, times) for form in FORMS]
    for row in rows:
        print(
            "{threads} x {n:>7} x {classes:<6} {objective:22} {form:16} {ms_median:>7} ms, "
            "{over_definition:>6} of the definition, {over_cross_entropy:>6} of F.cross_entropy, "
            "{extra_mib} MiB".format(**row),
            flush=True,
        )
    return rows


def inputs(n: int, classes: int) -> tuple[Tensor, Tensor]:
    """Predictions that are right one time in two."""
    seeded = torch.Generator().manual_seed(n)
    logits = torch.empty(n, classes).normal_(0, 2, generator=seeded)
    labels = torch.randint(classes, (n,), generator=seeded)
    logits[torch.arange(0, n, 2), labels[::2]] += 8
    return logits.requires_grad_(), labels


def step(form: Form, logits: Tensor, labels: Tensor) -> None:
    """Forward and backward of one form."""
    name, who = form
    logits.grad = None
    objective = F.cross_entropy if form == YARDSTICK else OBJECTIVES[name]
    with kernels.use("definition") if who == "definition" else nullcontext():
        torch.autograd.backward(objective(logits, labels))


def _row(form: Form, n: int, classes: int, times: dict[Form, Spread]) -> Row:
    name, who = form
    spread, median = times[form], times[form].median
    return {
        "objective": name,
        "form": who,
        "n": str(n),
        "classes": str(classes),
        "dtype": "float32",
        "device": "cpu",
        "ms_median": number(median),
        "ms_quartile_low": number(spread.low),
        "ms_quartile_high": number(spread.high),
        "over_definition": number(median / times[name, "definition"].median),
        "over_cross_entropy": number(median / times[YARDSTICK].median),
        "extra_mib": number(extra_mib(form, n, classes)),
    } | (circumstances("cpu") | {"threads": str(torch.get_num_threads())})


def _assert_agreement(works: dict[Form, Work], logits: Tensor) -> None:
    gradients: dict[str, Tensor] = {}
    # The definition comes before what is held against it.
    for (name, who), work in sorted(works.items(), key=lambda item: item[0][1] != "definition"):
        work()
        assert logits.grad is not None
        truth = gradients.setdefault(name, logits.grad)
        error = ((logits.grad - truth).norm() / truth.norm()).item()
        if not error <= 1e-5:
            raise AssertionError(f"{name}, {who}: gradients differ by {error:.1e}.")


if __name__ == "__main__":
    main()
