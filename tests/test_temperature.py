"""Temperature scaling: the likelihood exactly, other objectives by search, or a sentence."""

import json
import math
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import calibrant as cal
from calibrant import Predictions
from calibrant.recalibration import TemperatureScaling
from calibrant.recalibration._scaled import Scaled
from calibrant.recalibration._search import Curve, criterion_of

HERE = Path(__file__).parent / "golden"
SHARED = Path(__file__).parents[2] / "shared"


def likeliest_by_bisection(logits: Tensor, labels: Tensor) -> float:
    """Halve the interval that holds the zero of the slope until nothing is left of it."""
    logits = logits.double()
    observed = logits.gather(1, labels[:, None]).mean()
    low, high = -8.0, 8.0
    for _ in range(50):
        middle = (low + high) / 2
        expected = ((math.exp(middle) * logits).softmax(dim=1) * logits).sum(dim=1).mean()
        low, high = (low, middle) if expected > observed else (middle, high)
    return math.exp(-low)


def log_loss(logits: Tensor, labels: Tensor, temperature: float) -> float:
    return cal.nll(Predictions(logits.double() / temperature, labels)).item()


@cache
def best_on_real_logits(name: str) -> float:
    return likeliest_by_bisection(*real_logits()[name])


@cache
def golden() -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """Every case beside a checkout, or the selection kept with the tests."""
    folder = SHARED / "golden" if (SHARED / "golden").exists() else HERE
    with np.load(folder / "dev.npz") as arrays:
        cases = {key: torch.tensor(arrays[key]) for key in arrays.files if key.startswith("case/")}
    return json.loads((folder / "dev.json").read_text())["entries"], cases


@cache
def real_logits() -> dict[str, tuple[Tensor, Tensor]]:
    """Validation logits of published networks, where they lie beside a checkout."""
    found = {}
    for path in sorted((SHARED / "data" / "logits").glob("*.npz")):
        with np.load(path) as arrays:
            for key in arrays.files:
                if key.endswith("val_logits"):
                    labels = arrays[key.replace("logits", "labels")].astype(np.int64)
                    found[f"{path.stem}/{key}"] = torch.tensor(arrays[key]), torch.tensor(labels)
    return found


def entries(name: str, **params: str) -> list[dict[str, Any]]:
    every, _ = golden()
    return [e for e in every if e["name"] == name and params.items() <= e["params"].items()]


def case(entry: dict[str, Any]) -> tuple[Tensor, Tensor]:
    _, cases = golden()
    return cases[f"case/{entry['case']}/logits"], cases[f"case/{entry['case']}/labels"].long()


@pytest.mark.parametrize("truth", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("objective", ["nll", "sb_ece", "ece"])
def test_temperature_is_recovered(truth: float, objective: str, rng: torch.Generator) -> None:
    calibrated = 2 * torch.randn(20_000, 5, generator=rng)
    labels = torch.multinomial(calibrated.softmax(1), 1, generator=rng).squeeze(1)
    fitted = TemperatureScaling(objective).fit(truth * calibrated, labels, folds=0)
    assert fitted.temperature_.item() == pytest.approx(truth, rel=0.06)


@pytest.mark.parametrize("scale", [20.0, 1.0, 0.05])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_finds_the_likeliest_temperature_at_any_scale(
    predictions: Predictions, scale: float, dtype: torch.dtype
) -> None:
    logits, labels = scale * predictions.logits.to(dtype), predictions.labels
    fitted = TemperatureScaling().fit(logits, labels, folds=0)
    expected = likeliest_by_bisection(logits, labels)
    assert fitted.temperature_.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [20.0, 1.0, 0.05])
@pytest.mark.parametrize("name", real_logits())
def test_no_temperature_is_likelier_on_real_logits(name: str, scale: float) -> None:
    logits, labels = real_logits()[name]
    fitted = TemperatureScaling().fit(scale * logits, labels, folds=0)
    best = best_on_real_logits(name)
    found = fitted.temperature_.item() / scale
    assert log_loss(logits, labels, found) <= log_loss(logits, labels, best) + 1e-9
    assert fitted.report_.iterations <= 6


def test_agrees_with_golden_optima() -> None:
    for entry in entries("ts_nll_optimum"):
        fitted = TemperatureScaling().fit(*case(entry), folds=0)
        assert fitted.temperature_.item() == pytest.approx(entry["value"], rel=1e-8)


def test_soft_objective_finds_the_golden_optimum() -> None:
    for entry in entries("ts_sbece_optimum"):
        fitted = TemperatureScaling("sb_ece").fit(*case(entry), folds=0)
        assert fitted.temperature_.item() == pytest.approx(entry["value"], rel=1e-6)


def test_hard_objective_is_no_worse_than_the_released_grid() -> None:
    for entry in entries("ts_grid_torrvision", cv="ece"):
        logits, labels = case(entry)
        fitted = TemperatureScaling("ece").fit(logits, labels, folds=0)
        ours, theirs = (
            cal.MEASURES["ece"](Predictions(logits / temperature, labels))
            for temperature in (fitted.temperature_.item(), entry["value"])
        )
        assert ours <= theirs


@pytest.mark.parametrize("objective", ["brier", cal.top_label(partial(cal.ece, bins=5)), cal.focal])
def test_any_criterion_is_minimised(objective: Any, predictions: Predictions) -> None:
    logits, labels = predictions.logits, predictions.labels
    fitted = TemperatureScaling(objective).fit(logits, labels, folds=0)
    value = criterion_of(objective)
    found = value(Predictions(logits / fitted.temperature_, labels))
    for temperature in torch.logspace(-1, 1.5, 40, dtype=torch.float64):
        assert found <= value(Predictions(logits / temperature, labels)) + 1e-6


def test_an_objective_that_no_temperature_changes_keeps_the_likeliest(
    predictions: Predictions,
) -> None:
    given = predictions.logits, predictions.labels
    indifferent = TemperatureScaling("accuracy").fit(*given, folds=0)
    likeliest = TemperatureScaling().fit(*given, folds=0)
    assert_close(indifferent.temperature_, likeliest.temperature_)


def test_a_large_set_is_scanned_by_a_part_and_refined_by_all(rng: torch.Generator) -> None:
    calibrated = 2 * torch.randn(20_000, 3, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(calibrated.softmax(1), 1, generator=rng).squeeze(1)
    fitted = TemperatureScaling("sb_ece").fit(2 * calibrated, labels, folds=0)
    slope = Curve(criterion_of("sb_ece"), Predictions(2 * calibrated, labels)).slope
    assert abs(slope(-math.log(fitted.temperature_.item()))) < 1e-7


def test_weights_count_in_every_objective(predictions: Predictions) -> None:
    logits, labels = predictions.logits, predictions.labels
    counts = 1 + 2 * predictions.correct.long()
    for objective in ("nll", "sb_ece", "ece", "brier"):
        weighted = TemperatureScaling(objective).fit(logits, labels, weights=counts, folds=0)
        twice = TemperatureScaling(objective).fit(
            logits.repeat_interleave(counts, 0), labels.repeat_interleave(counts), folds=0
        )
        plain = TemperatureScaling(objective).fit(logits, labels, folds=0)
        assert_close(weighted.temperature_, twice.temperature_)
        assert abs(weighted.temperature_ - plain.temperature_) > 1e-3


def test_refuses_predictions_with_no_finite_temperature() -> None:
    with pytest.raises(ValueError, match=r"towards T = 0\. Accuracy is 100\.0% on 3 samples"):
        TemperatureScaling().fit(torch.eye(3), torch.arange(3))


@pytest.mark.parametrize("n", [60, 6_000])
def test_refuses_predictions_that_are_worse_than_chance(n: int, rng: torch.Generator) -> None:
    logits = torch.randn(n, 3, generator=rng)
    with pytest.raises(ValueError, match=r"towards T = infinity\. Accuracy is 0\.0%"):
        TemperatureScaling().fit(logits, logits.argmin(dim=1))


def test_refuses_logits_that_say_nothing() -> None:
    with pytest.raises(ValueError, match=r"logits must differ between classes.*60 rows"):
        TemperatureScaling().fit(torch.zeros(60, 3), torch.arange(60) % 3)


def test_a_part_that_has_no_solution_does_not_hide_that_of_the_whole(rng: torch.Generator) -> None:
    logits = torch.randn(6_000, 3, generator=rng)
    labels = logits.argmax(dim=1)
    labels[1::11] = logits[1::11].argsort(dim=1)[:, 1]  # no row of the strides is wrong
    labels[:: 6_000 // 512] = logits[:: 6_000 // 512].argmax(dim=1)
    fitted = TemperatureScaling().fit(logits, labels, folds=0)
    expected = likeliest_by_bisection(logits, labels)
    assert fitted.temperature_.item() == pytest.approx(expected, rel=1e-6)


def mean_confidence(predictions: Predictions) -> Tensor:
    return predictions.confidence.mean()


def test_refuses_an_objective_without_a_finite_minimum(predictions: Predictions) -> None:
    given = predictions.logits, predictions.labels
    with pytest.raises(ValueError, match=r"best for mean_confidence: .* towards T = infinity"):
        TemperatureScaling(mean_confidence).fit(*given)
    with pytest.raises(ValueError, match=r"objective must be a criterion or the name of one"):
        TemperatureScaling("ecce").fit(*given)


def test_every_objective_refuses_predictions_that_are_all_right() -> None:
    for objective in ("sb_ece", "ece", "brier"):
        with pytest.raises(ValueError, match=r"towards T = 0"):
            TemperatureScaling(objective).fit(torch.eye(3), torch.arange(3))


@pytest.mark.parametrize("classes", [3, 100])
@pytest.mark.parametrize("every", [1, 7])
def test_value_slope_and_curvature_are_those_of_the_likelihood(
    classes: int, every: int, rng: torch.Generator
) -> None:
    logits = torch.randn(5_000, classes, generator=rng, dtype=torch.float64)
    labels = torch.randint(classes, (5_000,), generator=rng)
    weights = torch.rand(5_000, generator=rng, dtype=torch.float64)
    beta = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
    rows = slice(None, None, every)
    value = cal.nll(Predictions(beta * logits[rows], labels[rows], weights=weights[rows]))
    (slope,) = torch.autograd.grad(value, beta, create_graph=True)
    (curvature,) = torch.autograd.grad(slope, beta)
    scaled = Scaled(Predictions(logits, labels, weights=weights), every)
    found = scaled.around(1.7)
    assert found[0] == pytest.approx(value.item(), rel=1e-12)
    assert found[1:] == pytest.approx((slope.item(), curvature.item()), rel=1e-10)


def test_slope_of_a_soft_objective_is_its_derivative(predictions: Predictions) -> None:
    curve = Curve(criterion_of("sb_ece"), predictions)
    numeric = (curve(-0.3 + 1e-6) - curve(-0.3 - 1e-6)) / 2e-6
    assert curve.slope(-0.3) == pytest.approx(numeric, rel=1e-6)


def test_allocates_nothing_of_the_size_of_the_logits() -> None:
    logits = torch.randn(4_000, 500)
    labels = torch.arange(4_000) % 500
    logits[torch.arange(4_000), labels] += 3
    sizes: list[int] = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            if isinstance(out, Tensor) and out.untyped_storage() != logits.untyped_storage():
                sizes.append(out.numel())
            return out

    with Watch():  # type: ignore[no-untyped-call]
        Scaled(Predictions._unchecked(logits, labels, None)).around(0.5)
    assert max(sizes) < logits.numel() / 10
