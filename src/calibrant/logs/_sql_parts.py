"""The parts of a summary, each from one aggregation of a table."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from ..evaluation import Summary
from ._columns import Columns
from ._sql_cells import Steps, bin_of
from ._sql_checks import faults, look_like_probabilities, refuse_probabilities
from ._sql_rows import Rows


def add_cells(ibis: Any, summary: Summary, rows: Rows, chosen: Columns, where: str) -> bool:
    """Totals and cells, in the same pass with a look at the values: whether they will do."""
    edges = summary.edges.float() if rows.narrow else summary.edges
    # So many steps that the edges of bins, too, come a few to a step.
    steps = Steps(edges, keys=max(summary.cells, 9 * summary.bins))
    lookup = ibis.memtable(_arrow(steps.columns))
    keyed = rows.table.mutate(key=steps.key(ibis, rows.table.confidence))
    # A row that will not do must not get lost: it is counted.
    joined = keyed.left_join(lookup, keyed.key == lookup.step)
    known = joined.mutate(cell=steps.cell(joined, joined.confidence))
    sure, right = known.confidence, known.correct
    counts = {"faults": faults(rows, known, chosen)}
    if chosen.kind == "logits":
        counts["normed"], counts["graded"] = look_like_probabilities(known)
    found = (
        known.group_by("cell")
        .aggregate(
            n=known.count(),
            right=right.sum(),
            sure_right=(right * sure).sum(),
            sure_wrong=((1.0 - right) * sure).sum(),
            squares=((right - sure) * (right - sure)).sum(),
            nll=known.nll.sum(),
            brier=known.brier.sum(),
            last=known["last"].sum(),
            **{name: flag.cast("int64").sum() for name, flag in counts.items()},
        )
        .to_pyarrow()
    )
    if found.num_rows == 0:
        raise ValueError(f"{where} must hold at least one row; got none.")
    counted = {name: sum(found[name].to_pylist()) for name in ("n", *counts)}
    if counted["faults"]:
        return False
    if chosen.kind == "logits" and counted["normed"] == counted["n"] and counted["graded"]:
        refuse_probabilities()
    kept = _tensor(found, ["n", "right", "sure_right", "sure_wrong", "squares"])
    summary.state["cells"][_tensor(found, ["cell"])[:, 0].long()] = kept
    totals = _tensor(found, ["n", "right", "nll", "brier", "last"])
    summary.state["totals"] += totals.sum(dim=0)
    return True


def add_predicted(ibis: Any, summary: Summary, rows: Rows) -> None:
    """The predicted class, by class and bin."""
    table = rows.table.select("predicted", "confidence", "correct")
    table = table.mutate(bin=bin_of(ibis, table.confidence, summary.bins, narrow=rows.narrow))
    found = table.group_by(["predicted", "bin"]).aggregate(
        n=table.count(), chance=table.confidence.sum(), happened=table.correct.sum()
    )
    _fill(summary.state["predicted"], found, "predicted")


def add_marginals(ibis: Any, summary: Summary, rows: Rows, classes: int) -> None:
    """Every class of every row, by class and bin."""
    chances = {str(j): rows.table[f"chance_{j}"] for j in range(classes)}
    table = rows.table.select("truth", **chances).pivot_longer(
        list(chances), names_to="column", values_to="chance"
    )
    table = table.mutate(
        column=table.column.cast("int64"),
        bin=bin_of(ibis, table.chance, summary.bins, narrow=rows.narrow),
    )
    found = table.group_by(["column", "bin"]).aggregate(
        n=table.count(),
        chance=table.chance.sum(),
        happened=(table.column == table.truth).cast("float64").sum(),
    )
    _fill(summary.state["marginals"], found, "column")


def _fill(part: Tensor, expression: Any, row: str) -> None:
    found = expression.to_pyarrow()
    place = _tensor(found, [row, "bin"]).long()
    part[place[:, 0], place[:, 1]] = _tensor(found, ["n", "chance", "happened"])


def _arrow(columns: dict[str, Tensor]) -> Any:
    return import_module("pyarrow").table({name: x.numpy() for name, x in columns.items()})


def _tensor(found: Any, names: Sequence[str]) -> Tensor:
    """Columns that came back, side by side in double precision."""
    columns = (found[name].cast("float64").to_numpy() for name in names)
    return torch.stack([torch.as_tensor(column.copy()) for column in columns], dim=1)
