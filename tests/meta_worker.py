"""One rank of meta-calibration: gradients by the coefficients and a short run, to be compared."""

import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import calibrant as cal

ROWS = (19, 12)  # of each rank, to fit; to judge the other way round
KNOWLEDGE: dict[str, cal.MetaKnowledge] = {
    "weight": cal.WeightL2(initial=0.02),
    "unit": cal.UnitL2(initial=0.02),
    "decay": cal.WeightDecay(initial=0.02),
    "smoothing": cal.ClassSmoothing(initial=0.1),
}
OBJECTIVES: dict[str, cal.Criterion] = {"dece": cal.dece, "esd": cal.top_label(cal.esd)}


def batches(rank: int | None, width: int = 6) -> list[tuple[Tensor, Tensor]]:
    """Two batches to fit and two to judge: of one rank, or of all in one."""
    seeded = torch.Generator().manual_seed(5)
    found = []
    for rows in (ROWS, ROWS, ROWS[::-1], ROWS[::-1]):
        n = sum(rows)
        inputs = torch.randn(n, width, generator=seeded, dtype=torch.float64)
        labels = torch.randint(3, (n,), generator=seeded)
        if rank is not None:
            inputs, labels = inputs.split(rows)[rank], labels.split(rows)[rank]
        found.append((inputs, labels))
    return found


def model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double()


def gradients(rank: int | None) -> dict[str, Any]:
    """The meta-loss and its gradient for every knowledge and objective."""
    fitted, _, judged, _ = batches(rank, width=5)
    found = {}
    for name, knowledge in KNOWLEDGE.items():
        for objective, criterion in OBJECTIVES.items():
            meta = cal.MetaRegulariser(
                model().get_submodule("2"),
                knowledge,
                objective=criterion,
                together=rank is not None,
            )
            found[f"{name} {objective}"] = meta.gradient(fitted, judged, lr=0.5)
    return found


def run(rank: int | None) -> dict[str, Any]:
    """Four steps, and what they leave."""
    inner = model()
    outer = inner if rank is None else DistributedDataParallel(inner)
    first, second, *judged = batches(rank)
    history = cal.fit_meta(
        outer,
        [first, second],
        judged,
        optimiser=torch.optim.SGD(outer.parameters(), lr=0.5),
        epochs=2,
        meta_knowledge=cal.ClassSmoothing(initial=0.1),
    )
    assert history.regulariser is not None
    return {
        "model": inner.state_dict(),
        "coefficients": history.regulariser.coefficients,
        "calibration": [epoch.calibration for epoch in history.epochs],
    }


def refused() -> str:
    """What is said of a leak between processes."""
    outer = DistributedDataParallel(model())
    optimiser = torch.optim.SGD(outer.parameters(), lr=0.5)
    try:
        cal.fit_meta(outer, [], [], optimiser=optimiser, epochs=1, leak=True)
    except ValueError as error:
        return str(error)
    return ""


def main(results: str) -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    found = {"gradients": gradients(rank), "run": run(rank), "refused": refused()}
    torch.save(found, f"{results}/{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
