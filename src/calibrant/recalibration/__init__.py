"""Maps of logits that repair a trained model."""

from collections.abc import Callable
from functools import partial

from ._as_logits import as_logits as as_logits
from ._bbq import BBQ as BBQ
from ._best_of import BestOf as BestOf
from ._beta import BetaCalibration as BetaCalibration
from ._dirichlet import DirichletCalibration as DirichletCalibration
from ._ensemble import EnsembleTemperatureScaling as EnsembleTemperatureScaling
from ._histogram import HistogramBinning as HistogramBinning
from ._identity import Identity as Identity
from ._isotonic import IsotonicCalibration as IsotonicCalibration
from ._isotonic import SharedIsotonicCalibration as SharedIsotonicCalibration
from ._matrix import MatrixScaling as MatrixScaling
from ._platt import PlattScaling as PlattScaling
from ._recalibrator import Recalibrator as Recalibrator
from ._report import FitReport as FitReport
from ._report import Outcome as Outcome
from ._scaling_binning import ScalingBinning as ScalingBinning
from ._spline import SplineCalibration as SplineCalibration
from ._temperature import TemperatureScaling as TemperatureScaling
from ._vector import VectorScaling as VectorScaling
from ._venn_abers import VennAbers as VennAbers
from ._wrapped import CalibratedModel as CalibratedModel

RECALIBRATORS: dict[str, Callable[[], Recalibrator]] = {
    "identity": Identity,
    "temperature": TemperatureScaling,
    "temperature_sb_ece": partial(TemperatureScaling, objective="sb_ece"),
    "temperature_ece": partial(TemperatureScaling, objective="ece"),
    "ensemble_temperature": EnsembleTemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "dirichlet": DirichletCalibration,
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "isotonic": IsotonicCalibration,
    "shared_isotonic": SharedIsotonicCalibration,
    "histogram": HistogramBinning,
    "bbq": BBQ,
    "scaling_binning": ScalingBinning,
    "spline": SplineCalibration,
    "venn_abers": VennAbers,
    "best_of": BestOf,
}
"""Every method by name, with its usual settings: a class, or a `partial` of one."""
