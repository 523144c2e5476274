"""Peak memory of one forward and backward on a CPU, beyond the logits and their gradient."""

import ctypes
import gc
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def extra_mib(form: tuple[str, str], n: int, classes: int) -> float | None:
    """MiB by which a fresh process grows; None where it cannot be told, as off Linux."""
    if not _RESET.exists():
        return None
    fresh = get_context("forkserver")
    fresh.set_forkserver_preload(["objectives_cpu"])
    with ProcessPoolExecutor(1, mp_context=fresh) as process:
        return process.submit(_growth, form, n, classes, torch.get_num_threads()).result()


def _growth(form: tuple[str, str], n: int, classes: int, threads: int) -> float:
    # Imported here, since it imports this.
    from objectives_cpu import inputs, step

    torch.set_num_threads(threads)
    # Libraries and the first graph are everybody's.
    step(form, *inputs(64, 10))
    logits, labels = inputs(n, classes)
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    _RESET.write_text("5")  # the high-water mark falls to what is resident now
    before = _resident("VmRSS")
    step(form, logits, labels)
    grown = _resident("VmHWM") - before
    return max(0.0, grown / 1024 - logits.numel() * logits.element_size() / 2**20)


def _resident(what: str) -> int:
    found = re.search(rf"{what}:\s+(\d+) kB", _STATUS.read_text())
    assert found is not None
    return int(found[1])
