"""What every row of results holds: the papers' measures by one name each."""

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor

from ..criteria import Criterion, class_wise, top_label
from ..measures import debiased_ece, dece, ece, esd, ks_error, mmce, sweep_ece
from ..predictions import Predictions
from ..scores import accuracy, brier, nll

COLUMNS: dict[str, Criterion] = {
    "accuracy": accuracy,
    "nll": nll,
    "brier": brier,
    "ece15": top_label(partial(ece, bins=15)),
    "ece20": top_label(partial(ece, bins=20)),
    "ece15_mass": top_label(partial(ece, bins=15, binning="mass")),
    "ece15_mass_l2": top_label(partial(ece, bins=15, binning="mass", norm=2)),
    "class_wise_ece": class_wise(partial(ece, bins=15)),
    "marginal_ece": class_wise(partial(ece, bins=15, binning="mass", norm=2), norm=2),
    "debiased_ece": top_label(debiased_ece),
    "sweep_ece": top_label(partial(sweep_ece, norm=2)),
    "ks_error": top_label(ks_error),
    "dece": dece,
    "esd": top_label(esd),
    "mmce": top_label(mmce),
    "mean_confidence": lambda predictions: predictions.confidence.mean(),
    "mean_entropy": lambda predictions: predictions.entropy.mean(),
}
"""Every column: the criterion of the same name, or the papers' form of it.

ECE of the ESD paper is `ece20`; of the meta-calibration paper `ece15`, its AECE `ece15_mass` and
its CECE `class_wise_ece`; of the soft-calibration paper `ece15_mass_l2`, its train-set table
`ece15`, its KS-error `ks_error` and its mean-sweep CE `sweep_ece`.
"""

FEW = ("accuracy", "nll", "brier", "ece15", "ece20", "ece15_mass_l2", "mean_confidence")
"""Columns of shifted data, of which a row has hundreds of sets."""


@torch.no_grad()
def measured(logits: Tensor, labels: Tensor, columns: Iterable[str] = COLUMNS) -> dict[str, float]:
    """Columns of some predictions, in double precision, fetched from the device at once."""
    predictions = Predictions(logits.double(), labels)
    values = [COLUMNS[name](predictions).double() for name in columns]
    return dict(zip(columns, torch.stack(values).tolist(), strict=True))
