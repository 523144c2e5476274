"""The class-wise heat map for papers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..evaluation._arrays import Numbers
from ._axes import as_given, room
from ._classes import COLUMNS, class_rows, names_of_classes
from ._models import judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def class_heat_map(
    logits: Numbers,
    labels: Numbers,
    *,
    probabilities: bool = False,
    class_names: Sequence[object] | None = None,
    axes: "Axes | None" = None,
) -> "tuple[Figure, Axes]":
    """Confidence less accuracy, in points, by predicted class and confidence.

    - `logits`: `(n, classes)`; `labels`, `probabilities`, `axes`: as in `reliability_diagram`.
    - `class_names`: in the order of their indices; their numbers unless given.

    Shown are the classes that add most to the error, twenty at most, the worst on top, each with
    the number of answers that named it. A faint number rests on fewer than ten answers.

    >>> import torch
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    >>> figure, axes = class_heat_map(logits, torch.tensor([0, 0, 0]), class_names=["yes", "no"])
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['no (1)', 'yes (2)']
    """
    told = judged("", (logits, labels), probabilities=probabilities)
    if told.classes is None:
        raise ValueError(
            "logits must have shape (n, classes) for a figure of classes; got one number per "
            "sample. For events use reliability_diagram."
        )
    rows = class_rows(told, names_of_classes(class_names, told.classes), 0.95)
    figure, main = room(axes, 6.4, 1.2 + 0.26 * len(rows))
    table = np.full((len(rows), COLUMNS), np.nan)
    for k, row in enumerate(rows):
        for cell in row.cells:
            table[k, cell.column] = 100 * cell.gap
    most = max(10.0, float(np.nanmax(np.abs(table))))
    for k, row in enumerate(rows):
        for cell in row.cells:
            gap = 100 * cell.gap
            ink = "white" if abs(gap) > 0.62 * most else "#1c2430"
            said, faint = f"{gap:+z.0f}", 1 if cell.count >= 10 else 0.55
            main.text(
                cell.column + 0.5, k + 0.5, said, color=ink, alpha=faint, fontsize=7,
                ha="center", va="center",
            )  # fmt: skip
    shown = main.pcolormesh(table, cmap="PuOr_r", vmin=-most, vmax=most, edgecolors="white", lw=1)
    main.set(xlabel="confidence", xticks=range(COLUMNS + 1))
    main.set_xticklabels([f"{k / COLUMNS:g}" for k in range(COLUMNS + 1)])
    main.set_yticks(
        [k + 0.5 for k in range(len(rows))],
        [f"{as_given(row.name)} ({row.count:,})" for row in rows],
    )
    main.invert_yaxis()
    figure.colorbar(shown, ax=main, label="confidence less accuracy, points")
    return figure, main
