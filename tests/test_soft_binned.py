from typing import Any

import pytest
import torch
from forecasts import Forecasts, as_tensors, calibrated, forecasts
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from calibrant import (
    Predictions,
    dece,
    ece,
    label_binned_ece,
    soft_binned_ece,
    soft_label_binned_ece,
)
from calibrant.measures import _soft_bins

NORMS = [1, 1.5, 2, 3]
TEMPERATURES = [1.0, 0.1, 0.01]


def memberships(confidence: Tensor, bins: int, temperature: float) -> Tensor:
    centres = (torch.arange(bins, dtype=confidence.dtype) + 0.5) / bins
    return torch.softmax(-((confidence[:, None] - centres) ** 2) / temperature, dim=1)


def binned_by_definition(
    confidence: Tensor, outcome: Tensor, bins: int, temperature: float, norm: float
) -> Tensor:
    """Eqs. 8 to 11, bin by bin, before the root."""
    u = memberships(confidence, bins, temperature)
    terms = []
    for j in range(bins):
        size = u[:, j].sum()
        accuracy = (u[:, j] * outcome).sum() / size
        mean_confidence = (u[:, j] * confidence).sum() / size
        terms.append(size / len(confidence) * (accuracy - mean_confidence).abs() ** norm)
    return torch.stack(terms).sum()


def label_binned_by_definition(
    confidence: Tensor, outcome: Tensor, bins: int, temperature: float, norm: float
) -> Tensor:
    """Eq. 12, pair by pair, before the root."""
    u = memberships(confidence, bins, temperature)
    total = torch.zeros((), dtype=confidence.dtype)
    for j in range(bins):
        accuracy = (u[:, j] * outcome).sum() / u[:, j].sum()
        for i in range(len(confidence)):
            total = total + u[i, j] * (accuracy - confidence[i]).abs() ** norm
    return total / len(confidence)


FORMS = [
    (soft_binned_ece, binned_by_definition),
    (soft_label_binned_ece, label_binned_by_definition),
]


@pytest.mark.parametrize(("measure", "definition"), FORMS, ids=["binned", "label-binned"])
@given(
    drawn=forecasts(max_size=8),
    temperature=st.sampled_from(TEMPERATURES),
    norm=st.sampled_from(NORMS),
)
def test_agrees_with_its_definition_in_value_and_gradient(
    measure: object, definition: object, drawn: Forecasts, temperature: float, norm: float
) -> None:
    c, y = (x.clone().requires_grad_() for x in as_tensors(drawn))
    power = definition(c, y, 6, temperature, norm)  # type: ignore[operator]
    ours = measure(c, y, bins=6, temperature=temperature, norm=norm)  # type: ignore[operator]
    assert_close(ours, power.clamp(min=0) ** (1 / norm), atol=1e-9, rtol=1e-7)
    if power > 1e-6:
        assert_close(
            torch.autograd.grad(ours, (c, y)), torch.autograd.grad(power ** (1 / norm), (c, y))
        )


@pytest.mark.parametrize("measure", [soft_binned_ece, soft_label_binned_ece])
@pytest.mark.parametrize("norm", NORMS)
def test_blocks_and_the_whole_give_the_same(
    measure: object, norm: float, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = torch.rand(101, generator=rng, dtype=torch.float64).requires_grad_()
    y = torch.rand(101, generator=rng, dtype=torch.float64).requires_grad_()
    whole = measure(c, y, norm=norm)  # type: ignore[operator]
    expected = torch.autograd.grad(whole, (c, y))
    monkeypatch.setitem(_soft_bins._AT_ONCE, "cpu", 7 * 15)
    blocks = measure(c, y, norm=norm)  # type: ignore[operator]
    assert_close(blocks, whole)
    assert_close(torch.autograd.grad(blocks, (c, y)), expected)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("bins", [10, 15])
def test_tends_to_hard_bins_as_the_temperature_falls(
    norm: float, bins: int, rng: torch.Generator
) -> None:
    confidence, outcome = calibrated((300,), rng)
    for soft, hard in ((soft_binned_ece, ece), (soft_label_binned_ece, label_binned_ece)):
        assert_close(
            soft(confidence, outcome, bins=bins, norm=norm, temperature=1e-9),
            hard(confidence, outcome, bins=bins, norm=norm),
        )


def test_tends_to_zero_on_calibrated_forecasts(rng: torch.Generator) -> None:
    """Proposition 1 of the paper, at the rate of a standard error."""
    values = [soft_binned_ece(*calibrated((n,), rng)) for n in (1_000, 100_000)]
    assert values[1] < values[0] / 4
    assert values[1] < 0.01


@given(forecasts())
def test_label_binned_is_never_below_binned(drawn: Forecasts) -> None:
    confidence, outcome = as_tensors(drawn)
    for norm in (1, 2):
        lower = soft_binned_ece(confidence, outcome, norm=norm)
        assert soft_label_binned_ece(confidence, outcome, norm=norm) >= lower - 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [1e-2, 1e-3, 1e-4, 1e-6])
def test_small_temperatures_give_no_nan(
    dtype: torch.dtype, temperature: float, rng: torch.Generator
) -> None:
    """The released code's gradient is NaN on half of such batches."""
    for _ in range(20):
        confidence = torch.rand(512, generator=rng, dtype=dtype).requires_grad_()
        outcome = torch.bernoulli(confidence.detach(), generator=rng)
        for measure in (soft_binned_ece, soft_label_binned_ece):
            value = measure(confidence, outcome, temperature=temperature)
            assert value.isfinite()
            assert torch.autograd.grad(value, confidence)[0].isfinite().all()


def test_dece_is_soft_binned_ece_with_a_soft_outcome(predictions: Predictions) -> None:
    soft_accuracy = (2 - predictions.soft_rank(100.0)).relu()
    sibling = soft_binned_ece(
        predictions.confidence, soft_accuracy, temperature=2 * 0.01 / 15, norm=1
    )
    assert_close(dece(predictions), sibling, rtol=1e-4, atol=0)


def dece_by_definition(predictions: Predictions, bins: int, rank: float, bin_: float) -> Tensor:
    """The released form: all ranks by all pairs, memberships by weights and offsets."""
    n, total = len(predictions), torch.zeros(bins, dtype=predictions.probs.dtype)
    for p, label, c in zip(
        predictions.probs, predictions.labels, predictions.confidence, strict=True
    ):
        above = [torch.sigmoid(rank * (p[j] - p[label])) for j in range(len(p)) if j != label]
        soft_rank = 1 + torch.stack(above).sum()
        accuracy = torch.relu(2 - soft_rank)
        h = torch.stack(
            [(m * c - sum(q / bins for q in range(1, m))) / bin_ for m in range(1, bins + 1)]
        )
        u = (torch.softmax(h, dim=0) + 1e-6) / (1 + bins * 1e-6)
        total = total + u * (accuracy - c)
    return total.abs().sum() / n


@pytest.mark.parametrize(("bins", "rank", "bin_"), [(15, 100.0, 0.01), (6, 10.0, 0.2)])
def test_dece_agrees_with_its_definition(
    bins: int, rank: float, bin_: float, rng: torch.Generator
) -> None:
    logits = torch.randn(20, 4, generator=rng, dtype=torch.float64).requires_grad_()
    predictions = Predictions(logits, torch.randint(4, (20,), generator=rng))
    definition = dece_by_definition(predictions, bins, rank, bin_)
    ours = dece(predictions, bins=bins, rank_temperature=rank, bin_temperature=bin_)
    assert_close(ours, definition)
    assert_close(
        torch.autograd.grad(ours, logits, retain_graph=True),
        torch.autograd.grad(definition, logits),
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"bins": 0}, r"bins must be a whole number, at least 1; got 0"),
        ({"temperature": -1.0}, r"temperature must be positive and finite; got -1\.0"),
        ({"norm": 0.5}, r"norm must be at least 1 and finite; got 0\.5"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        soft_binned_ece(torch.rand(3), torch.ones(3), **settings)
