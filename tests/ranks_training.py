"""Training on several ranks and, with the same functions, on one process that sees all of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

import calibrant as cal

ROWS, HELD_OUT = (19, 12), (9, 14)  # of each rank: unequal on purpose
CALIBRATION = cal.top_label(cal.rooted(cal.esd_naive))

Batch = tuple[Tensor, Tensor]


def batches(rows: tuple[int, int], seed: int, rank: int | None) -> list[Batch]:
    """Three batches, or the share of them that a rank gets."""
    seeded = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(3):
        labels = torch.randint(4, (sum(rows),), generator=seeded)
        inputs = torch.randn(sum(rows), 6, generator=seeded, dtype=torch.float64)
        inputs[torch.arange(len(labels)), labels] += 1.0
        parts = zip(inputs.split(rows), labels.split(rows), strict=True)
        made.append((inputs, labels) if rank is None else list(parts)[rank])
    return made


def network() -> nn.Module:
    torch.manual_seed(3)
    layers = [nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)]
    return nn.Sequential(*layers).double()


def interleaved(model: nn.Module, rank: int | None, **settings: Any) -> cal.History:
    defaults: dict[str, Any] = {"epochs": 2, "weight": 2.0, "clip": 0.1}
    defaults["validation_loader"] = batches(ROWS, 5, rank)
    return cal.fit_interleaved(
        model,
        batches(ROWS, 1, rank),
        batches(HELD_OUT, 2, rank),
        calibration=CALIBRATION,
        optimiser=torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9),
        **(defaults | settings),
    )


def adaptive(model: nn.Module, rank: int | None) -> cal.History:
    """With a weight that looks at the logits of all, and soon moves."""
    return interleaved(model, rank, weight=cal.AdaptiveWeight(memory=3.0, rate=1.0))


def compiled(model: nn.Module, rank: int | None) -> cal.History:
    """Wrapped once more, around what makes the processes one."""
    outer: Any = torch.compile(model, backend="eager")
    return interleaved(outer, rank, epochs=1, validation_loader=None)


def resumed(model: nn.Module, rank: int | None, folder: Path) -> cal.History:
    """One epoch, and the second by another call from the checkpoint."""
    file = folder / ("whole.pt" if rank is None else "ranks.pt")
    interleaved(model, rank, epochs=1, checkpoint=file)
    return interleaved(model, rank, checkpoint=file)


def penalised(model: nn.Module, rank: int | None) -> cal.History:
    return cal.fit(
        model,
        batches(ROWS, 1, rank),
        objective=cal.Penalised(cal.nll, CALIBRATION, weight=2.0),
        optimiser=torch.optim.SGD(model.parameters(), lr=0.5),
        epochs=1,
    )


def accumulated(model: nn.Module, rank: int | None) -> cal.History:
    """One step on three micro-batches."""
    objective = cal.Penalised(cal.nll, CALIBRATION, weight=2.0)
    loss = cal.accumulate(model, batches(ROWS, 1, rank), objective)
    torch.optim.SGD(model.parameters(), lr=0.5).step()
    return cal.History([cal.Epoch(0, loss.item())])


Run = Callable[[nn.Module, int | None], cal.History]


def runs(folder: Path) -> dict[str, Run]:
    """Every procedure, by name."""
    return {
        "every step": interleaved,
        "two phases": lambda model, rank: interleaved(model, rank, schedule="two_phase"),
        "concatenated": lambda model, rank: interleaved(model, rank, concatenate=True),
        "resumed": lambda model, rank: resumed(model, rank, folder),
        "adaptive": adaptive,
        "compiled": compiled,
        "penalised": penalised,
        "accumulated": accumulated,
    }


def outcome(model: nn.Module, history: cal.History) -> dict[str, Tensor]:
    """The weights and the numbers of every epoch."""
    told = [
        (epoch.fit, epoch.calibration or 0.0, epoch.accuracy, epoch.error)
        for epoch in history.epochs
    ]
    numbers = {"history": torch.tensor(told, dtype=torch.float64)}
    return numbers | {name: each.detach() for name, each in model.named_parameters()}


def sharded(rank: int) -> dict[str, Tensor]:
    """The same with the parameters in shards."""
    model = network()
    # Said to be the CPU's: where there is a GPU it would be taken for its.
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    with pytest.raises(ValueError, match="must be None for a model in shards"):
        interleaved(model, rank)
    history = interleaved(model, rank, validation_loader=None)
    found = outcome(model, history)
    return {
        name: each.full_tensor() if isinstance(each, DTensor) else each
        for name, each in found.items()
    }


def refusal(rank: int) -> str:
    """What a rank reads when the loss of one of them is not a number."""
    model = DistributedDataParallel(network())
    own = batches(ROWS, 1, rank)
    if rank == 1:
        own[1][0][0, 0] = float("nan")
    try:
        cal.fit(
            model,
            own,
            objective=nn.CrossEntropyLoss(),
            optimiser=torch.optim.SGD(model.parameters(), lr=0.5),
            epochs=1,
        )
    except FloatingPointError as error:
        return str(error)
    return "nothing"


def told(train: Callable[[], object]) -> str:
    """What a rank reads when a run is refused."""
    try:
        train()
    except ValueError as error:
        return str(error)
    return "nothing"


def refusals(rank: int, folder: Path) -> dict[str, str]:
    """Runs that would leave a rank waiting for another."""
    model = DistributedDataParallel(network())
    few = batches(ROWS, 1, rank)[rank:]
    disk = folder / f"disk of {rank}"
    disk.mkdir()
    interleaved(model, rank, epochs=1, checkpoint=disk / "run.pt")  # the first rank writes it
    static = DistributedDataParallel(network(), static_graph=True)
    flat = FullyShardedDataParallel(network(), device_id=torch.device("cpu"))
    return {
        "unequal fit": told(lambda: fit_on(model, few)),
        "unequal slices": told(lambda: calibrate_on(model, few, rank)),
        "two disks": told(lambda: interleaved(model, rank, checkpoint=disk / "run.pt")),
        "static graph": told(lambda: interleaved(static, rank)),
        "flat shards": told(lambda: interleaved(flat, rank, validation_loader=None)),
    }


def fit_on(model: nn.Module, data: list[Batch]) -> None:
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    cal.fit(model, data, objective=nn.CrossEntropyLoss(), optimiser=optimiser, epochs=1)


def calibrate_on(model: nn.Module, data: list[Batch], rank: int) -> None:
    cal.fit_interleaved(
        model,
        batches(ROWS, 1, rank),
        data,
        calibration=CALIBRATION,
        weight=1.0,
        optimiser=torch.optim.SGD(model.parameters(), lr=0.5),
        epochs=1,
        schedule="two_phase",
    )


def has_written(rank: int, folder: Path) -> bool:
    """Whether a model of this rank alone has been kept."""
    file = folder / f"alone-{rank}.pt"
    interleaved(network(), None, epochs=1, validation_loader=None, checkpoint=file)
    return file.exists()


def alone() -> dict[str, Tensor]:
    """A model that no other process knows of, with a weight that could ask them."""
    model = network()
    return outcome(model, adaptive(model, None))


def main(folder: Path) -> None:
    """Every run on this rank, in a file for the test to compare."""
    rank = dist.get_rank()
    found: dict[str, Any] = {}
    for name, run in runs(folder).items():
        model = DistributedDataParallel(network())
        history = run(model, rank)
        found[name] = outcome(model.module, history)
    found["sharded"] = sharded(rank)
    found["refusal"] = refusal(rank)
    found["refusals"] = refusals(rank, folder)
    found["written"] = has_written(rank, folder)
    if rank == 0:
        found["alone"] = alone()
    torch.save(found, folder / f"{rank}-training.pt")
