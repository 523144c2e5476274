"""What an objective of ours adds to a training step of a real network.

`python benchmarks/step.py [--device cuda|cpu] [--out FILE.csv] [--graphed]`

ResNet-18 on synthetic 32 × 32 images, batch 512, bf16 autocast, channels last, SGD with
momentum. With `--graphed` also NLL + ESD as a captured CUDA graph. On a CPU only a smoke test: a
small batch and two steps, whose times mean nothing.
"""

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import torch
from record import RESULTS, Row, circumstances, number, write
from resnet import resnet18
from timing import Spread
from torch import Tensor
from torch.nn import functional as F

from calibrant import (
    Penalised,
    Predictions,
    dece,
    esd,
    mmce,
    nll,
    soft_avuc,
    soft_label_binned_ece,
    top_label,
)

Objective = Callable[[Tensor, Tensor], Tensor]

PLAIN, OWN = "F.cross_entropy", "nll"
PARAMETERS = 11_173_962

OBJECTIVES: dict[str, Objective] = {
    PLAIN: F.cross_entropy,
    # The same again: what differs between these two is noise.
    "F.cross_entropy, once more": F.cross_entropy,
    OWN: lambda logits, labels: nll(Predictions(logits, labels)),
    "nll + esd": Penalised(nll, top_label(esd), 1.0),
    "nll + mmce": Penalised(nll, top_label(mmce), 1.0),
    "nll + soft_label_binned_ece": Penalised(nll, top_label(soft_label_binned_ece), 1.0),
    "nll + soft_avuc": Penalised(nll, soft_avuc, 1.0),
    "nll + dece": Penalised(nll, dece, 1.0),
}


class Trainer:
    """One network, one optimiser and a few batches, on which any objective can take a step."""

    def __init__(self, device: str, batch: int) -> None:
        torch.manual_seed(0)
        self.device = device
        self.network = resnet18().to(device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        count = sum(parameter.numel() for parameter in self.network.parameters())
        assert count == PARAMETERS, count
        self.optimiser = torch.optim.SGD(self.network.parameters(), lr=0.01, momentum=0.9)
        self.batches = [
            (
                torch.randn(batch, 3, 32, 32).to(device, memory_format=torch.channels_last),
                torch.randint(10, (batch,)).to(device),
            )
            for _ in range(4)
        ]

    def step(self, objective: Objective, turn: int) -> Tensor:
        """Forward, objective, backward, update; the objective under autocast like the network."""
        images, labels = self.batches[turn % len(self.batches)]
        self.optimiser.zero_grad()
        with torch.autocast(self.device, dtype=torch.bfloat16):
            loss = objective(self.network(images), labels)
        torch.autograd.backward(loss)
        self.optimiser.step()
        return loss.detach()

    def milliseconds(self, objective: Objective, steps: int) -> float:
        """Mean time of some steps in a row, waited for at both ends."""
        self._wait()
        start = time.perf_counter()
        for turn in range(steps):
            loss = self.step(objective, turn)
        self._wait()
        elapsed = time.perf_counter() - start
        if not loss.isfinite():
            raise RuntimeError("the loss is not finite, so the times mean nothing.")
        return 1e3 * elapsed / steps

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def main() -> None:
    """Many short rounds of a few steps with each objective in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/step-cuda.csv")
    parser.add_argument("--graphed", action="store_true", help="also a captured graph")
    options = parser.parse_args()
    device: str = options.device
    out: Path | None = options.out
    if out is None and device == "cuda":
        out = RESULTS / "step-cuda.csv"
    batch, steps, rounds = (512, 5, 120) if device == "cuda" else (32, 2, 1)

    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(1)
    trainer = Trainer(device, batch)
    if options.graphed:
        both = Penalised(nll, top_label(esd), 1.0)
        OBJECTIVES["nll + esd, graphed"] = graphed(both, batch)
    if device == "cuda":
        for objective in OBJECTIVES.values():
            trainer.milliseconds(objective, 2 * steps)
    # A pause to collect garbage would fall on one objective alone.
    gc.collect()
    gc.disable()
    times: dict[str, list[float]] = {name: [] for name in OBJECTIVES}
    for turn in range(rounds):
        # Each objective takes every place in the round in turn.
        for place in range(len(OBJECTIVES)):
            name = list(OBJECTIVES)[(place + turn) % len(OBJECTIVES)]
            times[name].append(trainer.milliseconds(OBJECTIVES[name], steps))
    rows = [_row(name, times, device, batch, steps) for name in OBJECTIVES]
    for row in rows:
        print(
            "{objective:30} {ms_median:>8} ms  {overhead_percent:>7} %  "
            "{over_nll_percent:>7} % over nll".format(**row),
            flush=True,
        )
    if out is not None:
        write(out, rows)


def graphed(objective: Penalised, batch: int) -> Objective:
    """The objective of one batch size as a captured graph: one launch forward, one backward."""
    logits = torch.randn(batch, 10, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    labels = torch.randint(10, (batch,), device="cuda")
    return cast(Objective, torch.cuda.make_graphed_callables(objective, (logits, labels)))


def _row(name: str, times: dict[str, list[float]], device: str, batch: int, steps: int) -> Row:
    spread = Spread.of(times[name])
    overhead, over_nll = (_overhead(times[name], times[other]) for other in (PLAIN, OWN))
    return {
        "objective": name,
        "network": "ResNet-18",
        "batch": str(batch),
        "device": device,
        "steps_per_round": str(steps),
        "rounds": str(len(times[name])),
        "ms_median": number(spread.median),
        "ms_quartile_low": number(spread.low),
        "ms_quartile_high": number(spread.high),
        "overhead_percent": f"{overhead.median:.2f}",
        "overhead_quartile_low": f"{overhead.low:.2f}",
        "overhead_quartile_high": f"{overhead.high:.2f}",
        "over_nll_percent": f"{over_nll.median:.2f}",
        "over_nll_quartile_low": f"{over_nll.low:.2f}",
        "over_nll_quartile_high": f"{over_nll.high:.2f}",
    } | circumstances(device)


def _overhead(own: list[float], other: list[float]) -> Spread:
    """Percent over the other objective in the same round, so that drift cancels."""
    return Spread.of(100 * (mine / theirs - 1) for mine, theirs in zip(own, other, strict=True))


if __name__ == "__main__":
    main()
