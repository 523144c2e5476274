"""What a fit is worth on predictions it has not seen."""

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..criteria import top_label
from ..measures import ece
from ..measures._precision import widened
from ..predictions import Predictions
from ..scores import nll
from ._folds import fold_index
from ._inputs import rows, with_logits
from ._report import FitReport, Outcome

if TYPE_CHECKING:
    from ._recalibrator import Recalibrator


def judged(
    recalibrator: "Recalibrator",
    predictions: Predictions,
    outcome: Outcome,
    folds: int,
    *,
    events: bool,
    before: Predictions,
) -> FitReport:
    """The report of a fit, with its cross-validated before and after.

    - `events`: whether the second of two classes is an event, of which one score was given.
    - `before`: the predictions as they were told, where a zero is not yet what a fit makes of it.
    """
    report = FitReport(
        method=repr(recalibrator),
        n=len(predictions),
        classes=predictions.classes,
        converged=outcome.converged,
        iterations=outcome.iterations,
        message=outcome.message,
    )
    if folds == 0:
        return report
    part = fold_index(predictions, folds)
    try:
        held_out = cross_fitted(recalibrator, predictions, part)
    except ValueError as refusal:
        reason = f"Not judged on held-out folds, since one could not be fitted: {refusal}"
        return replace(report, message=f"{outcome.message} {reason}".strip())
    harm = _harm(before, held_out)
    error = _of_events if events else top_label(ece)
    return replace(
        report,
        message=f"{outcome.message} {harm}".strip(),
        folds=int(part.max()) + 1,
        nll_before=nll(before).item(),
        nll_after=nll(held_out).item(),
        ece_before=error(before).item(),
        ece_after=error(held_out).item(),
    )


def _of_events(predictions: Predictions) -> Tensor:
    """As `evaluate_events` has it: the chance of the event, also where it is below one half."""
    chance = predictions.probs[:, 1]
    return ece(chance, predictions.labels.to(chance), weights=predictions.weights)


def _harm(before: Predictions, after: Predictions) -> str:
    """A sentence where the likelihood falls by more than one standard error of its fall."""
    old, new = widened(nll.per_sample(before), nll.per_sample(after))
    counts = torch.ones_like(old) if before.weights is None else before.weights.to(old)
    share = counts / counts.sum()
    was, is_now = (share @ old).item(), (share @ new).item()
    error = (share * (new - old - (is_now - was))).norm().item()
    # An infinite loss has no standard error, and needs none.
    if not is_now > was or is_now - was <= error:
        return ""
    return (
        f"By the likelihood this is worse than no map: nll {is_now:.4f} held out, from {was:.4f}. "
        "Try another method, or BestOf, which keeps one only where it helps."
    )


@torch.no_grad()
def cross_fitted(
    recalibrator: "Recalibrator", predictions: Predictions, part: Tensor
) -> Predictions:
    """The predictions as they come out of fits to the other parts, in their own order.

    - `part`: that of each sample, as `fold_index` gives it.
    """
    if int(part.max()) == 0:
        raise ValueError(
            f"samples must differ to be held out in parts; got {len(predictions)} that are all "
            "alike."
        )
    mapped = torch.empty_like(predictions.scores)
    for k in range(int(part.max()) + 1):
        held = part == k
        fitted = fresh(recalibrator)
        rest = rows(predictions, ~held)
        fitted._check_enough(rest)
        fitted._fit(rest)
        mapped[held] = fitted.to(mapped.device)._transform(predictions.scores[held])
    return with_logits(predictions, mapped)


def fresh(recalibrator: "Recalibrator") -> "Recalibrator":
    """The same method with the same settings, having learnt nothing."""
    return type(recalibrator)(**recalibrator.get_params(deep=False))
