"""Calibrant: classifiers whose confidence can be believed."""

from . import kernels as kernels
from .criteria import Criterion as Criterion
from .criteria import Measure as Measure
from .criteria import across_ranks as across_ranks
from .criteria import by_group as by_group
from .criteria import class_wise as class_wise
from .criteria import per_class as per_class
from .criteria import rooted as rooted
from .criteria import top_label as top_label
from .evaluation import CalibrationTests as CalibrationTests
from .evaluation import Comparison as Comparison
from .evaluation import Decomposition as Decomposition
from .evaluation import Estimate as Estimate
from .evaluation import Evaluation as Evaluation
from .evaluation import Summary as Summary
from .evaluation import Threshold as Threshold
from .evaluation import calibration_tests as calibration_tests
from .evaluation import cohens_d as cohens_d
from .evaluation import compare as compare
from .evaluation import decompose as decompose
from .evaluation import evaluate as evaluate
from .evaluation import evaluate_events as evaluate_events
from .evaluation import mean_and_sem as mean_and_sem
from .evaluation import prediction_sets as prediction_sets
from .evaluation import threshold_for as threshold_for
from .evaluation import within_subject_sem as within_subject_sem
from .measures import MEASURES as MEASURES
from .measures import avuc as avuc
from .measures import avuc_gs as avuc_gs
from .measures import canonical_kde_ece as canonical_kde_ece
from .measures import dca as dca
from .measures import debiased_ece as debiased_ece
from .measures import dece as dece
from .measures import ece as ece
from .measures import esd as esd
from .measures import esd_naive as esd_naive
from .measures import kde_ece as kde_ece
from .measures import ks_error as ks_error
from .measures import label_binned_ece as label_binned_ece
from .measures import mce as mce
from .measures import mdca as mdca
from .measures import mmce as mmce
from .measures import smooth_ece as smooth_ece
from .measures import soft_avuc as soft_avuc
from .measures import soft_binned_ece as soft_binned_ece
from .measures import soft_label_binned_ece as soft_label_binned_ece
from .measures import sweep_ece as sweep_ece
from .measures import weighted_mmce as weighted_mmce
from .objectives import Penalised as Penalised
from .predictions import Predictions as Predictions
from .scores import SCORES as SCORES
from .scores import Score as Score
from .scores import accuracy as accuracy
from .scores import brier as brier
from .scores import confidence_penalty as confidence_penalty
from .scores import dual_focal as dual_focal
from .scores import flsd as flsd
from .scores import focal as focal
from .scores import label_smoothing as label_smoothing
from .scores import margin_smoothing as margin_smoothing
from .scores import nll as nll
from .scores import squared_logits as squared_logits

CRITERIA: dict[str, Criterion] = SCORES | MEASURES
"""Every score and every measure, by name."""

__version__ = "0.1.0"
