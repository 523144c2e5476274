"""What each model said, in the form the report is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from .._checks import check_flag, check_weights
from ..evaluation import _inputs as inputs
from ..evaluation._arrays import Numbers, tensor
from ..measures._binned import as_counts
from ..predictions import Predictions
from ..scores import brier, nll

Forecast: TypeAlias = tuple[Any, Any] | list[Any] | Predictions
"""`(logits, labels)`, `(confidence, outcome)`, or `Predictions`."""

# What fits in a page that opens at once, and how long a name may be on it.
MOST_MODELS, _LONGEST = 20, 200


@dataclass(frozen=True, eq=False)
class Told:
    """The answers of one model, judged; vectors on the CPU, one entry per sample.

    - `confidence`, `outcome`: how sure, and whether it was right, in the precision in which
      `evaluate` sees them, so that bins and ties are the same.
    - `nll`, `brier`: the scores of each sample, in float64.
    - `predicted`, `labels`: class indices; none where only events are known.
    - `predictions`: the table behind them; none where only events are known.
    - `weights`: how much each sample counts, in float64; none where all count alike.
    """

    name: str
    confidence: Tensor
    outcome: Tensor
    nll: Tensor
    brier: Tensor
    predicted: Tensor | None = None
    labels: Tensor | None = None
    predictions: Predictions | None = None
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def classes(self) -> int | None:
        """How many; none where only events are known."""
        return None if self.predictions is None else self.predictions.classes

    @property
    def mass(self) -> Tensor:
        """How much each sample counts: 1 where nothing else was said."""
        return torch.ones(len(self), dtype=torch.float64) if self.weights is None else self.weights

    def some(self, rows: Tensor) -> "Told":
        """Some of the samples, without the table behind them."""
        return Told(
            self.name,
            self.confidence[rows],
            self.outcome[rows],
            self.nll[rows],
            self.brier[rows],
            weights=None if self.weights is None else self.weights[rows],
        )


def told(
    name: str,
    forecast: Forecast,
    *,
    probabilities: bool = False,
    weights: Numbers | None = None,
) -> Told:
    """Judge what one model said; a sentence that begins with its name where that is impossible.

    - `forecast`: a table `(n, classes)` of logits (of probabilities, if `probabilities` says so)
      with the true classes, or one confidence per event with what happened; or `Predictions`.
    - `weights`: how much each sample counts.

    >>> said = told("coin", (torch.tensor([0.9, 0.6, 0.7]), torch.tensor([1, 0, 1])))
    >>> said.outcome.tolist(), said.classes
    ([1.0, 0.0, 1.0], None)
    """
    try:
        return _weighted(judged(name, forecast, probabilities=probabilities), weights)
    except (ValueError, TypeError) as wrong:
        raise type(wrong)(f"model {name!r}: {wrong}") from wrong


@torch.no_grad()
def judged(name: str, forecast: Forecast, *, probabilities: bool) -> Told:
    """The same, and the sentence begins with what is wrong."""
    if isinstance(forecast, Predictions):
        return _of_predictions(name, forecast)
    if not isinstance(forecast, Sequence) or len(forecast) != 2:
        raise TypeError(
            "a model must be a pair, (logits, labels) or (confidence, outcome), or "
            f"Predictions; got {type(forecast).__name__}."
        )
    check_flag("probabilities", probabilities)
    first = tensor("logits", forecast[0])
    if first.ndim == 1:
        return _of_events(name, first, forecast[1])
    labels = tensor("labels", forecast[1], first.device)
    if first.is_floating_point():
        inputs.check_no_nan("probabilities" if probabilities else "logits", first)
    if probabilities:
        return _of_predictions(name, Predictions.from_probabilities(first, labels))
    _refuse_probabilities(first)
    return _of_predictions(name, Predictions(first, labels))


def all_told(
    models: Mapping[str, Forecast], *, probabilities: bool
) -> "list[tuple[str, Forecast, bool]]":
    """The models in order, or a sentence where there are none or too many."""
    if not isinstance(models, Mapping):
        raise TypeError(
            "models must map a name to (logits, labels); got "
            f"{type(models).__name__}. For one model pass {{'model': (logits, labels)}}."
        )
    if not 1 <= len(models) <= MOST_MODELS:
        raise ValueError(
            f"a report needs between 1 and {MOST_MODELS} models; got {len(models)}. "
            "Write several reports."
        )
    return [(named(name), forecast, probabilities) for name, forecast in models.items()]


def named(thing: object) -> str:
    """A name that fits on a page, whatever it is the name of.

    >>> named(3), len(named("x" * 10_000))
    ('3', 200)
    """
    text = str(thing)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _of_predictions(name: str, predictions: Predictions) -> Told:
    if predictions.labels_per_sample is not None:
        raise ValueError(
            "predictions must have one label per sample, since the report shows answers; "
            "pass Predictions(logits, labels)."
        )
    if predictions.weights is not None:
        bare = predictions._some(slice(None), None)
        return _weighted(_of_predictions(name, bare), predictions.weights)
    inputs.check_enough(len(predictions))
    inputs.check_labels_in_range(predictions.labels, predictions.classes)

    return Told(
        name,
        predictions.confidence.cpu(),
        predictions.correct.cpu(),
        nll.per_sample(predictions).cpu().double(),
        brier.per_sample(predictions).cpu().double(),
        predictions.predicted.cpu(),
        predictions.labels.cpu(),
        predictions,
    )


def _weighted(said: Told, weights: Numbers | None) -> Told:
    counted = inputs.as_weights(weights, said.confidence)
    if counted is None:
        return said
    counted = counted.cpu()
    check_weights(counted, said.confidence)
    counted = as_counts(counted)  # as `evaluate` does
    table = said.predictions
    if table is not None:
        table = table._some(slice(None), counted.to(table.labels.device))
    return replace(said, predictions=table, weights=counted)


def _of_events(name: str, confidence: Tensor, outcome: Numbers) -> Told:
    confidence, happened = inputs.as_events(confidence, outcome)
    inputs.check_enough(len(confidence))
    narrow = confidence.dtype in (torch.float16, torch.bfloat16)
    sure = (confidence.float() if narrow else confidence).cpu().contiguous()
    right = happened.cpu().to(sure.dtype)
    chance = Predictions.from_probabilities(sure, right.long())
    score = nll.per_sample(chance).double()
    return Told(name, sure, right, score, (right - sure).double().square())


def _refuse_probabilities(logits: Tensor) -> None:
    """Rows that are probabilities are no accident, and as logits they would be misread."""
    first = logits[:50].double()
    flat = (first >= 0).all() and ((first.sum(dim=1) - 1).abs() < 1e-3).all()
    if len(first) > 1 and bool(flat) and not bool(((first == 0) | (first == 1)).all()):
        raise ValueError(
            "logits must be unnormalised scores; got rows that are probabilities: none negative, "
            "each sums to one. Say probabilities=True."
        )
