"""Reliability diagrams for papers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..evaluation._arrays import Numbers
from ..measures import ece
from ..measures._binned import Binning
from ._axes import GREEN, GREY, ORANGE, as_given, room, rooms, tidy
from ._bins import reliability_bins
from ._models import Forecast, judged
from ._settings import Settings
from ._words import compact

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def reliability_diagram(
    logits: Numbers,
    labels: Numbers,
    *,
    probabilities: bool = False,
    bins: int = 15,
    binning: Binning = "width",
    level: float = 0.95,
    counts: bool = True,
    axes: "Axes | None" = None,
) -> "tuple[Figure, Axes]":
    """Accuracy against confidence, bin by bin, with intervals and counts.

    - `logits`: `(n, classes)`, a torch tensor or a NumPy array; with `probabilities=True`,
      probabilities. One number per sample is the confidence in an event, and `labels` then says
      whether it happened.
    - `labels`: the index of the true class of each sample.
    - `bins`, `binning`: as in `ece`, whose value stands in the diagram.
    - `level`: of Clopper and Pearson's interval for the accuracy of each bin.
    - `counts`: whether to show, below a new figure, how many samples each bin holds.
    - `axes`: where to draw; a new figure unless given.

    Calibrated, the dots lie on the diagonal. Orange is confidence without cover, green is
    accuracy unclaimed. Returns the figure and its axes; save it with `figure.savefig(path)`.

    >>> import torch
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    >>> figure, axes = reliability_diagram(logits, torch.tensor([0, 0, 0]))
    >>> axes.get_ylabel(), len(figure.axes)
    ('accuracy', 2)

    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, figure 1.
    """
    Settings(bins=bins, level=level)
    told = judged("", (logits, labels), probabilities=probabilities)
    parts = reliability_bins(told.confidence, told.outcome, bins=bins, binning=binning, level=level)
    if counts and axes is None:
        figure, table = rooms(2, 1, 3.6, 4.4, height_ratios=[4.5, 1], sharex=True)
        main, strip = table[:, 0]
    else:
        (figure, main), strip = room(axes, 3.6, 3.6), None
    left = [one.low for one in parts]
    width = [max(one.high - one.low, 0.004) for one in parts]
    accuracy = [one.accuracy for one in parts]
    bar: dict[str, Any] = {"align": "edge", "edgecolor": "white", "linewidth": 0.5}
    main.bar(left, accuracy, width, color="#a9c6e8", **bar)
    for one, start, wide in zip(parts, left, width, strict=True):
        colour = ORANGE if one.gap > 0 else GREEN
        low, high = sorted((one.accuracy, one.confidence))
        main.bar(
            start, high - low, wide, low, align="edge", color=colour, alpha=0.35, edgecolor=colour,
            hatch="////" if one.gap > 0 else "\\\\\\\\", linewidth=0.5,
        )  # fmt: skip
    spread = [
        [one.accuracy - one.accuracy_low for one in parts],
        [one.accuracy_high - one.accuracy for one in parts],
    ]
    claimed = [one.confidence for one in parts]
    main.errorbar(claimed, accuracy, spread, fmt="o", color="#1c2430", ms=3, lw=1, capsize=2)
    main.plot([0, 1], [0, 1], "--", color=GREY, lw=1)
    error = ece(told.confidence, told.outcome, bins=bins, binning=binning).item()
    main.text(0.03, 0.96, f"ECE {error:.3f}\nn = {len(told):,}", transform=main.transAxes, va="top")
    main.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy")
    tidy(main)
    if strip is not None:
        main.set_xlabel("")
        strip.bar(left, [one.count for one in parts], width, color=GREY, **bar)
        for one, start, wide in zip(parts, left, width, strict=True):
            if wide > 0.05:
                middle, said = start + wide / 2, compact(one.count)
                strip.text(middle, one.count, said, ha="center", va="bottom", fontsize=5.5)
        strip.set(xlabel="confidence", ylabel="samples", yticks=[])
        strip.margins(y=0.25)
        strip.spines[["top", "right", "left"]].set_visible(False)
    return figure, main


def reliability_curves(
    models: Mapping[str, Forecast],
    *,
    probabilities: bool = False,
    bins: int = 15,
    binning: Binning = "width",
    level: float = 0.95,
    axes: "Axes | None" = None,
) -> "tuple[Figure, Axes]":
    """Accuracy against confidence of several models at once.

    - `models`: by name, `(logits, labels)` or `(confidence, outcome)`.
    - the rest: as in `reliability_diagram`.

    >>> import torch
    >>> logits, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.zeros(3).long()
    >>> figure, axes = reliability_curves({"one": (logits, labels), "two": (2 * logits, labels)})
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['one', 'two', 'calibrated']

    Karandikar et al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021, figure 6.
    """
    Settings(bins=bins, level=level)
    figure, main = room(axes, 3.6, 3.6)
    for k, (name, forecast) in enumerate(models.items()):
        told = judged(name, forecast, probabilities=probabilities)
        parts = reliability_bins(
            told.confidence,
            told.outcome,
            bins=bins,
            binning=binning,
            level=level,
            weights=told.weights,
        )
        claimed = [one.confidence for one in parts]
        line = main.plot(
            claimed, [one.accuracy for one in parts], marker="osD^v"[k % 5], ms=3, lw=1.4,
            label=as_given(name),
        )[0]  # fmt: skip
        low, high = [one.accuracy_low for one in parts], [one.accuracy_high for one in parts]
        main.fill_between(claimed, low, high, color=line.get_color(), alpha=0.15, lw=0)
    main.plot([0, 1], [0, 1], "--", color=GREY, lw=1, label="calibrated")
    main.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy")
    main.legend(frameon=False, fontsize=8)
    tidy(main)
    return figure, main
