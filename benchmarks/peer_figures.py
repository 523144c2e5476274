"""Ask the peers for their figures and keep them: `python benchmarks/peer_figures.py`.

In an environment with netcal, uncertainty-calibration, scikit-learn, relplot, MAPIE and
torchmetrics. The package itself is not asked, so that the figures are independent of it.
"""

import json
import os
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import calibration
import netcal.metrics
import numpy as np
import relplot
import torch
from mapie.classification import SplitConformalClassifier
from mapie.metrics import calibration as mapie
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss
from torchmetrics.functional.classification import (
    binary_calibration_error,
    multiclass_calibration_error,
)

TESTS = Path(__file__).parents[1] / "tests"
sys.path.append(str(TESTS))

from peers.inputs import BINS, CLASSES, chances, improbable, million, saturated, table  # noqa: E402

FIGURES = TESTS / "peers" / "figures.json"
PEERS = (
    "netcal",
    "uncertainty-calibration",
    "scikit-learn",
    "relplot",
    "MAPIE",
    "torchmetrics",
    "torch",
    "numpy",
)


class Told(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose inputs are its probabilities."""

    def fit(self, x: Any, y: Any) -> "Told":
        """Learn which classes there are."""
        self.classes_ = np.arange(CLASSES)
        return self

    def predict_proba(self, x: Any) -> Any:
        """What was told."""
        return x

    def predict(self, x: Any) -> Any:
        """The most probable class."""
        return x.argmax(axis=1)


def main() -> None:
    """Write all figures to a temporary file and rename it."""
    warnings.simplefilter("ignore")
    probs, labels = table()
    confidence, correct = probs.max(axis=1), (probs.argmax(axis=1) == labels).astype(float)
    chance, happened = chances()
    certain, certain_labels = saturated()
    many, many_happened = million()
    wrong, wrong_labels = improbable()
    by_mass = {"num_bins": BINS, "binning_scheme": calibration.utils.get_equal_bins}
    happened_in, given_in = calibration_curve(correct, confidence, n_bins=BINS)
    counts = np.histogram(confidence, bins=np.linspace(0, 1, BINS + 1))[0]

    def error(given: Any, truth: Any) -> float:
        tensors = torch.as_tensor(given), torch.as_tensor(truth)
        if given.ndim == 1:
            return float(binary_calibration_error(*tensors, n_bins=BINS))
        return float(multiclass_calibration_error(*tensors, num_classes=CLASSES, n_bins=BINS))

    def lower_bound(p: int, debias: bool, mode: str) -> float:
        ask = calibration.utils.lower_bound_scaling_ce
        return float(ask(probs, labels, p=p, debias=debias, mode=mode, **by_mass))

    figures = {
        "netcal ECE": netcal.metrics.ECE(BINS).measure(probs, labels),
        "netcal MCE": netcal.metrics.MCE(BINS).measure(probs, labels),
        "netcal ECE saturated": netcal.metrics.ECE(BINS).measure(certain, certain_labels),
        "netcal ECE of chances": netcal.metrics.ECE(BINS).measure(chance, happened),
        "uncertainty-calibration ECE": calibration.get_ece(probs, labels, num_bins=BINS),
        "uncertainty-calibration ECE mass": lower_bound(1, False, "top-label"),
        "uncertainty-calibration l2 mass": lower_bound(2, False, "top-label"),
        "uncertainty-calibration debiased": lower_bound(2, True, "top-label"),
        "uncertainty-calibration marginal": lower_bound(2, False, "marginal"),
        "uncertainty-calibration marginal debiased": lower_bound(2, True, "marginal"),
        "uncertainty-calibration ECE mass of the first 500": calibration.get_ece_em(
            probs[:500], labels[:500], num_bins=BINS
        ),
        "scikit-learn ECE": np.abs(happened_in - given_in) @ counts[counts > 0] / len(labels),
        "scikit-learn Brier": brier_score_loss(labels, probs),
        "scikit-learn log loss": log_loss(labels, probs),
        "scikit-learn log loss improbable": log_loss(wrong_labels, wrong),
        "relplot smECE": relplot.smECE(chance, happened),
        "MAPIE KS": mapie.kolmogorov_smirnov_statistic(happened, chance),
        "MAPIE KS p-value": mapie.kolmogorov_smirnov_p_value(happened, chance),
        "MAPIE Kuiper": mapie.kuiper_statistic(happened, chance),
        "MAPIE Kuiper p-value": mapie.kuiper_p_value(happened, chance),
        "MAPIE Spiegelhalter": mapie.spiegelhalter_statistic(happened, chance),
        "MAPIE Spiegelhalter p-value": mapie.spiegelhalter_p_value(happened, chance),
        "torchmetrics ECE": error(probs, labels),
        "torchmetrics ECE saturated": error(certain, certain_labels),
        "torchmetrics ECE million": error(many, many_happened),
    }
    written = {
        "versions": {peer: version(peer) for peer in PEERS},
        "figures": {name: float(value) for name, value in figures.items()},
        "MAPIE sets": _sets(probs, labels),
    }
    unfinished = FIGURES.with_suffix(".part")
    unfinished.write_text(json.dumps(written, indent=1) + "\n")
    os.replace(unfinished, FIGURES)


def _sets(probs: Any, labels: Any) -> list[str]:
    """Sets of the last hundred rows, conformal to the first five hundred, a digit per class."""
    classifier = SplitConformalClassifier(
        Told().fit(probs, labels), confidence_level=0.9, conformity_score="lac", prefit=True
    )
    classifier.conformalize(probs[:500], labels[:500])
    _, sets = classifier.predict_set(probs[-100:])
    return ["".join(str(int(kept)) for kept in row) for row in sets[:, :, 0]]


if __name__ == "__main__":
    main()
