"""A criterion to descend: fit the labels, and pay for miscalibration."""

from collections.abc import Callable
from inspect import signature
from numbers import Real
from typing import Any

from torch import Tensor, nn

from ._checks import check_callable
from .criteria import Criterion, name_of
from .kernels import Replays, as_it_is, linear_predictions, replayable
from .predictions import Predictions

# Logits of a batch whose launches take longer than their work.
_SMALL = 2**20


class Penalised(nn.Module):
    """A training objective: `fit(predictions) + weight * calibration(predictions)`.

    Called like any torch loss, `objective(logits, labels)`.

    - `fit`: what makes predictions right, such as `nll` or `partial(focal, gamma=2)`.
    - `calibration`: what makes their confidence true, such as `top_label(esd)`.
    - `weight`: the price of miscalibration.
    - `class_dim`: for pixels and tokens, the dimension of logits that holds the classes.
    - `ignore_index`: the label of positions to leave out, such as -100; none by default.

    Calibration belongs to a whole batch: use the largest that fits, and `across_ranks` when it
    is spread over processes.

    On CUDA the launches of a small batch cost more than their work. If `fit` and `calibration` are
    this package's, those of a shape that comes a third time are captured, and from then on replayed
    as one: see `kernels.captured`, and `kernels.use` for how to have none of it.

    >>> import torch
    >>> from calibrant import esd, nll, top_label
    >>> objective = Penalised(nll, top_label(esd), weight=0.5)
    >>> objective(torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 0, 0]))
    tensor(0.4817)
    """

    def __init__(
        self,
        fit: Criterion,
        calibration: Criterion,
        weight: float,
        *,
        class_dim: int | None = None,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__()
        self.fit = check_criterion("fit", fit)
        self.calibration = check_criterion("calibration", calibration)
        _check_weight(weight)
        self.weight = weight
        self.class_dim, self.ignore_index = class_dim, ignore_index
        self._prepare()

    def _prepare(self) -> None:
        self._replays = Replays(patience=2, most=_SMALL)
        both = replayable(self.fit) and replayable(self.calibration)
        self._judged = self.fit, self.calibration, both

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        # Those pickled by earlier versions have no replays.
        if "_replays" not in state or "_judged" not in state:
            self._prepare()

    def forward(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """The objective of one batch, in which samples may have weights."""
        if weights is not None or not self._is_replayable():
            return self._computed(logits, labels, weights)
        settings = (self.fit, self.calibration, self.weight, self.class_dim)
        return self._replays.computed(self._computed, settings, logits, labels)

    def _is_replayable(self) -> bool:
        if self._judged[0] is not self.fit or self._judged[1] is not self.calibration:
            both = replayable(self.fit) and replayable(self.calibration)
            self._judged = self.fit, self.calibration, both
        plain = self.ignore_index is None and isinstance(self.weight, (int, float))
        return plain and self._judged[2] and as_it_is()

    def _computed(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        if self.class_dim is None and self.ignore_index is None:
            predictions = Predictions(logits, labels, weights=weights)
        else:
            predictions = Predictions.flatten(
                logits,
                labels,
                class_dim=1 if self.class_dim is None else self.class_dim,
                ignore_index=self.ignore_index,
                weights=weights,
            )
        return self.fit(predictions) + self.weight * self.calibration(predictions)

    def extra_repr(self) -> str:
        """Name the parts where the module is printed."""
        return _described(self, "class_dim", "ignore_index")


class LinearPenalised(nn.Module):
    """The same objective from hidden states and the last layer, never holding all the logits.

    For vocabularies: what a fused linear cross-entropy is to cross-entropy, this is to
    `Penalised`. Called `objective(hidden, classifier, labels, bias)`, with gradients for all but
    the labels.

    - `fit`, `calibration`, `weight`: as in `Penalised`; both criteria may need no more than
      statistics of rows. Of the scores that is all but `dual_focal`, `squared_logits` and
      `margin_smoothing`; of the measures all of the top label, AvUC and DECE.
    - `ignore_index`: the label of positions to leave out, -100 by default.
    - `scale`, `softcap`, `chunk`: as in `kernels.linear_predictions`, which says what it costs.

    >>> import torch
    >>> from calibrant import esd, nll, top_label
    >>> _ = torch.manual_seed(0)
    >>> hidden, head = torch.randn(2, 8, 16), torch.nn.Linear(16, 50, bias=False)
    >>> tokens = torch.randint(50, (2, 8))
    >>> objective = LinearPenalised(nll, top_label(esd), weight=0.5)
    >>> objective(hidden[:, :-1], head.weight, tokens[:, 1:])  # each predicts the next
    tensor(3.7931, grad_fn=<AddBackward0>)
    """

    def __init__(
        self,
        fit: Criterion,
        calibration: Criterion,
        weight: float,
        *,
        ignore_index: int | None = -100,
        scale: float = 1.0,
        softcap: float | None = None,
        chunk: int | None = None,
    ) -> None:
        super().__init__()
        self.fit = check_criterion("fit", fit)
        self.calibration = check_criterion("calibration", calibration)
        _check_weight(weight)
        self.weight = weight
        self.ignore_index, self.chunk = ignore_index, chunk
        self.scale, self.softcap = scale, softcap

    def forward(
        self,
        hidden: Tensor,
        classifier: Tensor,
        labels: Tensor,
        bias: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> Tensor:
        """The objective of one batch, in which samples may have weights."""
        predictions = linear_predictions(
            hidden,
            classifier,
            labels,
            bias=bias,
            scale=self.scale,
            softcap=self.softcap,
            ignore_index=self.ignore_index,
            weights=weights,
            chunk=self.chunk,
        )
        return self.fit(predictions) + self.weight * self.calibration(predictions)

    def extra_repr(self) -> str:
        """Name the parts where the module is printed."""
        return _described(self, "ignore_index", "scale", "softcap", "chunk")


def check_criterion(name: str, criterion: Criterion) -> Criterion:
    """Something to call with predictions and nothing else; a torch loss takes logits and labels."""
    check_callable(name, criterion)
    called: Callable[..., Any] = (
        criterion.forward if isinstance(criterion, nn.Module) else criterion
    )
    try:
        # Without a look at what is wrapped: measures say themselves how they are lifted.
        taken = signature(called, follow_wrapped=False)
    except (TypeError, ValueError):  # what is not written in Python may not tell
        return criterion
    try:
        taken.bind(None)
    except TypeError as wrong:
        raise TypeError(
            f"{name} must be a criterion, which takes predictions alone; got "
            f"{name_of(criterion)}, which takes {', '.join(taken.parameters)}. For cross-entropy "
            "use nll; for another loss, lambda predictions: loss(predictions.logits, "
            "predictions.labels)."
        ) from wrong
    return criterion


def _check_weight(weight: object) -> None:
    if isinstance(weight, bool) or not isinstance(weight, Real | Tensor):
        raise TypeError(
            f"weight must be a number; got {type(weight).__name__}. "
            "One that finds itself, such as AdaptiveWeight(), is for fit_interleaved."
        )


def _described(objective: Penalised | LinearPenalised, *settings: str) -> str:
    parts = {
        "fit": name_of(objective.fit),
        "calibration": name_of(objective.calibration),
        "weight": objective.weight,
    } | {name: getattr(objective, name) for name in settings}
    return ", ".join(f"{name}={part}" for name, part in parts.items() if part is not None)
