"""One rank of a distributed run: DDP's gradients of every criterion, for the test to compare."""

import sys
from pathlib import Path

import ranks_training
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from calibrant import (
    CRITERIA,
    Criterion,
    Predictions,
    across_ranks,
    by_group,
    class_wise,
    esd,
    per_class,
    top_label,
)
from calibrant.integrations.torchmetrics import CalibrationMetrics

ROWS = (19, 12)  # of each rank: unequal on purpose
GROUPS = torch.arange(sum(ROWS)) // 4 % 3


def criteria(groups: Tensor) -> dict[str, Criterion]:
    return CRITERIA | {
        "class-wise esd": class_wise(esd),
        "per-class esd": per_class(esd),
        "esd by group": by_group(groups)(top_label(esd)),
    }


def batch() -> tuple[Tensor, Tensor, Tensor]:
    """The global batch, the same on every rank."""
    seeded = torch.Generator().manual_seed(5)
    n = sum(ROWS)
    inputs = torch.randn(n, 6, generator=seeded, dtype=torch.float64)
    weights = 1 + torch.rand(n, generator=seeded, dtype=torch.float64)
    return inputs, torch.randint(4, (n,), generator=seeded), weights


def model() -> nn.Linear:
    torch.manual_seed(3)
    return nn.Linear(6, 4, dtype=torch.float64)


def metrics(parallel: nn.Module, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Measures of what all ranks have seen, each in two batches of its own size."""
    metric = CalibrationMetrics(classes=4)
    for part in torch.arange(len(labels)).split(11):
        metric.update(parallel(inputs[part]).detach(), labels[part])
    return metric.compute()


def main(results: str) -> None:
    dist.init_process_group("gloo")
    parallel = DistributedDataParallel(model())
    inputs, labels, weights = (part.split(ROWS)[dist.get_rank()] for part in batch())
    found: dict[str, tuple[Tensor, Tensor]] = {}
    for name, criterion in criteria(GROUPS.split(ROWS)[dist.get_rank()]).items():
        for suffix, weight in (("", None), (" weighted", weights)):
            parallel.zero_grad()
            value = across_ranks(criterion)(Predictions(parallel(inputs), labels, weights=weight))
            if value.requires_grad:
                value.backward()
            gradient = parallel.module.weight.grad
            found[name + suffix] = (
                value.detach(),
                torch.zeros(4, 6) if gradient is None else gradient.clone(),
            )
    torch.save(metrics(parallel, inputs, labels), f"{results}/{dist.get_rank()}-metrics.pt")
    torch.save(found, f"{results}/{dist.get_rank()}.pt")
    ranks_training.main(Path(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
