"""A prediction log too long for memory: `calibrant evaluate LOG.parquet` in a process of its own.

    python benchmarks/prediction_log.py [--rows 100000000] [--out FILE.csv]

Rows are a float32 confidence and whether it was right, in row groups of a million. Peak memory is
of the whole process, libraries included; a log of a hundredth of the rows shows what those take.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from record import RESULTS, Row, circumstances, number, write

GROUP = 1_000_000


def main() -> None:
    """Write a short and a long log, and measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/, at full length")
    options = parser.parse_args()
    full = options.rows == 100_000_000
    out = options.out or (RESULTS / "prediction-log-cpu.csv" if full else None)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (options.rows // 100, options.rows):
            file = Path(folder) / f"{count}.parquet"
            make(file, count)
            clock, seconds, peak = run(file)
            rows.append(
                {
                    "rows": str(count),
                    "clock_seconds": number(clock),
                    "processor_seconds": number(seconds),
                    "peak_mib": number(peak),
                    "file_mib": number(file.stat().st_size / 2**20),
                    "device": "cpu",
                    **circumstances("cpu"),
                }
            )
            print(f"{count:>12,} rows: {clock:6.1f} s, {peak:6.0f} MiB", flush=True)
    if out is not None:
        write(out, rows)


def make(file: Path, count: int) -> None:
    """Over-confident answers, a row group at a time."""
    random = np.random.default_rng(0)
    schema = pa.schema([("confidence", pa.float32()), ("correct", pa.bool_())])
    with pq.ParquetWriter(file, schema) as writer:
        for start in range(0, count, GROUP):
            size = min(GROUP, count - start)
            confidence = 0.5 + 0.5 * random.random(size, dtype=np.float32)
            right = random.random(size, dtype=np.float32) < confidence**1.2
            writer.write_table(pa.table([confidence, right], schema=schema))


def run(file: Path) -> tuple[float, float, float]:
    """Seconds of the clock and of the processor, and MiB at the peak."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "calibrant", "evaluate", str(file), "--stream", "--json"],
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit("the evaluation failed")
    clock = time.perf_counter() - start
    return clock, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
