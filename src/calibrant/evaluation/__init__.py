"""Measuring predictions: every number with an interval, tests, comparisons, decisions."""

from ._cells import Bounded as Bounded
from ._compare_events import compare_events as compare_events
from ._comparison import compare as compare
from ._conformal import prediction_sets as prediction_sets
from ._decisions import Threshold as Threshold
from ._decisions import threshold_for as threshold_for
from ._decomposition import Decomposition as Decomposition
from ._decomposition import Parts as Parts
from ._decomposition import decompose as decompose
from ._differences import Comparison as Comparison
from ._differences import Difference as Difference
from ._estimates import Estimate as Estimate
from ._evaluate import evaluate as evaluate
from ._evaluate import evaluate_events as evaluate_events
from ._evaluation import Evaluation as Evaluation
from ._monitor import CalibrationMonitor as CalibrationMonitor
from ._monitor import Watched as Watched
from ._nulls import CalibrationTest as CalibrationTest
from ._nulls import CalibrationTests as CalibrationTests
from ._nulls import calibration_tests as calibration_tests
from ._seeds import cohens_d as cohens_d
from ._seeds import mean_and_sem as mean_and_sem
from ._seeds import within_subject_sem as within_subject_sem
from ._summary import Summary as Summary
