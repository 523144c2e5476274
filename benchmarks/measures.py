"""Time and memory of each measure, ours beside the quadratic form, forward and backward.

`python benchmarks/measures.py [--device cpu|cuda] [--out FILE.csv] [--quick] [--threads 1]`
"""

import argparse
import time
from functools import partial
from pathlib import Path

import torch
from agreement import assert_agreement
from cases import FORMS, MEASURES, Case, cases, forward_and_backward
from comparison import Comparison
from memory import peak_on_cpu, peak_on_gpu
from record import RESULTS, number, write
from timing import Work, by_turns, replayed

INPUT_SETS = 8
MOST_GPU_MIB = 60e9 / 2**20
SECONDS = {"cpu": 1.5, "cuda": 1.0}
SECONDS_IF_QUICK = 0.3


def main() -> None:
    """Check that both forms agree, time them, weigh them, and write as it goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/, unless --quick")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU")
    options = parser.parse_args()
    device: str = options.device
    out: Path | None = options.out
    if out is None and not options.quick:
        out = RESULTS / f"measures-{device}.csv"
    seconds = SECONDS_IF_QUICK if options.quick else SECONDS[device]

    torch.set_num_threads(options.threads)
    start = time.perf_counter()
    assert_agreement(device)
    print("both forms agree in value and gradient", flush=True)
    found: list[Comparison] = []
    for case in cases(options.quick):
        found.append(compare(case, device, found, seconds))
        print(f"[{time.perf_counter() - start:3.0f} s] {found[-1]}", flush=True)
        save(found, out)
    # A failed capture may end the process, so replays come when all else is safe.
    (replay if device == "cuda" else weigh)(found)
    save(found, out)
    print(f"{time.perf_counter() - start:.0f} s in all" + (f"; see {out}" if out else ""))


def compare(case: Case, device: str, before: list[Comparison], seconds: float) -> Comparison:
    """Time both forms of a case by turns, leaving out one that cannot be run."""
    result = Comparison(case, device)
    if device == "cpu" and case.too_slow_on_cpu:
        result.notes["quadratic"] = "too slow, not run"
    if device == "cuda":
        for form in FORMS:
            try:
                if form == "quadratic" and _expected_mib(case, before) > MOST_GPU_MIB:
                    raise torch.OutOfMemoryError
                result.peak[form] = peak_on_gpu(case, form)
            except torch.OutOfMemoryError:
                result.notes[form] = "does not fit"
    by_form = {form: works(case, form, device, INPUT_SETS) for form in result.forms}
    result.eager = by_turns(by_form, device, seconds)
    return result


def works(case: Case, form: str, device: str, sets: int) -> list[Work]:
    """One form of a case on several inputs."""
    call = MEASURES[case.measure][form]
    return [partial(forward_and_backward, call, *case.inputs(seed, device)) for seed in range(sets)]


def weigh(found: list[Comparison]) -> None:
    """Memory on the CPU."""
    for result in found:
        for form in result.forms:
            result.peak[form] = peak = peak_on_cpu(result.case, form)
            print(f"{result.case}, {form}: {number(peak) or 'more than all'} MiB", flush=True)


def replay(found: list[Comparison]) -> None:
    """The GPU's own share of the time, without the launches."""
    for result in found:
        for form in result.forms:
            torch.cuda.empty_cache()
            (work,) = works(result.case, form, "cuda", sets=1)
            result.replayed[form] = captured = replayed(work)
            median = number(captured.median if captured else None)
            print(f"{result.case}, {form}: {median or 'not'} ms replayed", flush=True)


def save(found: list[Comparison], out: Path | None) -> None:
    """All rows so far."""
    if out is not None:
        write(out, [row for result in found for row in result.rows()])


def _expected_mib(case: Case, before: list[Comparison]) -> float:
    """The quadratic form's memory, by that of the largest case of the measure seen so far."""
    seen = [
        peak * case.pairs / each.case.pairs
        for each in before
        if each.case.measure == case.measure and (peak := each.peak.get("quadratic"))
    ]
    return seen[-1] if seen else 0.0


if __name__ == "__main__":
    main()
