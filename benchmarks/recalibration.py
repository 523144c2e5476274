"""Time and likelihood of fitted recalibrators on the CPU: ours beside the peers', in one run.

In the environment that `evaluation.py` describes:

    peers/bin/python benchmarks/recalibration.py [--quick] [--methods temperature vector] \
        [--threads 1] [--out FILE.csv]

Every library fits the same logits; the likelihood is judged on them, where a fit can be compared
with the best there is, and on as many others.
"""

import argparse
import time
import warnings
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from recalibration_fits import FITS, PACKAGES, Map
from record import RESULTS, Row, circumstances, number, write
from timing import Spread
from torch import Tensor

SIZES = [(5_000, 10), (10_000, 100), (25_000, 1_000)]
# Longer than this and a fit is made once; longer than that at a smaller size, and it is not.
_ONCE, _NEVER = 8.0, 120.0
_ROUNDS = 3


@dataclass
class Fitted:
    """What was seen of one library's fit."""

    samples: list[float] = field(default_factory=list)
    nll: float | None = None
    nll_held_out: float | None = None
    note: str = ""


def main() -> None:
    """Fit every method by every library at every size, by turns, and write as it goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/, unless --quick")
    parser.add_argument("--quick", action="store_true", help="the smallest size only")
    parser.add_argument("--methods", nargs="+", default=list(FITS), choices=list(FITS))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    out: Path | None = options.out
    if out is None and not options.quick:
        out = RESULTS / "recalibration-cpu.csv"
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")  # the peers' own
    rows: list[Row] = []
    took: dict[tuple[str, str], float] = {}
    for n, classes in SIZES[:1] if options.quick else SIZES:
        data = predictions(2 * n, classes)
        for method in options.methods:
            found = compare(method, data, took)
            rows += described(method, n, classes, found)
            for library, seen in found.items():
                print(_line(method, n, classes, library, seen), flush=True)
            if out is not None:
                write(out, rows)


def predictions(n: int, classes: int) -> tuple[Tensor, Tensor]:
    """Over-confident logits, a class or two ahead of the rest, right about three times in four."""
    rng = torch.Generator().manual_seed(20261115)
    logits = torch.randn(n, classes, generator=rng)
    favourite = torch.randint(classes, (n, 1), generator=rng)
    lead = 4 + 2 * torch.randn(n, 1, generator=rng)
    logits.scatter_add_(1, favourite, lead)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    return 2.5 * logits + 0.3 * torch.randn(classes, generator=rng), labels


def compare(
    method: str, data: tuple[Tensor, Tensor], took: dict[tuple[str, str], float]
) -> dict[str, Fitted]:
    """All libraries' fits of one method: once each for the likelihood, then by turns."""
    logits, labels = data
    fitting, held_out = (logits[::2].clone(), labels[::2]), (logits[1::2].clone(), labels[1::2])
    # Few classes, so that a method which needs samples of every class has them.
    small = (fitting[0][:200, :4].contiguous(), fitting[1][:200] % 4)
    found = {library: Fitted() for library in FITS[method]}
    for turn in range(_ROUNDS):
        for library, fit in FITS[method].items():
            seen = found[library]
            if seen.note or (seen.samples and seen.samples[0] > _ONCE):
                continue
            growth = fitting[0].numel() / took.get(("size", library), fitting[0].numel())
            if turn == 0 and took.get((method, library), 0.0) * growth > _NEVER:
                seen.note = "too slow, not run"
                continue
            try:
                if turn == 0:
                    fit(*small)  # libraries are imported by whoever comes first
                start = _clock()
                fitted = fit(*fitting)
                seen.samples.append(_clock() - start)
                if turn == 0:
                    seen.nll, seen.nll_held_out = (
                        _nll(fitted, *part) for part in (fitting, held_out)
                    )
                    took[method, library] = seen.samples[0]
                    took["size", library] = float(fitting[0].numel())
            except Exception as reason:
                first = (str(reason).splitlines() or [""])[0]
                seen.note = f"fails: {type(reason).__name__}: {first[:80]}"
    return found


def described(method: str, n: int, classes: int, found: dict[str, Fitted]) -> list[Row]:
    """A row for each library, with its ratio to ours."""
    ours = found["calibrant"]
    rows = []
    for library, seen in found.items():
        spread = Spread.of([1e3 * each for each in seen.samples]) if seen.samples else None
        times = None
        if seen.samples and ours.samples:
            times = Spread.of(seen.samples).median / Spread.of(ours.samples).median
        rows.append(
            {
                "method": method,
                "n": str(n),
                "classes": str(classes),
                "library": library,
                "version": _version(library),
                "ms_median": number(spread.median if spread else None),
                "ms_quartile_low": number(spread.low if spread else None),
                "ms_quartile_high": number(spread.high if spread else None),
                "rounds": str(len(seen.samples)),
                "times_ours": number(times),
                "nll": "" if seen.nll is None else f"{seen.nll:.12g}",
                "nll_held_out": "" if seen.nll_held_out is None else f"{seen.nll_held_out:.9g}",
                "note": seen.note,
                "device": "cpu",
                **circumstances("cpu"),
            }
        )
    return rows


def _nll(fitted: Map, logits: Tensor, labels: Tensor) -> float:
    chances = torch.as_tensor(fitted(logits)).double()
    truth = chances.gather(1, labels[:, None])[:, 0]
    return float(-truth.clamp(min=1e-12).log().mean())


def _clock() -> float:
    """Processor time on one thread, which other work on the machine does not lengthen."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def _version(library: str) -> str:
    try:
        return version(PACKAGES[library]) if library in PACKAGES else ""
    except PackageNotFoundError:
        return ""


def _line(method: str, n: int, classes: int, library: str, seen: Fitted) -> str:
    size = f"{method}, {n:,} x {classes:,}, {library}"
    if not seen.samples:
        return f"{size}: {seen.note}"
    return f"{size}: {1e3 * Spread.of(seen.samples).median:.1f} ms, nll {seen.nll:.9f} {seen.note}"


if __name__ == "__main__":
    main()
