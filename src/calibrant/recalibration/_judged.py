"""What a fit is worth on predictions it has not seen."""

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..criteria import top_label
from ..measures import ece
from ..predictions import Predictions
from ..scores import nll
from ._folds import fold_index
from ._inputs import rows, with_logits
from ._report import FitReport, Outcome

if TYPE_CHECKING:
    from ._recalibrator import Recalibrator


def judged(
    recalibrator: "Recalibrator", predictions: Predictions, outcome: Outcome, folds: int
) -> FitReport:
    """The report of a fit, with its cross-validated before and after."""
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
    return replace(
        report,
        folds=int(part.max()) + 1,
        nll_before=nll(predictions).item(),
        nll_after=nll(held_out).item(),
        ece_before=top_label(ece)(predictions).item(),
        ece_after=top_label(ece)(held_out).item(),
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
