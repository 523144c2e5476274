"""What changes when several processes train one model."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ..criteria import Criterion, across_ranks
from ..criteria._ranks import _AcrossRanks
from ..objectives import Penalised


def unwrapped(model: nn.Module) -> nn.Module:
    """The model that `torch.compile` was given; any other as it is."""
    # By the name of its part, since the class is slow to import.
    while isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
        model = inner
    return model


def is_parallel(model: nn.Module) -> bool:
    """Whether several processes train this model together, compiled or not."""
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return False
    # Slow to import, and needed by nobody who trains in one process.
    from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel

    kinds = DistributedDataParallel | FullyShardedDataParallel | FSDPModule
    return isinstance(unwrapped(model), kinds)


def is_sharded(model: nn.Module) -> bool:
    """Whether a process holds only its share of the parameters."""
    return is_parallel(model) and not isinstance(unwrapped(model), DistributedDataParallel)


def has_flat_shards(model: nn.Module) -> bool:
    """Whether it is in shards that do not tell the norm of the whole, as those of FSDP1."""
    if not is_sharded(model):
        return False
    from torch.distributed.fsdp import FullyShardedDataParallel

    return isinstance(unwrapped(model), FullyShardedDataParallel)


def of_all_ranks(criterion: Criterion, together: bool) -> Criterion:
    """The criterion of the batches of all processes, where there are several."""
    if not together or isinstance(criterion, _AcrossRanks):
        return criterion
    return across_ranks(criterion)


def objective_of_all_ranks(objective: Any, together: bool) -> Any:
    """The same of an objective whose parts are known; any other is left to its author."""
    if not together or not isinstance(objective, Penalised):
        return objective
    return Penalised(
        of_all_ranks(objective.fit, together),
        of_all_ranks(objective.calibration, together),
        objective.weight,
        class_dim=objective.class_dim,
        ignore_index=objective.ignore_index,
    )


def gathered(value: Any, together: bool) -> list[Any]:
    """What every process says, in the order of ranks."""
    if not together:
        return [value]
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, value)
    return everyone


def all_agree(holds: bool, together: bool, device: torch.device) -> bool:
    """Whether it holds for every process."""
    if not together:
        return holds
    verdict = torch.tensor(int(holds), device=device)
    dist.all_reduce(verdict, op=dist.ReduceOp.MIN)
    return bool(verdict)


def is_first() -> bool:
    """Whether this is the process that writes and shows."""
    return not (dist.is_available() and dist.is_initialized()) or dist.get_rank() == 0


def unsynchronised(model: nn.Module) -> AbstractContextManager[Any]:
    """Gradients are summed locally inside, to be exchanged by a later backward pass."""
    model = unwrapped(model)
    if not isinstance(model, DistributedDataParallel):
        return nullcontext()
    if model.static_graph:
        raise ValueError(
            "model must be wrapped without static_graph where a step has several backward passes; "
            "got static_graph=True. Leave it out; in fit_interleaved concatenate=True takes one."
        )
    return model.no_sync()
