"""Peak memory of one evaluation, above what its inputs hold, in a process of its own."""

import ctypes
import gc
import re
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import torch
from evaluation_sizes import FLOORS, SIZES, Size
from rivals import CALLS

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_mib(quantity: str, name: str, size: Size) -> float | None:
    """MiB by which resident memory grows; None where it cannot be told, as off Linux."""
    if not _RESET.exists():
        return None
    fresh = get_context("forkserver")
    fresh.set_forkserver_preload(["evaluation_memory"])
    try:
        with ProcessPoolExecutor(1, mp_context=fresh) as process:
            return process.submit(_growth, quantity, name, size, torch.get_num_threads()).result()
    except BrokenProcessPool:
        return None


def _growth(quantity: str, name: str, size: Size, threads: int) -> float:
    torch.set_num_threads(threads)
    floor = FLOORS.get(quantity, FLOORS["read"])
    call = CALLS[quantity].get(name, floor)
    # Libraries, and the threads' own stacks, are everybody's.
    call(SIZES[0].data() if not size.binary else Size("", 50_000, 1).data())
    data = size.data()
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    _RESET.write_text("5")  # the high-water mark falls to what is resident now
    before = _resident("VmRSS")
    call(data)
    return max(0.0, (_resident("VmHWM") - before) / 1024)


def _resident(what: str) -> int:
    found = re.search(rf"{what}:\s+(\d+) kB", _STATUS.read_text())
    assert found is not None
    return int(found[1])
