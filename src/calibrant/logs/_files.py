"""Prediction logs in files, opened by name."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from .._text import short
from ._arrow import ParquetTable
from ._columns import choose
from ._csv import CsvTable
from ._ipc import IpcTable
from ._log import PredictionLog
from ._names import Asked
from ._npz import NpzTable
from ._parts import PartsTable
from ._safetensors import SafetensorsTable
from ._table import Table

# How much of a path a sentence holds.
_WIDEST = 200
FORMATS: dict[str, Callable[[Path], Table]] = {
    ".parquet": ParquetTable,
    ".pq": ParquetTable,
    ".arrow": IpcTable,
    ".feather": IpcTable,
    ".ipc": IpcTable,
    ".npz": NpzTable,
    ".csv": CsvTable,
    ".tsv": CsvTable,
    ".safetensors": SafetensorsTable,
}


def open_log(
    path: str | os.PathLike[str],
    *,
    logits: str | Sequence[str] | None = None,
    probabilities: str | Sequence[str] | None = None,
    labels: str | None = None,
    confidence: str | None = None,
    outcome: str | None = None,
    weights: str | None = None,
    groups: str | None = None,
) -> PredictionLog:
    """Open a file of predictions: Parquet, Arrow, NPZ, CSV or safetensors; or a folder of Parquet.

    A log holds logits or probabilities with labels, or a confidence with an outcome (how
    sure, and whether it was right). Columns are known by their names:

    - `logits`: `logits`, or `logit_0`, `logit_1`, ... A vector per row, a column per class, or
      one number: the log-odds of class 1.
    - `probabilities`: `probabilities`, `probs`, or `prob_0`, `prob_1`, ... The same; one number
      is the chance of class 1.
    - `labels`: `labels`, `label`, `target` or `y`; the index of the true class.
    - `confidence`: `confidence`. `outcome`: `outcome` or `correct`; 0 or 1.
    - `weights`, `groups`: none unless named, since they change what is measured.

    Pass a name for a column that is called otherwise (or the stem of numbered columns, or a
    list of columns, one per class). Numbers never decide what a column is.

    A folder is one log in parts: every Parquet file in it, in order of their names, but for those
    that start with `_` or `.`. Folders in it that are called `key=value` hold parts too, and make
    a column of that name. All parts must have the same columns.

    The file is read in batches, row group by row group, in memory that does not grow with it. Two
    forms have parts that are unpacked whole: a batch of a compressed Arrow file, and an array in
    an NPZ file in Fortran order. Of each column of a Parquet file a page is held, often a megabyte,
    so that thousands of classes take less as one column of lists. A file that is cut short, a
    missing column or value, or a label out of range raises a `ValueError` that names the row.
    Numbers keep their type, and text is read in double precision, on which depends what a chance
    of zero costs: see `evaluate_events`.
    Parquet, Arrow and CSV need `pip install 'calibrant[files]'`; pickled arrays are refused.

    >>> import numpy as np, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "predictions.npz"
    >>> np.savez(file, logits=np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), labels=[0, 0, 0])
    >>> log = open_log(file)
    >>> log
    PredictionLog('predictions.npz': 3 rows, logits of 2 classes)
    >>> round(log.summary().values()["ece"].value, 4)
    0.2992
    """
    asked: dict[str, Asked] = {
        "logits": logits,
        "probabilities": probabilities,
        "labels": labels,
        "confidence": confidence,
        "outcome": outcome,
        "weights": weights,
        "groups": groups,
    }
    if not os.fspath(path):
        raise ValueError("path must name a file or a folder; got an empty text.")
    table = open_table(Path(path))
    return PredictionLog(table, choose(table.names, table.path.name, asked))


def open_table(path: Path) -> Table:
    """The table that a folder holds, or a file by how its name ends."""
    form = FORMATS.get(path.suffix.lower())
    if path.name.lower().endswith((".csv.gz", ".tsv.gz")):
        form = CsvTable
    if not os.path.exists(path):  # also where no name can be so long
        raise FileNotFoundError(f"there is no file {short(str(path), _WIDEST)!r}. Check the path.")
    if path.is_dir():
        return PartsTable(path if path.name else path.resolve())
    if form is None:
        raise ValueError(
            f"a log must be a file that ends in {', '.join(FORMATS)}; got {path.name!r}. "
            "Rename it, or write it in one of these formats."
        )
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} must hold at least one row; the file is empty.")
    return form(path)
