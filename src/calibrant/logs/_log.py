"""A prediction log: read batch by batch, measured at once or in fixed memory."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from ..evaluation import Evaluation, Summary
from ._batch import Batch, joined
from ._columns import Columns
from ._grouped import Grouped
from ._table import Block, Table
from ._values import Checked

Progress: TypeAlias = Callable[[int, int | None], None]
"""Told the rows done and the rows in all, which may be unknown."""

# Numbers in a batch, whatever the classes: summarising one takes some tens of megabytes.
_NUMBERS = 2**18


class PredictionLog:
    """Predictions in a file, or a folder of them, with what was true; made by `open_log`.

    - `path`: of it. `columns`: which of its columns hold what.
    - `classes`: how many; `None` where only a confidence and an outcome are known.
    - `rows`: how many; `None` where only reading to the end can tell, as in a CSV file.

    Nothing of the file is kept between calls, and each call reads it from the start. A file that
    was written again in the meantime must be opened again.
    """

    def __init__(self, table: Table, columns: Columns) -> None:
        self._table, self.columns, self.path = table, columns, table.path
        self.rows = table.count(columns.all)
        if self.rows == 0:
            raise self._empty()
        # Of text that may still grow nothing is known in advance that could become untrue.
        self._stamp = None if self.rows is None else table.stamp()
        self.classes = None if columns.kind == "confidence" else self._classes()

    def __repr__(self) -> str:
        rows = "rows" if self.rows is None else f"{self.rows:,} rows"
        of = "events" if self.classes is None else f"{self.columns.kind} of {self.classes} classes"
        return f"PredictionLog({self.path.name!r}: {rows}, {of})"

    def _classes(self) -> int:
        columns = self.columns.forecast
        wide = len(columns) if len(columns) > 1 else self._table.width(columns[0])
        if wide is not None and wide < 2:
            raise Checked(self.columns, self._table.where, 0).too_few_classes(wide)
        return wide or 2

    def _empty(self) -> ValueError:
        return ValueError(f"{self.path.name} must hold at least one row; it has none.")

    def batches(
        self, rows: int | None = None, *, progress: Progress | None = None
    ) -> Iterator[Batch]:
        """The rows in order, at most `rows` at a time; every value is checked on the way.

        - `rows`: by default as many as make 262,144 numbers.
        - `progress`: told the rows done and the rows in all after each batch.
        """
        rows = max(1, _NUMBERS // (self.classes or 1)) if rows is None else rows
        if not isinstance(rows, int) or rows < 1:
            raise ValueError(f"rows must be a whole number, at least 1; got {rows!r}.")
        self._check_unchanged()
        done = 0
        for block in self._table.blocks(self.columns.numbers, self.columns.groups, rows):
            batch = self._batch(block, done)
            done += len(batch)
            yield batch
            if progress is not None:
                progress(done, self.rows)
        if done == 0:
            raise self._empty()
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self._stamp is not None and self._stamp != self._table.stamp():
            raise ValueError(
                f"{self.path.name} must stay as it is while it is read; it was written again since "
                "it was opened. Open it again."
            )

    def place(self, row: int) -> tuple[str, int]:
        """What a sentence calls the file that holds a row, and the row's number there."""
        return self._table.place(row)

    def _batch(self, block: Block, first: int) -> Batch:
        where, row = self.place(first)
        columns, checked = self.columns, Checked(self.columns, where, row)
        told = [torch.as_tensor(block[name]) for name in columns.forecast]
        together = told[0] if len(told) == 1 else torch.stack(alike(told), dim=1)
        truth = torch.as_tensor(block[columns.truth])
        forecast = checked.forecast(together)
        if self.classes is not None and forecast.shape[1] != self.classes:
            raise ValueError(
                f"{where} must have {self.classes} {columns.kind} in every row, as in "
                f"the first; got {forecast.shape[1]} in row {row} (counted from 0)."
            )
        return Batch(
            columns.kind,
            forecast,
            checked.labels(truth, self.classes) if self.classes else checked.outcome(truth),
            None
            if columns.weights is None
            else checked.weights(torch.as_tensor(block[columns.weights])),
            None if columns.groups is None else np.asarray(block[columns.groups]),
        )

    def read(self, *, progress: Progress | None = None) -> Batch:
        """Everything at once."""
        return joined(list(self.batches(progress=progress)))

    def evaluate(self, **settings: Any) -> Evaluation:
        """`evaluate`, or `evaluate_events`, of everything; the settings are theirs."""
        return self.read().evaluate(**settings)

    def summary(self, *, bins: int = 15, progress: Progress | None = None) -> Summary:
        """The file in fixed memory, however long it is: a `Summary` of every row."""
        self._refuse_weights()
        whole = Summary(self.classes, bins=bins)
        for batch in self.batches(progress=progress):
            batch.add_to(whole)
        return whole

    def summaries(self, *, bins: int = 15, progress: Progress | None = None) -> dict[str, Summary]:
        """A `Summary` of each group, by its name; merged they are the summary of the file."""
        self._refuse_weights()
        if self.columns.groups is None:
            raise ValueError("summaries are of groups; name a column: open_log(path, groups=...).")
        where = f"column {self.columns.groups!r} of {self.path.name}"
        grouped = Grouped(self.classes, bins, _NUMBERS, where)
        for batch in self.batches(progress=progress):
            grouped.add(batch)
        return grouped.summaries()

    def _refuse_weights(self) -> None:
        if self.columns.weights is not None:
            raise ValueError(
                f"a summary counts every row once; got weights={self.columns.weights!r}. "
                "Leave them out, or evaluate the whole file: by evaluate() of the log, in a shell "
                "without --stream."
            )


def alike(columns: list[Tensor]) -> list[Tensor]:
    """In one type, which `torch.stack` wants."""
    kind = columns[0].dtype
    for column in columns[1:]:
        kind = torch.promote_types(kind, column.dtype)
    return [column.to(kind) for column in columns]
