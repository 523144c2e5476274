"""Bad input to training: a sentence, the model as it was, the checkpoint untouched."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from training_runs import CALIBRATION, loader, network, same, samples

import calibrant as cal


def poisoned(n: int, bad: int) -> TensorDataset:
    """Samples of which one has a missing value."""
    inputs, labels = samples(n).tensors
    inputs = inputs.clone()
    inputs[bad, 0] = float("nan")
    return TensorDataset(inputs, labels)


def one_class(n: int) -> TensorDataset:
    return TensorDataset(samples(n).tensors[0], torch.full((n,), 2))


def refused(
    kind: type[Exception],
    sentence: str,
    checkpoint: Path,
    *,
    change: Callable[[nn.Module], object] = lambda model: None,
    **settings: Any,
) -> None:
    """After two good epochs another is asked for that cannot be; nothing may change."""
    good: dict[str, Any] = {
        "train_loader": DataLoader(samples(60), batch_size=12),
        "calibration_loader": DataLoader(samples(20, 1), batch_size=10),
        "calibration": CALIBRATION,
        "weight": 1.0,
    }
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    file: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": 1, "optimiser": optimiser}
    cal.fit_interleaved(model, **good, **file, epochs=2)
    change(model)
    before = {name: part.clone() for name, part in model.state_dict().items()}
    momenta = [state["momentum_buffer"].clone() for state in optimiser.state.values()]
    modes = [module.training for module in model.modules()]
    written = checkpoint.read_bytes()
    with pytest.raises(kind, match=sentence):
        cal.fit_interleaved(model, **(good | file | {"epochs": 3} | settings))
    assert same(model.state_dict(), before)
    assert same([state["momentum_buffer"] for state in optimiser.state.values()], momenta)
    assert [module.training for module in model.modules()] == modes
    assert checkpoint.read_bytes() == written
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())


@pytest.mark.parametrize("checked", ["fit", "calibration"])
def test_a_loss_that_is_not_a_number(checked: str, tmp_path: Path) -> None:
    def broken(predictions: cal.Predictions) -> Tensor:
        return float("nan") * cal.nll(predictions)

    setting: dict[str, Any] = {checked: broken}
    refused(
        FloatingPointError,
        f"the {checked} loss must be finite; got nan at step 10 in epoch 2. The model and its",
        tmp_path / "run.pt",
        **setting,
    )


def test_a_gradient_that_is_not_a_number(tmp_path: Path) -> None:
    def broken(predictions: cal.Predictions) -> Tensor:
        zero = (predictions.confidence - predictions.confidence.detach()).sum()
        return cal.nll(predictions) + zero.abs().sqrt()

    refused(
        FloatingPointError, "the gradient must be finite; got nan", tmp_path / "run.pt", fit=broken
    )


def test_a_missing_value_in_a_batch_leaves_running_statistics_alone(tmp_path: Path) -> None:
    """The checkpoint is that of the last good step, and so is the model."""
    model = network(dropout=0)
    file = tmp_path / "run.pt"
    with pytest.raises(FloatingPointError, match="got nan at step 3 in epoch 0"):
        cal.fit(
            model,
            DataLoader(poisoned(60, 40), batch_size=12),
            objective=nn.CrossEntropyLoss(),
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=1,
            checkpoint=file,
            checkpoint_every=1,
        )
    kept = torch.load(file, weights_only=True)
    assert kept["steps"] == 3
    assert same(dict(kept["model"]), dict(model.state_dict()))
    assert all(part.isfinite().all() for part in model.state_dict().values())


def test_a_batch_that_cannot_be_judged(tmp_path: Path) -> None:
    inputs, labels = samples(60).tensors
    refused(
        ValueError,
        "labels must lie between 0 and 2",
        tmp_path / "run.pt",
        train_loader=[(inputs, labels + 1)],
    )


def test_a_slice_shorter_than_one_batch(tmp_path: Path) -> None:
    short = DataLoader(samples(9), batch_size=10, drop_last=True)
    refused(
        ValueError,
        "calibration_loader must yield at least one batch; got none. With drop_last=True",
        tmp_path / "run.pt",
        calibration_loader=short,
    )
    with pytest.raises(ValueError, match="must yield at least one batch; got none"):
        next(iter(cal.interleave(loader(samples(60)), short)))


@pytest.mark.parametrize("which", ["train_loader", "calibration_loader"])
def test_labels_that_are_all_the_same(which: str, tmp_path: Path) -> None:
    setting: dict[str, Any] = {which: DataLoader(one_class(30), batch_size=10)}
    refused(
        ValueError,
        f"labels of {which} must name two classes or more; got 2 for every sample",
        tmp_path / "run.pt",
        **setting,
    )


def test_a_rare_class_is_no_reason_to_stop() -> None:
    inputs = samples(60).tensors[0]
    labels = torch.zeros(60, dtype=torch.long)
    labels[-1] = 1
    model = network()
    cal.fit(
        model,
        DataLoader(TensorDataset(inputs, labels), batch_size=12),
        objective=nn.CrossEntropyLoss(),
        optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
        epochs=1,
    )


def test_a_model_in_evaluation_mode(tmp_path: Path) -> None:
    refused(
        ValueError,
        "model must be in training mode; got evaluation mode",
        tmp_path / "run.pt",
        change=lambda model: model.eval(),
    )


def test_a_model_with_nothing_to_train(tmp_path: Path) -> None:
    refused(
        ValueError,
        "model must have parameters that require a gradient; got none",
        tmp_path / "run.pt",
        change=lambda model: model.requires_grad_(False),
    )


def test_an_optimiser_of_another_model(tmp_path: Path) -> None:
    other = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    refused(ValueError, "optimiser must hold parameters", tmp_path / "run.pt", optimiser=other)


@pytest.mark.parametrize(
    ("kind", "sentence", "settings"),
    [
        (ValueError, "schedule must be 'every_step' or", {"schedule": "alternate"}),
        (ValueError, "batch_norm must be 'update' or", {"batch_norm": "eval"}),
        (ValueError, "concatenate must be False where BatchNorm", {"concatenate": True}),
        (ValueError, "'two_phase'", {"concatenate": True, "schedule": "two_phase"}),
        (ValueError, "of your own", {"concatenate": True, "forward": lambda model, batch: None}),
        (ValueError, "weight must be finite and not negative", {"weight": -1.0}),
        (TypeError, "weight must be a number, or have", {"weight": "4"}),
        (TypeError, r"the class AdaptiveWeight. Pass Adapt", {"weight": cal.AdaptiveWeight}),
        (TypeError, "calibration must be a function; got 'esd'", {"calibration": "esd"}),
        (TypeError, "fit must be a criterion, which takes", {"fit": nn.CrossEntropyLoss()}),
        (ValueError, "same weight; got another: 1.0, and here 2.0", {"weight": 2.0}),
        (ValueError, "1.0, and here AdaptiveWeight", {"weight": cal.AdaptiveWeight()}),
        (ValueError, "those the checkpoint has begun, 2; got 1. Pass epochs=2", {"epochs": 1}),
        (ValueError, "same validation_loader; got another: None", {"validation_loader": [1]}),
        (ValueError, "something differentiable", {"fit": cal.accuracy}),
        (ValueError, "epochs must be a whole number", {"epochs": 0}),
        (ValueError, "checkpoint_every must be a whole number", {"checkpoint_every": 0}),
        (ValueError, "clip must be above 0", {"clip": 0.0}),
        (ValueError, "selection must come with a", {"selection": cal.Selection()}),
        (ValueError, "lr_every must be 'epoch' or 'step'", {"lr_every": "batch"}),
        (TypeError, "train_loader must begin anew", {"train_loader": iter([1, 2])}),
        (TypeError, "a batch must be a pair", {"train_loader": [{"x": 1, "y": 2}]}),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_settings_that_make_no_sense(
    kind: type[Exception], sentence: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    refused(kind, sentence, tmp_path / "run.pt", **settings)


def test_a_schedule_that_waits_for_a_number(tmp_path: Path) -> None:
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(TypeError, match="got ReduceLROnPlateau"):
        cal.fit(
            model,
            loader(samples(60)),
            objective=nn.CrossEntropyLoss(),
            optimiser=optimiser,
            epochs=1,
            lr_schedule=torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser),
        )


def test_held_out_batches_of_one_sample(tmp_path: Path) -> None:
    refused(
        ValueError,
        "batches of calibration_loader must hold at least 2 samples",
        tmp_path / "run.pt",
        calibration_loader=DataLoader(samples(20), batch_size=1),
    )


@pytest.mark.parametrize(
    ("sentence", "settings"),
    [
        (r"got CrossEntropyLoss\(\), which takes input, target\.", {"fit": nn.CrossEntropyLoss()}),
        ("calibration must be a criterion", {"calibration": nn.functional.cross_entropy}),
        (r"got AdaptiveWeight\. One that finds itself", {"weight": cal.AdaptiveWeight()}),
        ("weight must be a number; got str", {"weight": "1"}),
    ],
)
@pytest.mark.parametrize("objective", [cal.Penalised, cal.LinearPenalised])
@pytest.mark.usefixtures("unchecked_types")
def test_objectives_of_parts_that_do_not_fit(
    objective: Callable[..., nn.Module], sentence: str, settings: dict[str, Any]
) -> None:
    good = {"fit": cal.nll, "calibration": CALIBRATION, "weight": 1.0}
    with pytest.raises(TypeError, match=sentence):
        objective(**(good | settings))


@pytest.mark.usefixtures("unchecked_types")
def test_every_criterion_and_a_learnt_weight_make_an_objective() -> None:
    for criterion in cal.CRITERIA.values():
        assert cal.Penalised(criterion, partial(criterion), weight=1).fit is criterion
    logits, labels = torch.zeros(3, 2), torch.zeros(3, dtype=torch.long)
    learnt: Any = nn.Parameter(torch.tensor(2.0))
    cal.Penalised(cal.nll, cal.nll, weight=learnt)(logits, labels).backward()
    assert learnt.grad == cal.nll(cal.Predictions(logits, labels))
