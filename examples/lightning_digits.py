"""Interleaved training of a Lightning module. The lines marked "+" are what calibration adds."""

import pytorch_lightning as lightning
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, random_split

import calibrant as cal
from calibrant.integrations.lightning import Interleaved, best_epoch, interleaved_loader  # +


class Classifier(lightning.LightningModule):
    """A small network, as anybody writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.network(images)
        return logits

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        images, labels = batch
        return nn.functional.cross_entropy(self(images), labels)

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        images, labels = batch
        predictions = cal.Predictions(self(images), labels)
        self.log("val_accuracy", cal.accuracy(predictions))
        self.log("val_error", cal.top_label(cal.ece)(predictions))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


class Calibrated(Interleaved, Classifier):  # +
    calibration, weight = cal.top_label(cal.rooted(cal.esd)), 4.0  # +


def main(epochs: int = 20) -> lightning.Trainer:
    lightning.seed_everything(0)
    pixels, digits = load_digits(return_X_y=True)
    images = torch.from_numpy(pixels).float() / 16
    images += 0.35 * torch.randn(images.shape)
    data = TensorDataset(images, torch.from_numpy(digits))
    train, validation = random_split(data, [1400, 397])
    majority, held_out = cal.split_for_calibration(train, 0.1, seed=0)  # +

    module = Calibrated()
    trainer = lightning.Trainer(
        max_epochs=epochs,
        callbacks=[best_epoch(module)],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = DataLoader(majority, batch_size=64, shuffle=True)
    slice_ = DataLoader(held_out, batch_size=64, shuffle=True)
    trainer.fit(
        module,
        interleaved_loader(trainer, loader, slice_),  # + instead of loader
        DataLoader(validation, batch_size=397),
    )
    return trainer


if __name__ == "__main__":
    print(main().callback_metrics)
