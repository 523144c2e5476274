"""Procedures that train a network to be calibrated."""

from ._accumulation import accumulate as accumulate
from ._adaptive_weight import AdaptiveWeight as AdaptiveWeight
from ._advice import should_interleave as should_interleave
from ._fit import fit as fit
from ._fit_interleaved import fit_interleaved as fit_interleaved
from ._history import Epoch as Epoch
from ._history import History as History
from ._interleave import interleave as interleave
from ._meta_fit import fit_meta as fit_meta
from ._meta_knowledge import ClassSmoothing as ClassSmoothing
from ._meta_knowledge import MetaKnowledge as MetaKnowledge
from ._meta_knowledge import UnitL2 as UnitL2
from ._meta_knowledge import WeightDecay as WeightDecay
from ._meta_knowledge import WeightL2 as WeightL2
from ._meta_loop import MetaHistory as MetaHistory
from ._meta_regulariser import MetaRegulariser as MetaRegulariser
from ._meta_settings import META_SETTINGS as META_SETTINGS
from ._selection import Selection as Selection
from ._selection import select as select
from ._split import split_for_calibration as split_for_calibration
from ._weight import CalibrationStatistics as CalibrationStatistics
from ._weight import Weight as Weight
