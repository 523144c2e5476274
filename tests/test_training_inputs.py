"""Bad input to training: a sentence, the model as it was, the checkpoint untouched."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
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

    # By the name of what it stands in for, or it would be another run.
    broken.__name__ = {"fit": "nll", "calibration": repr(CALIBRATION)}[checked]
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

    broken.__name__ = "nll"
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
        (ValueError, "same fit; got another: nll, and here brier", {"fit": cal.brier}),
        (
            ValueError,
            r"same calibration; .* here TopLabel",
            {"calibration": cal.top_label(cal.ece)},
        ),
        (ValueError, "same autocast; got another: None", {"autocast": torch.bfloat16}),
        (ValueError, "epochs must be a whole number", {"epochs": 0}),
        (ValueError, r"epochs must be a whole number, at least 1; got 2\.5", {"epochs": 2.5}),
        (ValueError, "epochs must be a whole number, at least 1; got '3'", {"epochs": "3"}),
        (ValueError, "epochs must be a whole number", {"epochs": True}),
        (TypeError, "autocast must be torch.bfloat16, .* got 'bfloat16'", {"autocast": "bfloat16"}),
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


def fitted(model: nn.Module, train_loader: Any = None, **settings: Any) -> cal.History:
    """A short run of `fit`."""
    usual: dict[str, Any] = {
        "objective": nn.CrossEntropyLoss(),
        "optimiser": torch.optim.SGD(model.parameters(), lr=0.1),
        "epochs": 1,
    }
    data = DataLoader(samples(60), batch_size=12) if train_loader is None else train_loader
    return cal.fit(model, data, **(usual | settings))


@pytest.mark.parametrize(
    "settings", [{}, {"validation_loader": loader(samples(40, 2), 40), "lr_every": "step"}]
)
def test_a_schedule_that_waits_for_a_figure_must_be_given_one(settings: dict[str, Any]) -> None:
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser)
    with pytest.raises(ValueError, match="ReduceLROnPlateau must come with a validation_loader"):
        fitted(model, optimiser=optimiser, lr_schedule=schedule, **settings)


def test_a_loss_without_a_gradient() -> None:
    model = network()
    with pytest.raises(ValueError, match="through something differentiable; got one without"):
        fitted(model, objective=lambda z, y: cal.accuracy(cal.Predictions(z, y)))


def test_an_optimiser_that_computes_the_loss_again(tmp_path: Path) -> None:
    model = network()
    before = {name: part.clone() for name, part in model.state_dict().items()}
    with pytest.raises(TypeError, match="got LBFGS, which computes the loss again"):
        fitted(model, optimiser=torch.optim.LBFGS(model.parameters()))
    assert same(model.state_dict(), before)


IGNORED = (samples(12).tensors[0], torch.full((12,), -100))


@pytest.mark.parametrize(
    ("kind", "sentence", "validation"),
    [
        (ValueError, "must yield at least one", []),
        (ValueError, "must yield at least one", DataLoader(samples(5), 10, drop_last=True)),
        (TypeError, "must begin anew at each epoch; got list_iterator", iter([IGNORED])),
        (TypeError, "must yield batches; got TensorDataset", samples(5)),
        (ValueError, "must name a class; got none at all", [IGNORED]),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_validation_data_that_cannot_judge_are_found_out_before_the_first_step(
    kind: type[Exception], sentence: str, validation: Any, tmp_path: Path
) -> None:
    told = f"validation_loader {sentence}"
    refused(kind, told, tmp_path / "run.pt", validation_loader=validation)


def test_validation_data_of_one_class_can_judge() -> None:
    history = fitted(network(), validation_loader=DataLoader(one_class(20), batch_size=10))
    assert 0 <= history.epochs[0].accuracy <= 1


def test_a_validation_figure_that_is_not_a_number(tmp_path: Path) -> None:
    model, file, judged = network(), tmp_path / "run.pt", [True]

    def forward(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        logits = model(batch[0])
        return logits if judged or model.training else logits * float("nan"), batch[1]

    with pytest.raises(
        FloatingPointError, match=r"must be finite; got 0\.\d+ and nan after epoch 1"
    ):
        fitted(
            model,
            epochs=3,
            forward=forward,
            validation_loader=DataLoader(samples(40, 2), batch_size=40),
            checkpoint=file,
            after_epoch=lambda _: judged.clear(),
        )
    assert model.training
    assert len(torch.load(file, weights_only=True)["epochs"]) == 1


class Once(IterableDataset[Any]):
    """Samples that can be gone through once."""

    def __init__(self) -> None:
        self.left = iter([*zip(*samples(60).tensors, strict=True)])

    def __iter__(self) -> Iterator[Any]:
        return self.left


def test_data_that_run_out_are_told_in_a_sentence() -> None:
    once = DataLoader(Once(), batch_size=12)
    with pytest.raises(ValueError, match=r"the training loader must .* got none in pass 2"):
        fitted(network(), once, epochs=2)
    with pytest.raises(ValueError, match=r"validation_loader must yield .* none after epoch 1"):
        fitted(network(), validation_loader=DataLoader(Once(), batch_size=12), epochs=2)
    model = network()
    with pytest.raises(ValueError, match=r"the calibration loader must .* got none in pass 2"):
        cal.fit_interleaved(
            model,
            loader(samples(60)),
            DataLoader(Once(), batch_size=12),
            calibration=CALIBRATION,
            weight=1.0,
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=2,
            schedule="two_phase",
        )


class Wrapping(nn.Module):
    """A network whose logits are inside something else."""

    def __init__(self, wrap: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.inner, self.wrap = network(), wrap

    def forward(self, inputs: Tensor) -> Any:
        return self.wrap(self.inner(inputs))


@pytest.mark.parametrize(
    ("wrap", "kind"), [(lambda z: (z, None), "tuple"), (lambda z: {"logits": z}, "dict")]
)
@pytest.mark.parametrize("procedure", ["fit", "fit_interleaved", "fit_meta"])
@pytest.mark.usefixtures("unchecked_types")
def test_a_model_whose_output_is_not_the_logits(
    procedure: str, wrap: Callable[[Tensor], Any], kind: str
) -> None:
    model = Wrapping(wrap)
    before = {name: part.clone() for name, part in model.state_dict().items()}
    train, held_out = loader(samples(60)), loader(samples(20, 1))
    train_it: dict[str, Callable[..., object]] = {
        "fit": partial(cal.fit, objective=cal.Penalised(cal.nll, CALIBRATION, weight=1.0)),
        "fit_interleaved": partial(
            cal.fit_interleaved,
            calibration_loader=held_out,
            calibration=CALIBRATION,
            weight=1.0,
        ),
        "fit_meta": partial(cal.fit_meta, meta_loader=held_out),
    }
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(TypeError, match=rf"logits must be a tensor; got {kind} .*: forward=lambda"):
        train_it[procedure](model, train, optimiser=optimiser, epochs=1)
    assert same(model.state_dict(), before)


@pytest.mark.usefixtures("unchecked_types")
def test_a_forward_that_gives_no_pair() -> None:
    with pytest.raises(
        TypeError, match="forward must give a pair of logits and labels; got Tensor"
    ):
        fitted(network(), forward=lambda model, batch: model(batch[0]))


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        (lambda x: {"x": x}, "dict and dict"),
        (lambda x: (x,), "tuple and tuple"),
        (lambda x: x[:, : len(x) // 4], r"\(12, 3\) and \(20, 5\)"),
    ],
)
def test_inputs_that_cannot_be_joined(inputs: Callable[[Tensor], Any], told: str) -> None:
    model = network(batch_norm=False)
    train, held_out = ([(inputs(x), y)] for x, y in (samples(12).tensors, samples(20).tensors))
    with pytest.raises(TypeError, match=f"concatenate must be False unless .*; got {told}"):
        cal.fit_interleaved(
            model,
            train,
            held_out,
            calibration=CALIBRATION,
            weight=1.0,
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=1,
            concatenate=True,
        )


@pytest.mark.parametrize("ignored", [-100, 255])
def test_a_first_batch_without_labels_is_no_reason_to_stop(ignored: int) -> None:
    inputs, labels = samples(12).tensors
    batches = [(inputs, torch.full((12,), ignored)), (inputs, labels)]
    model = network(batch_norm=False)
    objective = cal.Penalised(cal.nll, CALIBRATION, weight=1.0, ignore_index=ignored)
    fitted(model, batches, objective=objective)
    shared: dict[str, Any] = {
        "optimiser": torch.optim.SGD(model.parameters(), lr=0.1),
        "epochs": 1,
        "ignore_index": ignored,
    }
    weighted = {"calibration": CALIBRATION, "weight": 1.0, **shared}
    history = cal.fit_interleaved(model, batches, batches, **weighted)
    assert history.epochs[0].fit > 0
    cal.fit_meta(model, batches, batches, **shared)


def test_labels_of_one_class_beside_ignored_ones() -> None:
    inputs, labels = samples(12).tensors
    batches = [(inputs, torch.where(labels == 0, 1, 255))]
    objective = cal.Penalised(cal.nll, CALIBRATION, weight=1.0, ignore_index=255)
    with pytest.raises(ValueError, match="must name two classes or more; got 1 for every sample"):
        fitted(network(), batches, objective=objective)


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
