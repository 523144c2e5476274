"""Function transforms and second derivatives of the measures with a gradient by hand."""

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

from calibrant import (
    CRITERIA,
    Measure,
    Predictions,
    debiased_ece,
    ece,
    esd,
    mmce,
    rooted,
    smooth_ece,
    soft_binned_ece,
    soft_label_binned_ece,
    weighted_mmce,
)

BY_HAND = [esd, mmce, weighted_mmce, soft_binned_ece, soft_label_binned_ece]
every_measure = pytest.mark.parametrize("measure", BY_HAND, ids=lambda m: m.__name__)


@pytest.fixture
def batches(rng: torch.Generator) -> tuple[Tensor, Tensor]:
    confidence = torch.rand(5, 9, generator=rng, dtype=torch.float64)
    return confidence, torch.bernoulli(confidence**2, generator=rng)


def gradient(measure: Measure, confidence: Tensor, outcome: Tensor) -> Tensor:
    leaf = confidence.clone().requires_grad_()
    return torch.autograd.grad(measure(leaf, outcome), leaf)[0]


@every_measure
def test_vmap_is_a_loop(measure: Measure, batches: tuple[Tensor, Tensor]) -> None:
    loop = torch.stack([measure(c, y) for c, y in zip(*batches, strict=True)])
    assert_close(torch.vmap(measure)(*batches), loop)


@every_measure
def test_grad_is_backward(measure: Measure, batches: tuple[Tensor, Tensor]) -> None:
    confidence, outcome = batches[0][0], batches[1][0]
    assert_close(
        torch.func.grad(measure)(confidence, outcome), gradient(measure, confidence, outcome)
    )


@every_measure
def test_vmap_of_grad_is_a_loop_of_backwards(
    measure: Measure, batches: tuple[Tensor, Tensor]
) -> None:
    loop = torch.stack([gradient(measure, c, y) for c, y in zip(*batches, strict=True)])
    assert_close(torch.vmap(torch.func.grad(measure))(*batches), loop)


@every_measure
def test_backward_through_vmap_is_a_loop_of_backwards(
    measure: Measure, batches: tuple[Tensor, Tensor]
) -> None:
    confidence, outcome = batches
    loop = torch.stack([gradient(measure, c, y) for c, y in zip(*batches, strict=True)])
    leaf = confidence.clone().requires_grad_()
    assert_close(torch.autograd.grad(torch.vmap(measure)(leaf, outcome).sum(), leaf)[0], loop)


@every_measure
def test_gradients_by_both_arguments_are_slopes(
    measure: Measure, batches: tuple[Tensor, Tensor], rng: torch.Generator
) -> None:
    confidence = batches[0][0].requires_grad_()
    soft = torch.rand(9, generator=rng, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(measure, (confidence, soft))


@every_measure
def test_second_derivatives_are_slopes_of_the_gradient(
    measure: Measure, batches: tuple[Tensor, Tensor]
) -> None:
    """Meta-learning differentiates twice, so the shortcut must not lose the second."""
    confidence, outcome = batches[0][1].requires_grad_(), batches[1][1]
    assert torch.autograd.gradgradcheck(lambda c: measure(c, outcome), (confidence,))


@every_measure
def test_an_upstream_gradient_scales_the_gradient(
    measure: Measure, batches: tuple[Tensor, Tensor]
) -> None:
    confidence, outcome = batches[0][2].requires_grad_(), batches[1][2]
    (scaled,) = torch.autograd.grad(-2.5 * measure(confidence, outcome), confidence)
    assert_close(scaled, -2.5 * gradient(measure, confidence.detach(), outcome))


@every_measure
def test_only_vectors_are_kept_for_the_backward_pass(
    measure: Measure, rng: torch.Generator
) -> None:
    """No n × n and no n × bins tensor survives the forward pass."""
    kept: list[int] = []

    def note(x: Tensor) -> Tensor:
        kept.append(x.numel())
        return x

    confidence = torch.rand(500, generator=rng).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        measure(confidence, torch.ones(500))
    assert max(kept) == 500
    assert sum(kept) <= 12 * 500


CONSTANT = {
    "a hand-written gradient": esd,
    "a root": rooted(esd),
    "a norm": lambda confidence, outcome: ece(confidence, outcome, norm=2),
    "a debiased norm": debiased_ece,
}


@pytest.mark.parametrize("measure", CONSTANT.values(), ids=CONSTANT)
def test_a_measure_of_constants_may_stand_inside_a_transform(
    measure: Measure, batches: tuple[Tensor, Tensor]
) -> None:
    confidence, outcome = batches[0][0].requires_grad_(), batches[1][0]
    value = measure(confidence, outcome)
    scaled = torch.vmap(lambda scale: scale * measure(confidence, outcome))(torch.arange(3.0))
    assert_close(scaled, torch.arange(3.0) * value, check_dtype=False)
    slope = torch.func.grad(lambda scale: scale * measure(confidence, outcome))(torch.tensor(2.0))
    assert_close(slope, value.detach(), check_dtype=False)


def forms(n: int, rng: torch.Generator) -> list[Predictions]:
    """Predictions of logits, of a table and of chances."""
    logits, labels = torch.randn(n, 5, generator=rng), torch.randint(2, (n,), generator=rng)
    table = Predictions.from_probabilities(logits.softmax(dim=1), labels)
    return [
        Predictions(logits, labels),
        table,
        Predictions.from_probabilities(table.probs[:, 1], labels),
    ]


@pytest.mark.parametrize("name", CRITERIA)
def test_a_criterion_of_constants_may_stand_inside_a_transform(
    name: str, rng: torch.Generator
) -> None:
    for form in range(3):
        again = rng.clone_state()
        expected = CRITERIA[name](forms(50, again)[form])

        def scaled(by: Tensor, told: Predictions) -> Tensor:
            return by * CRITERIA[name](told)

        slope = torch.func.grad(scaled)(torch.tensor(1.0), forms(50, rng.clone_state())[form])
        assert_close(slope, expected, check_dtype=False)


@pytest.mark.parametrize("measure", [ece, debiased_ece, smooth_ece], ids=lambda m: m.__name__)
def test_who_records_operators_sees_every_one_of_them(
    measure: Measure, rng: torch.Generator
) -> None:
    """Otherwise the value of the first batch would be that of all."""
    first, other = torch.rand(2, 2000, generator=rng, dtype=torch.float64)
    outcome = torch.bernoulli(first, generator=rng)
    recorded = make_fx(lambda c, y: measure(c, y))(first, outcome)
    assert_close(recorded(other, outcome), measure(other, outcome), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("measure", [ece, debiased_ece, smooth_ece], ids=lambda m: m.__name__)
def test_a_measure_is_where_its_events_are(measure: Measure, rng: torch.Generator) -> None:
    confidence = torch.rand(2000, generator=rng)
    outcome = torch.bernoulli(confidence, generator=rng)
    with torch.device("meta"):
        assert measure(confidence, outcome).device == confidence.device


@pytest.mark.parametrize("name", CRITERIA)
def test_gradients_of_many_batches_at_once_are_those_of_each(
    name: str, rng: torch.Generator
) -> None:
    logits = torch.randn(3, 9, 4, generator=rng, dtype=torch.float64)
    labels = torch.randint(4, (3, 9), generator=rng)

    def judged(some: Tensor, truth: Tensor) -> Tensor:
        return 1.0 * some.sum() + CRITERIA[name](Predictions(some, truth))

    slopes = torch.func.grad(judged)
    loop = torch.stack([slopes(*batch) for batch in zip(logits, labels, strict=True)])
    assert_close(torch.vmap(slopes)(logits, labels), loop)
