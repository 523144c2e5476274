"""Time, memory and value of measured quantities on the CPU: ours, the peers', and the floor.

In an environment of its own, next to the package's:

    python -m venv peers
    peers/bin/pip install torch==2.13.0 torchmetrics netcal probmetrics numba \
        uncertainty-calibration relplot scikit-learn jaxtyping safetensors
    peers/bin/pip install --no-deps torch-uncertainty==0.13.0 -e .
    peers/bin/python benchmarks/evaluation.py [--quick] [--threads 2] [--out FILE.csv]
    peers/bin/python benchmarks/evaluation.py --threads 1 \
        --out benchmarks/results/evaluation-one-thread.csv

Of torch-uncertainty only the metrics are loaded, which need nothing that is not installed there.
"""

import argparse
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import torch
from evaluation_memory import peak_mib
from evaluation_sizes import FLOORS, SIZES, Size
from record import RESULTS, Row, circumstances, number, write
from rivals import CALLS, OF_TABLES_ONLY, PACKAGES, Data, installed
from timing import Spread

FLOOR = "floor"
SECONDS = 3.0
# Longer than this and a call is made once; longer than that and it is not made.
_ONCE, _NEVER = 5.0, 100.0
# Seconds before each call.
_REST = 0.01
_LEAST_ROUNDS, _MOST_ROUNDS = 15, 200


@dataclass
class Timed:
    """What was seen of one way to a quantity at one size."""

    spread: Spread | None = None
    value: float | None = None
    peak: float | None = None
    rounds: int = 0
    note: str = ""
    samples: list[float] = field(default_factory=list)


def main() -> None:
    """Time every way to every quantity at every size by turns, weigh it, and write as it goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/, unless --quick")
    parser.add_argument("--quick", action="store_true", help="the smallest size only")
    parser.add_argument("--size", choices=[size.name for size in SIZES], help="this one only")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    out: Path | None = options.out
    if out is None and not options.quick and options.size is None:
        out = RESULTS / "evaluation-cpu.csv"
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")  # the peers' own
    rows: list[Row] = []
    before: dict[tuple[str, str], tuple[int, float]] = {}
    for size in SIZES[:1] if options.quick else SIZES:
        if options.size not in (None, size.name):
            continue
        data = size.data()
        for quantity in CALLS:
            if size.binary and quantity in OF_TABLES_ONLY:
                continue
            found = compare(quantity, size, data, before, 0.3 if options.quick else SECONDS)
            if not options.quick:
                weigh(quantity, size, found)
            rows += described(quantity, size, found)
            print(_line(quantity, size, found), flush=True)
            if out is not None:
                write(out, rows)


def compare(
    quantity: str,
    size: Size,
    data: Data,
    before: dict[tuple[str, str], tuple[int, float]],
    seconds: float,
) -> dict[str, Timed]:
    """All ways to one quantity: once each for its value, then by turns."""
    calls = {FLOOR: FLOORS.get(quantity, FLOORS["read"]), **CALLS[quantity]}
    found = {name: Timed() for name in calls}
    repeated, small = [], Size("", 300, size.classes).data()
    for name, call in calls.items():
        if name in PACKAGES and not installed(name):
            found[name].note = "not installed"
            continue
        smaller, took = before.get((quantity, name), (1, 0.0))
        if took * size.numbers / smaller > _NEVER:
            found[name].note = f"too slow, not run ({took:.0f} s at {smaller:,} numbers)"
            continue
        try:
            _timed(call, small)  # libraries are imported by whoever comes first
            found[name].value, first = _timed(call, data)
        except Exception as reason:
            found[name].note = f"fails: {type(reason).__name__}: {str(reason).splitlines()[0][:80]}"
            continue
        before[quantity, name] = (size.numbers, first)
        found[name].samples.append(first)
        if first < _ONCE:
            repeated.append(name)
    start = time.perf_counter()
    for turn in range(_MOST_ROUNDS):
        if turn >= _LEAST_ROUNDS and time.perf_counter() - start > seconds:
            break
        for name in repeated:
            found[name].samples.append(_timed(calls[name], data)[1])
    for seen in found.values():
        if seen.samples:
            seen.spread = Spread.of([1e3 * sample for sample in seen.samples])
            seen.rounds = len(seen.samples)
    return found


def weigh(quantity: str, size: Size, found: dict[str, Timed]) -> None:
    """Memory of all that was timed in a few seconds."""
    for name, seen in found.items():
        if seen.samples and seen.samples[-1] < _ONCE:
            seen.peak = peak_mib(quantity, name, size)


def described(quantity: str, size: Size, found: dict[str, Timed]) -> list[Row]:
    """A row for each way, with its ratio to the floor and ours to it."""
    ours, floor = found["calibrant"], found[FLOOR]
    assert ours.spread is not None
    assert floor.spread is not None
    assert ours.value is not None
    rows = []
    for name, seen in found.items():
        spread, peak = seen.spread, seen.peak
        median = None if spread is None else spread.median
        differs = None if seen.value is None or name == FLOOR else seen.value - ours.value
        rows.append(
            {
                "quantity": quantity,
                "size": size.name,
                "n": str(size.n),
                "classes": str(size.classes),
                "who": name,
                "version": installed(name) if name in PACKAGES else "",
                "ms_median": number(median),
                "ms_quartile_low": number(None if spread is None else spread.low),
                "ms_quartile_high": number(None if spread is None else spread.high),
                "rounds": str(seen.rounds),
                "times_floor": number(median and median / floor.spread.median),
                "times_ours": number(median and median / ours.spread.median),
                "peak_mib": number(peak),
                "peak_percent": number(None if peak is None else 100 * peak / size.mib),
                "value": "" if seen.value is None or name == FLOOR else f"{seen.value:.9g}",
                "minus_ours": "" if differs is None else f"{differs:.2e}",
                "note": seen.note,
                "device": "cpu",
                **circumstances("cpu"),
            }
        )
    return rows


def _timed(call: object, data: Data) -> tuple[float, float]:
    # On one thread its processor time, which is what a clock shows when nobody else runs.
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    # Threads of OpenMP, and of a peer's own, spin for some milliseconds after a loop, and whoever
    # comes next would pay.
    time.sleep(_REST)
    start = clock()
    value = call(data)  # type: ignore[operator]
    return float(value), clock() - start


def _line(quantity: str, size: Size, found: dict[str, Timed]) -> str:
    parts = [
        f"{name} {seen.spread.median:.3g} ms" if seen.spread else f"{name}: {seen.note}"
        for name, seen in found.items()
    ]
    return f"{quantity}, {size.name}: " + "; ".join(parts)


if __name__ == "__main__":
    main()
