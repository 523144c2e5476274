"""A file of predictions written again, with a recalibrator applied to what was forecast."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from .._writing import written_whole
from ..recalibration import Recalibrator
from ._applied_arrays import rewrite_npz, rewrite_safetensors
from ._applied_arrow import rewrite_arrow
from ._arrow import ArrowTable
from ._columns import Columns, choose_forecast
from ._files import open_table
from ._log import Progress
from ._names import Names
from ._npz import NpzTable
from ._parts import PartsTable
from ._safetensors import SafetensorsTable
from ._values import Checked

Mapped: TypeAlias = Callable[[Tensor, int], Tensor]
"""A block of forecasts and the number of its first row in; better forecasts out."""

_NUMBERS = 2**18


def recalibrate_log(
    recalibrator: Recalibrator,
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    logits: str | Sequence[str] | None = None,
    probabilities: str | Sequence[str] | None = None,
    confidence: str | None = None,
    progress: Progress | None = None,
) -> int:
    """Write a file of predictions again, recalibrated; returns the number of rows.

    The new file has the same format, columns and rows in the same order. Logits become
    recalibrated logits, probabilities probabilities, a confidence a confidence; every other
    column is kept as it is, and labels need not be there. Blocks of rows are read, mapped and
    written in turn, so memory does not grow with the file; the new file takes its place when
    it is whole, and may be the old one.

    - `out`: ends like `path`; one `.parquet` file where `path` is a folder of them.
    - `logits`, `probabilities`, `confidence`: which columns, as in `open_log`.

    >>> import numpy as np, tempfile
    >>> from calibrant import TemperatureScaling
    >>> folder = Path(tempfile.mkdtemp())
    >>> logits, labels = torch.randn(500, 3), torch.randint(3, (500,))
    >>> np.savez(folder / "raw.npz", logits=logits)
    >>> scaling = TemperatureScaling().fit(logits + 2 * torch.eye(3)[labels], labels)
    >>> recalibrate_log(scaling, folder / "raw.npz", folder / "better.npz")
    500
    >>> better = torch.from_numpy(np.load(folder / "better.npz")["logits"])
    >>> bool((better == scaling.transform(logits)).all())
    True
    """
    table, place = open_table(Path(path)), Path(out)
    if isinstance(table, PartsTable) and place.resolve().is_relative_to(table.path.resolve()):
        raise ValueError(
            f"the new file must not lie in the folder that is read, of which it would be a part; "
            f"got {str(place)!r}. Write it elsewhere."
        )
    if _form(place) != _form(table.path):
        raise ValueError(
            f"the new file must have the format of the old one, {_form(table.path)}; got "
            f"{place.name!r}. Name it {place.stem}{_form(table.path)}."
        )
    names = Names(table.names, table.path.name)
    asked = {"logits": logits, "probabilities": probabilities, "confidence": confidence}
    kind, forecast = choose_forecast(names, asked)
    names.check_unique(table.names)
    columns = Columns(kind, forecast, truth="")

    @torch.no_grad()
    def mapped(block: Tensor, first: int) -> Tensor:
        Checked(columns, *table.place(first)).forecast(block)
        if kind == "logits":
            return recalibrator.transform(block)
        return recalibrator.predict_proba(block, probabilities=True)

    wide = len(forecast) if len(forecast) > 1 else table.width(forecast[0]) or 1
    rows = max(1, _NUMBERS // wide)
    if not isinstance(table, ArrowTable) and table.count(forecast) == 0:
        raise ValueError(f"{table.path.name} must hold at least one row; it has none.")
    with written_whole(place) as file:
        if isinstance(table, ArrowTable):
            return rewrite_arrow(table, forecast, mapped, file, rows, progress)
        if isinstance(table, NpzTable):
            return rewrite_npz(table, forecast, mapped, file, rows, progress)
        assert isinstance(table, SafetensorsTable)
        return rewrite_safetensors(table, forecast, mapped, file, rows, progress)


def _form(path: Path) -> str:
    """How the name ends, compression included; what is read from a folder becomes one file.

    >>> _form(Path("a.b.csv.gz")), _form(Path("x.npz"))
    ('.csv.gz', '.npz')
    """
    if path.is_dir():
        return ".parquet"
    two = "".join(path.suffixes[-2:]).lower()
    return two if two.endswith(".gz") else path.suffix.lower()
