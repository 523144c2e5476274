import math
from typing import Any

import pytest
import torch
from forecasts import calibrated
from torch import Tensor
from torch.testing import assert_close

from calibrant.measures._kernel_density import canonical_kde_ece, kde_ece
from calibrant.predictions import Predictions

# Case small_n8_c3 of the golden values, with what the authors' code gave.
LOGITS = torch.tensor(
    [
        [-0.7900390625, -2.0341796875, 0.603515625],
        [0.744140625, -0.3095703125, 0.3671875],
        [1.7099609375, 1.060546875, 0.7080078125],
        [0.6875, -0.86328125, 0.9638671875],
        [-1.6484375, -0.33203125, -0.4375],
        [-1.728515625, -0.1103515625, 1.6435546875],
        [-0.33984375, -1.2080078125, -0.0908203125],
        [0.853515625, 0.193359375, -0.0029296875],
    ],
    dtype=torch.float64,
)
LABELS = torch.tensor([1, 2, 1, 2, 2, 0, 2, 0])


def dirichlet(point: list[float], centre: list[float], bandwidth: float) -> float:
    """Density at `point` of the Dirichlet distribution whose mode is `centre`."""
    shapes = [c / bandwidth + 1 for c in centre]
    log_density = math.lgamma(sum(shapes)) - sum(map(math.lgamma, shapes))
    return math.exp(
        log_density + sum((a - 1) * math.log(p) for a, p in zip(shapes, point, strict=True))
    )


def kde_by_definition(
    points: Tensor,
    targets: Tensor,
    bandwidth: float,
    norm: float,
    *,
    least: float = 0.0,
    weights: Tensor | None = None,
) -> Tensor:
    """One pair of samples at a time; `least` is the smallest density divided by."""
    n, (x, y) = len(points), (points.tolist(), targets.tolist())
    w = [1.0] * n if weights is None else weights.tolist()
    value = 0.0
    for i in range(n):
        others = [j for j in range(n) if j != i]
        kernel = {j: w[j] * dirichlet(x[i], x[j], bandwidth) for j in others}
        density = max(sum(kernel.values()), least)
        for k in range(len(y[0])):
            mean = sum(kernel[j] * y[j][k] for j in others) / density
            value += w[i] / sum(w) * abs(mean - x[i][k]) ** norm
    return torch.tensor(value, dtype=torch.float64)


def binary_by_definition(
    confidence: Tensor,
    outcome: Tensor,
    bandwidth: float,
    norm: float,
    weights: Tensor | None = None,
) -> Tensor:
    both = torch.stack([confidence, 1 - confidence], dim=1)
    happened = torch.stack([outcome, 1 - outcome], dim=1)
    # The second column has the same gap as the first.
    return kde_by_definition(both, happened, bandwidth, norm, weights=weights) / 2


def gradient(confidence: Tensor, outcome: Tensor) -> Tensor:
    leaf = confidence.clone().requires_grad_()
    return torch.autograd.grad(kde_ece(leaf, outcome), leaf)[0]


@pytest.mark.parametrize("norm", [1, 2, 1.5])
@pytest.mark.parametrize("bandwidth", [0.02, 0.5])
def test_agrees_with_its_definition(norm: float, bandwidth: float, rng: torch.Generator) -> None:
    confidence, outcome = calibrated((15,), rng)
    expected = binary_by_definition(confidence, outcome, bandwidth, norm)
    assert_close(kde_ece(confidence, outcome, bandwidth=bandwidth, norm=norm), expected)


@pytest.mark.parametrize("norm", [1, 2])
def test_canonical_form_agrees_with_its_definition(norm: float, rng: torch.Generator) -> None:
    logits = torch.randn(12, 4, generator=rng, dtype=torch.float64)
    labels = torch.randint(4, (12,), generator=rng)
    predictions = Predictions(logits, labels)
    truth = torch.eye(4, dtype=torch.float64)[labels]
    expected = kde_by_definition(predictions.probs, truth, 0.2, norm)
    assert_close(canonical_kde_ece(predictions, bandwidth=0.2, norm=norm), expected)


def test_a_lonely_sample_has_its_density_floored_as_the_authors_do() -> None:
    probs = torch.tensor(
        [[0.98, 0.01, 0.01], [0.97, 0.02, 0.01], [1e-7, 1e-7, 1 - 2e-7], [0.3, 0.3, 0.4]],
        dtype=torch.float64,
    )
    predictions = Predictions(probs.log(), torch.tensor([0, 0, 1, 2]))
    truth = torch.eye(3, dtype=torch.float64)[predictions.labels]
    floored = kde_by_definition(predictions.probs, truth, 0.05, 2, least=1e-10)
    assert_close(canonical_kde_ece(predictions, bandwidth=0.05), floored)
    assert floored != kde_by_definition(predictions.probs, truth, 0.05, 2)


@pytest.mark.parametrize(
    ("bandwidth", "norm", "value", "first_row"),
    [
        (
            0.02,
            1,
            0.2854802066722997,
            [-0.0239798114859516, -0.0069107050320718, 0.0308905165180234],
        ),
        (
            0.02,
            2,
            0.1672506990510085,
            [-0.0358456245710762, -0.0103302954756845, 0.0461759200467607],
        ),
        (
            0.1,
            1,
            0.2205084233171647,
            [-0.0731720267556883, -0.0210873339769026, 0.0942593607325909],
        ),
    ],
)
def test_top_label_form_agrees_with_the_authors_code(
    bandwidth: float, norm: float, value: float, first_row: list[float]
) -> None:
    logits = LOGITS.clone().requires_grad_()
    predictions = Predictions(logits, LABELS)
    ours = kde_ece(predictions.confidence, predictions.correct, bandwidth=bandwidth, norm=norm)
    assert_close(ours.item(), value, rtol=1e-9, atol=1e-12)
    (by_logits,) = torch.autograd.grad(ours, logits)
    assert_close(by_logits[0].tolist(), first_row, rtol=1e-7, atol=1e-12)


def test_sum_over_classes_agrees_with_the_authors_marginal_form() -> None:
    chances, happened = Predictions(LOGITS, LABELS).marginals
    values = [
        kde_ece(c, y, bandwidth=0.1, norm=2) for c, y in zip(chances.T, happened.T, strict=True)
    ]
    assert_close(sum(values).item(), 0.24237952751579028, rtol=1e-9, atol=1e-12)  # type: ignore[union-attr]


def test_canonical_form_agrees_with_the_authors_code() -> None:
    logits = LOGITS.clone().requires_grad_()
    value = canonical_kde_ece(Predictions(logits, LABELS))
    assert_close(value.item(), 0.2936345040798187, rtol=2e-5, atol=2e-6)  # theirs is float32
    (by_logits,) = torch.autograd.grad(value, logits)
    theirs = [-0.2368781417608261, 0.007462058681994677, 0.22941607236862183]
    assert_close(by_logits[0].tolist(), theirs, rtol=2e-3, atol=2e-6)


def test_canonical_form_of_two_classes_is_the_binary_form_twice(rng: torch.Generator) -> None:
    scores = torch.randn(20, generator=rng, dtype=torch.float64)
    predictions = Predictions.from_binary(scores, torch.arange(20) % 2)
    binary = kde_ece(predictions.probs[:, 1], predictions.labels.double(), bandwidth=0.1, norm=2)
    assert_close(canonical_kde_ece(predictions), 2 * binary)


def test_gradients_are_slopes_and_so_are_second_derivatives(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((7,), rng)
    soft = 0.8 * outcome + 0.1
    inputs = (confidence.requires_grad_(), soft.requires_grad_())
    smooth = lambda c, y: kde_ece(c, y, bandwidth=0.3, norm=2)  # noqa: E731
    assert torch.autograd.gradcheck(smooth, inputs)
    assert torch.autograd.gradgradcheck(smooth, inputs)


@pytest.mark.parametrize("reach", [1.0, 1.6, 1.8, 30.0])
def test_gradient_of_the_canonical_form_is_its_slope(reach: float) -> None:
    # The last sample is lonely: its density is around the floor, below, and far below.
    far = torch.tensor([[-reach, 2 * reach, -reach]], dtype=torch.float64)
    logits = torch.cat([LOGITS[[0, 1, 3, 6]], far]).requires_grad_()
    labels = torch.tensor([1, 1, 2, 0, 1])
    assert torch.autograd.gradcheck(
        lambda z: canonical_kde_ece(Predictions(z, labels), bandwidth=0.1), (logits,)
    )


def test_blocks_of_rows_change_nothing(
    rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    confidence, outcome = calibrated((23,), rng)
    whole = kde_ece(confidence, outcome), gradient(confidence, outcome)
    monkeypatch.setattr("calibrant.measures._kernel_density._PAIRS_AT_ONCE", 5 * 23)
    assert_close((kde_ece(confidence, outcome), gradient(confidence, outcome)), whole)


def test_no_pair_of_samples_is_kept_for_the_backward_pass(rng: torch.Generator) -> None:
    kept: list[int] = []

    def note(x: Tensor) -> Tensor:
        kept.append(x.numel())
        return x

    confidence = torch.rand(300, generator=rng).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        kde_ece(confidence, torch.ones(300))
    assert max(kept) <= 2 * 300


def test_weights_count_in_the_estimate_and_in_the_mean(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((10,), rng)
    weights = torch.rand(10, generator=rng, dtype=torch.float64) + 0.1
    expected = binary_by_definition(confidence, outcome, 0.05, 2, weights)
    for scale in (1.0, 1e-3):
        ours = kde_ece(confidence, outcome, bandwidth=0.05, norm=2, weights=scale * weights)
        assert_close(ours, expected)


def test_a_sample_of_weight_zero_might_as_well_be_absent(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((10,), rng)
    mask = torch.tensor([1, 0, 1, 1, 0, 1, 1, 0, 1, 1]).bool()
    ours = kde_ece(confidence, outcome, weights=mask.double())
    assert_close(ours, kde_ece(confidence[mask], outcome[mask]))
    kept = torch.tensor([1, 1, 0, 1, 1, 1, 0, 1]).bool()
    weighted = Predictions(LOGITS, LABELS, weights=kept.double())
    assert_close(
        canonical_kde_ece(weighted), canonical_kde_ece(Predictions(LOGITS[kept], LABELS[kept]))
    )


def test_canonical_weights_matter_only_by_proportion(rng: torch.Generator) -> None:
    weights = torch.rand(8, generator=rng, dtype=torch.float64)
    far = torch.cat([LOGITS[:7], torch.tensor([[-20.0, 30.0, -20.0]], dtype=torch.float64)])
    heavy, light = (Predictions(far, LABELS, weights=s * weights) for s in (1, 1e-6))
    assert_close(canonical_kde_ece(heavy), canonical_kde_ece(light))


def test_order_of_samples_is_irrelevant(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((30,), rng)
    assert_close(kde_ece(confidence.flip(0), outcome.flip(0)), kde_ece(confidence, outcome))


def test_a_certain_forecast_is_judged_by_its_nearest_neighbour() -> None:
    confidence = torch.tensor([1.0, 0.99, 0.2, 0.0], dtype=torch.float64)
    outcome = torch.tensor([0.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    nearly = confidence.clamp(1e-14, 1 - 1e-14)
    assert_close(kde_ece(confidence, outcome), kde_ece(nearly, outcome), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("confidence", "outcome"),
    [
        ([0.0, 1.0], [1.0, 0.0]),
        ([0.7, 0.7, 0.7], [1.0, 0.0, 1.0]),
        ([1.0, 1.0, 1 - 6e-8], [1.0, 1.0, 0.0]),
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
        ([0.0, 0.5, 0.9, 1.0], [0.0, 0.0, 0.0, 0.0]),
        ([0.1, 0.5, 0.9, 1.0], [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_value_and_gradient_are_finite_at_the_edges(
    confidence: list[float], outcome: list[float], dtype: torch.dtype
) -> None:
    c, y = torch.tensor(confidence, dtype=dtype), torch.tensor(outcome, dtype=dtype)
    value = kde_ece(c, y)
    assert value.dtype == dtype
    assert 0 <= value <= 1
    assert gradient(c, y).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
def test_canonical_form_is_finite_on_saturated_probabilities(
    dtype: torch.dtype, scale: float
) -> None:
    logits = (scale * torch.eye(4, dtype=dtype)[[0, 1, 1, 2, 3]]).requires_grad_()
    value = canonical_kde_ece(Predictions(logits, torch.tensor([0, 1, 2, 2, 1])))
    value.backward()
    assert value.dtype == dtype
    assert value.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_is_zero_on_the_graph_for_fewer_than_two_samples() -> None:
    for count in (0, 1):
        confidence = torch.rand(count).requires_grad_()
        kde_ece(confidence, torch.ones(count)).backward()
        assert_close(confidence.grad, torch.zeros(count))
    for mask in ([0.0, 0.0, 0.0], [0.0, 2.0, 0.0]):
        confidence = torch.tensor([0.2, 0.6, 1.0]).requires_grad_()
        value = kde_ece(confidence, torch.ones(3), weights=torch.tensor(mask))
        value.backward()
        assert value == 0
        assert_close(confidence.grad, torch.zeros(3))
    logits = torch.ones(1, 3).requires_grad_()
    canonical_kde_ece(Predictions(logits, torch.tensor([1]))).backward()
    assert_close(logits.grad, torch.zeros(1, 3))


def test_transforms_are_loops(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((3, 8), rng)
    masks = (torch.rand(3, 8, generator=rng) < 0.7).double()
    pairs = list(zip(confidence, outcome, strict=True))
    assert_close(
        torch.vmap(kde_ece)(confidence, outcome), torch.stack([kde_ece(*p) for p in pairs])
    )
    assert_close(
        torch.vmap(torch.func.grad(kde_ece))(confidence, outcome),
        torch.stack([gradient(*p) for p in pairs]),
    )
    kept = [kde_ece(confidence[0][m > 0], outcome[0][m > 0]) for m in masks]
    masked = torch.vmap(lambda m: kde_ece(confidence[0], outcome[0], weights=m))(masks)
    assert_close(masked, torch.stack(kept))


@pytest.mark.parametrize("settings", [{"bandwidth": 0.0}, {"bandwidth": -1.0}, {"norm": 0.5}])
def test_refuses_settings_that_mean_nothing(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        kde_ece(torch.rand(3), torch.ones(3), **settings)
    with pytest.raises(ValueError, match="must be"):
        canonical_kde_ece(Predictions(LOGITS, LABELS), **settings)
