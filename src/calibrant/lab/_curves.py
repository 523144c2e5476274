"""What figures draw, small enough for a row: reliability by bin, and running sums."""

from collections.abc import Iterable

import torch
from torch import Tensor

from ..measures._binned import assign_bins
from ..predictions import Predictions

BINS, POINTS = 15, 41


@torch.no_grad()
def curves(logits: Tensor, labels: Tensor) -> dict[str, list[list[float]]]:
    """Of some predictions: bins of equal width, and cumulative confidence and accuracy.

    - `reliability`: by bin the number of samples, their mean confidence and their accuracy.
    - `cumulative`: at evenly spaced quantiles of the confidence, the confidence there and, of all
      samples up to it, the sums of confidence and of correct answers, over the number of all.
    """
    predictions = Predictions(logits.double(), labels)
    sure, right = predictions.confidence, predictions.correct
    bin_of = assign_bins(sure, bins=BINS, binning="width")
    empty = sure.new_zeros(BINS)
    count, total, hits = (
        empty.index_add(0, bin_of, each) for each in (torch.ones_like(sure), sure, right)
    )
    filled = count.clamp(min=1)
    reliability = torch.stack([count, total / filled, hits / filled], dim=1)
    order = sure.argsort()
    n = len(sure)
    at = torch.linspace(0, n - 1, POINTS, device=sure.device).long()
    sums = [each[order].cumsum(0)[at] / n for each in (sure, right)]
    cumulative = torch.stack([sure[order][at], *sums], dim=1)
    return {"reliability": reliability.tolist(), "cumulative": cumulative.tolist()}


def histogram(coefficients: Iterable[Tensor]) -> dict[str, list[float]]:
    """How learnt coefficients are distributed: edges of bins, and how many lie between them."""
    entries = torch.cat([own.detach().flatten().double().cpu() for own in coefficients])
    counts, edges = torch.histogram(entries, POINTS)
    return {"edges": edges.tolist(), "counts": counts.tolist()}
