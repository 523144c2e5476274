"""What an objective costs fused with the last linear layer of a language model.

`PYTHONPATH=FOLDER_WITH_LIGER python benchmarks/linear.py [--out FILE.csv] [--seconds 8]`, on a GPU.

Forward and backward from bf16 hidden states and classifier, 8,192 tokens of 4,096 numbers and
128,256 words unless told otherwise. Liger's kernels take part where they can be imported.

Two floors. Arithmetic: a fused likelihood needs three products of that size (logits and two
gradients); an objective of the whole batch needs the logits twice, so four. Bytes: every logit is
written, read for its statistics, written again, read and written as a gradient, and read by two
products: eight passes, each a half of a copy. Both rates are measured here.
"""

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from record import RESULTS, Row, circumstances, number, write
from timing import Spread, Work, by_turns
from torch import Tensor
from torch.nn import functional as F

from calibrant import LinearPenalised, Penalised, Predictions, esd, kernels, nll, top_label
from calibrant.kernels._row_gradients import gradient
from calibrant.kernels._rows import statistics

FUSED, UNFUSED, DEFINITION = "fused linear", "unfused, kernels", "unfused, definition"
THREE = "fused linear, three products"
PRODUCT = "one product"
COPY = "copy of the logits"

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
Form = tuple[str, str]


def main() -> None:
    """Every form by turns, each checked against the others before it is timed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "linear-cuda.csv")
    parser.add_argument("--seconds", type=float, default=8.0, help="for all forms")
    parser.add_argument("--shape", type=int, nargs=3, default=(8_192, 4_096, 128_256))
    options = parser.parse_args()
    n, width, classes = options.shape
    hidden, weight, labels = _inputs(n, width, classes)
    works: dict[Form, Work] = {
        form: partial(_step, loss, hidden, weight, labels, choice)
        for form, (choice, loss) in _losses().items()
    }
    errors = _errors(works, hidden, weight)
    peaks = {form: _peak(work, hidden, weight) for form, work in works.items()}
    hidden.grad = weight.grad = None
    room = torch.empty(n, classes, dtype=torch.bfloat16, device="cuda")
    works["", PRODUCT] = partial(_product, hidden.detach(), weight.detach(), room)
    works["", COPY] = partial(_copy, room, torch.empty_like(room))
    turns = by_turns({str(form): [work] for form, work in works.items()}, "cuda", options.seconds)
    times = {form: turns[str(form)] for form in works}
    rows = [
        _row(form, (n, width, classes), times, peaks.get(form), errors.get(form)) for form in works
    ]
    write(options.out, rows)
    _verdict(times, peaks)


def _losses() -> dict[Form, tuple[str | None, Loss]]:
    both = Penalised(nll, top_label(esd), 1.0)

    def fused_nll(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        return nll(kernels.linear_predictions(hidden, weight, labels))

    def unfused(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        value: Tensor = both(F.linear(hidden, weight), labels)
        return value

    def unfused_nll(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        return nll(Predictions(F.linear(hidden, weight), labels))

    def cross_entropy(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(F.linear(hidden, weight), labels)

    losses: dict[Form, tuple[str | None, Loss]] = {
        ("nll + esd", FUSED): ("auto", LinearPenalised(nll, top_label(esd), 1.0)),
        ("nll + esd", UNFUSED): ("fused", unfused),
        ("nll + esd", DEFINITION): ("definition", unfused),
        ("nll", FUSED): ("auto", fused_nll),
        ("nll", THREE): (None, _ThreeProducts.apply),
        ("nll", UNFUSED): ("fused", unfused_nll),
        ("nll", "unfused, F.cross_entropy"): (None, cross_entropy),
    }
    if find_spec("liger_kernel") is not None:
        from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

        liger = LigerFusedLinearCrossEntropyLoss()
        wide = LigerFusedLinearCrossEntropyLoss(accum_dtype=torch.float32)
        losses["nll", "Liger, fused linear"] = (None, lambda h, w, y: liger(w, h, y))
        losses["nll", "Liger, fused linear, float32"] = (None, lambda h, w, y: wide(w, h, y))
    return losses


class _ThreeProducts(torch.autograd.Function):
    """The likelihood alone, as fused linear cross-entropies do it: gradients found forward.

    In the same chunks and by the same passes as ours, the weight's gradient added up in float32.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        by_hidden, n = torch.empty_like(hidden), len(hidden)
        by_weight = torch.zeros(weight.shape, dtype=torch.float32, device=weight.device)
        losses = []
        share = torch.full((n,), -1 / n, device=hidden.device)
        rows = max(128, 2**28 // (2 * len(weight)) // 128 * 128)
        for own in (slice(start, start + rows) for start in range(0, n, rows)):
            logits = hidden[own] @ weight.T
            table, predicted = statistics(logits, labels[own])
            losses.append(table[0].sum())
            upstream = (share[own], None, None, None, None)
            gradient(logits, labels[own], table, predicted, upstream, in_place=True)
            torch.mm(logits, weight, out=by_hidden[own])
            torch.addmm(by_weight, logits.T, hidden[own], out_dtype=torch.float32, out=by_weight)
            del logits
        ctx.save_for_backward(by_hidden, by_weight.to(weight.dtype))
        return -torch.stack(losses).sum() / n

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None]:
        by_hidden, by_weight = ctx.saved_tensors
        # Upstream is one here; as Liger does, nothing is multiplied by it.
        return by_hidden, by_weight, None


def _inputs(n: int, width: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    seeded = torch.Generator("cuda").manual_seed(n)
    hidden = torch.empty(n, width, dtype=torch.bfloat16, device="cuda")
    weight = torch.empty(classes, width, dtype=torch.bfloat16, device="cuda")
    hidden.normal_(generator=seeded)
    weight.normal_(0, 2 / width**0.5, generator=seeded)
    labels = torch.randint(classes, (n,), generator=seeded, device="cuda")
    # Right one time in two, so that the calibration of the top label is not degenerate.
    hidden[::2] += 2 * weight[labels[::2]]
    return hidden.requires_grad_(), weight.requires_grad_(), labels


def _step(loss: Loss, hidden: Tensor, weight: Tensor, labels: Tensor, choice: str | None) -> None:
    hidden.grad = weight.grad = None
    with kernels.use(choice) if choice else nullcontext():  # type: ignore[arg-type]
        torch.autograd.backward(loss(hidden, weight, labels))


def _product(hidden: Tensor, weight: Tensor, room: Tensor) -> None:
    torch.mm(hidden, weight.T, out=room)


def _copy(source: Tensor, target: Tensor) -> None:
    target.copy_(source)


def _errors(works: dict[Form, Work], hidden: Tensor, weight: Tensor) -> dict[Form, float]:
    """How far gradients are from those of the unfused kernels, relative to their norm."""
    truth: dict[str, tuple[Tensor, Tensor]] = {}
    errors = {}
    for form in sorted(works, key=lambda form: form[1] != UNFUSED):
        works[form]()
        assert hidden.grad is not None
        assert weight.grad is not None
        own = truth.setdefault(form[0], (hidden.grad, weight.grad))
        errors[form] = max(
            _distance(mine, true)
            for mine, true in zip((hidden.grad, weight.grad), own, strict=True)
        )
        # bf16 keeps eight bits, and the forms round at different places.
        if not errors[form] <= 2e-2:
            raise AssertionError(f"{form}: gradients differ by {errors[form]:.1e}.")
    return errors


def _distance(mine: Tensor, true: Tensor) -> float:
    off = norm = 0.0
    for own, other in zip(mine.detach().split(4096), true.detach().split(4096), strict=True):
        off += (own.float() - other.float()).square().sum().item()
        norm += other.float().square().sum().item()
    return float((off / norm) ** 0.5)


def _peak(work: Work, hidden: Tensor, weight: Tensor) -> float:
    """MiB beyond hidden states, classifier and the gradients of both."""
    hidden.grad = weight.grad = None
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    gradients = sum(each.numel() * each.element_size() for each in (hidden, weight))
    return (torch.cuda.max_memory_allocated() - before - gradients) / 2**20


def _floors(times: dict[Form, Spread]) -> tuple[float, float]:
    """Milliseconds of one product, and of the eight passes over the logits."""
    return times["", PRODUCT].median, 4 * times["", COPY].median


def _row(
    form: Form,
    shape: tuple[int, int, int],
    times: dict[Form, Spread],
    peak: float | None,
    error: float | None,
) -> Row:
    objective, name = form
    product, passes = _floors(times)
    products = 4 if name == FUSED else 3
    spread, best = times[form], _fused_nll(times)
    row = {
        "objective": objective,
        "form": name,
        "n": str(shape[0]),
        "width": str(shape[1]),
        "classes": str(shape[2]),
        "dtype": "bfloat16",
        "device": "cuda",
        "ms_median": number(spread.median),
        "ms_quartile_low": number(spread.low),
        "ms_quartile_high": number(spread.high),
        "over_products": number(spread.median / (products * product)) if objective else "",
        "over_fused_nll": number(spread.median / best) if objective else "",
        "peak_mib": number(peak),
        "error": number(error),
        "product_ms": number(product),
        "passes_ms": number(passes),
    } | circumstances("cuda")
    print(
        "{objective:10} {form:30} {ms_median:>8} ms  {over_products:>6} of its products  "
        "{over_fused_nll:>6} of fused NLL  {peak_mib:>8} MiB  off by {error}".format(**row),
        flush=True,
    )
    return row


def _fused_nll(times: dict[Form, Spread]) -> float:
    """The fastest form of the likelihood that never holds all logits."""
    fused = [form for form in times if form[0] == "nll" and "unfused" not in form[1]]
    return min(times[form].median for form in fused)


def _verdict(times: dict[Form, Spread], peaks: dict[Form, float]) -> None:
    product, passes = _floors(times)
    ours = "nll + esd", FUSED
    print(f"floors: four products {4 * product:.1f} ms, three {3 * product:.1f} ms; ", end="")
    print(f"eight passes over the logits {passes:.1f} ms")
    print(f"time over the fastest fused NLL, {_fused_nll(times):.1f} ms: ", end="")
    print(f"{times[ours].median / _fused_nll(times):.2f} (target at most 1.45)")
    for form in (UNFUSED, DEFINITION):
        print(f"peak of {form} over ours: ", end="")
        print(f"{peaks['nll + esd', form] / peaks[ours]:.1f} (target at least 5)")


if __name__ == "__main__":
    main()
