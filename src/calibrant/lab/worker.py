"""Run a file of trials: `python -m calibrant.lab.worker TRIALS.jsonl --data FOLDER --store FOLDER`.

It needs torch and nothing else, for machines on which little is installed. Each line of the file
is a trial as JSON. Rows go to `STORE/rows.jsonl`, each on disk before the next trial begins; the
same command again goes on with what is left.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from ._runner import RunSettings, run_trials
from ._store import parse_lines
from ._trial import Trial


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials; 0 if none is left, 3 if some are left for another time, 2 if it cannot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", type=Path, help="a JSON object per line")
    parser.add_argument("--data", type=Path, help="the folder of data sets")
    parser.add_argument("--store", type=Path, required=True, help="the folder of results")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--workers", type=int, default=0, help="processes at once; 0: this one")
    parser.add_argument("--threads", type=int, help="of torch, in each process")
    parser.add_argument("--together", action="store_true", help="small models of a grid as one")
    parser.add_argument("--stop-after", type=float, help="seconds; begin nothing that ends later")
    given = parser.parse_args(arguments)
    try:
        trials, settings = _trials_of(given.trials), _settings_of(given)
    except (ValueError, TypeError, OSError) as wrong:
        print(f"calibrant.lab.worker: {' '.join(str(wrong).split())}", file=sys.stderr)
        return 2
    rows = run_trials(trials, settings, lambda line: print(line, flush=True))
    return 0 if len(rows) == len(set(trials)) else 3


def _trials_of(path: Path) -> list[Trial]:
    if not path.is_file():
        raise ValueError(f"TRIALS must be a file of trials; there is none at {path}.")
    # Written by hand or by another program, so the last line counts, however it ends.
    return [Trial.from_dict(line) for line in parse_lines(path, path.read_bytes())]


def _settings_of(given: argparse.Namespace) -> RunSettings:
    return RunSettings(
        data=given.data,
        store=given.store,
        workers=given.workers,
        devices=given.device.split(","),
        threads=given.threads,
        stop_after=given.stop_after,
        together=given.together,
    )


if __name__ == "__main__":
    raise SystemExit(main())
