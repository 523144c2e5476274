"""Training procedures, step by step against loops written out."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler
from training_runs import CALIBRATION, GrowingWeight, loader, network, same, samples

import calibrant as cal


def in_order(n: int, batch_size: int, seed: int = 0) -> DataLoader[Any]:
    return DataLoader(samples(n, seed), batch_size=batch_size)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def trained(
    train: Callable[[nn.Module, torch.optim.Optimizer], object], **settings: Any
) -> dict[str, Tensor]:
    model = network(**settings)
    torch.manual_seed(2)
    train(model, sgd(model))
    return model.state_dict()


def interleaved(model: nn.Module, optimiser: torch.optim.Optimizer, **settings: Any) -> cal.History:
    """Five steps, beside a slice of two batches, twice."""
    defaults: dict[str, Any] = {"calibration": CALIBRATION, "weight": 2.0, "epochs": 2}
    slice_ = in_order(20, 10, seed=1)
    return cal.fit_interleaved(
        model, in_order(60, 12), slice_, optimiser=optimiser, **(defaults | settings)
    )


def test_fit_is_the_loop_everybody_writes() -> None:
    objective = nn.CrossEntropyLoss()

    def by_hand(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for _ in range(2):
            for inputs, labels in in_order(60, 12):
                optimiser.zero_grad()
                objective(model(inputs), labels).backward()
                optimiser.step()

    def ours(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        cal.fit(model, in_order(60, 12), objective=objective, optimiser=optimiser, epochs=2)

    assert_close(trained(ours, dropout=0), trained(by_hand, dropout=0))


def test_every_step_adds_the_next_batch_of_the_slice_to_the_loss() -> None:
    def by_hand(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        def cycle() -> Iterator[Any]:
            while True:
                yield from in_order(20, 10, seed=1)

        slice_ = cycle()
        for _ in range(2):
            for inputs, labels in in_order(60, 12):
                held_out, truth = next(slice_)
                fit = cal.nll(cal.Predictions(model(inputs), labels))
                calibration = CALIBRATION(cal.Predictions(model(held_out), truth))
                optimiser.zero_grad()
                (fit + 2.0 * calibration).backward()
                optimiser.step()

    assert_close(trained(interleaved, dropout=0), trained(by_hand, dropout=0))


def test_two_phases_fit_first_and_calibrate_after() -> None:
    def by_hand(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for _ in range(2):
            for inputs, labels in in_order(60, 12):
                optimiser.zero_grad()
                cal.nll(cal.Predictions(model(inputs), labels)).backward()
                optimiser.step()
            for inputs, labels in in_order(20, 10, seed=1):
                optimiser.zero_grad()
                (2.0 * CALIBRATION(cal.Predictions(model(inputs), labels))).backward()
                optimiser.step()

    def ours(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        interleaved(model, optimiser, schedule="two_phase")

    assert_close(trained(ours, dropout=0), trained(by_hand, dropout=0))


def test_one_pass_over_both_batches_has_the_same_gradient() -> None:
    def ours(concatenate: bool) -> dict[str, Tensor]:
        model = network(batch_norm=False, dropout=0)
        interleaved(model, sgd(model), concatenate=concatenate)
        return model.state_dict()

    assert_close(ours(True), ours(False))


def test_frozen_batch_norm_never_meets_the_slice() -> None:
    """Its running statistics are those of a run that only fits, when the slice moves nothing."""

    def statistics(batch_norm: str) -> dict[str, Tensor]:
        model = network(dropout=0)
        interleaved(
            model,
            torch.optim.SGD(model.parameters(), lr=0.0),
            batch_norm=batch_norm,
            epochs=1,
        )
        assert all(module.training for module in model.modules())
        return {name: part for name, part in model.state_dict().items() if "running" in name}

    plain = network(dropout=0)
    for inputs, _ in in_order(60, 12):
        plain(inputs)
    expected = {name: part for name, part in plain.state_dict().items() if "running" in name}
    assert_close(statistics("frozen"), expected)
    assert not same(statistics("update"), expected)


def test_frozen_batch_norm_normalises_by_running_statistics() -> None:
    seen: list[Tensor] = []
    model = network(dropout=0)

    def keep(logits: Tensor) -> None:
        seen.append(logits.detach().clone())

    def forward(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        logits = model(batch[0])
        keep(logits)
        return logits, batch[1]

    interleaved(
        model,
        torch.optim.SGD(model.parameters(), lr=0.0),
        batch_norm="frozen",
        forward=forward,
        epochs=1,
    )
    judged = network(dropout=0)
    judged(next(iter(in_order(60, 12)))[0])
    expected = judged.eval()(next(iter(in_order(20, 10, seed=1)))[0])
    assert_close(seen[1], expected.detach())


def test_the_slice_is_reshuffled_each_time_round() -> None:
    torch.manual_seed(0)
    pairs = cal.interleave(in_order(60, 6), loader(samples(20, 1), 10))
    rounds = [held_out[0] for _, held_out in pairs]
    assert len(rounds) == len(pairs) == 10
    firsts = [torch.cat(rounds[i : i + 2]) for i in range(0, 10, 2)]
    assert all(not torch.equal(firsts[0], other) for other in firsts[1:])
    for one in firsts:  # but every time round it is the whole slice
        assert_close(one.sort(dim=0).values, firsts[0].sort(dim=0).values)


def test_the_cycle_goes_on_from_one_epoch_to_the_next() -> None:
    pairs = cal.interleave(range(3), "abcde")
    assert [held_out for _ in range(3) for _, held_out in pairs] == list("abcdeabcd")
    assert [batch for batch, _ in islice(pairs, 2)] == [0, 1]
    assert [batch for batch, _ in pairs] == [0, 1, 2]  # an epoch broken off is begun anew


def test_a_weight_is_told_of_each_calibration_batch_and_asked_at_each_step() -> None:
    weight = GrowingWeight()
    model = network(dropout=0)
    history = interleaved(model, sgd(model), weight=weight)
    assert [told.step for told in weight.told] == list(range(10))
    first = weight.told[0]
    start = network(dropout=0)
    inputs, labels = next(iter(in_order(60, 12)))
    assert first.fit is not None
    assert_close(first.fit, cal.nll(cal.Predictions(start(inputs), labels)).detach())
    held_out, truth = next(iter(in_order(20, 10, seed=1)))
    expected = cal.Predictions(start(held_out), truth)
    assert_close(first.calibration, CALIBRATION(expected).detach())
    assert_close(first.held_out.logits, expected.logits.detach())
    assert not first.held_out.logits.requires_grad
    assert history.epochs[-1].weight == weight.value > 0.5
    mean = sum(float(told.calibration) for told in weight.told[5:]) / 5
    assert history.epochs[1].calibration == pytest.approx(mean)
    fixed = network(dropout=0)
    interleaved(fixed, sgd(fixed), weight=0.5)
    assert not same(fixed.state_dict(), model.state_dict())


def test_a_weight_hears_nothing_from_steps_that_only_fit() -> None:
    weight = GrowingWeight()
    model = network()
    interleaved(model, sgd(model), weight=weight, schedule="two_phase", epochs=1)
    assert [told.step for told in weight.told] == [5, 6]
    assert all(told.fit is None for told in weight.told)


def test_long_gradients_are_shortened_to_the_norm_given() -> None:
    model = network(dropout=0)
    before = [each.detach().clone() for each in model.parameters()]
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    one_batch = DataLoader(samples(60), batch_size=60)
    cal.fit(
        model,
        one_batch,
        objective=lambda logits, labels: 100 * nn.functional.cross_entropy(logits, labels),
        optimiser=optimiser,
        epochs=1,
        clip=0.25,
    )
    moved = [new - old for new, old in zip(model.parameters(), before, strict=True)]
    assert_close(torch.cat([each.flatten() for each in moved]).norm(), torch.tensor(0.25))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision_trains_in_half_and_keeps_the_weights_whole(dtype: torch.dtype) -> None:
    seen: set[torch.dtype] = set()

    def forward(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        logits = model(batch[0])
        seen.add(logits.dtype)
        return logits, batch[1]

    model = network(dropout=0)
    history = interleaved(
        model,
        sgd(model),
        autocast=dtype,
        forward=forward,
        validation_loader=in_order(30, 10, seed=2),
    )
    assert seen == {dtype}
    assert {each.dtype for each in model.parameters()} == {torch.float32}
    whole = network(dropout=0)
    expected = interleaved(whole, sgd(whole)).epochs[-1]
    assert history.epochs[-1].fit == pytest.approx(expected.fit, rel=0.05)


def test_a_float16_overflow_lowers_the_scale_and_leaves_out_the_step() -> None:
    model = nn.Linear(5, 3)
    before = model.weight.detach().clone()
    cal.fit(
        model,
        in_order(60, 60),
        # A slope the scaler's first scale, 65536, carries beyond float16 but not beyond float32.
        objective=lambda logits, labels: nn.functional.cross_entropy(1e4 * logits, labels),
        optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
        epochs=1,
        autocast=torch.float16,
    )
    assert_close(model.weight.detach(), before)


@pytest.mark.parametrize(("every", "expected"), [("epoch", 0.1 * 0.5**2), ("step", 0.1 * 0.5**10)])
def test_the_learning_rate_follows_epochs_or_steps(every: Any, expected: float) -> None:
    model = network()
    optimiser = sgd(model)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, gamma=0.5)
    interleaved(model, optimiser, lr_schedule=schedule, lr_every=every)
    assert optimiser.param_groups[0]["lr"] == pytest.approx(expected)


@pytest.mark.parametrize(("mode", "figure"), [("min", "error"), ("max", "accuracy")])
def test_a_plateau_is_one_of_the_validation_figures(
    mode: Any, figure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = network()
    optimiser = sgd(model)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, mode=mode)
    told: list[float] = []
    monkeypatch.setattr(schedule, "step", told.append)
    judged = in_order(90, 40, seed=5)
    history = interleaved(model, optimiser, lr_schedule=schedule, validation_loader=judged)
    assert told == [getattr(epoch, figure) for epoch in history.epochs]


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_samplers_of_several_processes_are_told_the_epoch_however_deep_they_are(depth: int) -> None:
    data, seen = samples(24), list[Tensor]()
    sampler: Any = DistributedSampler(data, num_replicas=2, rank=0)
    batches = BatchSampler(sampler, 6, drop_last=False)
    settings: dict[str, Any] = (
        {"sampler": sampler, "batch_size": 6},
        {"batch_sampler": batches},
        {"sampler": batches, "batch_size": None},
    )[depth]

    def forward(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        seen.append(batch[0])
        return model(batch[0]), batch[1]

    model = network()
    cal.fit(
        model,
        DataLoader(data, **settings),
        objective=nn.CrossEntropyLoss(),
        optimiser=sgd(model),
        epochs=2,
        forward=forward,
    )
    assert len(seen) == 4
    assert not same(seen[:2], seen[2:])


def test_the_model_ends_with_the_epoch_the_rule_chooses() -> None:
    kept: dict[int, dict[str, Tensor]] = {}
    model = network()
    selection = cal.Selection(margin=0.05)

    def keep(epoch: cal.Epoch) -> None:
        kept[epoch.number] = {name: part.clone() for name, part in model.state_dict().items()}

    history = interleaved(
        model,
        sgd(model),
        epochs=8,
        validation_loader=in_order(90, 40, seed=5),
        selection=selection,
        after_epoch=keep,
    )
    highest = max(epoch.accuracy for epoch in history.epochs)
    allowed = [epoch for epoch in history.epochs if epoch.accuracy > highest - 0.05]
    expected = min(allowed, key=lambda epoch: epoch.error)
    assert history.best == expected != history.epochs[-1]
    assert same(model.state_dict(), kept[expected.number])
    assert history.rule == str(selection)
    assert model.training

    model.eval()
    inputs, labels = samples(90, 5).tensors
    judged = cal.Predictions(model(inputs), labels)
    assert_close(cal.accuracy(judged).item(), expected.accuracy)
    assert_close(cal.top_label(cal.ece)(judged).item(), expected.error)


def test_layers_put_in_evaluation_mode_stay_in_it() -> None:
    model = network()
    model[1].eval()  # type: ignore[index]
    interleaved(model, sgd(model), epochs=1, validation_loader=in_order(30, 30))
    assert [module.training for module in model.modules()] == [True, True, False, True, True, True]


def test_tokens_are_flattened_and_ignored_positions_left_out() -> None:
    inputs = torch.randn(24, 4, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(96).reshape(24, 4) % 3
    labels[:, -1] = -100
    batches = [(inputs, labels)]
    start = network(batch_norm=False, dropout=0)
    rows = labels.flatten() != -100
    flat = cal.Predictions(start(inputs).flatten(0, 1)[rows], labels.flatten()[rows])
    model = network(batch_norm=False, dropout=0)
    history = cal.fit_interleaved(
        model,
        batches,
        batches,
        calibration=CALIBRATION,
        weight=1.0,
        optimiser=sgd(model),
        epochs=1,
        class_dim=-1,
        ignore_index=-100,
        validation_loader=batches,
    )
    assert history.epochs[0].fit == pytest.approx(cal.nll(flat).item())
    assert history.epochs[0].calibration == pytest.approx(CALIBRATION(flat).item())


def test_no_bar_is_shown_in_a_pipe_and_one_is_when_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = network()
    interleaved(model, sgd(model), epochs=1)
    assert capsys.readouterr() == ("", "")
    interleaved(model, sgd(model), epochs=1, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "epoch 0" in shown.err
    interleaved(model, sgd(model), epochs=1, schedule="two_phase", progress=True)
    assert "epoch 0, calibration 0." in capsys.readouterr().err


def test_without_rich_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.training._progress.find_spec", lambda name: None)
    model = network()
    interleaved(model, sgd(model), epochs=1)
    with pytest.raises(ValueError, match="progress=True needs rich"):
        interleaved(model, sgd(model), epochs=1, progress=True)


@pytest.mark.usefixtures("unchecked_types")
def test_numbers_of_numpy_are_numbers() -> None:
    def trained(kind: Any, whole: Any) -> tuple[Any, ...]:
        model = network(dropout=0)
        interleaved(model, sgd(model), weight=kind(2), epochs=whole(1))
        (_, held_out) = cal.split_for_calibration(samples(20), 0.25, seed=whole(3))
        return model.state_dict(), list(held_out.indices)

    for kind in (np.float32, np.float64, np.int64):
        assert same(trained(kind, np.int64), trained(float, int))
    with pytest.raises(TypeError, match=r"seed must be a whole number; got 0\.5"):
        cal.split_for_calibration(samples(20), 0.25, seed=0.5)  # type: ignore[arg-type]
