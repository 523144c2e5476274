"""Table 1 of the ESD paper on MNIST with LeNet-5, in minutes on two cores.

    python examples/mnist_study.py FOLDER_OF_DATA

The folder holds `MNIST/raw` with the four official files. Tunes the weight of each calibration
measure on validation images, trains the chosen settings with two seeds, tests them, and writes our
table beside the paper's into `results/`. Three epochs instead of 250: a demonstration of the
machinery, whose verdicts on the paper's claims mean little with two seeds. The same from a shell:

    calibrant study run esd-table-1 --budget minutes --data FOLDER --workers 2
    calibrant study render esd-table-1 --budget minutes --results results
"""

import sys
from pathlib import Path

from calibrant.lab import STUDIES, RunSettings, Store, run_study, write_results


def main(data: Path, store: Path = Path("runs"), results: Path = Path("results")) -> None:
    """Run what is missing, and render; interrupted, it goes on where it was."""
    name, budget = "esd-table-1", "minutes"
    study = STUDIES[name]
    run_study(name, study, study.budgets[budget], RunSettings(data, store, workers=2))
    for path in write_results(name, study, budget, Store(store).rows(), results):
        print(path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
