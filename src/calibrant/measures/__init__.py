"""Every measure of miscalibration, and the name a table or a command gives it."""

from functools import partial

from ..criteria import Criterion, class_wise, per_class, rooted, top_label
from ._binned import debiased_ece as debiased_ece
from ._binned import ece as ece
from ._binned import label_binned_ece as label_binned_ece
from ._binned import mce as mce
from ._binned_by_parts import ece_by_parts as _ece_by_parts  # noqa: F401 - enters itself
from ._class_gaps import class_wise_ece as _class_wise_ece  # noqa: F401 - enters itself
from ._cumulative import ks_error as ks_error
from ._dece import dece as dece
from ._esd import esd as esd
from ._esd import esd_naive as esd_naive
from ._kernel_density import canonical_kde_ece as canonical_kde_ece
from ._kernel_density import kde_ece as kde_ece
from ._mean_gap import dca as dca
from ._mean_gap import mdca as mdca
from ._mmce import mmce as mmce
from ._mmce import weighted_mmce as weighted_mmce
from ._smooth import smooth_ece as smooth_ece
from ._soft_binned import soft_binned_ece as soft_binned_ece
from ._soft_binned import soft_label_binned_ece as soft_label_binned_ece
from ._sweep import sweep_ece as sweep_ece
from ._uncertainty import avuc as avuc
from ._uncertainty import avuc_gs as avuc_gs
from ._uncertainty import soft_avuc as soft_avuc

MEASURES: dict[str, Criterion] = {
    "esd": top_label(esd),
    "esd_naive": top_label(esd_naive),
    "rooted_esd": top_label(rooted(esd)),
    "mmce": top_label(mmce),
    "weighted_mmce": top_label(weighted_mmce),
    "soft_binned_ece": top_label(soft_binned_ece),
    "soft_label_binned_ece": top_label(soft_label_binned_ece),
    "ece": top_label(ece),
    "label_binned_ece": top_label(label_binned_ece),
    "mce": top_label(mce),
    "ks_error": top_label(ks_error),
    "sweep_ece": top_label(sweep_ece),
    "debiased_ece": top_label(debiased_ece),
    "smooth_ece": top_label(smooth_ece),
    "kde_ece": top_label(kde_ece),
    "dca": top_label(dca),
    "avuc": avuc,
    "avuc_gs": avuc_gs,
    "soft_avuc": soft_avuc,
    "dece": dece,
    "mdca": mdca,
    "canonical_kde_ece": canonical_kde_ece,
    "class_wise_ece": class_wise(ece),
    "marginal_ece": class_wise(partial(ece, norm=2, binning="mass"), norm=2),
    "class_wise_soft_binned_ece": class_wise(soft_binned_ece),
    "per_class_ece": per_class(ece),
}
