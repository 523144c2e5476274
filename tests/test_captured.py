"""Objectives captured as CUDA graphs; without a GPU, by a stand-in that computes when replayed."""

import copy
import doctest
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import (
    Penalised,
    Predictions,
    across_ranks,
    brier,
    by_group,
    dece,
    esd,
    kernels,
    mmce,
    nll,
    soft_avuc,
    top_label,
)
from calibrant.kernels import Replays, _captured

needs_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

OBJECTIVES = {
    "esd": Penalised(nll, top_label(esd), 0.7),
    "mmce": Penalised(nll, top_label(mmce), 0.7),
    "soft avuc": Penalised(brier, soft_avuc, 0.7),
    "dece": Penalised(nll, dece, 0.7),
}
every_objective = pytest.mark.parametrize("name", OBJECTIVES)


class Computed:
    """What a graph does on a GPU: from its inputs, into its outputs, in their memory."""

    def __init__(self, objective: Callable[..., Tensor], *tensors: Tensor) -> None:
        self.objective = objective
        self.inputs = [x.detach().clone() for x in tensors]
        self.inputs[0].requires_grad_()
        value = objective(*self.inputs)
        self.value, self.gradient = torch.zeros_like(value), torch.zeros_like(self.inputs[0])

    def replay(self) -> None:
        with torch.enable_grad():
            value = self.objective(*self.inputs)
            (gradient,) = torch.autograd.grad(value, self.inputs[0])
        self.value.detach_().copy_(value.detach())
        self.gradient.detach_().copy_(gradient)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE == "cuda":
        return

    def graph_of(objective: Callable[..., Tensor], *tensors: Tensor) -> _captured._Graph:
        graph = Computed(objective, *tensors)
        return _captured._Graph(
            graph, [x.detach() for x in graph.inputs], graph.value, graph.gradient
        )

    monkeypatch.setattr(_captured, "_on_a_gpu", lambda logits: True)
    monkeypatch.setattr(_captured, "_graph_of", graph_of)


def batch(rng: torch.Generator, n: int = 64) -> tuple[Tensor, Tensor]:
    logits = 2 * torch.randn(n, 10, generator=rng)
    return logits.to(DEVICE).requires_grad_(), torch.randint(10, (n,), generator=rng).to(DEVICE)


def judged(objective: Callable[..., Tensor], logits: Tensor, labels: Tensor) -> list[Tensor]:
    value = objective(logits, labels)
    return [value.detach(), *torch.autograd.grad(-2.5 * value, logits)]


@every_objective
def test_value_and_gradient_of_every_batch_are_those_of_the_objective(
    name: str, rng: torch.Generator
) -> None:
    objective = kernels.captured(OBJECTIVES[name])
    for n in (64, 64, 40, 64):
        logits, labels = batch(rng, n)
        assert_close(judged(objective, logits, labels), judged(OBJECTIVES[name], logits, labels))
        assert_close(objective(logits.detach(), labels), OBJECTIVES[name](logits, labels).detach())


def test_calls_may_be_outstanding_together(rng: torch.Generator) -> None:
    plain = OBJECTIVES["esd"]
    objective = kernels.captured(plain)
    batches = [batch(rng) for _ in range(3)]
    values = [objective(*each) for each in batches]
    for value, (logits, labels) in zip(values, batches, strict=True):
        expected = judged(plain, logits, labels)
        assert_close([value.detach(), *torch.autograd.grad(-2.5 * value, logits)], expected)


def test_a_changed_weight_is_noticed(rng: torch.Generator) -> None:
    plain = Penalised(nll, top_label(esd), 0.7)
    objective = kernels.captured(plain)
    logits, labels = batch(rng)
    objective(logits, labels)
    plain.weight = 3.0
    assert_close(judged(objective, logits, labels), judged(plain, logits, labels))
    assert isinstance(objective, _captured._Captured)
    assert len(objective.replays.graphs) == 2


def test_second_derivatives_are_those_of_the_objective(rng: torch.Generator) -> None:
    logits, labels = batch(rng, 12)

    def twice(objective: Callable[..., Tensor]) -> Tensor:
        value = objective(logits, labels)
        (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), logits)[0]

    plain = OBJECTIVES["soft avuc"]
    assert_close(twice(kernels.captured(plain)), twice(plain))


@needs_a_gpu
def test_what_cannot_be_captured_is_taken_as_it_is(rng: torch.Generator) -> None:
    def waits(logits: Tensor, labels: Tensor) -> Tensor:
        return logits.sum() * logits.detach().max().item()

    objective = kernels.captured(waits)
    for _ in range(2):
        logits, labels = batch(rng)
        assert_close(judged(objective, logits, labels), judged(waits, logits, labels))


def test_a_copy_has_no_graphs_yet(rng: torch.Generator) -> None:
    objective = kernels.captured(OBJECTIVES["esd"])
    logits, labels = batch(rng)
    expected = judged(objective, logits, labels)
    for again in (copy.deepcopy(objective), pickle.loads(pickle.dumps(objective))):
        assert isinstance(again, _captured._Captured)
        assert not again.replays.graphs
        assert_close(judged(again, logits, labels), expected)


def test_it_takes_what_the_objective_takes(rng: torch.Generator) -> None:
    logits, labels = batch(rng)
    weights = torch.rand(64, generator=rng).to(DEVICE)
    objective = kernels.captured(OBJECTIVES["esd"])
    expected = OBJECTIVES["esd"](logits, labels, weights)
    assert_close(objective(logits, labels, weights=weights), expected)
    assert_close(objective(logits, labels, weights), expected)
    assert_close(objective(logits, labels, None), OBJECTIVES["esd"](logits, labels))


def test_a_name_is_no_objective(unchecked_types: None) -> None:
    with pytest.raises(TypeError, match=r"objective must be a function; got 'esd'"):
        kernels.captured("esd")  # type: ignore[arg-type]


def test_the_example_runs() -> None:
    assert doctest.testmod(_captured) == doctest.TestResults(failed=0, attempted=4)


def test_a_shape_is_captured_once_and_only_a_few_are(rng: torch.Generator) -> None:
    calls: list[int] = []

    def counted(logits: Tensor, labels: Tensor) -> Tensor:
        calls.append(len(logits))
        value: Tensor = OBJECTIVES["esd"](logits, labels)
        return value

    objective = kernels.captured(counted)
    for _ in range(5):
        objective(*batch(rng, 32))
    if DEVICE == "cuda":
        assert calls == [32] * 4  # three to warm up, and the capture
    for n in range(3, 20):
        objective(*batch(rng, n))
    assert isinstance(objective, _captured._Captured)
    assert len(objective.replays.graphs) == 8
    assert calls[-1] == 19
    assert calls.count(19) == 1  # as it is


def replays(objective: Penalised) -> int:
    assert isinstance(objective._replays, Replays)
    return len(objective._replays.graphs)


@every_objective
def test_an_objective_of_ours_captures_what_it_sees_a_third_time(
    name: str, rng: torch.Generator
) -> None:
    objective = copy.deepcopy(OBJECTIVES[name])
    for seen, n in enumerate((64, 40, 64, 64, 64, 40)):
        logits, labels = batch(rng, n)
        found = judged(objective, logits, labels)
        with kernels.use("definition"):
            assert_close(found, judged(objective, logits, labels))
        assert replays(objective) == (seen >= 3)
    assert not replays(pickle.loads(pickle.dumps(objective)))


def test_what_an_earlier_version_pickled_is_read(rng: torch.Generator) -> None:
    logits, labels = batch(rng)
    ours = copy.deepcopy(OBJECTIVES["esd"])
    expected = judged(ours, logits, labels)
    wrapped = kernels.captured(ours)
    # Attributes that objectives did not have then.
    del ours.__dict__["_replays"], ours.__dict__["_judged"], wrapped.__dict__["replays"]
    plain, replayed = (pickle.loads(pickle.dumps(old)) for old in (ours, wrapped))
    for _ in range(3):
        assert_close(judged(plain, logits, labels), expected)
        assert_close(judged(replayed, logits, labels), expected)
    assert replays(plain) == len(replayed.replays.graphs) == 1


def test_what_somebody_else_wrote_is_called_every_time(rng: torch.Generator) -> None:
    calls = []

    def own(predictions: Predictions) -> Tensor:
        calls.append(len(predictions))
        return nll(predictions)

    for objective in (Penalised(own, dece, 1.0), Penalised(nll, own, 1.0)):
        calls.clear()
        for _ in range(5):
            objective(*batch(rng))
        assert calls == [64] * 5


@pytest.mark.parametrize(
    "objective",
    [
        Penalised(nll, across_ranks(top_label(esd)), 1.0),
        Penalised(nll, by_group(torch.arange(64, device=DEVICE) % 2)(top_label(esd)), 1.0),
        Penalised(nll, top_label(esd), 1.0, ignore_index=-100),
    ],
    ids=["ranks", "groups", "ignored labels"],
)
def test_what_no_graph_can_stand_for_is_never_captured(
    objective: Penalised, rng: torch.Generator
) -> None:
    for _ in range(5):
        objective(*batch(rng))
    assert not replays(objective)


def test_weights_and_a_choice_of_who_computes_are_heeded(rng: torch.Generator) -> None:
    objective = copy.deepcopy(OBJECTIVES["esd"])
    logits, labels = batch(rng)
    for _ in range(5):
        objective(logits, labels, torch.ones(64, device=DEVICE))
        with kernels.use("definition"):
            objective(logits, labels)
    assert not replays(objective)


def test_a_part_that_is_replaced_is_not_replayed(rng: torch.Generator) -> None:
    objective = copy.deepcopy(OBJECTIVES["esd"])
    for _ in range(4):
        objective(*batch(rng))
    objective.calibration = top_label(mmce)
    for _ in range(4):
        logits, labels = batch(rng)
        expected = judged(OBJECTIVES["mmce"], logits, labels)
        assert_close(judged(objective, logits, labels), expected)


def test_threads_that_share_an_objective_do_not_mix_their_batches(rng: torch.Generator) -> None:
    objective = kernels.captured(OBJECTIVES["esd"])
    batches = [batch(rng) for _ in range(40)]
    expected = [judged(OBJECTIVES["esd"], *each) for each in batches]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda each: judged(objective, *each), batches))
    assert_close(found, expected)


@needs_a_gpu
def test_autocast_is_part_of_what_is_captured(rng: torch.Generator) -> None:
    weight = torch.randn(10, 10, generator=rng).cuda()

    def objective(logits: Tensor, labels: Tensor) -> Tensor:
        value: Tensor = OBJECTIVES["esd"]((logits @ weight).float(), labels)
        return value

    both = kernels.captured(objective)
    logits, labels = batch(rng)
    values = []
    for autocast in (True, False, True):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            (value, gradient), truth = (
                judged(both, logits, labels),
                judged(objective, logits, labels),
            )
        assert_close(value, truth[0])
        # The upstream gradient is multiplied before the product is rounded, or after.
        assert (gradient - truth[1]).norm() <= 2**-7 * truth[1].norm()
        values.append(value)
    assert values[0] != values[1]
    assert_close(values[0], values[2], rtol=0, atol=0)
