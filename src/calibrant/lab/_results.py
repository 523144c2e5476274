"""A study's page, rows and figures in a folder that can be kept."""

import json
from pathlib import Path
from typing import Any

from .._writing import written_whole
from ._diverged import error_of
from ._plan import Rows, plan
from ._render import budget_of, render
from ._study import Study
from ._under_shift import shift_means

# Drawn from, and too long to keep beside the figures in every row.
LONG = ("curves", "history")


def write_results(
    name: str, study: Study, budget_name: str, rows: Rows, folder: Path
) -> list[Path]:
    """Write `NAME-BUDGET.md`, `.jsonl` and, for a figure, `.png`; the paths that were written.

    The page is rendered from the rows and never typed. Raw logits are not among them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    stem = f"{name}-{budget_name}" if study.budgets else name
    page = f"# {study.heading}\n\n{study.paper}. {study.note}\n"
    if study.budgets:
        budget = budget_of(study, budget_name)
        page = render(name, study, budget_name, rows)
        current = plan(name, study, budget, rows)
        own = [*current.tuning.values(), current.baselines.values(), *current.finals.values()]
        used = {t.identity: rows[t.identity] for each in own for t in each if t.identity in rows}
        lines = "".join(json.dumps(_short(row)) + "\n" for row in used.values())
        written.append(_write(folder / f"{stem}.jsonl", lines))
    if study.figure is not None:
        from .figures import draw

        path = folder / f"{stem}.png"
        if draw(name, study, budget_name, _without_nulls(rows), path):
            written.append(path)
            page += f"\n![{study.heading}]({path.name})\n"
    return [_write(folder / f"{stem}.md", page), *written]


def _without_nulls(rows: Rows) -> dict[str, dict[str, Any]]:
    """The rows, of which those that diverged have no figures to draw."""
    told = {}
    for identity, row in rows.items():
        wrong = error_of(row)
        told[identity] = dict(row)
        if wrong is not None:
            own = {key: value for key, value in row.items() if key not in ("validation", "test")}
            told[identity] = own | {"error": wrong}
    return told


def _short(row: Any) -> dict[str, Any]:
    """The row without what is long; the page tells of shift the means, of epochs the last."""
    short = {key: value for key, value in row.items() if key not in LONG}
    if row.get("epochs"):
        short["epochs"] = row["epochs"][-1:]
    return short | {"shift": shift_means(row["shift"])} if row.get("shift") else short


def _write(path: Path, text: str) -> Path:
    with written_whole(path) as file:
        file.write(text.encode())
    return path
