"""How often the monitor of calibration alarms falsely, and how soon rightly.

`python benchmarks/monitor.py [--out FILE.csv]`, about seven minutes on one core.

*False alarms*: 2,000 sequences of 100 windows whose outcomes are drawn from the confidences less
the tolerance, the worst that the claim allows; the share of sequences with an alarm anywhere must
not exceed 5%. *Delay*: 200 sequences that lose calibration after ten windows; the median number
of windows until the alarm, the one in which the drift begins being the first. Sequences in which
the alarm comes before the drift count as false.
"""

import argparse
from math import sqrt
from pathlib import Path

import torch
from record import RESULTS, Row, circumstances, number, write
from torch import Tensor

from calibrant.evaluation import CalibrationMonitor
from calibrant.evaluation._bets import growth

LEVEL, WINDOWS, CALM = 0.05, 100, 10
SEQUENCES, DRIFTS, BLOCK = 2_000, 200, 50
SEED = 20261115


def confidences(kind: str, shape: tuple[int, int], rng: torch.Generator) -> Tensor:
    """What models say of a window."""
    if kind == "uniform":
        return torch.rand(shape, generator=rng, dtype=torch.float64)
    logits = 6 * torch.randn(*shape, 10, generator=rng, dtype=torch.float64)
    return logits.softmax(dim=-1).amax(dim=-1)


def alarms(
    kind: str, n: int, tolerance: float, gaps: list[float], sequences: int, rng: torch.Generator
) -> list[int | None]:
    """The first window of each sequence that raises one; the gap of every window is given."""
    found: list[int | None] = []
    for _ in range(sequences // BLOCK):
        monitors = [
            CalibrationMonitor(false_alarms=LEVEL, tolerance=tolerance) for _ in range(BLOCK)
        ]
        for gap in gaps:
            confidence = confidences(kind, (BLOCK, n), rng)
            chance = torch.rand(confidence.shape, generator=rng, dtype=torch.float64)
            gained = growth(confidence, (chance < confidence - gap).double(), tolerance)
            for monitor, own in zip(monitors, gained, strict=True):
                monitor.advance(own, n)
        found += [None if each.alarm is None else each.alarm.window for each in monitors]
    return found


def false_alarms(rng: torch.Generator) -> list[Row]:
    """The share of calm sequences that alarm, for several kinds of calm."""
    rows = []
    for kind, n, tolerance in [
        ("uniform", 50, 0.0),
        ("uniform", 500, 0.0),
        ("network", 50, 0.0),
        ("network", 500, 0.0),
        ("network", 500, 0.02),
    ]:
        calm = [tolerance] * WINDOWS
        found = alarms(kind, n, tolerance, calm, SEQUENCES, rng)
        share = sum(at is not None for at in found) / SEQUENCES
        error = sqrt(share * (1 - share) / SEQUENCES)
        rows.append(_row("false alarms", kind, n, tolerance, tolerance, share, error, SEQUENCES))
    return rows


def delays(rng: torch.Generator) -> list[Row]:
    """Median windows from the drift to the alarm."""
    rows = []
    for tolerance, gap in [(0.0, 0.02), (0.0, 0.05), (0.02, 0.05), (0.02, 0.1)]:
        gaps = [0.0] * CALM + [gap] * (WINDOWS - CALM)
        found = alarms("network", 500, tolerance, gaps, DRIFTS, rng)
        late = sorted(WINDOWS if at is None else at + 1 - CALM for at in found)
        rows.append(_row("delay", "network", 500, tolerance, gap, late[DRIFTS // 2], None, DRIFTS))
    return rows


def _row(
    what: str,
    kind: str,
    n: int,
    tolerance: float,
    gap: float,
    value: float,
    error: float | None,
    sequences: int,
) -> Row:
    return {
        "what": what,
        "confidences": kind,
        "n": str(n),
        "tolerance": number(tolerance),
        "gap": number(gap),
        "value": number(value),
        "error": number(error),
        "sequences": str(sequences),
        "windows": str(WINDOWS),
        **circumstances("cpu"),
    }


def main() -> None:
    """Simulate and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "monitor.csv")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(SEED)
    write(out, [*false_alarms(rng), *delays(rng)])


if __name__ == "__main__":
    main()
