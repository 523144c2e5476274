"""Peak memory of one forward and backward, above what its inputs hold."""

import re
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import torch
from cases import MEASURES, Case, forward_and_backward

_MIB = 2**20


def peak_on_gpu(case: Case, form: str) -> float:
    """MiB that torch allocates on top of the inputs."""
    leaf, target = case.inputs(seed=0, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    forward_and_backward(MEASURES[case.measure][form], leaf, target)
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / _MIB


def peak_on_cpu(case: Case, form: str) -> float | None:
    """MiB by which a fresh process's resident memory grows; None where it was killed for it."""
    fresh = get_context("forkserver")
    fresh.set_forkserver_preload(["torch", "calibrant"])
    try:
        with ProcessPoolExecutor(1, mp_context=fresh) as process:
            return process.submit(_growth, case, form).result()
    except BrokenProcessPool:
        return None


def _growth(case: Case, form: str) -> float:
    torch.set_num_threads(1)
    call = MEASURES[case.measure][form]
    # Libraries and the first graph are everybody's; only what grows with n counts.
    forward_and_backward(call, *Case(case.measure, 64, min(case.classes, 10)).inputs(seed=1))
    leaf, target = case.inputs(seed=0)
    before = _most_resident()
    forward_and_backward(call, leaf, target)
    return (_most_resident() - before) / _MIB


def _most_resident() -> int:
    """Bytes resident at the most so far in this process.

    `ru_maxrss` may begin at the parent's peak, which the kernel passes on; Linux's `VmHWM`
    does not.
    """
    status = Path("/proc/self/status")
    if status.exists() and (peak := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(peak[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
