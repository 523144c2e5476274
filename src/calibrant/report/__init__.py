"""What a person is shown: a page in one file, and figures for papers."""

from ._class_figure import class_heat_map as class_heat_map
from ._confidence_figures import confidence_histogram as confidence_histogram
from ._confidence_figures import cumulative_diagram as cumulative_diagram
from ._confidence_figures import risk_coverage_curve as risk_coverage_curve
from ._evaluation_figures import error_bars as error_bars
from ._evaluation_figures import shift_diagram as shift_diagram
from ._reliability_figure import reliability_curves as reliability_curves
from ._reliability_figure import reliability_diagram as reliability_diagram
from ._soft_figures import soft_bin_memberships as soft_bin_memberships
from ._soft_figures import soft_uncertainty_curves as soft_uncertainty_curves
from ._verdict import Verdict as Verdict
from ._write import Report as Report
from ._write import write_report as write_report
