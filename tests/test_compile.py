"""`torch.compile` sees every objective as one graph, once run-time checks are out of its way."""

import os
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from calibrant import (
    CRITERIA,
    Criterion,
    Penalised,
    Predictions,
    across_ranks,
    by_group,
    class_wise,
    ece,
    esd,
    mmce,
    nll,
    per_class,
    top_label,
)

# The compiler's own.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")

unchecked = pytest.mark.skipif(
    not os.environ.get("CALIBRANT_UNCHECKED"), reason="runs without run-time checks"
)

OBJECTIVES: dict[str, Criterion] = CRITERIA | {
    "class-wise esd": class_wise(esd),
    "class-wise mmce": class_wise(mmce, norm=2),
    "per-class esd": per_class(esd),
    "esd by group": by_group(torch.arange(40) % 3)(top_label(esd)),
    "esd across ranks": across_ranks(top_label(esd)),
    "steep mmce": top_label(partial(mmce, bandwidth=1e-4)),
}


@unchecked
@pytest.mark.parametrize("name", OBJECTIVES)
def test_traces_as_one_graph_with_the_same_value_and_gradient(
    name: str, rng: torch.Generator
) -> None:
    objective = Penalised(nll, OBJECTIVES[name], weight=0.7)
    logits = torch.randn(40, 5, generator=rng, dtype=torch.float64).requires_grad_()
    labels = torch.randint(5, (40,), generator=rng)
    torch.compiler.reset()
    compiled = torch.compile(objective, fullgraph=True, backend="aot_eager")
    value, eager = compiled(logits, labels), objective(logits, labels)
    assert_close(value, eager)
    assert_close(torch.autograd.grad(value, logits), torch.autograd.grad(eager, logits))


@unchecked
@pytest.mark.parametrize("calibration", [top_label(esd), class_wise(mmce)], ids=repr)
def test_ignored_positions_stay_in_a_graph_with_weight_zero(
    calibration: Criterion, rng: torch.Generator
) -> None:
    objective = Penalised(nll, calibration, 0.7, class_dim=-1, ignore_index=-100)
    logits = torch.randn(8, 5, 3, generator=rng, dtype=torch.float64).requires_grad_()
    labels = torch.randint(3, (8, 5), generator=rng)
    labels[:, 3:] = -100
    compiled = torch.compile(objective, fullgraph=True, backend="aot_eager")
    value, eager = compiled(logits, labels), objective(logits, labels)
    assert_close(value, eager)
    assert_close(torch.autograd.grad(value, logits), torch.autograd.grad(eager, logits))


@unchecked
def test_generated_code_gives_the_same_value_and_gradient(rng: torch.Generator) -> None:
    objective = Penalised(nll, top_label(esd), weight=0.7)
    logits = torch.randn(40, 5, generator=rng).requires_grad_()
    labels = torch.randint(5, (40,), generator=rng)
    value, eager = (
        torch.compile(objective, fullgraph=True)(logits, labels),
        objective(logits, labels),
    )
    assert_close(value, eager)
    assert_close(torch.autograd.grad(value, logits), torch.autograd.grad(eager, logits))


@unchecked
@pytest.mark.parametrize("classes", [10, 1000, 1024])
def test_predictions_of_probabilities_are_one_graph(classes: int, rng: torch.Generator) -> None:
    probs = torch.rand(64, classes, generator=rng).softmax(dim=1)
    labels = torch.randint(classes, (64,), generator=rng)

    def judge(probs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return top_label(ece)(Predictions.from_probabilities(probs, labels))

    torch.compiler.reset()
    compiled = torch.compile(judge, fullgraph=True, backend="aot_eager")
    assert_close(compiled(probs, labels), judge(probs, labels))
