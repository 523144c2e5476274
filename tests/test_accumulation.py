"""The gradient of a large batch in the memory of small ones."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from training_runs import CALIBRATION, network, same, samples

import calibrant as cal

EVERY = {
    name: criterion
    for name, criterion in cal.CRITERIA.items()
    if name not in ("accuracy", "mce", "ks", "sweep-ece", "debiased-ece")
}


def micro_batches(n: int = 50, size: int = 16) -> list[tuple[Tensor, Tensor]]:
    inputs, labels = samples(n).tensors
    return list(zip(inputs.double().split(size), labels.split(size), strict=True))


def gradients(model: nn.Module) -> list[Tensor | None]:
    return [each.grad for each in model.parameters()]


def whole(model: nn.Module, objective: Any) -> list[Tensor | None]:
    """The gradient of all samples at once."""
    inputs, labels = samples(50).tensors
    model.zero_grad()
    objective(model(inputs.double()), labels).backward()
    return gradients(model)


@pytest.mark.parametrize("name", EVERY)
def test_the_gradient_is_that_of_the_whole_batch(name: str) -> None:
    objective = cal.Penalised(cal.nll, EVERY[name], weight=3.0)
    model = network(batch_norm=False, dropout=0).double()
    loss = cal.accumulate(model, micro_batches(), objective)
    found = gradients(model)
    inputs, labels = samples(50).tensors
    assert_close(loss, objective(model(inputs.double()), labels).detach())
    assert_close(found, whole(model, objective))


def test_summing_micro_batches_is_not_exact_for_calibration() -> None:
    """What it is for: the mean of micro-batches, as everybody does it, is another gradient."""
    objective = cal.Penalised(cal.nll, cal.top_label(cal.esd), weight=3.0)
    model = network(batch_norm=False, dropout=0).double()
    for inputs, labels in micro_batches():
        (objective(model(inputs), labels) * len(labels) / 50).backward()
    summed = gradients(model)[-1]
    assert summed is not None
    model.zero_grad()
    cal.accumulate(model, micro_batches(), objective)
    exact = gradients(model)[-1]
    assert exact is not None
    assert (summed - exact).norm() > 0.01 * exact.norm()


def test_it_adds_to_the_gradient_that_is_there() -> None:
    objective = cal.Penalised(cal.nll, CALIBRATION, weight=3.0)
    model = network(batch_norm=False, dropout=0).double()
    cal.accumulate(model, micro_batches(), objective)
    once = [each.clone() for each in gradients(model) if each is not None]
    cal.accumulate(model, micro_batches(), objective)
    assert_close(gradients(model), [2 * each for each in once])


def test_dropout_draws_the_same_in_both_passes_and_goes_on_after() -> None:
    objective = cal.Penalised(cal.nll, CALIBRATION, weight=3.0)
    model = network(batch_norm=False, dropout=0.5).double()
    torch.manual_seed(5)
    cal.accumulate(model, micro_batches(), objective)
    found, after = gradients(model), torch.get_rng_state()
    torch.manual_seed(5)
    logits = torch.cat([model(inputs) for inputs, _ in micro_batches()])
    model.zero_grad()
    objective(logits, samples(50).tensors[1]).backward()
    assert_close(found, gradients(model))
    assert torch.equal(after, torch.get_rng_state())


def test_an_objective_that_draws_numbers_does_not_disturb_the_second_pass() -> None:
    objective = cal.Penalised(cal.nll, CALIBRATION, weight=3.0)

    def drawing(logits: Tensor, labels: Tensor) -> Tensor:
        torch.rand(7)
        loss: Tensor = objective(logits, labels)
        return loss

    found = []
    for each in (objective, drawing):
        model = network(batch_norm=False, dropout=0.5).double()
        torch.manual_seed(5)
        cal.accumulate(model, micro_batches(), each)
        found.append(gradients(model))
    assert_close(found[1], found[0])


def test_running_statistics_are_updated_once() -> None:
    objective = cal.Penalised(cal.nll, CALIBRATION, weight=3.0)
    model, expected = network(dropout=0).double(), network(dropout=0).double()
    cal.accumulate(model, micro_batches(), objective)
    logits = torch.cat([expected(inputs) for inputs, _ in micro_batches()])
    objective(logits, samples(50).tensors[1]).backward()
    assert same(dict(model.named_buffers()), dict(expected.named_buffers()))
    # Exact for the network that normalises each micro-batch by itself.
    assert_close(gradients(model), gradients(expected))


def test_weights_cast_without_a_graph_are_not_met_again() -> None:
    objective = cal.Penalised(cal.nll, CALIBRATION, weight=3.0)
    model = network(batch_norm=False, dropout=0)
    batches = [(inputs.float(), labels) for inputs, labels in micro_batches()]
    with torch.autocast("cpu", torch.bfloat16):  # a loop that has autocast around everything
        cal.accumulate(model, batches, objective)
    around = gradients(model)
    assert all(each is not None and each.any() for each in around)
    model.zero_grad()
    cal.accumulate(model, batches, objective, autocast=torch.bfloat16)
    assert_close(gradients(model), around)


def test_a_scaler_scales_every_share() -> None:
    objective = cal.Penalised(cal.nll, CALIBRATION, weight=3.0)
    model = network(batch_norm=False, dropout=0).double()
    cal.accumulate(model, micro_batches(), objective)
    plain = [8 * each for each in gradients(model) if each is not None]
    model.zero_grad()
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    cal.accumulate(model, micro_batches(), objective, scaler=scaler)
    assert_close(gradients(model), plain)


def test_no_micro_batch_at_all() -> None:
    with pytest.raises(ValueError, match="must hold at least one batch; got none"):
        cal.accumulate(network(), [], nn.CrossEntropyLoss())
