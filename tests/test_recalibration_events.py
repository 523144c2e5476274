"""One score per sample is an event, and judged as one: by the chance of it."""

import pytest
import torch
from torch import Tensor, nn

import calibrant as cal
from calibrant.recalibration import Identity, PlattScaling, TemperatureScaling
from calibrant.recalibration._folds import fold_index


@pytest.fixture
def events(rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Log-odds of which many are negative, and what happened, which is likelier than they say."""
    odds = 2 * torch.randn(600, generator=rng, dtype=torch.float64)
    return odds, torch.bernoulli((odds / 2 + 1).sigmoid(), generator=rng).long()


def two(odds: Tensor) -> Tensor:
    return torch.stack([torch.zeros_like(odds), odds], dim=1)


def ece_of_events(odds: Tensor, happened: Tensor, weights: Tensor | None = None) -> float:
    found = cal.evaluate_events(odds.sigmoid(), happened, weights=weights, draws=39)
    return found["ece"].value


@pytest.mark.parametrize("weighted", [False, True])
def test_events_are_judged_as_evaluate_events_does(
    weighted: bool, events: tuple[Tensor, Tensor]
) -> None:
    odds, happened = events
    weights = 1 + torch.arange(600).double() % 3 if weighted else None
    report = PlattScaling().fit(odds, happened, weights=weights).report_
    assert report.ece_before == pytest.approx(ece_of_events(odds, happened, weights))
    part = fold_index(cal.Predictions.from_binary(odds, happened, weights=weights), 5)
    mapped = torch.empty_like(odds)
    for k in range(5):
        rest = part != k
        own = None if weights is None else weights[rest]
        other = PlattScaling().fit(odds[rest], happened[rest], weights=own, folds=0)
        mapped[~rest] = other.transform(odds[~rest])
    assert report.ece_after == pytest.approx(ece_of_events(mapped, happened, weights))


def test_two_columns_are_a_choice_and_judged_by_the_class_chosen(
    events: tuple[Tensor, Tensor],
) -> None:
    odds, happened = events
    chosen = Identity().fit(two(odds), happened).report_.ece_after
    told = cal.evaluate(two(odds), happened, draws=39)["ece"].value
    assert chosen == pytest.approx(told)
    assert told != pytest.approx(ece_of_events(odds, happened), rel=0.1)


def test_what_a_model_says_of_events_is_judged_so_too(events: tuple[Tensor, Tensor]) -> None:
    odds, happened = events
    for given, expected in (
        (odds, ece_of_events(odds, happened)),
        (two(odds), cal.evaluate(two(odds), happened, draws=39)["ece"].value),
    ):
        loader = [(given[:300], happened[:300]), (given[300:], happened[300:])]
        fitted = Identity().fit_model(nn.Identity(), loader)
        assert fitted.report_.ece_after == pytest.approx(expected)


def test_events_as_likely_as_not_have_a_temperature_of_least_error(rng: torch.Generator) -> None:
    odds = 2 * torch.randn(2_000, generator=rng, dtype=torch.float64)
    happened = torch.bernoulli(odds.sigmoid(), generator=rng).long()
    fitted = TemperatureScaling("ece").fit(3 * odds, happened, folds=0)
    assert fitted.temperature_.item() == pytest.approx(3, rel=0.2)
    # The error of the event itself would be less still for a forecast of one half.
    half = ece_of_events(torch.zeros_like(odds), happened)
    assert half < ece_of_events(fitted.transform(3 * odds), happened)
