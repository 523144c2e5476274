"""Room to draw in, without pyplot: nothing is shared, and nothing is left open."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, GREY = "#2f6db5", "#b8430f", "#12736b", "#6b7684"
"""Told apart also by those who see fewer colours."""


def room(axes: "Axes | None", width: float, height: float) -> "tuple[Figure, Axes]":
    """The axes given, or a new figure of so many inches with one pair of axes."""
    if axes is not None:
        return axes.get_figure(root=True), axes  # type: ignore[return-value]
    figure = _figure_module().Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def rooms(
    rows: int, columns: int, width: float, height: float, **more: Any
) -> "tuple[Figure, Any]":
    """A new figure with several axes, side by side or one below another."""
    figure = _figure_module().Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **more)


def tidy(axes: "Axes") -> None:
    """Without a box, and with a faint grid behind."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#d9dde2", linewidth=0.6)
    axes.set_axisbelow(True)


def as_given(text: str) -> str:
    """A name as it is: a dollar sign in it begins no formula."""
    return text.replace("$", r"\$")


def _figure_module() -> Any:
    try:
        return import_module("matplotlib.figure")
    except ImportError as missing:
        raise ImportError("figures need matplotlib: pip install 'calibrant[report]'") from missing
