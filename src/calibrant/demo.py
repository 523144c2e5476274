"""Handwritten digits through noise: plain training, and training that pays for miscalibration.

Run as `python -m calibrant.demo`. The interleaved procedure is that of the ESD paper: a tenth of
the training images is kept from the likelihood, and calibration is judged on it at every step.
"""

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from calibrant import (
    Criterion,
    Predictions,
    accuracy,
    brier,
    ece,
    esd,
    fit,
    fit_interleaved,
    nll,
    rooted,
    top_label,
)

try:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
    from sklearn.datasets import load_digits
except ModuleNotFoundError:
    raise SystemExit("The demo needs scikit-learn, rich: pip install 'calibrant[demo]'") from None

NOISE = 0.3  # standard deviation, where pixels run from 0 to 1
TEST, HELD_OUT = 597, 120  # images; the slice is a tenth of the 1,200 left after the test images
WEIGHT = 4.0  # of the rooted ESD, as in the authors' released script
STEPS, BATCH, RATE = 800, 64, 2e-3  # enough for plain training to fit every image it sees
SEEDS, CLEAR = 5, 2.78  # a clear change in standard errors: Student's t at 95% for five seeds

calibration = top_label(rooted(esd))

# What the table shows: the criterion, the factor to the unit shown, and the digits of it.
ROWS: dict[str, tuple[Criterion, float, str]] = {
    "accuracy, %": (accuracy, 100, ".1f"),
    "NLL": (nll, 1, ".3f"),
    "Brier score": (brier, 1, ".3f"),
    "ECE, %": (top_label(ece), 100, ".1f"),
    "ESD, thousandths": (top_label(esd), 1000, ".2f"),
}


def noisy_digits() -> tuple[TensorDataset, TensorDataset, TensorDataset]:
    """Training, held-out and test images. The noise is part of the image: drawn once."""
    pixels, digits = load_digits(return_X_y=True)
    fixed = torch.Generator().manual_seed(2024)
    images = torch.from_numpy(pixels).float() / 16
    images += NOISE * torch.randn(images.shape, generator=fixed)
    sizes = [len(images) - TEST - HELD_OUT, HELD_OUT, TEST]
    labels = torch.from_numpy(digits).long()
    parts = torch.split(torch.randperm(len(images), generator=fixed), sizes)
    majority, held_out, test = (TensorDataset(images[part], labels[part]) for part in parts)
    return majority, held_out, test


def batches(samples: TensorDataset) -> DataLoader[tuple[Tensor, ...]]:
    """Shuffled batches, each read at once and not image by image."""
    order = BatchSampler(RandomSampler(samples), BATCH, drop_last=False)
    return DataLoader(samples, sampler=order, batch_size=None)


def train(
    fitted: TensorDataset, held_out: TensorDataset | None, seed: int, advance: Callable[[int], None]
) -> nn.Module:
    """Fit a small network by likelihood and, given a held-out slice, pay for its miscalibration."""
    torch.manual_seed(seed)
    hidden = [nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()]
    model = nn.Sequential(*hidden, nn.Linear(128, 10))
    loader = batches(fitted)
    settings: dict[str, Any] = {
        "optimiser": AdamW(model.parameters(), lr=RATE, weight_decay=1e-2),
        "epochs": round(STEPS / len(loader)),
        "progress": False,
        "after_epoch": lambda _: advance(len(loader)),
    }
    if held_out is None:
        fit(model, loader, objective=nn.CrossEntropyLoss(), **settings)
    else:
        slice_ = batches(held_out)
        fit_interleaved(model, loader, slice_, calibration=calibration, weight=WEIGHT, **settings)
    return model


@torch.no_grad()
def row(model: nn.Module, test: TensorDataset) -> Tensor:
    """Every number of the table for one trained model."""
    images, labels = test.tensors
    predictions = Predictions(model(images), labels)
    return torch.stack([scale * criterion(predictions) for criterion, scale, _ in ROWS.values()])


def standard_error(values: Tensor) -> Tensor:
    return values.std() / sqrt(len(values))


def change(name: str, plain: Tensor, penalised: Tensor) -> str:
    """What the penalty did to a percentage, given its value for every seed.

    >>> change("ECE", torch.tensor([9.0, 10.0, 11.0]), torch.tensor([4.0, 5.1, 5.9]))
    'the ECE falls from 10.0% to 5.0%'
    >>> change("ECE", torch.tensor([9.0, 10.0, 11.0]), torch.tensor([12.0, 10.0, 9.0]))
    'the ECE goes from 10.0% to 10.3%, which these seeds cannot tell from chance'
    """
    difference = penalised - plain
    clear = difference.mean().abs() > CLEAR * standard_error(difference)
    verb = "goes" if not clear else "falls" if difference.mean() < 0 else "rises"
    doubt = "" if clear else ", which these seeds cannot tell from chance"
    return f"the {name} {verb} from {plain.mean():.1f}% to {penalised.mean():.1f}%{doubt}"


def main() -> None:
    """Train both ways from the same seeds, and say what the test images show."""
    torch.set_num_threads(1)  # the network is too small to share out
    console = Console()
    majority, held_out, test = noisy_digits()
    both = zip(majority.tensors, held_out.tensors, strict=True)
    everything = TensorDataset(*map(torch.cat, both))
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("training", total=2 * SEEDS * STEPS)

        def rows(fitted: TensorDataset, judged: TensorDataset | None) -> Tensor:
            advance = partial(progress.advance, task)
            models = (train(fitted, judged, seed, advance) for seed in range(SEEDS))
            return torch.stack([row(model, test) for model in models])

        plain, penalised = rows(everything, None), rows(majority, held_out)

    table = Table(title=f"{TEST} test images, {SEEDS} seeds: mean ± standard error over seeds")
    for heading in ("", "NLL", "NLL + interleaved ESD", "difference"):
        table.add_column(heading, justify="right" if heading else "left")
    for i, (name, (_, _, digits)) in enumerate(ROWS.items()):
        cells = (plain[:, i], penalised[:, i], (penalised - plain)[:, i])
        table.add_row(name, *(f"{c.mean():{digits}} ± {standard_error(c):{digits}}" for c in cells))
    console.print(table)
    said = [change(n, plain[:, i], penalised[:, i]) for n, i in (("ECE", 3), ("accuracy", 0))]
    console.print(f"With interleaved ESD {'; '.join(said)}.")


if __name__ == "__main__":
    main()
