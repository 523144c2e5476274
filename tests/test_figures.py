"""Figures for papers: what is drawn is what was measured, and nothing global is touched."""

import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from torch import Tensor

import calibrant as cal
from calibrant import report
from calibrant.report import _axes

Drawn = tuple[Figure, Axes]


@pytest.fixture(scope="module")
def told() -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    logits = 1.5 * torch.randn(500, 4, generator=rng)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    return 3 * logits, labels


OF_PREDICTIONS: dict[str, Callable[..., Drawn]] = {
    "reliability": report.reliability_diagram,
    "histogram": report.confidence_histogram,
    "cumulative": report.cumulative_diagram,
    "risk": report.risk_coverage_curve,
    "classes": report.class_heat_map,
}
every_figure = pytest.mark.parametrize("draw", OF_PREDICTIONS.values(), ids=OF_PREDICTIONS)


def saved(figure: Figure) -> bytes:
    """As a picture, which draws everything."""
    file = io.BytesIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


def ys(line: Line2D) -> NDArray[Any]:
    return np.asarray(line.get_ydata())


@every_figure
def test_it_can_be_saved_and_says_what_its_axes_are(
    draw: Callable[..., Drawn], told: tuple[Tensor, Tensor]
) -> None:
    figure, axes = draw(*told)
    assert isinstance(figure, Figure)
    assert axes in figure.axes
    assert any(one.get_xlabel() for one in figure.axes)
    assert len(saved(figure)) > 5_000


@every_figure
def test_arrays_and_tensors_are_drawn_alike(
    draw: Callable[..., Drawn], told: tuple[Tensor, Tensor]
) -> None:
    ours, theirs = draw(*told)[1], draw(told[0].numpy(), told[1].numpy())[1]
    assert [text.get_text() for text in ours.texts] == [text.get_text() for text in theirs.texts]
    for one, other in zip(ours.patches, theirs.patches, strict=True):
        np.testing.assert_array_equal(one.get_extents().bounds, other.get_extents().bounds)


@every_figure
def test_it_draws_where_it_is_told_to(
    draw: Callable[..., Drawn], told: tuple[Tensor, Tensor]
) -> None:
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    assert draw(*told, axes=right) == (figure, right)
    assert not left.lines
    assert not left.patches


def test_the_reliability_diagram_shows_bins_intervals_counts_and_the_error(
    told: tuple[Tensor, Tensor],
) -> None:
    figure, axes = report.reliability_diagram(*told, bins=10)
    predictions = cal.Predictions(*told)
    error = cal.ece(predictions.confidence, predictions.correct, bins=10)
    words = axes.texts[0].get_text()
    assert f"ECE {error:.3f}" in words
    assert "n = 500" in words
    (points,) = [line for line in axes.lines if line.get_marker() == "o"]
    across, up = np.asarray(points.get_xdata()), ys(points)
    bin_of = torch.bucketize(predictions.confidence, torch.arange(1, 10) / 10)
    filled = bin_of.unique().tolist()
    for place, k in enumerate(filled):
        own = bin_of == k
        assert across[place] == pytest.approx(predictions.confidence[own].mean().item())
        assert up[place] == pytest.approx(predictions.correct[own].mean().item())
    strip = figure.axes[1]
    shown = [text.get_text() for text in strip.texts]
    assert shown == [str(int((bin_of == k).sum())) for k in filled]
    assert len(axes.collections) == 1  # the whiskers
    assert len(report.reliability_diagram(*told, counts=False)[0].axes) == 1


def test_events_are_drawn_from_confidence_and_outcome() -> None:
    sure, right = np.array([0.9, 0.8, 0.3, 0.6]), np.array([True, False, False, True])
    _, axes = report.reliability_diagram(sure, right, bins=5)
    assert "n = 4" in axes.texts[0].get_text()
    with pytest.raises(ValueError, match="shape \\(n, classes\\) for a figure of classes"):
        report.class_heat_map(sure, right)


def test_the_cumulative_diagram_ends_at_accuracy_and_mean_confidence(
    told: tuple[Tensor, Tensor],
) -> None:
    _, axes = report.cumulative_diagram(*told)
    predictions = cal.Predictions(*told)
    claimed, held = (ys(line) for line in axes.lines)
    assert claimed[-1] == pytest.approx(predictions.confidence.mean().item())
    assert held[-1] == pytest.approx(predictions.correct.mean().item())


def test_the_histogram_counts_every_sample_once(told: tuple[Tensor, Tensor]) -> None:
    _, axes = report.confidence_histogram(*told, bins=8)
    heights = sum(patch.get_height() for patch in axes.patches)  # type: ignore[attr-defined]
    assert heights == 500


def test_soft_bins_share_each_confidence_among_them() -> None:
    figure, (soft, hard) = report.soft_bin_memberships(bins=4, temperatures=[0.1, 1e-5])
    for axes in (soft, hard):
        total = np.sum([ys(line) for line in axes.lines], axis=0)
        np.testing.assert_allclose(total, 1)
    first = ys(hard.lines[0])
    assert first[100] == pytest.approx(1)  # at 0.1, within the first of four bins
    assert first[400] == pytest.approx(0)
    assert saved(figure)


def test_soft_uncertainty_is_a_half_at_its_threshold_and_the_identity_at_one() -> None:
    _, axes = report.soft_uncertainty_curves(thresholds=[0.5, 0.25], temperatures=[1.0])
    identity, other = (ys(line) for line in axes.lines)
    np.testing.assert_allclose(identity, np.linspace(0, 1, 1001), atol=1e-12)
    assert other[250] == pytest.approx(0.5)


def evaluated(value: float) -> cal.Evaluation:
    estimate = cal.Estimate(value, value - 0.01, value + 0.01, 100)
    return cal.Evaluation({"accuracy": estimate, "ece": estimate}, 500, {})


def test_evaluations_are_drawn_in_the_order_of_severity() -> None:
    shifts: dict[str, Any] = {"plain $": {3: evaluated(0.3), 0: evaluated(0.1)}}
    figure, (left, right) = report.shift_diagram(shifts)
    for axes in (left, right):
        assert np.asarray(axes.lines[0].get_xdata()).tolist() == [0, 3]
        assert ys(axes.lines[0]).tolist() == [0.1, 0.3]
    assert saved(figure)  # a dollar sign in a name begins no formula
    figure, axes = report.error_bars({"a$b": evaluated(0.2), "c": evaluated(0.1)})
    assert [patch.get_height() for patch in axes.patches] == [0.2, 0.1]  # type: ignore[attr-defined]
    assert saved(figure)


def test_several_models_are_named_in_one_diagram(told: tuple[Tensor, Tensor]) -> None:
    figure, axes = report.reliability_curves({"a": told, "b": (told[0] / 3, told[1])}, bins=5)
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "calibrated"]
    assert saved(figure)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: report.soft_bin_memberships(temperatures=[0.0]),
        lambda: report.soft_uncertainty_curves(thresholds=[1.0]),
        lambda: report.error_bars({}),
        lambda: report.reliability_diagram(torch.zeros(5, 2), torch.zeros(5).long(), level=1.5),
    ],
)
def test_bad_settings_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"must|needs"):
        wrong()


def test_without_matplotlib_the_extra_is_named(
    told: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_axes, "import_module", lambda name: (_ for _ in ()).throw(ImportError))
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[report\]'"):
        report.reliability_diagram(*told)


def test_neither_pyplot_nor_any_extra_is_imported_until_needed() -> None:
    code = (
        "import sys, torch, calibrant.report as r\n"
        "assert 'matplotlib' not in sys.modules and 'jinja2' not in sys.modules\n"
        "r.reliability_diagram(torch.zeros(5, 2), torch.zeros(5).long())\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
