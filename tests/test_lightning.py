"""Interleaved training inside Lightning."""

import pickle
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
from calibrant.integrations._lightning_package import package_of
from calibrant.integrations.lightning import Interleaved, best_epoch, interleaved_loader

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


def pair() -> tuple[DataLoader[Any], DataLoader[Any]]:
    return DataLoader(samples(60), batch_size=12), DataLoader(samples(20, 1), batch_size=10)


class WithoutIndex(Classifier):
    def training_step(self, batch: list[Tensor]) -> Any:  # type: ignore[override]
        return super().training_step(batch, 0)


class AnyArguments(Classifier):
    def training_step(self, *given: Any) -> Any:
        return super().training_step(*given)


@pytest.mark.parametrize("base", [WithoutIndex, AnyArguments])
def test_a_step_takes_the_arguments_that_lightning_lets_it_take(base: type[Classifier]) -> None:
    kind: Any = type("Mixed", (Interleaved, base), {"calibration": CALIBRATION, "weight": 2.0})
    module, run = kind(), trainer(max_epochs=1)
    run.fit(module, interleaved_loader(run, *pair()))
    assert_close(module.network.state_dict(), by_hand(CALIBRATION))


class Skipping(Classifier):
    def training_step(self, batch: list[Tensor], batch_idx: int) -> Any:
        return None if batch_idx == 1 else super().training_step(batch, batch_idx)


@pytest.mark.filterwarnings("ignore:.*returned `None`.*")
def test_a_skipped_batch_is_skipped_by_calibration_too() -> None:
    kind: Any = type("Mixed", (Interleaved, Skipping), {"calibration": CALIBRATION})
    module, run = kind(), trainer(max_epochs=1)
    vars(module)["weight"] = weight = GrowingWeight()
    run.fit(module, interleaved_loader(run, *pair()))
    assert [told.step for told in weight.told] == [0, 2, 3, 4]


class Manual(Classifier):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False


def test_a_module_that_steps_by_itself_is_refused_where_its_loss_would_be_lost() -> None:
    kind: Any = type("Mixed", (Interleaved, Manual), {"calibration": CALIBRATION, "weight": 2.0})
    run = trainer(max_epochs=1)
    with pytest.raises(TypeError, match="Mixed must leave the backward pass to Lightning"):
        run.fit(kind(), interleaved_loader(run, *pair()))


def no_number(predictions: cal.Predictions) -> Tensor:
    return float("nan") * cal.nll(predictions)


class Normalised(Classifier):
    """With running statistics, and a loss that ceases to be a number."""

    fails = False

    def __init__(self) -> None:
        super().__init__()
        self.network = network(batch_norm=True, dropout=0)
        self.before: dict[str, Tensor] = {}

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Any:
        self.before = {name: part.clone() for name, part in self.state_dict().items()}
        loss = super().training_step(batch, batch_idx)
        return loss * float("inf") if self.fails and batch_idx == 1 else loss


@pytest.mark.parametrize(
    ("fails", "calibration", "sentence"),
    [
        (False, no_number, r"the calibration loss must be finite; got nan at step 0\. The model"),
        (True, CALIBRATION, r"the fit loss must be finite; got inf at step 1\. The model and its"),
    ],
)
def test_a_loss_that_is_not_finite_stops_the_run_and_leaves_the_module_as_it_was(
    fails: bool, calibration: cal.Criterion, sentence: str
) -> None:
    kind: Any = type("Mixed", (Interleaved, Normalised), {"fails": fails})
    module, weight = kind(), GrowingWeight()
    vars(module).update(calibration=calibration, weight=weight)
    run = trainer(max_epochs=1)
    with pytest.raises(FloatingPointError, match=sentence):
        run.fit(module, interleaved_loader(run, *pair()))
    assert same(dict(module.state_dict()), module.before)
    assert len(weight.told) == int(fails)


def test_a_criterion_without_a_gradient_is_refused() -> None:
    module, run = Calibrated(), trainer(max_epochs=1)
    vars(module)["calibration"] = cal.accuracy
    with pytest.raises(ValueError, match="through something differentiable"):
        run.fit(module, interleaved_loader(run, *pair()))


@pytest.mark.parametrize("settings", [{"precision": "bf16-mixed"}, {"gradient_clip_val": 0.01}])
def test_precision_and_clipping_are_lightnings(settings: dict[str, Any]) -> None:
    module, run = Calibrated(), trainer(max_epochs=1, **settings)
    start = {name: part.clone() for name, part in module.state_dict().items()}
    run.fit(module, interleaved_loader(run, *pair()))
    moved = max((part - start[name]).norm().item() for name, part in module.state_dict().items())
    assert moved > 0
    assert moved < (1.0 if "precision" in settings else 5 * 0.1 * 0.01 + 1e-6)


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


def test_a_step_in_the_class_itself_would_replace_the_calibrated_one() -> None:
    bases = (Interleaved, lightning.LightningModule)
    with pytest.raises(
        TypeError, match=r"got Both with a training_step of its own.*\(Interleaved,"
    ):
        type("Both", bases, {"training_step": Classifier.training_step})
    template = type("Template", bases, {})  # which has no step yet
    assert issubclass(template, Interleaved)


def test_a_weight_that_learns_is_not_shared_by_the_modules_of_a_class() -> None:
    sentence = r"got one for all modules of Shared\. Make it in __init__: self\.weight = Adaptive"
    with pytest.raises(TypeError, match=sentence):
        type("Shared", (Interleaved, Classifier), {"weight": cal.AdaptiveWeight()})


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


def judged_fit(module: Judged, *callbacks: Any, epochs: int = 5, **settings: Any) -> Any:
    run = trainer(max_epochs=epochs, callbacks=list(callbacks))
    run.fit(
        module,
        DataLoader(samples(60), batch_size=30),
        DataLoader(samples(10), batch_size=10),
        **settings,
    )
    return run


def test_a_second_run_of_the_same_callback_forgets_the_first() -> None:
    first, second = Judged(), Judged()
    callback = best_epoch(first)
    judged_fit(first, callback)
    with torch.no_grad():
        second.network[0].weight.zero_()  # type: ignore[index]
    judged_fit(second, callback, epochs=2)
    assert [epoch.accuracy for epoch in callback.epochs] == pytest.approx([0.5, 0.8])
    assert same(dict(second.state_dict()), second.kept[1])


def test_validating_by_itself_is_no_epoch_of_a_run() -> None:
    module = Judged()
    callback = best_epoch(module)
    data = DataLoader(samples(10), batch_size=10)
    trainer(callbacks=[callback]).validate(module, data, verbose=False)
    judged_fit(module, callback)
    trainer(callbacks=[callback]).validate(module, data, verbose=False)
    assert len(callback.epochs) == 5
    assert callback.best.number == 2


def test_a_resumed_run_knows_the_epochs_before_it(tmp_path: Path) -> None:
    whole = Judged()
    judged_fit(whole, best_epoch(whole))
    first = Judged()
    run = judged_fit(first, best_epoch(first), epochs=3)
    first.load_state_dict(first.kept[2])
    run.save_checkpoint(tmp_path / "three.ckpt")
    rest = Judged()
    callback = best_epoch(rest)
    judged_fit(rest, callback, ckpt_path=tmp_path / "three.ckpt", weights_only=True)
    course = [right for right, _ in Judged.course]
    assert [epoch.accuracy for epoch in callback.epochs] == pytest.approx(course)
    assert callback.best.number == 2
    assert same(dict(rest.state_dict()), dict(whole.state_dict()))


def test_the_callback_goes_to_processes_that_are_spawned() -> None:
    callback = best_epoch(Judged(), cal.training.Selection(margin=0.3), error="val_ece")
    callback.epochs.append(1)
    again = pickle.loads(pickle.dumps(callback))
    assert type(again) is type(callback)
    assert (again.names, again.selection, again.epochs) == (
        ("val_accuracy", "val_ece"),
        callback.selection,
        [1],
    )


def test_a_number_the_module_does_not_log_is_named() -> None:
    module = Judged()
    run = trainer(max_epochs=1, callbacks=[best_epoch(module, error="val_ece")])
    data = DataLoader(samples(60), batch_size=30)
    with pytest.raises(ValueError, match="got no val_ece"):
        run.fit(module, data, DataLoader(samples(10), batch_size=10))


def test_either_package_is_told_by_its_classes() -> None:
    assert package_of(Classifier()) == "pytorch_lightning"
    unified = type("LightningModule", (), {"__module__": "lightning.pytorch.core.module"})
    assert package_of(type("Mine", (unified,), {})()) == "lightning.pytorch"
    with pytest.raises(TypeError, match="must be a LightningModule or a Trainer"):
        package_of(nn.Linear(2, 2))


def test_the_example_runs() -> None:
    run = runpy.run_path(str(EXAMPLE))["main"](epochs=2)
    assert run.callback_metrics["val_accuracy"] > 0.3
