"""Figures of the confidences: their histogram, their running sums, and what they are good for."""

from typing import TYPE_CHECKING

from ..evaluation._arrays import Numbers
from ..evaluation._ranking import risk_coverage_area
from ..measures import esd
from ._axes import BLUE, GREY, ORANGE, room, tidy
from ._bins import reliability_bins
from ._curves import cumulative, risk_coverage
from ._models import judged
from ._settings import Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def confidence_histogram(
    logits: Numbers,
    labels: Numbers,
    *,
    probabilities: bool = False,
    bins: int = 20,
    axes: "Axes | None" = None,
) -> "tuple[Figure, Axes]":
    """How many answers were given at each confidence, right and wrong ones apart.

    - `logits`, `labels`, `probabilities`, `axes`: as in `reliability_diagram`.
    - `bins`: of equal width.

    Calibrated on average, the lines of mean confidence and accuracy meet.

    >>> import torch
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    >>> figure, axes = confidence_histogram(logits, torch.tensor([0, 0, 0]))
    >>> axes.get_ylabel()
    'samples'
    """
    Settings(bins=bins)
    told = judged("", (logits, labels), probabilities=probabilities)
    parts = reliability_bins(told.confidence, told.outcome, bins=bins)
    figure, main = room(axes, 3.6, 3.0)
    left, width = [one.low for one in parts], 1 / bins
    right = [round(one.count * one.accuracy) for one in parts]
    wrong = [one.count - hits for one, hits in zip(parts, right, strict=True)]
    main.bar(left, right, width, align="edge", color="#a9c6e8", edgecolor="white", label="right")
    main.bar(
        left, wrong, width, right, align="edge", color="#e4b39b", edgecolor="white", hatch="///",
        label="wrong",
    )  # fmt: skip
    sure, held = told.confidence.double().mean().item(), told.outcome.double().mean().item()
    main.axvline(sure, color=ORANGE, ls="--", label=f"mean confidence {sure:.1%}")
    main.axvline(held, color=BLUE, label=f"accuracy {held:.1%}")
    main.set(xlim=(0, 1), xlabel="confidence", ylabel="samples")
    main.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    tidy(main)
    return figure, main


def cumulative_diagram(
    logits: Numbers,
    labels: Numbers,
    *,
    probabilities: bool = False,
    axes: "Axes | None" = None,
) -> "tuple[Figure, Axes]":
    """Cumulative accuracy and confidence by quantile of confidence, without bins.

    - `logits`, `labels`, `probabilities`, `axes`: as in `reliability_diagram`.

    The mean squared distance of the two lines, less its bias, is `esd`. The band holds the
    accuracy of 95 calibrated models in 100 at each point.

    >>> import torch
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    >>> figure, axes = cumulative_diagram(logits, torch.tensor([0, 0, 0]))
    >>> axes.get_xlabel()
    'quantile of confidence'

    Yoon et al., "ESD: Expected Squared Difference as a Tuning-Free Trainable Calibration
    Measure", ICLR 2023, figure 4.
    """
    told = judged("", (logits, labels), probabilities=probabilities)
    curve = cumulative(told.confidence, told.outcome, points=400)
    figure, main = room(axes, 3.6, 3.0)
    low, high = (
        [max(c + sign * s, 0) for c, s in zip(curve.confidence, curve.spread, strict=True)]
        for sign in (-1, 1)
    )
    main.fill_between(curve.quantile, low, high, color=ORANGE, alpha=0.18, lw=0)
    main.plot(curve.quantile, curve.confidence, "--", color=ORANGE, label="cumulative confidence")
    main.plot(curve.quantile, curve.accuracy, color=BLUE, label="cumulative accuracy")
    error = esd(told.confidence, told.outcome).item()
    main.text(
        0.97, 0.04, f"ESD {error:.2g}\nn = {len(told):,}", transform=main.transAxes, ha="right"
    )
    main.set(xlim=(0, 1), xlabel="quantile of confidence", ylabel="share of all samples")
    main.set_ylim(bottom=0)
    main.legend(frameon=False, fontsize=8)
    tidy(main)
    return figure, main


def risk_coverage_curve(
    logits: Numbers,
    labels: Numbers,
    *,
    probabilities: bool = False,
    level: float = 0.95,
    axes: "Axes | None" = None,
) -> "tuple[Figure, Axes]":
    """The share of wrong answers among the surest, by the share of answers kept.

    - `logits`, `labels`, `probabilities`, `axes`: as in `reliability_diagram`.
    - `level`: of Clopper and Pearson's interval at each coverage.

    >>> import torch
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    >>> figure, axes = risk_coverage_curve(logits, torch.tensor([0, 0, 0]))
    >>> axes.get_xlabel()
    'coverage'

    Geifman & El-Yaniv, "Selective Classification for Deep Neural Networks", NeurIPS 2017.
    """
    Settings(level=level)
    told = judged("", (logits, labels), probabilities=probabilities)
    curve = risk_coverage(told.confidence, told.outcome, level=level, points=400)
    figure, main = room(axes, 3.6, 3.0)
    error, area = curve.risk[-1], risk_coverage_area(told.confidence, told.outcome).item()
    main.fill_between(curve.coverage, curve.low, curve.high, color=BLUE, alpha=0.18, lw=0)
    main.plot(curve.coverage, curve.risk, color=BLUE)
    main.axhline(error, ls="--", color=GREY, lw=1)
    main.text(0.03, 0.96, f"area {area:.3f}\nn = {len(told):,}", transform=main.transAxes, va="top")
    main.set(xlim=(0, 1), xlabel="coverage", ylabel="risk: share wrong")
    main.set_ylim(0, min(1.0, max(1.3 * max(error, max(curve.risk)), 0.01)))
    tidy(main)
    return figure, main
