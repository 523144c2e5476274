"""Calibration inside transformers' Trainer."""

import runpy
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from training_runs import CALIBRATION, GrowingWeight, same
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

import calibrant as cal
from calibrant.integrations.transformers import (
    BestEpoch,
    CalibratedTrainer,
    calibration_metrics,
    loss_function,
    rows,
)

EXAMPLES = Path(__file__).parents[1] / "examples"

Sample = dict[str, Tensor]


def sentences(n: int, seed: int = 0) -> list[Sample]:
    seeded = torch.Generator().manual_seed(seed)
    words = torch.randint(1, 50, (n, 6), generator=seeded)
    return [{"input_ids": each, "labels": each[0] % 3} for each in words]


def passages(n: int, seed: int = 0) -> list[Sample]:
    seeded = torch.Generator().manual_seed(seed)
    words = torch.randint(1, 50, (n, 7), generator=seeded)
    labels = words.clone()
    lengths = torch.randint(2, 8, (n, 1), generator=seeded)
    labels[torch.arange(7) >= lengths] = -100
    return [{"input_ids": w, "labels": each} for w, each in zip(words, labels, strict=True)]


def classifier(dropout: float = 0.0) -> Any:
    torch.manual_seed(0)
    build: Any = BertForSequenceClassification
    config: Any = BertConfig
    return build(
        config(
            vocab_size=50,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            num_labels=3,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            initializer_range=0.5,
        )
    )


def language_model() -> Any:
    torch.manual_seed(0)
    build: Any = GPT2LMHeadModel
    return build(
        GPT2Config(
            vocab_size=50,
            n_positions=8,
            n_embd=16,
            n_layer=2,
            n_head=2,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
            initializer_range=0.5,
        )
    )


def arguments(folder: Path, **settings: Any) -> TrainingArguments:
    """Plain gradient descent, so that a step shows its gradient."""
    defaults: dict[str, Any] = {
        "max_steps": 1,
        "per_device_train_batch_size": 24,
        "optim": "sgd",
        "learning_rate": 1.0,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0.0,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "train_sampling_strategy": "sequential",
    }
    return TrainingArguments(str(folder), **(defaults | settings))


def batch_of(samples: list[Sample]) -> tuple[Tensor, Tensor]:
    return (
        torch.stack([each["input_ids"] for each in samples]),
        torch.stack([each["labels"] for each in samples]),
    )


def descended(model: Any, loss: Tensor) -> dict[str, Tensor]:
    """What one step of gradient descent makes of the parameters."""
    loss.backward()
    return {
        name: (each - (0 if each.grad is None else each.grad)).detach()
        for name, each in model.named_parameters()
    }


def parameters(model: Any) -> dict[str, Tensor]:
    return {name: each.detach() for name, each in model.named_parameters()}


OBJECTIVE = cal.Penalised(cal.nll, cal.top_label(cal.esd), weight=3.0)


def test_rows_shift_flatten_and_leave_out() -> None:
    logits = torch.randn(2, 4, 5)
    labels = torch.tensor([[1, 2, -100, 3], [-100, 4, 0, -100]])
    found = rows(logits, labels, causal=True)
    pairs = [
        (logits[b, t], labels[b, t + 1])
        for b in range(2)
        for t in range(3)
        if labels[b, t + 1] >= 0
    ]
    assert_close(found[0], torch.stack([row for row, _ in pairs]))
    assert_close(found[1], torch.stack([label for _, label in pairs]))
    assert_close(rows(logits, labels)[1], torch.tensor([1, 2, 3, 4, 0]))


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("loss_type", ["ForCausalLM", None])  # Trainer counts tokens by it
def test_a_loss_function_of_the_likelihood_is_the_models_own_loss(
    loss_type: str | None, steps: int, tmp_path: Path
) -> None:
    def trained(**settings: Any) -> dict[str, Tensor]:
        model = language_model()
        if loss_type is not None:
            model.loss_type = loss_type
        size = 24 // steps
        accumulated: dict[str, Any] = {"gradient_accumulation_steps": steps}
        given = arguments(tmp_path, per_device_train_batch_size=size, **accumulated)
        Trainer(model, given, train_dataset=passages(24), **settings).train()
        return parameters(model)

    likelihood = loss_function(torch.nn.functional.cross_entropy, causal=True)
    assert_close(trained(compute_loss_func=likelihood), trained())


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("steps", [1, 3])
def test_an_objective_is_exact_under_gradient_accumulation(
    steps: int, dropout: float, tmp_path: Path
) -> None:
    data = sentences(24)
    size = 24 // steps
    model = classifier(dropout)
    trainer = CalibratedTrainer(
        model,
        arguments(tmp_path, per_device_train_batch_size=size, gradient_accumulation_steps=steps),
        train_dataset=data,
        objective=OBJECTIVE,
    )
    history = trainer.train()
    start = classifier(dropout)
    ids, labels = batch_of(data)
    if dropout:  # which units are dropped depends on how the batch is cut
        torch.set_rng_state(first_state(data, dropout, steps, tmp_path))
    logits = torch.cat([start(part).logits for part in ids.split(size)])
    loss = OBJECTIVE(logits, labels)
    assert history.training_loss == pytest.approx(loss.item(), rel=1e-5)
    assert_close(parameters(model), descended(start, loss))


def first_state(data: list[Sample], dropout: float, steps: int, folder: Path) -> Tensor:
    """The state of torch's generator when Trainer first runs the model."""
    seen: list[Tensor] = []
    model = classifier(dropout)
    model.register_forward_pre_hook(lambda *_: seen.append(torch.get_rng_state()))
    size = 24 // steps
    CalibratedTrainer(
        model,
        arguments(folder, per_device_train_batch_size=size, gradient_accumulation_steps=steps),
        train_dataset=data,
        objective=OBJECTIVE,
    ).train()
    return seen[0]


@pytest.mark.parametrize("steps", [1, 2])
def test_interleaved_calibration_joins_the_gradient_of_each_step(
    steps: int, tmp_path: Path
) -> None:
    data, held_out = sentences(24), sentences(24, seed=1)
    weight = GrowingWeight()
    size = 24 // steps
    model = classifier()
    trainer = CalibratedTrainer(
        model,
        arguments(
            tmp_path,
            per_device_train_batch_size=size,
            gradient_accumulation_steps=steps,
            logging_steps=1,
        ),
        train_dataset=data,
        objective=torch.nn.functional.cross_entropy,
        calibration=CALIBRATION,
        calibration_dataset=held_out,
        weight=weight,
    )
    trainer.train()
    start = classifier()
    ids, labels = batch_of(data)
    others, truth = batch_of(held_out)
    value = CALIBRATION(cal.Predictions(start(others).logits, truth))
    fit = torch.nn.functional.cross_entropy(start(ids).logits, labels)
    assert_close(weight.told[0].calibration, value.detach())
    assert weight.told[0].held_out.logits.shape == (24, 3)
    assert trainer.state.log_history[0]["calibration"] == pytest.approx(value.item(), rel=1e-5)
    assert_close(parameters(model), descended(start, fit + 0.5 * value))


def test_without_an_objective_the_models_own_loss_is_fitted(tmp_path: Path) -> None:
    model = classifier()
    CalibratedTrainer(
        model,
        arguments(tmp_path),
        train_dataset=sentences(24),
        calibration=CALIBRATION,
        calibration_dataset=sentences(24, seed=1),
        weight=0.0,
    ).train()
    start = classifier()
    ids, labels = batch_of(sentences(24))
    fit = torch.nn.functional.cross_entropy(start(ids).logits, labels)
    assert_close(parameters(model), descended(start, fit))


def test_an_adaptive_weight_moves_and_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    def trainer() -> tuple[CalibratedTrainer, cal.AdaptiveWeight]:
        model = classifier()
        weight = cal.AdaptiveWeight()
        settings = arguments(
            tmp_path, max_steps=3, learning_rate=0.1, save_strategy="steps", save_steps=3
        )
        made = CalibratedTrainer(
            model,
            settings,
            train_dataset=sentences(48),
            calibration=CALIBRATION,
            calibration_dataset=sentences(24, seed=1),
            weight=weight,
        )
        return made, weight

    first, weight = trainer()
    first.train()
    kept = weight.state_dict()
    assert kept["seen"] == 3
    second, again = trainer()
    second.train(resume_from_checkpoint=True)
    # Trainer takes one step of an epoch that it resumes at its end.
    assert again.state_dict()["seen"] == 4
    assert again.value == pytest.approx(weight.value, rel=0.5)


class StopAt(TrainerCallback):
    """Ends a run after a step, as an interruption would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        control.should_training_stop = state.global_step >= self.step


@pytest.mark.parametrize("stopped", [4, 6])  # at the end of an epoch of four steps, and within one
@pytest.mark.parametrize("kind", ["fixed", "adaptive", "accumulated", "adaptive, accumulated"])
def test_a_run_that_goes_on_from_a_checkpoint_is_the_one_never_stopped(
    kind: str, stopped: int, tmp_path: Path
) -> None:
    steps = 2 if "accumulated" in kind else 1

    def trainer(folder: str) -> CalibratedTrainer:
        return CalibratedTrainer(
            classifier(dropout=0.3),
            arguments(
                tmp_path / folder,
                max_steps=9,
                per_device_train_batch_size=10 // steps,
                gradient_accumulation_steps=steps,
                learning_rate=0.1,
                save_strategy="steps",
                save_steps=stopped,
                train_sampling_strategy="random",
            ),
            train_dataset=sentences(40),
            objective=OBJECTIVE if "accumulated" in kind else None,
            calibration=CALIBRATION,
            # Three batches for each four of the training data: passes end at other steps.
            calibration_dataset=sentences(30, seed=1),
            weight=cal.AdaptiveWeight() if "adaptive" in kind else 2.0,
        )

    whole = trainer("whole")  # a Trainer seeds when it is made, so each is made when it is needed
    whole.train()
    first = trainer("parts")
    first.add_callback(StopAt(stopped))
    first.train()
    rest = trainer("parts")
    rest.train(resume_from_checkpoint=True)
    assert first.state.global_step == stopped
    assert rest.state.global_step == 9
    assert same(parameters(rest.model), parameters(whole.model))
    assert rest.weight.state_dict() == whole.weight.state_dict()


def test_a_checkpoint_without_a_place_begins_the_slice_anew(tmp_path: Path) -> None:
    settings = arguments(tmp_path, max_steps=2, save_strategy="steps", save_steps=1)
    plain = Trainer(classifier(), settings, train_dataset=sentences(48), callbacks=[StopAt(1)])
    plain.train()
    weight = GrowingWeight()
    CalibratedTrainer(
        classifier(),
        settings,
        train_dataset=sentences(48),
        calibration=CALIBRATION,
        calibration_dataset=sentences(24, seed=1),
        weight=weight,
    ).train(resume_from_checkpoint=True)
    assert [told.step for told in weight.told] == [1]


def test_an_adaptive_weight_learns_the_same_under_gradient_accumulation(tmp_path: Path) -> None:
    def run(steps: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
        trainer = CalibratedTrainer(
            classifier(),
            arguments(
                tmp_path,
                max_steps=4,
                per_device_train_batch_size=8 // steps,
                gradient_accumulation_steps=steps,
                learning_rate=0.01,
            ),
            train_dataset=sentences(32),
            objective=torch.nn.functional.cross_entropy,
            calibration=CALIBRATION,
            calibration_dataset=sentences(24, seed=1),
            weight=cal.AdaptiveWeight(memory=2, rate=0.5),
        )
        trainer.train()
        return trainer.weight.state_dict(), parameters(trainer.model)

    (whole, moved), (parts, accumulated) = run(1), run(2)
    assert whole["share"] != cal.AdaptiveWeight().share
    assert parts["seen"] == whole["seen"] == 4
    assert parts["share"] == pytest.approx(whole["share"], rel=1e-4)
    assert parts["means"] == pytest.approx(whole["means"], rel=1e-3)
    assert_close(accumulated, moved, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("objective", [None, torch.nn.functional.cross_entropy])
def test_a_weight_is_told_the_fit_of_all_micro_batches(objective: Any, tmp_path: Path) -> None:
    weight, model = GrowingWeight(), language_model()
    model.loss_type = "ForCausalLM"  # by which Trainer counts tokens
    CalibratedTrainer(
        model,
        arguments(
            tmp_path,
            max_steps=2,
            per_device_train_batch_size=6,
            gradient_accumulation_steps=4,
            learning_rate=0.0,
        ),
        train_dataset=passages(24),
        objective=objective,
        causal=True,
        calibration=CALIBRATION,
        calibration_dataset=passages(24, seed=1),
        weight=weight,
    ).train()
    ids, labels = batch_of(passages(24))
    logits, truth = rows(language_model()(ids).logits, labels, causal=True)
    fit = torch.nn.functional.cross_entropy(logits, truth).detach()
    for told in weight.told:
        assert_close(told.fit, fit)


def no_number(predictions: cal.Predictions) -> Tensor:
    return float("nan") * cal.nll(predictions)


def no_slope(predictions: cal.Predictions) -> Tensor:
    zero = 0 * cal.nll(predictions)
    return zero.sqrt()


class FailsAt:
    """A loss that is infinite at one call."""

    def __init__(self, call: int) -> None:
        self.left = call

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        self.left -= 1
        loss = torch.nn.functional.cross_entropy(logits, labels)
        return float("inf") * loss if self.left == 0 else loss


class Normalised(torch.nn.Module):
    """A classifier with running statistics."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.normalise = torch.nn.Embedding(50, 8), torch.nn.BatchNorm1d(8)
        self.out = torch.nn.Linear(8, 3)

    def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.out(self.normalise(self.words(input_ids).mean(dim=1)))
        if labels is None:
            return {"logits": logits}
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize(
    ("objective", "criterion", "sentence"),
    [
        (None, no_number, r"the calibration loss must be finite; got nan at step 0\. The model"),
        (None, no_slope, r"the gradient must be finite; got nan at step 0\. The model and its"),
        (
            FailsAt,
            CALIBRATION,
            r"the fit loss must be finite; got (inf|nan) at step 1\. The model and",
        ),
        (
            FailsAt,
            None,
            r"the fit loss must be finite; got (inf|nan) at step 1\. The model and its",
        ),
    ],
)
def test_what_is_not_finite_stops_the_run_and_leaves_the_model_as_it_was(
    objective: Any, criterion: Any, sentence: str, steps: int, tmp_path: Path
) -> None:
    def run(steps_taken: int, failing: bool) -> CalibratedTrainer:
        kind, judged = (
            (FailsAt(2) if failing else FailsAt(99)),
            criterion if failing else CALIBRATION,
        )
        return CalibratedTrainer(
            Normalised(),
            arguments(
                tmp_path,
                max_steps=steps_taken,
                per_device_train_batch_size=8 // steps,
                gradient_accumulation_steps=steps,
                learning_rate=0.1,
            ),
            train_dataset=sentences(32),
            objective=None if objective is None else kind,
            calibration=None if criterion is None else judged,
            calibration_dataset=None if criterion is None else sentences(24, seed=1),
            weight=cal.AdaptiveWeight(),
        )

    failing = run(4, failing=True)
    with pytest.raises(FloatingPointError, match=sentence):
        failing.train()
    before = run(1, failing=False)
    if objective is not None:
        before.train()
    left, expected = failing.model, before.model
    assert left is not None
    assert expected is not None
    assert same(dict(left.state_dict()), dict(expected.state_dict()))
    assert failing.weight.state_dict() == before.weight.state_dict()
    assert all(each.grad is None for each in left.parameters())


def test_a_criterion_without_a_gradient_is_refused(tmp_path: Path) -> None:
    trainer = CalibratedTrainer(
        classifier(),
        arguments(tmp_path),
        train_dataset=sentences(24),
        calibration=cal.accuracy,
        calibration_dataset=sentences(24, seed=1),
    )
    with pytest.raises(ValueError, match="through something differentiable"):
        trainer.train()


@pytest.mark.parametrize(
    ("settings", "given", "name"),
    [
        ({"label_smoothing_factor": 0.1}, {}, "label_smoothing_factor"),
        ({}, {"compute_loss_func": loss_function(OBJECTIVE)}, "compute_loss_func"),
    ],
)
def test_an_objective_beside_another_loss_is_refused(
    settings: dict[str, Any], given: dict[str, Any], name: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"only loss that is fitted; got {name} as well"):
        CalibratedTrainer(
            classifier(), arguments(tmp_path, **settings), objective=OBJECTIVE, **given
        )


def test_batches_without_labels_are_named(tmp_path: Path) -> None:
    held_out = [{"input_ids": each["input_ids"]} for each in sentences(24, seed=1)]
    trainer = CalibratedTrainer(
        classifier(),
        arguments(tmp_path),
        train_dataset=sentences(24),
        calibration=CALIBRATION,
        calibration_dataset=held_out,
    )
    with pytest.raises(ValueError, match=r"batches must hold labels; got input_ids\. Name"):
        trainer.train()


def test_a_model_made_anew_for_each_run_has_a_weight_that_has_learnt_nothing(
    tmp_path: Path,
) -> None:
    trainer = CalibratedTrainer(
        args=arguments(
            tmp_path, max_steps=3, per_device_train_batch_size=10, train_sampling_strategy="random"
        ),
        model_init=lambda: classifier(),
        train_dataset=sentences(40),
        calibration=CALIBRATION,
        calibration_dataset=sentences(20, seed=1),
        weight=cal.AdaptiveWeight(memory=1),
    )
    trainer.train()
    learnt, moved = trainer.weight.state_dict(), parameters(trainer.model)
    trainer.train()
    assert learnt["seen"] == 3
    assert trainer.weight.state_dict() == learnt
    assert same(parameters(trainer.model), moved)


def test_smaller_batches_where_memory_runs_out_are_those_of_the_slice_too(tmp_path: Path) -> None:
    sizes: list[int] = []

    def narrow(predictions: cal.Predictions) -> Tensor:
        sizes.append(len(predictions.labels))
        if sizes[-1] > 4:
            raise RuntimeError("CUDA out of memory.")
        return CALIBRATION(predictions)

    trainer = CalibratedTrainer(
        classifier(),
        arguments(tmp_path, max_steps=2, per_device_train_batch_size=8, auto_find_batch_size=True),
        train_dataset=sentences(24),
        calibration=narrow,
        calibration_dataset=sentences(24, seed=1),
    )
    trainer.train()
    assert sizes[0] == 8
    assert sizes[-2:] == [sizes[-1], sizes[-1]]
    assert sizes[-1] <= 4


class Tuples(torch.nn.Module):
    """A classifier that gives its outputs by place, or the logits alone."""

    def __init__(self, alone: bool) -> None:
        super().__init__()
        self.inner, self.alone = Normalised(), alone

    def forward(self, input_ids: Tensor) -> Any:
        logits = self.inner(input_ids)["logits"]
        return logits if self.alone else (logits, input_ids)


@pytest.mark.parametrize("alone", [True, False])
def test_models_without_named_outputs_are_trained_and_evaluated(
    alone: bool, tmp_path: Path
) -> None:
    trainer = CalibratedTrainer(
        Tuples(alone),
        arguments(tmp_path, remove_unused_columns=False, label_names=["labels"]),
        train_dataset=sentences(24),
        eval_dataset=sentences(10, seed=2),
        compute_metrics=calibration_metrics,
        objective=OBJECTIVE,
    )
    trainer.train()
    found = trainer.evaluate()
    ids, labels = batch_of(sentences(10, seed=2))
    model: Any = trainer.model
    model.eval()
    with torch.no_grad():
        expected = calibration_metrics((model.inner(ids)["logits"], labels))
    assert {name: found[f"eval_{name}"] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("where", ["fitted", "held out"])
def test_a_batch_whose_every_label_is_ignored_costs_nothing(
    where: str, steps: int, tmp_path: Path
) -> None:
    fitted, held_out = sentences(16), sentences(16, seed=1)
    for sample in (fitted if where == "fitted" else held_out)[4:8]:
        sample["labels"] = torch.tensor(-100)
    model = classifier()
    trainer = CalibratedTrainer(
        model=model,
        args=arguments(
            tmp_path,
            max_steps=4 // steps,
            per_device_train_batch_size=4,
            learning_rate=0.1,
            gradient_accumulation_steps=steps,
        ),
        train_dataset=fitted,
        objective=cal.Penalised(cal.nll, CALIBRATION, weight=1.0),
        calibration=CALIBRATION,
        weight=1.0,
        calibration_dataset=held_out,
    )
    trainer.train()
    assert all(x.isfinite().all() for x in model.state_dict().values())


@pytest.mark.parametrize("items", [None, torch.tensor(0), torch.tensor(7)])
def test_a_loss_function_of_ignored_labels_is_zero(items: Tensor | None) -> None:
    logits = torch.randn(3, 4, requires_grad=True)
    loss = loss_function(cal.Penalised(cal.nll, CALIBRATION, weight=1.0))
    value = loss((logits,), torch.full((3,), -100), num_items_in_batch=items)
    value.backward()
    assert value == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_the_slice_is_cycled_through(tmp_path: Path) -> None:
    weight = GrowingWeight()
    CalibratedTrainer(
        classifier(),
        arguments(tmp_path, max_steps=4, per_device_train_batch_size=10, learning_rate=0.0),
        train_dataset=sentences(40),
        calibration=CALIBRATION,
        calibration_dataset=sentences(20, seed=1),
        weight=weight,
    ).train()
    seen = [told.held_out.logits for told in weight.told]
    assert_close(torch.cat(seen[:2]), torch.cat(seen[2:]))
    assert not torch.equal(seen[0], seen[1])


def test_calibration_and_its_data_come_together(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="calibration and calibration_dataset must come together"):
        CalibratedTrainer(classifier(), arguments(tmp_path), calibration=CALIBRATION)


def test_metrics_are_those_of_the_package(predictions: cal.Predictions) -> None:
    found = calibration_metrics((predictions.logits.numpy(), predictions.labels.numpy()))
    assert found == {
        "accuracy": pytest.approx(cal.accuracy(predictions).item()),
        "nll": pytest.approx(cal.nll(predictions).item()),
        "brier": pytest.approx(cal.brier(predictions).item()),
        "ece": pytest.approx(cal.MEASURES["ece"](predictions).item()),
    }


def test_metrics_of_a_causal_model_are_those_of_the_next_token(tmp_path: Path) -> None:
    model, data = language_model(), passages(12)
    given = arguments(tmp_path, include_for_metrics=["inputs", "loss"])
    found = Trainer(
        model,
        given,
        eval_dataset=data,
        compute_metrics=partial(calibration_metrics, causal=True),
    ).evaluate()
    ids, labels = batch_of(data)
    with torch.no_grad():
        judged = cal.Predictions(*rows(model(ids).logits, labels, causal=True))
    assert found["eval_nll"] == pytest.approx(cal.nll(judged).item(), rel=1e-5)
    assert found["eval_accuracy"] == pytest.approx(cal.accuracy(judged).item())


def test_metrics_take_the_first_of_several_outputs(predictions: cal.Predictions) -> None:
    alone = calibration_metrics((predictions.logits.numpy(), predictions.labels.numpy()))
    outputs = (predictions.logits.numpy(), torch.zeros(2, 3, 4).numpy())
    assert calibration_metrics((outputs, predictions.labels.numpy())) == alone


def test_the_model_ends_with_the_evaluation_the_rule_chooses() -> None:
    callback, model = BestEpoch(), classifier()
    kept = []
    given = (TrainingArguments("unused", report_to="none"), TrainerState(), TrainerControl())
    course = ((0.5, 0.1), (0.80, 0.05), (0.812, 0.07), (0.82, 0.09), (0.70, 0.01))
    callback.on_train_begin(*given)
    for right, wrong in course:
        with torch.no_grad():
            model.classifier.weight.add_(1.0)
        kept.append(model.classifier.weight.clone())
        metrics = {"eval_accuracy": right, "eval_ece": wrong}
        callback.on_evaluate(*given, model=model, metrics=metrics)
    callback.on_train_end(*given, model=model)
    assert callback.best is not None
    assert callback.best.number == 2  # second to 1 until 3 was more accurate than 1 by too much
    assert same(model.classifier.weight.data, kept[2].data)


COURSE = ((0.80, 0.05), (0.812, 0.02), (0.815, 0.07), (0.81, 0.09))


def judged_run(
    folder: Path, course: tuple[tuple[float, float], ...], **settings: Any
) -> tuple[Trainer, BestEpoch]:
    """A run of four epochs whose evaluations are laid down in advance."""
    left = iter(course)
    callback = BestEpoch()

    def measure(evaluated: Any) -> dict[str, float]:
        right, wrong = next(left)
        return {"accuracy": right, "ece": wrong}

    defaults: dict[str, Any] = {"eval_strategy": "epoch", "save_strategy": "epoch"}
    epochs: dict[str, Any] = {"max_steps": -1, "num_train_epochs": 4}
    trainer = Trainer(
        classifier(),
        arguments(folder, learning_rate=0.1, **defaults, **epochs, **settings),
        train_dataset=sentences(48),
        eval_dataset=sentences(6, seed=1),
        compute_metrics=measure,
        callbacks=[callback],
    )
    return trainer, callback


@pytest.mark.parametrize("epochs", [1, 2])  # found out before the next step, or at the end
def test_a_metric_that_no_evaluation_gives_is_named(epochs: int, tmp_path: Path) -> None:
    trainer, _ = judged_run(tmp_path, COURSE)
    trainer.args.num_train_epochs = epochs
    trainer.compute_metrics = lambda evaluated: {"accuracy": 0.5}
    with pytest.raises(ValueError, match=r"got no eval_ece\. Pass compute_metrics=calibration_m"):
        trainer.train()
    assert trainer.state.global_step == 2  # those of the first epoch


def test_evaluations_of_other_data_and_outside_training_are_no_part_of_a_run(
    tmp_path: Path,
) -> None:
    trainer, callback = judged_run(tmp_path, tuple(pair for pair in COURSE for _ in range(2)))
    callback.names = ("eval_first_accuracy", "eval_first_ece")
    trainer.eval_dataset = {"first": sentences(6, seed=1), "second": sentences(6, seed=2)}
    trainer.train()
    assert [epoch.accuracy for epoch in callback.epochs] == [right for right, _ in COURSE]
    chosen = callback.best
    other: Any = sentences(6, seed=3)
    trainer.compute_metrics = lambda evaluated: {"accuracy": 0.9, "ece": 0.0}
    trainer.evaluate(other, metric_key_prefix="eval_first")
    trainer.compute_metrics = None
    trainer.evaluate(other, metric_key_prefix="test")
    assert len(callback.epochs) == 4
    assert callback.best is chosen


def test_the_best_epoch_of_a_resumed_run_may_be_one_before_the_interruption(
    tmp_path: Path,
) -> None:
    whole, told = judged_run(tmp_path / "whole", COURSE)
    whole.train()
    first, _ = judged_run(tmp_path / "parts", COURSE[:3])
    first.add_callback(StopAt(6))
    first.train()
    rest, callback = judged_run(tmp_path / "parts", COURSE[3:])
    rest.train(resume_from_checkpoint=True)
    assert callback.best is not None
    assert callback.best.number == 1
    assert repr(callback.epochs) == repr(told.epochs)
    assert same(parameters(rest.model), parameters(whole.model))


def test_epochs_are_found_where_the_arguments_say_or_missed(tmp_path: Path) -> None:
    first, _ = judged_run(tmp_path / "first", COURSE[:2])
    first.add_callback(StopAt(4))
    first.train()
    moved = shutil.copytree(tmp_path / "first" / "checkpoint-4", tmp_path / "moved")
    second, callback = judged_run(
        tmp_path / "second", COURSE[2:], resume_from_checkpoint=str(moved)
    )
    second.train(resume_from_checkpoint=str(moved))
    assert len(callback.epochs) == 4
    third, _ = judged_run(tmp_path / "third", COURSE[2:])
    with pytest.raises(ValueError, match=r"must hold best_epoch\.safetensors with its 2 eval"):
        third.train(resume_from_checkpoint=str(moved))
    # A file of the same step that belongs to another run.
    other, _ = judged_run(tmp_path / "third", COURSE[2:])
    other.add_callback(StopAt(4))
    other.train()
    with pytest.raises(ValueError, match=r"got none in .*third/checkpoint-4"):
        third.train(resume_from_checkpoint=str(moved))
    (moved / "best_epoch.safetensors").write_bytes(b"half")
    fourth, _ = judged_run(tmp_path / "fourth", COURSE[2:], resume_from_checkpoint=str(moved))
    with pytest.raises(ValueError, match="must be a whole safetensors file"):
        fourth.train(resume_from_checkpoint=str(moved))


def test_a_second_run_of_the_same_trainer_forgets_the_first(tmp_path: Path) -> None:
    trainer, callback = judged_run(tmp_path, COURSE + COURSE[2:])
    trainer.train()
    trainer.args.num_train_epochs = 2
    trainer.train()
    assert [epoch.accuracy for epoch in callback.epochs] == [0.815, 0.81]


@pytest.mark.parametrize(
    ("example", "settings"),
    [
        ("transformers_classifier.py", {"max_steps": 2, "per_device_eval_batch_size": 60}),
        ("transformers_tokens.py", {"max_steps": 3}),
    ],
)
def test_examples_run(example: str, settings: dict[str, Any]) -> None:
    trainer = runpy.run_path(str(EXAMPLES / example))["main"](**settings)
    assert trainer.state.global_step == settings["max_steps"]
    assert torch.isfinite(torch.tensor(trainer.state.log_history[-1]["train_loss"]))
