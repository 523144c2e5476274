"""Time and peak memory of a report, from a file of predictions to a page, as a user gets them.

    python benchmarks/report.py [--quick] [--out FILE.csv]

Each size runs in processes of its own, on one thread, so that the processor time is what a machine
with nothing else to do would need: `calibrant report FILE.npz`, and `write_report` of arrays that
are loaded already. Time and peak of the first are of the whole process, libraries included; of the
second the time is of the call.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from record import RESULTS, Row, circumstances, number, write

SIZES = ((1_000, 10), (10_000, 100), (100_000, 1_000))
THREADS = 1

CALL = """
import sys, time
import numpy as np
from calibrant.report import write_report
told = np.load(sys.argv[1])
pair = (told["logits"], told["labels"])
start = time.process_time()
write_report(sys.argv[2], {"model": pair})
print(time.process_time() - start)
"""


def main() -> None:
    """Run every size both ways, and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/, unless --quick")
    parser.add_argument("--quick", action="store_true", help="the smallest size only")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    out = options.out or (None if options.quick else RESULTS / "report-cpu.csv")
    rows: list[Row] = []
    for n, classes in SIZES[:1] if options.quick else SIZES:
        with tempfile.TemporaryDirectory() as folder:
            file, page = Path(folder) / "predictions.npz", Path(folder) / "report.html"
            make(file, n, classes)
            ways = {
                "command": ["-m", "calibrant", "report", str(file), "-o", str(page)],
                "function": ["-c", CALL, str(file), str(page)],
            }
            for way, arguments in ways.items():
                seconds, clock, peak, said = run(arguments)
                seconds = float(said) if way == "function" else seconds
                rows.append(
                    {
                        "way": way,
                        "n": str(n),
                        "classes": str(classes),
                        "processor_seconds": number(seconds),
                        "clock_seconds_of_process": number(clock),
                        "peak_mib": number(peak),
                        "page_kib": number(page.stat().st_size / 1024),
                        "load": number(os.getloadavg()[0]),
                        "device": "cpu",
                        **circumstances("cpu"),
                    }
                )
                print(f"{way:9} {n:>7,} x {classes:>5,}: {seconds:6.1f} s, {peak:6.0f} MiB")
    if out is not None:
        write(out, rows)


def make(file: Path, n: int, classes: int) -> None:
    """Over-confident predictions in float32."""
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(n, classes, generator=rng).mul_(2)
    labels = torch.cat(
        [
            torch.multinomial(rows.softmax(dim=1), 1, generator=rng)[:, 0]
            for rows in logits.split(10_000)
        ]
    )
    np.savez(file, logits=logits.mul_(2).numpy(), labels=labels.numpy())


def run(arguments: list[str]) -> tuple[float, float, float, str]:
    """Seconds of the processor and of the clock, MiB at the peak, and what it printed."""
    surroundings = os.environ | {"OMP_NUM_THREADS": str(THREADS)}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], env=surroundings, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    clock = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"the report failed: {said}")
    seconds = used.ru_utime + used.ru_stime
    return seconds, clock, used.ru_maxrss / 1024, said.strip().splitlines()[-1]


if __name__ == "__main__":
    main()
