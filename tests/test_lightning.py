"""Interleaved training inside Lightning."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils.data import DataLoader
from training_runs import CALIBRATION, GrowingWeight, network, same, samples

import calibrant as cal
from calibrant.integrations.lightning import (
    Interleaved,
    _package_of,
    best_epoch,
    interleaved_loader,
)

EXAMPLE = Path(__file__).parents[1] / "examples" / "lightning_digits.py"

# Lightning's advice on workers and logging, and a call of its own that torch has renamed.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*num_workers.*"),
    pytest.mark.filterwarnings("ignore:.*logging interval.*"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*"),
]


class Classifier(lightning.LightningModule):
    def __init__(self, returns_dictionary: bool = False) -> None:
        super().__init__()
        self.network = network(batch_norm=False, dropout=0)
        self.returns_dictionary = returns_dictionary
        self.told: list[tuple[float, float]] = []

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.network(inputs)
        return logits

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Any:
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        return {"loss": loss, "note": 1} if self.returns_dictionary else loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Calibrated(Interleaved, Classifier):
    calibration, weight = CALIBRATION, 2.0


class PlainFunction(Interleaved, Classifier):
    calibration, weight = cal.soft_avuc, 2.0


def trainer(**settings: Any) -> lightning.Trainer:
    return lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **settings,
    )


def by_hand(criterion: cal.Criterion) -> dict[str, Tensor]:
    model = network(batch_norm=False, dropout=0)
    cal.fit_interleaved(
        model,
        DataLoader(samples(60), batch_size=12),
        DataLoader(samples(20, 1), batch_size=10),
        calibration=criterion,
        weight=2.0,
        optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
        epochs=1,
    )
    return model.state_dict()


@pytest.mark.parametrize(
    ("module", "criterion"),
    [
        (Calibrated(), CALIBRATION),
        (Calibrated(returns_dictionary=True), CALIBRATION),
        (PlainFunction(), cal.soft_avuc),
    ],
)
def test_an_epoch_is_that_of_fit_interleaved(module: Classifier, criterion: cal.Criterion) -> None:
    run = trainer(max_epochs=1)
    pair = DataLoader(samples(60), batch_size=12), DataLoader(samples(20, 1), batch_size=10)
    run.fit(module, interleaved_loader(run, *pair))
    assert_close(module.network.state_dict(), by_hand(criterion))
    assert 0 < run.callback_metrics["calibration"] < 1


def test_a_weight_that_learns_is_told_of_every_step() -> None:
    module = Calibrated()
    weight = GrowingWeight()
    vars(module)["weight"] = weight
    run = trainer(max_epochs=1)
    pair = DataLoader(samples(60), batch_size=12), DataLoader(samples(20, 1), batch_size=10)
    run.fit(module, interleaved_loader(module, *pair))
    assert [told.step for told in weight.told] == [0, 1, 2, 3, 4]
    assert weight.value > 0.5


def test_an_adaptive_weight_moves_and_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    pair = DataLoader(samples(60), batch_size=12), DataLoader(samples(20, 1), batch_size=10)

    def begun() -> tuple[Calibrated, cal.AdaptiveWeight]:
        module = Calibrated()
        vars(module)["weight"] = weight = cal.AdaptiveWeight()
        return module, weight

    module, weight = begun()
    run = trainer(max_epochs=2)
    run.fit(module, interleaved_loader(run, *pair))
    assert weight.state_dict()["seen"] > 0
    run.save_checkpoint(tmp_path / "half.ckpt", weights_only=False)
    module, again = begun()
    run = trainer(max_epochs=2)
    run.fit(
        module, interleaved_loader(run, *pair), ckpt_path=tmp_path / "half.ckpt", weights_only=False
    )
    assert again.value == weight.value


def test_the_module_must_come_after_interleaved() -> None:
    sentence = (
        "Interleaved must stand before the module it adds to; got Wrong with Classifier "
        r"before it\. Write class Wrong\(Interleaved, Classifier\)\."
    )
    with pytest.raises(TypeError, match=sentence):
        type("Wrong", (Classifier, Interleaved), {})

    class Noted(Calibrated):  # one that goes on from the step is no mistake
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return super().training_step(batch, batch_idx)

    assert Noted.__mro__[2] is Interleaved


class WithoutCalibration(Interleaved, Classifier):
    weight = 2.0


class WithoutWeight(Interleaved, Classifier):
    calibration = CALIBRATION


@pytest.mark.parametrize("module", [WithoutCalibration, WithoutWeight])
def test_a_module_without_calibration_or_weight_is_told(module: type[Classifier]) -> None:
    missing = module.__name__.removeprefix("Without").lower()
    pair = DataLoader(samples(60), batch_size=12), DataLoader(samples(20, 1), batch_size=10)
    run = trainer(max_epochs=1)
    with pytest.raises(TypeError, match=f"got no {missing}\\. Write {missing} = "):
        run.fit(module(), interleaved_loader(run, *pair))


def test_a_loader_of_plain_batches_is_refused() -> None:
    plain = DataLoader(samples(60), batch_size=12)
    with pytest.raises(TypeError, match=r"fit and calibration; got list\. .*interleaved_loader\("):
        trainer(max_epochs=1).fit(Calibrated(), plain)


class Judged(Classifier):
    """Logs accuracies and errors laid down in advance."""

    course = ((0.5, 0.1), (0.80, 0.05), (0.812, 0.07), (0.82, 0.09), (0.70, 0.01))

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        right, wrong = self.course[self.current_epoch]
        self.log("val_accuracy", right)
        self.log("val_error", wrong)
        if not self.trainer.sanity_checking:
            self.kept = {**getattr(self, "kept", {}), self.current_epoch: self._copy()}

    def _copy(self) -> dict[str, Tensor]:
        return {name: part.clone() for name, part in self.state_dict().items()}


def test_the_module_ends_with_the_epoch_the_rule_chooses() -> None:
    module = Judged()
    callback: Any = best_epoch(module)
    assert lightning.Callback in type(callback).__mro__
    run = trainer(max_epochs=5, callbacks=[callback])
    data = DataLoader(samples(60), batch_size=30)
    run.fit(module, data, DataLoader(samples(10), batch_size=10))
    assert callback.best.number == 2  # second to 1 until 3 was more accurate than 1 by too much
    assert same(dict(module.state_dict()), module.kept[2])
    fresh = best_epoch(module)
    fresh.load_state_dict(callback.state_dict())
    assert same(fresh.keeper.kept, callback.keeper.kept)
    assert fresh.epochs[1].accuracy == callback.epochs[1].accuracy


def test_a_number_the_module_does_not_log_is_named() -> None:
    module = Judged()
    run = trainer(max_epochs=1, callbacks=[best_epoch(module, error="val_ece")])
    data = DataLoader(samples(60), batch_size=30)
    with pytest.raises(ValueError, match="got no val_ece"):
        run.fit(module, data, DataLoader(samples(10), batch_size=10))


def test_either_package_is_told_by_its_classes() -> None:
    assert _package_of(Classifier()) == "pytorch_lightning"
    unified = type("LightningModule", (), {"__module__": "lightning.pytorch.core.module"})
    assert _package_of(type("Mine", (unified,), {})()) == "lightning.pytorch"
    with pytest.raises(TypeError, match="must be a LightningModule or a Trainer"):
        _package_of(nn.Linear(2, 2))


def test_the_example_runs() -> None:
    run = runpy.run_path(str(EXAMPLE))["main"](epochs=2)
    assert run.callback_metrics["val_accuracy"] > 0.3
