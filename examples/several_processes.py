"""One batch on several processes: `torchrun --standalone --nproc-per-node 2 THIS_FILE`."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import calibrant as cal


def batches(part: TensorDataset) -> DataLoader[tuple[torch.Tensor, ...]]:
    """Each process reads its own share."""
    return DataLoader(part, batch_size=64, sampler=DistributedSampler(part, seed=0))


def main() -> None:
    dist.init_process_group("gloo")
    rng = torch.Generator().manual_seed(0)  # the same data everywhere
    inputs = torch.randn(1_000, 8, generator=rng)
    labels = (2 * inputs[:, :3] + torch.randn(1_000, 3, generator=rng)).argmax(dim=1)
    majority = TensorDataset(inputs[:900], labels[:900])
    held_out = TensorDataset(inputs[900:], labels[900:])
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(8, 3))
    history = cal.fit_interleaved(
        model,
        batches(majority),
        batches(held_out),
        calibration=cal.top_label(cal.rooted(cal.esd)),
        weight=1.0,
        optimiser=torch.optim.AdamW(model.parameters(), lr=0.05),
        epochs=3,
        progress=False,
    )
    weights = [torch.empty_like(model.module.weight) for _ in range(dist.get_world_size())]
    dist.all_gather(weights, model.module.weight.detach())
    assert all(torch.equal(weights[0], each) for each in weights)
    if dist.get_rank() == 0:
        print(f"{len(weights)} processes, one model; {history.epochs[-1]}")
    # gloo lets go of what it gathered in a thread of its own; an end before that may wait for ever.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
