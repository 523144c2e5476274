"""Any number of predictions in fixed memory, to be added up in any order."""

from math import isnan
from os import PathLike

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import HALF, check_flag, is_readable
from ..measures._binned import gap_norm
from ..predictions import Predictions
from ..scores import accuracy, brier, nll
from . import _inputs as inputs
from . import _summary_files as files
from ._arrays import Numbers, tensor
from ._as_predictions import as_predictions, check_confidences
from ._cells import Bounded, Cells
from ._summary_inputs import check_addable, check_fits, check_mergeable, check_sizes
from ._table import bound, counted, number, plain

# Cells are of equal width in log-odds, up to where a float32 confidence becomes exactly one.
_SUREST = 17.0

# What is kept of the samples in a cell: how many, how many right, the confidences of the right
# and of the wrong ones, and the squares of their gaps.
_KEPT = 5


class Summary:
    r"""What the measures need to know of predictions, without the predictions.

    A summary takes about half a megabyte, and 0.7 kB more for each class, whether it has seen a
    thousand predictions or a billion. Summaries of parts of the data merge into the summary of
    the whole, in any order and grouping; parts made on several machines are saved and loaded.

    - `classes`: how many; `None` for events, of which only the confidence and the outcome are
      known, added by `add_events`.
    - `bins`: of the binned measures, as in `ece`; these come out exactly.
    - `cells`: how finely the order of confidences is kept, for measures that need it (KS, ESD,
      bins of equal mass); their error bound is part of the answer.

    >>> logits, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 0, 0])
    >>> first = Summary(classes=2).update(logits[:2], labels[:2])
    >>> whole = first.merge(Summary(classes=2).update(logits[2:], labels[2:]))
    >>> round(whole.values()["ece"].value, 4), len(whole)
    (0.2992, 3)
    >>> whole
    Summary(3 samples of 2 classes, 15 bins)
    >>> events = Summary(None).add_events(torch.tensor([0.9, 0.8, 0.6]), torch.tensor([1, 1, 0]))
    >>> round(events.values()["ece"].value, 4)
    0.3
    """

    def __init__(self, classes: int | None, *, bins: int = 15, cells: int = 8192) -> None:
        check_sizes(classes, bins, cells)
        self.classes = classes = None if classes is None else int(classes)
        self.bins, self.cells = bins, cells = int(bins), int(cells)
        check_fits(classes, bins, cells)
        grid = torch.linspace(-_SUREST, _SUREST, cells, dtype=torch.float64).sigmoid()
        bin_edges = torch.arange(1, bins, dtype=torch.float64) / bins
        # Every cell lies within one bin, so that bins are sums of cells.
        self.edges = torch.cat([grid, bin_edges]).unique()
        upper = torch.cat([self.edges, torch.ones(1, dtype=torch.float64)])
        self.bin_of_cell = torch.bucketize(upper, bin_edges)
        self.state = {
            "totals": torch.zeros(5, dtype=torch.float64),
            "cells": torch.zeros(len(upper), _KEPT, dtype=torch.float64),
        }
        if classes is not None:
            for name in ("marginals", "predicted"):
                self.state[name] = torch.zeros(classes, bins, 3, dtype=torch.float64)

    def __len__(self) -> int:
        return int(self.state["totals"][0])

    def __repr__(self) -> str:
        seen = counted(len(self), "event" if self.classes is None else "sample")
        of = "" if self.classes is None else f" of {self.classes} classes"
        return f"Summary({seen}{of}, {counted(self.bins, 'bin')})"

    def __str__(self) -> str:
        """With every value, once there are any."""
        try:
            found = self.values()
        except ValueError:  # of too few samples, or with NaN among them
            return repr(self)
        cells = [[name, number(x.value), bound(x.error)] for name, x in found.items()]
        return f"{self!r}\n{plain(['', 'value', 'off by at most'], cells)}"

    @property
    def device(self) -> torch.device:
        """Where the summary lies; batches may lie anywhere."""
        return self.state["totals"].device

    @torch.no_grad()
    def update(self, logits: Numbers, labels: Numbers, *, probabilities: bool = False) -> "Summary":
        """Add a batch; returns the summary itself, so that calls can follow each other.

        - `logits`: `(n, classes)`, a torch tensor on any device or a NumPy array. With
          `probabilities=True`, rows of probabilities, or `(n,)` chances of class 1, by the rules
          of `evaluate`.
        - `labels`: the index of the true class of each sample.

        An empty batch, `(0, classes)`, adds nothing. On a device logits are not looked at: see
        `add`.
        """
        check_flag("probabilities", probabilities)
        told = tensor("logits", logits)
        empty = {(0, self.classes)} | ({(0,)} if probabilities and self.classes == 2 else set())
        if tuple(told.shape) in empty and tensor("labels", labels).shape == (0,):
            return self
        indices = inputs.class_indices(labels, told.device)
        if is_readable(told):
            return self.add(as_predictions(told, indices, probabilities=probabilities, fewest=0))
        build = Predictions.from_probabilities if probabilities else Predictions
        return self.add(build(told, indices))

    @torch.no_grad()
    def add(self, predictions: Predictions) -> "Summary":
        """Add predictions in any form that `Predictions` takes, without weights.

        A row that is no forecast, such as one of NaN, is refused and nothing is added. On a
        device rows are not looked at, since that would make it wait; `values` refuses then.
        """
        check_addable(predictions, self.classes)
        if is_readable(predictions.confidence):
            check_confidences(predictions.confidence)
        each = (
            torch.ones_like(predictions.confidence),
            accuracy.per_sample(predictions),
            nll.per_sample(predictions),
            brier.per_sample(predictions),
            predictions.entropy,
        )
        self._add_totals(each)
        self._add_cells(predictions.confidence, predictions.correct)
        self._add_marginals(predictions)
        return self

    @torch.no_grad()
    def add_events(self, confidence: Numbers, outcome: Numbers) -> "Summary":
        """Add events: how sure, and whether it happened; returns the summary itself.

        None of them, in an empty batch, adds nothing.
        """
        if self.classes is not None:
            raise ValueError(
                f"a summary of {self.classes} classes takes update(logits, labels); got events. "
                "Make a Summary(None) for them."
            )
        sure, right = inputs.as_events(confidence, outcome)
        if len(sure) == 0:
            return self
        chance = (sure.float() if sure.dtype in HALF else sure).contiguous()
        happened = right.to(chance.dtype)
        told = Predictions.from_probabilities(chance, right.long())
        each = (
            torch.ones_like(chance),
            happened,
            nll.per_sample(told),
            (happened - chance).square(),
            chance,
        )
        self._add_totals(each)
        self._add_cells(chance, happened)
        return self

    def _add_totals(self, each: tuple[Tensor, ...]) -> None:
        self.state["totals"] += torch.stack([x.double().sum() for x in each]).to(self.device)

    def _add_cells(self, confidence: Tensor, correct: Tensor) -> None:
        edges = self.edges.to(confidence)
        cell = torch.bucketize(confidence, edges)
        c, right = confidence.double(), correct.double()
        kept = torch.stack(
            [torch.ones_like(c), right, right * c, (1 - right) * c, (right - c).square()], dim=1
        )
        empty = kept.new_zeros(self.state["cells"].shape)
        self.state["cells"] += empty.index_add(0, cell, kept).to(self.device)

    def _add_marginals(self, predictions: Predictions) -> None:
        n = len(predictions)
        chances, happened = predictions.marginals
        columns = torch.arange(predictions.classes, device=chances.device).expand(n, -1)
        self._add_table("marginals", columns.reshape(-1), chances.reshape(-1), happened.reshape(-1))
        self._add_table(
            "predicted", predictions.predicted, predictions.confidence, predictions.correct
        )

    def _add_table(self, name: str, row: Tensor, chance: Tensor, happened: Tensor) -> None:
        edges = torch.arange(1, self.bins, dtype=chance.dtype, device=chance.device) / self.bins
        place = row * self.bins + torch.bucketize(chance, edges)
        kept = torch.stack([torch.ones_like(chance), chance, happened], dim=1).double()
        empty = kept.new_zeros(self.state[name].shape)
        table = empty.reshape(-1, 3).index_add(0, place, kept)
        self.state[name] += table.reshape(empty.shape).to(self.device)

    def merge(self, other: "Summary") -> "Summary":
        """The summary of both, where this one lies. Neither is changed."""
        check_mergeable(self, other)
        both = Summary(self.classes, bins=self.bins, cells=self.cells)
        both.state = {
            name: part + other.state[name].to(part.device) for name, part in self.state.items()
        }
        return both

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, without pickle: the whole file or none of it.

        `Summary.load` reads it, here or on the machine where parts are merged.
        """
        files.write(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Summary":
        """Read what `save` wrote, to the last bit.

        >>> import tempfile
        >>> part = Summary(None).add_events([0.9, 0.8, 0.6], [1, 1, 0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     part.save(f"{folder}/monday.safetensors")
        ...     kept = Summary.load(f"{folder}/monday.safetensors")
        >>> kept.merge(part)
        Summary(6 events, 15 bins)
        """
        return files.read(cls, path)

    def values(self) -> dict[str, Bounded]:
        """Every measure the summary knows, with its error bound."""
        n = len(self)
        if n < 3:
            raise ValueError(f"a summary must hold at least 3 samples to be judged; got {n}.")
        _, *means = (self.state["totals"] / n).tolist()
        if any(map(isnan, means)):
            raise ValueError(
                f"a summary must be of numbers; got NaN in at least one of its {n} rows. Add them "
                "anew from the CPU, where the row is named."
            )
        last = "mean_confidence" if self.classes is None else "mean_entropy"
        named = dict(zip(("accuracy", "nll", "brier", last), means, strict=True))
        exact = {name: Bounded(value) for name, value in named.items()}
        kept = self.state["cells"].cpu()
        cells = Cells(kept, self.bin_of_cell, self.bins, self.edges)
        return (
            exact
            | {name: Bounded(value) for name, value in cells.binned().items()}
            | self._by_class()
            | {
                "label_binned_ece": cells.label_binned(),
                "ece_mass": cells.equal_mass(),
                "ks_error": cells.ks(),
                "esd": cells.esd(),
            }
        )

    def _by_class(self) -> dict[str, Bounded]:
        if self.classes is None:
            return {}
        marginals, predicted = self.state["marginals"], self.state["predicted"]
        share = predicted[..., 0].sum(dim=1) / len(self)
        return {
            "class_wise_ece": Bounded(_table_ece(marginals).mean().item()),
            "per_class_ece": Bounded((share * _table_ece(predicted)).sum().item()),
        }


def _table_ece(table: Float[Tensor, "rows bins 3"]) -> Float[Tensor, " rows"]:
    mass, chance, happened = table.unbind(dim=-1)
    return torch.stack([gap_norm(m, g, 1) for m, g in zip(mass, happened - chance, strict=True)])
