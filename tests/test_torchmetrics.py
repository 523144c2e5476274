from collections.abc import Callable

import pytest
import pytorch_lightning as lightning
import torch
from test_summary import drawn
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy

from calibrant.evaluation._summary import Summary
from calibrant.integrations.torchmetrics import MEASURED, CalibrationMetric, CalibrationMetrics


def test_is_the_summary_of_all_batches() -> None:
    logits, labels = drawn(500, seed=0)
    metric = CalibrationMetrics(classes=4)
    for part in torch.arange(500).split(130):
        metric.update(logits[part], labels[part])
    expected = Summary(4).update(logits, labels).values()
    for name, value in metric.compute().items():
        assert_close(value.item(), expected[name].value)


def test_probabilities_are_taken_where_that_is_said() -> None:
    logits, labels = drawn(90, seed=0)
    metrics = MetricCollection(
        {"all": CalibrationMetrics(classes=4), "ece": CalibrationMetric("ece", classes=4)}
    )
    metrics(logits.softmax(dim=1), labels, probabilities=True)
    expected = Summary(4).update(logits.softmax(dim=1), labels, probabilities=True).values()
    found = metrics.compute()
    assert found["ece"].item() == expected["ece"].value
    assert found["all_brier"].item() == expected["brier"].value


def test_states_of_processes_add_up() -> None:
    """What `dist_reduce_fx="sum"` does: the sum of two states is the state of both."""
    parts = [drawn(60, seed=i) for i in range(2)]
    both, apart = CalibrationMetrics(classes=4), [CalibrationMetrics(classes=4) for _ in range(2)]
    for metric, part in zip(apart, parts, strict=True):
        metric.update(*part)
        both.update(*part)
    for name, reduce in both._reductions.items():
        stacked = torch.stack([getattr(metric, name) for metric in apart])
        assert callable(reduce)
        assert_close(reduce(stacked), getattr(both, name))


def test_a_batch_of_which_a_filter_left_nothing_is_no_error() -> None:
    logits, labels = drawn(60, seed=0)
    metric, kept = CalibrationMetrics(classes=4), CalibrationMetrics(classes=4)
    metric.update(logits[:0], labels[:0])
    for each in (metric, kept):
        each.update(logits, labels)
    metric.update(logits[:0], labels[:0])
    assert_close(metric.compute(), kept.compute())


def test_resets_and_forwards() -> None:
    metric = CalibrationMetrics(classes=4)
    first = metric(*drawn(60, seed=0))
    metric.reset()
    again = metric(*drawn(60, seed=0))
    assert_close(again, first)
    metric(*drawn(60, seed=1))
    assert len(metric._filled()) == 120


def test_state_is_small_and_survives_a_checkpoint() -> None:
    metric = CalibrationMetrics(classes=4)
    metric.persistent(True)
    metric.update(*drawn(60, seed=0))
    kept = metric.state_dict()
    assert sum(part.numel() for part in kept.values()) < 50_000
    fresh = CalibrationMetrics(classes=4)
    fresh.persistent(True)
    fresh.load_state_dict(kept)
    fresh._update_count = 1
    assert_close(fresh.compute(), metric.compute())


Change = Callable[[nn.Module, CalibrationMetrics], object]
CHANGES_OF_TYPE: dict[str, Change] = {
    "set_dtype": lambda _, metric: metric.set_dtype(torch.float16),
    "set_dtype by name": lambda _, metric: metric.set_dtype("torch.HalfTensor"),
    "set_dtype to bfloat16": lambda _, metric: metric.set_dtype(torch.bfloat16),
    "its to": lambda _, metric: metric.to(torch.float16),
    "its half": lambda _, metric: metric.half(),
    "to": lambda model, _: model.to(torch.float16),
    "to bfloat16": lambda model, _: model.to(torch.bfloat16),
    "half": lambda model, _: model.half(),
    "bfloat16": lambda model, _: model.bfloat16(),
    "float": lambda model, _: model.float(),
    "double": lambda model, _: model.double(),
}


@pytest.mark.parametrize("change", CHANGES_OF_TYPE.values(), ids=CHANGES_OF_TYPE)
@pytest.mark.parametrize("before", [0, 2_500])
def test_counts_stay_right_in_whatever_type_is_asked_for(change: Change, before: int) -> None:
    """Of the metric, or of a model that it is part of."""
    logits, labels = drawn(5_000, seed=0)
    metric = CalibrationMetrics(classes=4)
    model = nn.ModuleDict({"layer": nn.Linear(2, 2), "metric": metric})
    if before:
        metric.update(logits[:before], labels[:before])
    change(model, metric)
    metric.update(logits[before:], labels[before:])
    expected = Summary(4).update(logits, labels).values()
    assert len(metric._filled()) == 5_000
    for name, value in metric.compute().items():
        assert_close(value.item(), expected[name].value, rtol=1e-12, atol=1e-12)
    found = metric.compute()
    change(model, metric)  # after which the answer is still known
    assert_close(metric.compute(), found, rtol=0, atol=0)
    metric.reset()
    change(model, metric)
    metric.update(logits, labels)
    assert_close(metric.compute()["ece"].item(), expected["ece"].value, rtol=1e-12, atol=1e-12)


def test_the_layers_of_a_model_change_their_type_beside_it() -> None:
    model = nn.ModuleDict({"layer": nn.Linear(2, 2), "metric": CalibrationMetrics(classes=4)})
    assert {part.dtype for part in model.to(torch.float16).parameters()} == {torch.float16}


def test_states_move_to_another_device() -> None:
    metric = CalibrationMetrics(classes=4)
    metric.to("meta")
    assert metric.device.type == "meta"
    for name in metric._summary.state:
        for part in (getattr(metric, name), metric._defaults[name]):
            assert isinstance(part, Tensor)
            assert (part.device.type, part.dtype) == ("meta", torch.float64)


def test_joins_a_collection() -> None:
    collection = MetricCollection(
        {"calibration": CalibrationMetrics(classes=4), "accuracy": MulticlassAccuracy(4)}
    )
    collection.update(*drawn(60, seed=0))
    assert {"accuracy", "calibration_ece", "calibration_esd"} <= set(collection.compute())


def test_one_measure_is_that_of_all() -> None:
    every = CalibrationMetrics(classes=4)
    every.update(*drawn(60, seed=0))
    for name in MEASURED:
        one = CalibrationMetric(name, classes=4)
        one.update(*drawn(60, seed=0))
        assert_close(one.compute(), every.compute()[name])


def test_a_collection_keeps_the_state_once() -> None:
    apart = {name: CalibrationMetric(name, classes=4) for name in ("ece", "esd", "nll")}
    collection = MetricCollection({name: metric.clone() for name, metric in apart.items()})
    for seed in range(3):
        batch = drawn(60, seed=seed)
        collection.update(*batch)
        for metric in apart.values():
            metric.update(*batch)
    assert len(collection.compute_groups) == 1
    assert_close(collection.compute(), {name: metric.compute() for name, metric in apart.items()})


def test_too_few_samples_are_not_a_number_and_do_not_end_the_training() -> None:
    metric = CalibrationMetrics(classes=4)
    assert all(value.isnan() for value in metric(*drawn(2, seed=0)).values())
    metric.update(*drawn(60, seed=1))
    assert not any(value.isnan() for value in metric.compute().values())


def test_an_unknown_measure_gets_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"measure must be one of accuracy, .*; got 'smooth_ece'"):
        CalibrationMetric("smooth_ece", classes=4)


class Logging(lightning.LightningModule):
    """Logs a metric, a collection of them, and the dictionary of one, in the ways there are."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 4)
        self.ece = CalibrationMetric("ece", classes=4)
        ordered = {name: CalibrationMetric(name, classes=4) for name in ("esd", "ks_error")}
        self.some = MetricCollection({"top": MulticlassAccuracy(4), **ordered})
        self.every = CalibrationMetrics(classes=4)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        inputs, labels = batch
        return nn.functional.cross_entropy(self.layer(inputs), labels)

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        inputs, labels = batch
        logits = self.layer(inputs)
        self.ece(logits, labels)
        self.log("ece", self.ece)
        self.some.update(logits, labels)
        self.log_dict(self.some)
        self.every.update(logits, labels)

    def on_validation_epoch_end(self) -> None:
        self.log_dict({f"every/{name}": value for name, value in self.every.compute().items()})
        self.every.reset()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.:FutureWarning")
@pytest.mark.filterwarnings("ignore:The .* does not have many workers")
@pytest.mark.filterwarnings("ignore:GPU available but not used")
def test_lightning_logs_the_value_of_the_whole_epoch() -> None:
    torch.manual_seed(0)
    inputs, labels = torch.randn(50, 6), torch.randint(4, (50,))
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=16)  # the last batch holds two
    model = Logging()
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader, loader)
    expected = Summary(4).update(model.layer(inputs).detach(), labels).values()
    logged = trainer.callback_metrics
    for name in ("ece", "esd", "ks_error"):
        assert_close(logged[name].item(), expected[name].value, rtol=1e-5, atol=1e-7)
    for name, bounded in expected.items():
        assert_close(logged[f"every/{name}"].item(), bounded.value, rtol=1e-5, atol=1e-7)
