"""Tables of a study's page: ours, ours beside the paper's, and the paper's alone."""

import statistics
from collections.abc import Mapping, Sequence

from ._plan import Plan, Rows
from ._study import Column, Published, Spread, Study
from ._values import figures_of, spread_of


def table_of(
    study: Study,
    columns: Mapping[str, Column],
    data: str,
    current: Plan,
    rows: Rows,
    corner: str = "",
) -> str:
    """A line for each arm of a data set, with the paper's numbers where it prints some.

    - `corner`: what the columns are, for a table that the paper does not have.

    A column of which neither a row nor the paper has a figure is left out, and with a corner so
    is an arm of which no row has one.
    """
    printed = None if corner else study.published.get(data)
    figures = {
        arm: {
            label: list(figures_of(column, current.finals.get((data, arm), []), rows).values())
            for label, column in columns.items()
        }
        for arm in study.arms
    }
    told = [
        label
        for label in columns
        if printed is not None or any(own[label] for own in figures.values())
    ]
    spread = _behind(study)
    cells = [f"{label}{spread}" for label in told]
    if printed is not None:
        cells = [cell for label in told for cell in (f"{label}, ours{spread}", "paper")]
    lines = [[corner, *cells, "n"], [":---", *["---:"] * (len(cells) + 1)]]
    for arm, own in figures.items():
        ran = any(trial.identity in rows for trial in current.finals.get((data, arm), []))
        if printed is None and not (any(own.values()) if corner else ran):
            continue
        cells = []
        for place, label in enumerate(told):
            cells.append(_cell(own[label], study.spread))
            if printed is not None:
                cells.append(_printed(printed, arm, place))
        lines.append([arm, *cells, str(max(map(len, own.values()), default=0))])
    return markdown(lines)


def paper_alone(study: Study) -> str:
    """What the paper prints of data sets that no budget trains on."""
    ours = {data for budget in study.budgets.values() for data, _ in budget.pairs}
    head = ["", *(f"{label}, paper{_behind(study)}" for label in study.columns)]
    parts = []
    for data, printed in study.published.items():
        if data not in ours:
            lines = [head, [":---", *["---:"] * len(study.columns)]]
            for arm in printed.means:
                places = range(len(study.columns))
                lines.append([arm, *(_printed(printed, arm, place) for place in places)])
            parts.append(f"## {data}, not run here\n\n{markdown(lines)}")
    return "\n\n".join(parts)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as a table.

    >>> print(markdown([["arm", "n"], [":---", "---:"], ["NLL", "3"]]))
    | arm | n |
    | :--- | ---: |
    | NLL | 3 |
    """
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _behind(study: Study) -> str:
    return "" if study.spread == "none" else f" ± {study.spread}"


def _cell(figures: Sequence[float], spread: Spread) -> str:
    if not figures:
        return ""
    mean, around = statistics.fmean(figures), spread_of(figures, spread)
    return f"{mean:z.2f}" if around is None else f"{mean:z.2f} ± {around:.2f}"


def _printed(printed: Published, label: str, place: int) -> str:
    if label not in printed.means:
        return ""
    mean, around = printed.means[label][place], printed.spreads[label][place]
    return f"{mean:g}" if around is None else f"{mean:g} ± {around:g}"
