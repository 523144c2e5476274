import torch
from test_summary import drawn
from torch.testing import assert_close
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy

from calibrant.evaluation._summary import Summary
from calibrant.integrations.torchmetrics import CalibrationMetrics


def test_is_the_summary_of_all_batches() -> None:
    logits, labels = drawn(500, seed=0)
    metric = CalibrationMetrics(classes=4)
    for part in torch.arange(500).split(130):
        metric.update(logits[part], labels[part])
    expected = Summary(4).update(logits, labels).values()
    for name, value in metric.compute().items():
        assert_close(value.item(), expected[name].value)


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


def test_joins_a_collection() -> None:
    collection = MetricCollection(
        {"calibration": CalibrationMetrics(classes=4), "accuracy": MulticlassAccuracy(4)}
    )
    collection.update(*drawn(60, seed=0))
    assert {"accuracy", "calibration_ece", "calibration_esd"} <= set(collection.compute())
