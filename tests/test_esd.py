import torch
from forecasts import Forecasts, as_tensors, calibrated, forecasts
from hypothesis import given
from torch import Tensor
from torch.testing import assert_close

from calibrant import esd, esd_naive


def esd_by_definition(confidence: Tensor, outcome: Tensor) -> Tensor:
    """Eq. 10 as the paper writes it, one threshold at a time."""
    terms = []
    for i in range(len(confidence)):
        others = torch.arange(len(confidence)) != i
        below = (confidence[others] <= confidence[i]).to(confidence)
        g = below * (outcome - confidence)[others]
        terms.append(g.mean() ** 2 - g.var() / len(g))
    return torch.stack(terms).mean()


def esd_naive_by_definition(confidence: Tensor, outcome: Tensor) -> Tensor:
    """Eq. 9, likewise."""
    terms = []
    for i in range(len(confidence)):
        others = torch.arange(len(confidence)) != i
        below = (confidence[others] <= confidence[i]).to(confidence)
        terms.append((below * (outcome - confidence)[others]).mean() ** 2)
    return torch.stack(terms).mean()


def gradient_of(measure: object, confidence: Tensor, outcome: Tensor) -> tuple[Tensor, ...]:
    c, y = confidence.clone().requires_grad_(), outcome.clone().requires_grad_()
    return torch.autograd.grad(measure(c, y), (c, y))  # type: ignore[operator]


@given(forecasts(min_size=3))
def test_agrees_with_its_definition_in_value_and_gradient(drawn: Forecasts) -> None:
    confidence, outcome = as_tensors(drawn)
    assert_close(esd(confidence, outcome), esd_by_definition(confidence, outcome))
    assert_close(
        gradient_of(esd, confidence, outcome), gradient_of(esd_by_definition, confidence, outcome)
    )


@given(forecasts(min_size=2))
def test_the_naive_form_agrees_with_its_definition(drawn: Forecasts) -> None:
    confidence, outcome = as_tensors(drawn)
    assert_close(esd_naive(confidence, outcome), esd_naive_by_definition(confidence, outcome))
    assert_close(
        gradient_of(esd_naive, confidence, outcome),
        gradient_of(esd_naive_by_definition, confidence, outcome),
    )


def test_is_zero_on_average_when_calibrated_at_any_batch_size(rng: torch.Generator) -> None:
    for size in (3, 8, 64):
        scores = torch.vmap(esd)(*calibrated((4_000, size), rng))
        assert scores.mean().abs() < 4 * scores.std() / len(scores) ** 0.5


def test_its_average_does_not_depend_on_the_batch_size(rng: torch.Generator) -> None:
    """Unbiased also when miscalibrated: confidence c comes true with probability c squared."""
    means, errors = [], []
    for size in (3, 8, 64):
        confidence = torch.rand(4_000, size, generator=rng, dtype=torch.float64)
        outcome = torch.bernoulli(confidence.square(), generator=rng)
        scores = torch.vmap(esd)(confidence, outcome)
        means.append(scores.mean())
        errors.append(scores.var() / len(scores))
    # E_t[(E[(C^2 - C) 1{C <= t}])^2] = integral of (t^3/3 - t^2/2)^2 over t
    truth = 1 / 63 - 1 / 18 + 1 / 20
    for mean, error in zip(means, errors, strict=True):
        assert (mean - truth).abs() < 4 * error**0.5


def test_its_gradient_is_unbiased(rng: torch.Generator) -> None:
    """By the scale s of confidences s * c that come true with probability c."""
    base = torch.rand(4_000, 12, generator=rng, dtype=torch.float64)
    outcome = torch.bernoulli(base, generator=rng)

    def at(scale: Tensor, c: Tensor, y: Tensor) -> Tensor:
        return esd(scale * c, y)

    scale = torch.tensor(0.8, dtype=torch.float64)
    slopes = torch.vmap(torch.func.grad(at), in_dims=(None, 0, 0))(scale, base, outcome)
    # ESD is E_t[((1 - s) t^2 / 2)^2] = (1 - s)^2 / 20, whose slope is (s - 1) / 10.
    assert (slopes.mean() + 0.02).abs() < 4 * slopes.std() / len(slopes) ** 0.5


def test_is_consistent(rng: torch.Generator) -> None:
    """The error shrinks as samples are added; the truth is (1 - 0.8)^2 / 20."""
    spreads = []
    for size in (30, 300, 3_000):
        base = torch.rand(200, size, generator=rng, dtype=torch.float64)
        scores = torch.vmap(esd)(0.8 * base, torch.bernoulli(base, generator=rng))
        spreads.append((scores - 0.002).square().mean().sqrt())
    assert spreads[1] < spreads[0] / 2
    assert spreads[2] < spreads[1] / 2


def test_the_naive_form_is_biased_upwards(rng: torch.Generator) -> None:
    scores = torch.vmap(esd_naive)(*calibrated((2_000, 8), rng))
    assert scores.mean() > 4 * scores.std() / len(scores) ** 0.5


def test_is_zero_with_a_zero_gradient_for_fewer_than_three_samples() -> None:
    for size in (0, 1, 2):
        confidence = torch.rand(size, requires_grad=True)
        esd(confidence, torch.ones(size)).backward()
        assert_close(confidence.grad, torch.zeros(size))


def test_bfloat16_ties_do_not_inflate_it() -> None:
    """The released code computes in the dtype of the logits and gets this wrong by half."""
    from calibrant import Predictions, top_label

    rng = torch.Generator().manual_seed(1)
    logits = 6 * torch.randn(64, 10, generator=rng).bfloat16()
    labels = torch.randint(10, (64,), generator=rng)
    half = top_label(esd)(Predictions(logits, labels))
    assert_close(half, top_label(esd)(Predictions(logits.float(), labels)))


def test_a_million_samples_keep_their_precision(rng: torch.Generator) -> None:
    confidence, outcome = calibrated((1_000_000,), rng)
    assert_close(
        esd(confidence.float(), outcome.float()).double(),
        esd(confidence, outcome),
        atol=1e-8,
        rtol=0,
    )


def weighted_by_definition(confidence: Tensor, outcome: Tensor, weights: Tensor) -> Tensor:
    """Every triple of distinct samples by the product of its weights."""
    total = count = torch.zeros((), dtype=torch.float64)
    n, gap = len(confidence), outcome - confidence
    for i in range(n):
        for j in range(n):
            for k in range(n):
                if len({i, j, k}) == 3:
                    weight = weights[i] * weights[j] * weights[k]
                    below = confidence[j] <= confidence[i] and confidence[k] <= confidence[i]
                    total = total + weight * gap[j] * gap[k] * below
                    count = count + weight
    return total / count


def test_the_weighted_form_agrees_with_its_definition(rng: torch.Generator) -> None:
    for smallest in (1.0, 1e-3, 1e-9):
        confidence = torch.randint(11, (9,), generator=rng).double() / 10
        outcome = torch.bernoulli(confidence, generator=rng)
        weights = smallest * torch.rand(9, generator=rng, dtype=torch.float64)
        weights[0] = 1.0
        expected = weighted_by_definition(confidence, outcome, weights)
        assert_close(esd(confidence, outcome, weights=weights), expected, rtol=1e-5, atol=1e-9)


def test_two_samples_are_enough_for_the_naive_form_with_weights() -> None:
    confidence, outcome = torch.tensor([0.6, 0.7, 0.1]), torch.tensor([0.0, 1.0, 1.0])
    masked = esd_naive(confidence, outcome, weights=torch.tensor([1.0, 1.0, 0.0]))
    assert masked > 0
    assert_close(masked, esd_naive(confidence[:2], outcome[:2]))


def test_three_million_samples_are_not_too_many() -> None:
    confidence = torch.linspace(0.5, 1.0, 3_000_000, requires_grad=True)
    for measure in (esd, esd_naive):
        value = measure(confidence, torch.ones(3_000_000))
        assert value > 0
        assert torch.autograd.grad(value, confidence)[0].isfinite().all()
