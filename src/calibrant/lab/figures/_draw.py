"""Draw a study's figure into a file."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..._writing import written_whole
from .._plan import Plan, Rows, plan
from .._study import Study
from ._functions import membership, uncertainty
from ._shift import shift
from ._tests import bars, cumulative, effect, frontier, reliability
from ._training import coefficients, correlation, cost, epochs, settings

Draw = Callable[[Any, Study, Plan, Rows, list[str]], Any]
FIGURES: dict[str, Draw] = {
    "epochs": epochs,
    "settings": settings,
    "cost": cost,
    "cumulative": cumulative,
    "shift": shift,
    "bars": bars,
    "effect": effect,
    "frontier": frontier,
    "reliability": reliability,
    "correlation": correlation,
    "coefficients": coefficients,
    "membership": membership,
    "uncertainty": uncertainty,
}
"""What a study may draw, by the name it gives it."""


def draw(name: str, study: Study, budget_name: str, rows: Rows, path: Path) -> bool:
    """Draw the study's figure into a PNG file; `False` where no row has anything to draw."""
    pyplot = _pyplot()
    current = Plan()
    pairs: tuple[tuple[str, str], ...] = (("", ""),)
    if study.budgets:
        budget = study.budgets[budget_name]
        current, pairs = plan(name, study, budget, rows), budget.pairs
    assert study.figure is not None
    figure = FIGURES[study.figure](pyplot, study, current, rows, [data for data, _ in pairs])
    if figure is None:
        pyplot.close("all")
        return False
    figure.suptitle(f"{study.heading}", fontsize="medium")
    with written_whole(path) as file:
        figure.savefig(file, format="png", dpi=120, metadata={"Software": None})
    pyplot.close(figure)
    return True


def _pyplot() -> Any:
    try:
        matplotlib: Any = import_module("matplotlib")
    except ImportError as missing:
        raise ImportError("figures need matplotlib: pip install 'calibrant[lab]'") from missing
    matplotlib.use("Agg")
    return import_module("matplotlib.pyplot")
