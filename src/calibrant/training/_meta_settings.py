"""The ablation of the meta-calibration paper by its names, and two settings of ours."""

from typing import TypedDict

from torch import Tensor

from ..criteria import Criterion, top_label
from ..measures import dece, esd, mmce, soft_binned_ece
from ..predictions import Predictions
from ..scores import nll


class MetaSetting(TypedDict):
    """What training descends, and what the coefficients descend; nothing is meta-learnt by None."""

    fit: Criterion
    meta_objective: Criterion | None


def nll_and_dece(predictions: Predictions) -> Tensor:
    """The likelihood and DECE of the training batch itself, added up."""
    return nll(predictions) + dece(predictions)


META_SETTINGS: dict[str, MetaSetting] = {
    "M0": {"fit": nll, "meta_objective": None},
    "M1": {"fit": nll_and_dece, "meta_objective": None},
    "M2": {"fit": nll, "meta_objective": nll},
    "M3": {"fit": nll, "meta_objective": top_label(mmce)},
    "M4": {"fit": nll, "meta_objective": dece},
    "meta_soft_binned_ece": {"fit": nll, "meta_objective": top_label(soft_binned_ece)},
    "meta_esd": {"fit": nll, "meta_objective": top_label(esd)},
}
"""For `fit_meta(..., **META_SETTINGS["M4"])`.

M0 is the likelihood alone, M1 adds DECE of the training batch, M2 to M4 meta-learn by the
likelihood, MMCE and DECE (Bohdal et al. 2021, table 2). The last two are not in the paper. The
authors did not release M1 and M3, so the weight of 1 in M1 and the form of MMCE are ours.
"""
