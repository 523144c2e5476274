"""What the rows of a log must hold, and the sentence that names the first that does not."""

from collections.abc import Callable

import torch
from torch import Tensor

from .._checks import EXCESS, ROUNDED, are_chances, check_not_probabilities, within
from ._columns import Columns


class Checked:
    """The columns of one block of a log, looked at row by row.

    - `where`: the file; `first`: the number of the block's first row in it.
    """

    def __init__(self, columns: Columns, where: str, first: int) -> None:
        self.columns, self.where, self.first = columns, where, first

    def forecast(self, x: Tensor) -> Tensor:
        """Numbers of the kind that was said; two columns where one number stands for both."""
        kind = self.columns.kind
        self._is_floating(x)
        self._refuse(x.isnan(), kind, "must hold numbers", lambda row: "NaN")
        if kind == "confidence":
            self._vector(x, kind)
            outside = (x < -EXCESS) | (x > 1 + EXCESS)
            self._refuse(outside, kind, "must lie between 0 and 1", _shown(x), _CHANCE)
            return within(x)
        if x.ndim == 1:
            x = within(x) if kind == "probabilities" and are_chances(x) else x
            lowest = torch.zeros_like(x) if kind == "logits" else 1 - x
            x = torch.stack([lowest, x], dim=1)
        if x.shape[1] < 2:
            raise self.too_few_classes(x.shape[1])
        return self._logits(x) if kind == "logits" else self._probabilities(x)

    def too_few_classes(self, wide: int) -> ValueError:
        """The sentence for rows of fewer numbers than there can be classes."""
        return ValueError(
            f"{self._where(self.columns.kind)} must have a number for each of at least two classes "
            f"in every row, or be plain numbers for class 1 of two; got lists of {wide}. Write "
            "single numbers with the shape (rows,)."
        )

    def _logits(self, x: Tensor) -> Tensor:
        endless = (x == torch.inf).any(dim=1) | (x == -torch.inf).all(dim=1)
        self._refuse(endless, "logits", "must be finite in some class", lambda row: "infinity")
        check_not_probabilities(self._where("logits"), x, "Name them as probabilities.")
        return x

    def _probabilities(self, x: Tensor) -> Tensor:
        role = "probabilities"
        self._refuse((x < 0).any(dim=1), role, "must not be negative", _shown(x.amin(dim=1)))
        total = x.double().sum(dim=1)
        off = (total - 1).abs() > ROUNDED
        remedy = "If these are logits, name them as logits; if they were rounded, divide each "
        remedy += "row by its sum."
        self._refuse(off, role, "must sum to one in every row", _shown(total), remedy)
        return x

    def labels(self, x: Tensor, classes: int) -> Tensor:
        """The index of a class in every row."""
        self._vector(x, "labels")
        self._check_whole(x, "labels")
        outside = ~_is_one_of(x, classes)
        must = f"must lie between 0 and {classes - 1}, since there are {classes} classes"
        self._refuse(outside, "labels", must, _shown(x), "Classes count from 0.")
        return x.long()

    def outcome(self, x: Tensor) -> Tensor:
        """Whether it happened."""
        self._vector(x, "outcome")
        self._check_whole(x, "outcome")
        self._refuse(~_is_one_of(x, 2), "outcome", "must be 0 or 1", _shown(x))
        return x.long()

    def weights(self, x: Tensor) -> Tensor:
        """How much each row counts."""
        self._vector(x, "weights")
        wide = x.double()
        wrong = ~(wide.isfinite() & (wide >= 0))
        self._refuse(wrong, "weights", "must be finite and not negative", _shown(wide))
        return wide

    def _is_floating(self, x: Tensor) -> None:
        # Torch stores numbers of eight bits and does not compute with them.
        if not x.is_floating_point() or x.itemsize < 2:
            kind = self.columns.kind
            name = str(x.dtype).removeprefix("torch.")
            numbers = f"floating-point numbers{' of at least 16 bits' * x.is_floating_point()}"
            raise TypeError(
                f"{self._where(kind)} must be {numbers}; got {name}. "
                "Write them as float32, or name the column that holds them."
            )

    def _vector(self, x: Tensor, role: str) -> None:
        if x.ndim != 1 and x.shape[1] == 1:
            raise ValueError(
                f"{self._where(role)} must hold plain numbers; got a list of one in every row. "
                f"Write them with the shape (rows,), for instance {role}.squeeze(1)."
            )
        if x.ndim != 1:
            raise ValueError(
                f"{self._where(role)} must hold one number per row; got {x.shape[1]}. "
                "For one-hot labels write the index of the class."
            )

    def _check_whole(self, x: Tensor, role: str) -> None:
        if x.is_floating_point():
            self._refuse(x != x.round(), role, "must be whole numbers", _shown(x))

    def _where(self, role: str) -> str:
        columns = {
            self.columns.kind: self.columns.forecast,
            "weights": (self.columns.weights,),
        }.get(role, (self.columns.truth,))
        several = f"columns {columns[0]} to {columns[-1]}"
        return f"{role} ({several if len(columns) > 1 else f'column {columns[0]}'} of {self.where})"

    def _refuse(
        self, bad: Tensor, role: str, must: str, got: Callable[[int], str], remedy: str = ""
    ) -> None:
        bad = bad if bad.ndim == 1 else bad.any(dim=1)
        if bool(bad.any()):
            row = int(bad.nonzero()[0, 0])
            raise ValueError(
                f"{self._where(role)} {must}; got {got(row)} in row {self.first + row} "
                f"(counted from 0). {remedy or 'Leave such rows out, or find their cause.'}"
            )


_CHANCE = "For percentages divide by 100; for log-odds apply a sigmoid."


def _is_one_of(x: Tensor, classes: int) -> Tensor:
    """Whether each is an index: looked at before what is too large for one would overflow."""
    wide = x.double()
    return (wide >= 0) & (wide < classes)


def _shown(values: Tensor) -> Callable[[int], str]:
    return lambda row: near(values[row].item())


def near(number: float) -> str:
    """Six digits; all of them where six would be zero or one, and the number is not.

    >>> near(0.123456789), near(1.0), near(1.0000001)
    ('0.123457', '1', '1.0000001')
    """
    text = f"{number:.6g}"
    return text if float(text) == number or float(text) not in (0, 1) else repr(number)
