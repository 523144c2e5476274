"""What an objective costs on large outputs: kernels, definitions, a compiler, and the floor.

`PYTHONPATH=FOLDER_WITH_LIGER python benchmarks/kernels.py [--out FILE.csv] [--seconds 1.0]
[--no-compile]`, on a GPU.

Forward and backward from bf16 logits: one call by itself, launches included, and per call of ten
in a row, which is what training pays and what is set against the floor.

Two floors: the bytes, for no form that reads the logits twice and writes their gradient once can
beat one and a half times a copy of them; and the arithmetic, an exponential and some twenty
operations per logit in each pass, which is lower: the page does the sum.
Liger's cross-entropy takes part where it can be imported.
"""

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch
from record import RESULTS, Row, circumstances, number, write
from timing import Spread, Work, by_turns, replayed
from torch import Tensor
from torch.nn import functional as F

from calibrant import (
    Penalised,
    Predictions,
    dece,
    esd,
    kernels,
    mmce,
    nll,
    soft_avuc,
    soft_binned_ece,
    top_label,
)

SHAPES = ((512, 10), (262_144, 100), (65_536, 1_000), (8_192, 32_768), (8_192, 128_256))
FLOOR = "two reads, one write"
QUEUED = 10

Objective = Callable[[Tensor, Tensor], Tensor]
Form = tuple[str, str]


def _nll(logits: Tensor, labels: Tensor) -> Tensor:
    return nll(Predictions(logits, labels))


OBJECTIVES: dict[str, Objective] = {"nll": _nll, "nll + esd": Penalised(nll, top_label(esd), 1.0)}
# The others of the catalogue that need only statistics of rows, at the smallest and largest size.
FURTHER: dict[str, Objective] = {
    "nll + mmce": Penalised(nll, top_label(mmce), 1.0),
    "nll + soft_binned_ece": Penalised(nll, top_label(soft_binned_ece), 1.0),
    "nll + soft_avuc": Penalised(nll, soft_avuc, 1.0),
    "nll + dece": Penalised(nll, dece, 1.0),
}
EXTREMES = (SHAPES[0], SHAPES[-1])


def main() -> None:
    """Every form at every size, by turns; rows are written as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "kernels-cuda.csv")
    parser.add_argument("--seconds", type=float, default=1.0, help="for all forms at one size")
    parser.add_argument("--no-compile", action="store_true", help="some ten seconds a size less")
    options = parser.parse_args()
    rows: list[Row] = []
    for n, classes in SHAPES:
        rows += measure(n, classes, options.seconds, compiled=not options.no_compile)
        write(options.out, rows)
        torch.cuda.empty_cache()
    _verdict(rows)


def measure(n: int, classes: int, seconds: float, compiled: bool) -> list[Row]:
    """All forms at one size, each checked against the definition before it is timed."""
    logits, labels = _inputs(n, classes)
    works = dict(_works(logits, labels, compiled))
    _assert_agreement(works, logits)
    peaks = {form: _peak(work, logits) for form, work in works.items()}
    copy = torch.empty_like(logits)
    works["", FLOOR] = partial(_copy, logits.detach(), copy)
    turns = by_turns({str(form): [work] for form, work in works.items()}, "cuda", seconds)
    times = {form: turns[str(form)] for form in works}
    queue: dict[str, list[Work]] = {
        str(form): [partial(_in_a_row, work)] for form, work in works.items()
    }
    turns = by_turns(queue, "cuda", seconds)
    queued = {form: turns[str(form)].median / QUEUED for form in works}
    replays = {form: replayed(work) for form, work in works.items()} if n == 512 else {}
    rows = []
    for form, spread in times.items():
        objective, name = form
        passes = 1.5 if name == FLOOR else 1.0
        spread = Spread(*(passes * each for each in (spread.low, spread.median, spread.high)))
        rows.append(
            {
                "objective": objective,
                "form": name,
                "n": str(n),
                "classes": str(classes),
                "dtype": "bfloat16",
                "device": "cuda",
                "ms_median": number(spread.median),
                "ms_quartile_low": number(spread.low),
                "ms_quartile_high": number(spread.high),
                "ms_replayed": number(replay.median if (replay := replays.get(form)) else None),
                "ms_queued": number(passes * queued[form]),
                "over_floor": number(passes * queued[form] / (1.5 * queued["", FLOOR])),
                "peak_mib": number(peaks.get(form)),
            }
            | circumstances("cuda")
        )
        print(
            "{n:>8} x {classes:<8} {objective:21} {form:22} {ms_median:>8} ms, "
            "{ms_queued:>8} queued, "
            "{over_floor:>6} of the floor, replayed {ms_replayed}, {peak_mib} MiB".format(
                **rows[-1]
            ),
            flush=True,
        )
    return rows


def _inputs(n: int, classes: int) -> tuple[Tensor, Tensor]:
    seeded = torch.Generator("cuda").manual_seed(n)
    logits = torch.empty(n, classes, dtype=torch.bfloat16, device="cuda")
    logits.normal_(0, 2, generator=seeded)
    labels = torch.randint(classes, (n,), generator=seeded, device="cuda")
    # Right one time in two, so that the calibration of the top label is not degenerate.
    logits[torch.arange(0, n, 2, device="cuda"), labels[::2]] += 8
    return logits.requires_grad_(), labels


def _works(logits: Tensor, labels: Tensor, compiled: bool) -> list[tuple[Form, Work]]:
    works: list[tuple[Form, Work]] = []
    for name, objective in OBJECTIVES.items():
        forms = {
            "kernels": ("fused", objective),
            "definition": ("definition", objective),
            "by default": (None, objective),
        }
        if compiled and name != "nll":
            torch.compiler.reset()
            definition = torch.compile(objective, fullgraph=True, dynamic=False)
            forms["definition, compiled"] = ("definition", definition)
        for form, (choice, call) in forms.items():
            works.append(((name, form), partial(_step, call, logits, labels, choice)))
    if logits.shape in EXTREMES:
        for name, objective in FURTHER.items():
            for form, choice in (("kernels", "fused"), ("by default", None)):
                works.append(((name, form), partial(_step, objective, logits, labels, choice)))
    works.append((("nll", "F.cross_entropy"), partial(_step, F.cross_entropy, logits, labels)))
    in_place = partial(_in_place, OBJECTIVES["nll + esd"])
    works.append((("nll + esd", "kernels, in place"), partial(_step, in_place, logits, labels)))
    if find_spec("liger_kernel") is not None:
        from liger_kernel.transformers import LigerCrossEntropyLoss

        # It writes the gradient over the logits, so that it is given a copy of them too.
        liger = partial(_of_copy, LigerCrossEntropyLoss())
        works.append((("nll", "Liger, and a copy"), partial(_step, liger, logits, labels)))
    return works


def _of_copy(objective: Objective, logits: Tensor, labels: Tensor) -> Tensor:
    return objective(logits.clone(), labels)


def _in_place(objective: Objective, logits: Tensor, labels: Tensor) -> Tensor:
    """Of a copy as well: a leaf cannot be written over."""
    with kernels.use("fused", in_place=True):
        return objective(logits.clone(), labels)


def _step(objective: Objective, logits: Tensor, labels: Tensor, choice: str | None = None) -> None:
    logits.grad = None
    with kernels.use(choice) if choice else nullcontext():  # type: ignore[arg-type]
        torch.autograd.backward(objective(logits, labels))


def _in_a_row(work: Work) -> None:
    """As training does: the host is a step ahead, and the device does not wait for it."""
    for _ in range(QUEUED):
        work()


def _copy(source: Tensor, target: Tensor) -> None:
    target.copy_(source)


def _assert_agreement(works: dict[Form, Work], logits: Tensor) -> None:
    gradients: dict[str, Tensor] = {}
    for (objective, form), work in sorted(works.items(), key=lambda item: item[0][1], reverse=True):
        work()
        assert logits.grad is not None
        truth = gradients.setdefault(objective, logits.grad)
        error = ((logits.grad - truth).float().norm() / truth.float().norm()).item()
        # bf16 keeps eight bits; F.cross_entropy rounds its log-probabilities to them.
        if not error <= 2e-2:
            raise AssertionError(f"{objective}, {form}: gradients differ by {error:.1e}.")


def _peak(work: Work, logits: Tensor) -> float:
    """MiB beyond the logits and their gradient."""
    logits.grad = None
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    gradient = logits.numel() * logits.element_size()
    return (torch.cuda.max_memory_allocated() - before - gradient) / 2**20


def _verdict(rows: list[Row]) -> None:
    """The figures that matter, beside what was aimed at."""
    times = {
        (int(row["n"]), row["objective"], row["form"]): row
        for row in rows
        if (int(row["n"]), int(row["classes"])) in EXTREMES
    }

    def found(n: int, objective: str, form: str, column: str = "ms_median") -> float:
        return float(times[n, objective, form][column] or "nan")

    (few, _), (many, classes) = EXTREMES
    ours = found(many, "nll + esd", "kernels", "ms_queued")
    print(f"{many:,} x {classes:,}, nll + esd by kernels: ", end="")
    print(f"{found(many, 'nll + esd', 'kernels', 'over_floor'):.2f} of the floor (target 1.5), ")
    print(
        f"  {ours / found(many, 'nll', 'kernels', 'ms_queued'):.3f} of nll alone (target 1.10), ",
        end="",
    )
    extra = found(many, "nll + esd", "kernels", "peak_mib") * 2**20 / (2 * many * classes)
    print(f"{extra:.2%} of the logits in memory (target 1 %)")
    for column, target in (("ms_median", 120), ("ms_queued", 120), ("ms_replayed", 60)):
        plain = found(few, "nll", "F.cross_entropy", column)
        added = 1e3 * (found(few, "nll + esd", "by default", column) - plain)
        print(f"{few} x 10, {column}: F.cross_entropy {1e3 * plain:.0f} us, ", end="")
        print(f"nll + esd adds {added:.0f} us (target {target})")


if __name__ == "__main__":
    main()
