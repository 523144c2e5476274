"""Figures of evaluations: models side by side, and models under a shift."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..evaluation import Evaluation
from ._axes import BLUE, as_given, room, rooms, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def error_bars(
    evaluations: Mapping[str, Evaluation], *, row: str = "ece", axes: "Axes | None" = None
) -> "tuple[Figure, Axes]":
    """One measure of several models with its intervals, and their accuracy below.

    - `evaluations`: by name, what `evaluate` gave. `row`: which measure.
    - `axes`: where to draw; a new figure unless given.

    A measure that is biased upwards may lie above its own interval.

    >>> from calibrant import Estimate
    >>> told = {"accuracy": Estimate(0.9, 0.88, 0.92, 9), "ece": Estimate(0.05, 0.03, 0.06, 9)}
    >>> figure, axes = error_bars({"plain": Evaluation(told, 500, {})})
    >>> axes.get_ylabel()
    'ece'

    Karandikar et al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021, figure 5.
    """
    _some(evaluations)
    figure, main = room(axes, 1.2 + 0.8 * len(evaluations), 3.0)
    places = range(len(evaluations))
    found = [one[row] for one in evaluations.values()]
    main.bar(places, [one.value for one in found], color="#a9c6e8", edgecolor=BLUE)
    for place, one in zip(places, found, strict=True):
        main.plot([place, place], [one.low, one.high], color="#1c2430", marker="_", lw=1.2)
    main.set_xticks(
        places,
        [
            f"{as_given(name)}\n{one['accuracy'].value:.1%}\nn = {one.n:,}"
            for name, one in evaluations.items()
        ],
        fontsize=8,
    )
    main.set_ylabel(row)
    tidy(main)
    return figure, main


def shift_diagram(
    evaluations: Mapping[str, Mapping[float, Evaluation]], *, row: str = "ece"
) -> "tuple[Figure, tuple[Axes, Axes]]":
    """Accuracy and one measure of several models, by the severity of a shift.

    - `evaluations`: by the name of the model and the severity, what `evaluate` gave.
    - `row`: which measure stands beside the accuracy.

    >>> from calibrant import Estimate
    >>> told = {"accuracy": Estimate(0.9, 0.88, 0.92, 9), "ece": Estimate(0.05, 0.03, 0.06, 9)}
    >>> one = Evaluation(told, 500, {})
    >>> figure, (left, right) = shift_diagram({"plain": {0: one, 3: one}})
    >>> left.get_ylabel(), right.get_ylabel()
    ('accuracy', 'ece')

    Yoon et al., ICLR 2023, figure 6; Karandikar et al., NeurIPS 2021, figures 2 and 7.
    """
    _some(evaluations)
    figure, table = rooms(1, 2, 6.4, 2.8)
    for axes, name in zip(table[0], ("accuracy", row), strict=True):
        for k, (model, by_severity) in enumerate(evaluations.items()):
            severities = sorted(by_severity)
            found = [by_severity[severity][name] for severity in severities]
            line = axes.plot(
                severities, [one.value for one in found], marker="osD^v"[k % 5], ms=4,
                label=as_given(model),
            )[0]  # fmt: skip
            low, high = [one.low for one in found], [one.high for one in found]
            axes.set_xticks(severities)
            axes.fill_between(severities, low, high, color=line.get_color(), alpha=0.15, lw=0)
        axes.set(xlabel="severity of the shift", ylabel=name)
        tidy(axes)
    table[0, 0].legend(frameon=False, fontsize=8)
    return figure, (table[0, 0], table[0, 1])


def _some(evaluations: Mapping[str, object]) -> None:
    if not evaluations:
        raise ValueError("a figure needs at least one evaluation; got none.")
