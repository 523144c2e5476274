"""How long calls take, by turns, so that a busy minute falls on all of them alike."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch

Work = Callable[[], None]

_WARM_UP = 3
_LEAST_ROUNDS = 3
_MOST_ROUNDS = 2_000


@dataclass(frozen=True)
class Spread:
    """Median and quartiles."""

    low: float
    median: float
    high: float

    @staticmethod
    def of(samples: Iterable[float]) -> "Spread":
        """The quartiles of what was measured."""
        low, median, high = np.percentile(list(samples), [25, 50, 75])
        return Spread(float(low), float(median), float(high))


def by_turns(works: dict[str, list[Work]], device: str, seconds: float) -> dict[str, Spread]:
    """Milliseconds of each kind of work, eager, as a user gets it.

    - `works`: for each kind, the same work on several inputs, which are taken in rotation.
    - `seconds`: to spend on all of them; three rounds are made whatever they take.

    On a GPU the time between two events, launches included. On one thread of a CPU its processor
    time, which is what a clock shows when nobody else runs; on several threads the clock.
    """
    once = _by_events if device == "cuda" else _by_clock
    for variants in works.values():
        _warm_up(variants, seconds / 4)
    samples: dict[str, list[float]] = {kind: [] for kind in works}
    start = time.perf_counter()
    for turn in range(_MOST_ROUNDS):
        if turn >= _LEAST_ROUNDS and time.perf_counter() - start > seconds:
            break
        for kind, variants in works.items():
            samples[kind].append(once(variants[turn % len(variants)]))
    return {kind: Spread.of(taken) for kind, taken in samples.items()}


def replayed(work: Work, repeats: int = 50) -> Spread | None:
    """Milliseconds of the device's own work: a captured CUDA graph, without the launches.

    None where the work cannot be captured.
    """
    try:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        for _ in range(_WARM_UP):
            graph.replay()
        return Spread.of(_by_events(graph.replay) for _ in range(repeats))
    except RuntimeError as reason:
        print(f"  not captured: {str(reason).splitlines()[0]}", flush=True)
        return None


def _warm_up(variants: list[Work], seconds: float) -> None:
    start = time.perf_counter()
    for turn in range(_WARM_UP):
        variants[turn % len(variants)]()
        if time.perf_counter() - start > seconds:
            return


def _by_clock(work: Work) -> float:
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    work()
    return 1e3 * (clock() - start)


def _by_events(work: Work) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))
