"""How logits are laid out: rows, single scores, pixels, tokens, several labels."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .._checks import HALF, ROUNDED, check_not_probabilities, is_readable
from ._chances import logits_of


@dataclass(frozen=True)
class Form:
    """The layout of the logits of a fit, which later logits must share.

    - `classes`: how many; 2 for one score per sample.
    - `class_dim`: the dimension that holds them, in logits of two dimensions or more.
    - `multilabel`: whether every score is an event of its own, the log-odds of its 1.
    - `smallest`: what a smaller probability counts as, where the fit was to probabilities.

    >>> halve = Form(classes=3, class_dim=-1).through(lambda rows: rows / 2, torch.ones(2, 5, 3))
    >>> halve.shape
    torch.Size([2, 5, 3])
    """

    classes: int
    class_dim: int = 1
    multilabel: bool = False
    smallest: float | None = None

    def as_tensor(self) -> Tensor:
        """The same as three whole numbers, to be kept beside what was learnt."""
        return torch.tensor([self.classes, self.class_dim, int(self.multilabel)])

    @classmethod
    def of(cls, numbers: Tensor, smallest: Tensor | None) -> "Form":
        """Read back what `as_tensor` wrote, and what was kept beside it."""
        classes, class_dim, multilabel = numbers.tolist()
        least = None if smallest is None else float(smallest)
        return cls(classes, class_dim, bool(multilabel), least)

    def logits_of(self, probabilities: Tensor) -> Tensor:
        """Logits of probabilities that are laid out like this."""
        scores = self._are_scores(probabilities)
        if not scores:
            self._check_layout(probabilities)
        return logits_of(probabilities, self.class_dim, scores=scores, smallest=self.smallest)

    def through(
        self, rows_map: Callable[[Tensor], Tensor], logits: Tensor, *, sure: bool = False
    ) -> Tensor:
        """A map of rows of logits, applied in this layout, no narrower than float32.

        - `sure`: that these are logits; otherwise some that look like probabilities are refused.
        """
        if not logits.is_floating_point():
            raise TypeError(f"logits must be floating point; got {logits.dtype}.")
        wide = logits.float() if logits.dtype in HALF else logits
        if self._are_scores(logits):
            self._check_classes(2)
            flat = wide.reshape(-1)
            self._check_not_forgotten(flat[:, None], sure)
            two = rows_map(torch.stack([torch.zeros_like(flat), flat], dim=1))
            return (two[:, 1] - two[:, 0]).reshape(logits.shape)
        self._check_layout(logits)
        last = wide.movedim(self.class_dim, -1)
        rows = last.reshape(-1, self.classes)
        self._check_not_forgotten(rows, sure)
        if logits.ndim == 2 and not sure and is_readable(wide):
            check_not_probabilities("logits", rows, "Pass probabilities=True.")
        return rows_map(rows).reshape(last.shape).movedim(-1, self.class_dim)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Of each class, along its dimension; of 1, where a score stands for its own event."""
        if self._are_scores(logits):
            return logits.sigmoid()
        return logits.softmax(dim=self.class_dim)

    def _are_scores(self, logits: Tensor) -> bool:
        return self.multilabel or logits.ndim == 1

    def _check_not_forgotten(self, rows: Tensor, sure: bool) -> None:
        """After a fit to probabilities a single row that is one again was not meant as logits."""
        if sure or self.smallest is None or not is_readable(rows) or not rows.numel():
            return
        low, high = torch.stack(rows.detach().aminmax()).tolist()
        if low < 0 or high > 1:
            return
        if rows.shape[1] == 1 or bool(((rows.detach().sum(dim=1) - 1).abs() < ROUNDED).all()):
            raise ValueError(
                "logits must be given to a map that was fitted to probabilities, unless it is told "
                f"otherwise; got {rows.numel()} numbers all between 0 and 1. Pass "
                "probabilities=True; for log-odds pass torch.stack([-z / 2, z / 2], 1)."
            )

    def _check_layout(self, logits: Tensor) -> None:
        if not -logits.ndim <= self.class_dim < logits.ndim:
            raise ValueError(
                f"logits must have classes in dimension {self.class_dim}, as when fitted; "
                f"got shape {tuple(logits.shape)}."
            )
        self._check_classes(logits.shape[self.class_dim])

    def _check_classes(self, classes: int) -> None:
        if classes != self.classes:
            raise ValueError(
                f"logits must have {self.classes} classes, as when fitted; got {classes}. "
                "Fit another recalibrator for them."
            )
