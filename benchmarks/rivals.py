"""How each peer is asked for each quantity, and why it is not where it cannot be asked.

Every call takes `Data` and returns one number. A peer that does not install, import or run says so
in the table.
"""

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

import calibrant as cal
from calibrant import Predictions

BINS = 15

PACKAGES = {
    "calibrant": "calibrant",
    "torchmetrics": "torchmetrics",
    "torch-uncertainty": "torch_uncertainty",
    "netcal": "netcal",
    "probmetrics": "probmetrics",
    "uncertainty-calibration": "uncertainty-calibration",
    "relplot": "relplot",
    "scikit-learn": "scikit-learn",
}


@dataclass(frozen=True)
class Data:
    """Predictions of one size: a table, or for two classes the chance of the second."""

    probs: Tensor
    labels: Tensor
    logits: Tensor

    @property
    def binary(self) -> bool:
        """Whether only the chance of class 1 is given."""
        return self.probs.ndim == 1

    @property
    def arrays(self) -> tuple[Any, Any]:
        """Probabilities and labels for those who take NumPy."""
        return self.probs.numpy(), self.labels.numpy()

    @property
    def events(self) -> tuple[Any, Any]:
        """Confidence and correctness, or chance and outcome, the way NumPy's users get them."""
        probs, labels = self.arrays
        if self.binary:
            return probs, labels
        return probs.max(axis=1), (probs.argmax(axis=1) == labels).astype(np.float64)


Call = Callable[[Data], float]


def installed(peer: str) -> str:
    """The version of a peer, or nothing."""
    try:
        return version(PACKAGES[peer])
    except PackageNotFoundError:
        return ""


def _ours(measure: Any) -> Call:
    def call(data: Data) -> float:
        if data.binary:
            return float(measure(data.probs, data.labels))
        return float(
            cal.top_label(measure)(Predictions.from_probabilities(data.probs, data.labels))
        )

    return call


def _ours_of_probabilities(criterion: Any) -> Call:
    return lambda data: float(criterion(Predictions.from_probabilities(data.probs, data.labels)))


def _ours_of_logits(criterion: Any) -> Call:
    return lambda data: float(criterion(Predictions(data.logits, data.labels)))


def _ours_brier(data: Data) -> float:
    value = float(cal.brier(Predictions.from_probabilities(data.probs, data.labels)))
    return value / 2 if data.binary else value  # of two classes, half is what others print


def _torchmetrics_ece(data: Data, logits: bool = False) -> float:
    from torchmetrics.functional.classification import (
        binary_calibration_error,
        multiclass_calibration_error,
    )

    if data.binary:
        return float(binary_calibration_error(data.probs, data.labels, n_bins=BINS))
    given = data.logits if logits else data.probs
    return float(
        multiclass_calibration_error(
            given, data.labels, num_classes=data.probs.shape[1], n_bins=BINS
        )
    )


@cache
def _torch_uncertainty(part: str) -> ModuleType:
    """A part of its metrics by itself: the package as a whole wants Lightning and more."""
    found = importlib.util.find_spec("torch_uncertainty")
    if found is None or not found.submodule_search_locations:
        raise ImportError("torch-uncertainty is not installed")
    root = Path(found.submodule_search_locations[0]) / "metrics" / "classification" / part
    file = root / "__init__.py" if root.is_dir() else root.with_suffix(".py")
    places = [str(root)] if root.is_dir() else None
    name = f"_torch_uncertainty_{part}"
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=places)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _torch_uncertainty_metric(part: str, name: str, data: Data, **settings: Any) -> float:
    metric = getattr(_torch_uncertainty(part), name)(**settings)
    metric.update(data.probs, data.labels)
    return float(metric.compute())


def _tu_ece(data: Data, name: str = "CalibrationError") -> float:
    task = (
        {"task": "binary"}
        if data.binary
        else {"task": "multiclass", "num_classes": data.probs.shape[1]}
    )
    return _torch_uncertainty_metric("calibration", name, data, num_bins=BINS, **task)


def _tu_class_wise(data: Data) -> float:
    return _torch_uncertainty_metric(
        "calibration",
        "ClasswiseCalibrationError",
        data,
        num_classes=data.probs.shape[1],
        num_bins=BINS,
    )


def _tu_smooth(data: Data) -> float:
    metric = _torch_uncertainty("calibration").SmoothCalibrationError(kernel_type="reflected")
    metric.update(*(torch.as_tensor(x) for x in data.events))
    return float(metric.compute())


def _tu_brier(data: Data) -> float:
    classes = 1 if data.binary else data.probs.shape[1]
    return _torch_uncertainty_metric("brier_score", "BrierScore", data, num_classes=classes)


def _tu_nll(data: Data) -> float:
    return _torch_uncertainty_metric("categorical_nll", "CategoricalNLL", data)


def _netcal(name: str, data: Data) -> float:
    import netcal.metrics

    return float(getattr(netcal.metrics, name)(BINS).measure(*data.arrays))


def _probmetrics(name: str, data: Data, logits: bool = False) -> float:
    # Its numba looks for a tool of this name, and would find the script that lies here.
    sys.modules.setdefault("coverage", None)  # type: ignore[arg-type]
    from probmetrics.metrics import Metrics

    metrics = Metrics.from_names([name])
    if logits:
        return float(metrics.compute_all_from_labels_logits(data.labels, data.logits)[name])
    table = torch.stack([1 - data.probs, data.probs], dim=1) if data.binary else data.probs
    return float(metrics.compute_all_from_labels_probs(data.labels, table)[name])


def _uncertainty_calibration(name: str, data: Data, **settings: Any) -> float:
    import calibration

    return float(getattr(calibration, name)(*data.arrays, **settings))


def _relplot(name: str, data: Data, **settings: Any) -> float:
    import relplot.metrics

    confidence, outcome = data.events
    return float(getattr(relplot.metrics, name)(confidence, outcome, **settings))


def _sklearn_ece(data: Data, strategy: Any) -> float:
    from sklearn.calibration import calibration_curve

    confidence, outcome = data.events
    happened, given = calibration_curve(outcome, confidence, n_bins=BINS, strategy=strategy)
    # Only the points of the curve are told; how many samples each stands for is counted here.
    edges = (
        np.linspace(0, 1, BINS + 1)
        if strategy == "uniform"
        else np.percentile(confidence, np.linspace(0, 1, BINS + 1) * 100)
    )
    counts = np.bincount(np.searchsorted(edges[1:-1], confidence), minlength=BINS)
    return float(np.abs(happened - given) @ counts[counts > 0] / len(confidence))


def _sklearn_loss(name: str, data: Data) -> float:
    import sklearn.metrics

    probs, labels = data.arrays
    return float(getattr(sklearn.metrics, name)(labels, probs))


def _sklearn_nll(data: Data) -> float:
    from sklearn.metrics import log_loss

    probs, labels = data.arrays
    classes = [0, 1] if data.binary else np.arange(probs.shape[1])
    return float(log_loss(labels, probs, labels=classes))


CALLS: dict[str, dict[str, Call]] = {
    "top-label ECE": {
        "calibrant": _ours(cal.ece),
        "torchmetrics": _torchmetrics_ece,
        "torch-uncertainty": _tu_ece,
        "netcal": partial(_netcal, "ECE"),
        "probmetrics": partial(_probmetrics, f"ece-{BINS}"),
        "uncertainty-calibration": partial(_uncertainty_calibration, "get_ece", num_bins=BINS),
        "relplot": partial(_relplot, "binnedECE", nbins=BINS),
        "scikit-learn": partial(_sklearn_ece, strategy="uniform"),
    },
    "top-label ECE of logits": {
        "calibrant": _ours_of_logits(cal.top_label(cal.ece)),
        "torchmetrics": partial(_torchmetrics_ece, logits=True),
        "probmetrics": partial(_probmetrics, f"ece-{BINS}", logits=True),
    },
    "class-wise ECE": {
        "calibrant": _ours_of_probabilities(cal.class_wise(cal.ece)),
        "torch-uncertainty": _tu_class_wise,
        "uncertainty-calibration": partial(
            _uncertainty_calibration, "get_ece", num_bins=BINS, mode="marginal"
        ),
    },
    "smooth ECE": {
        "calibrant": _ours(cal.smooth_ece),
        "torch-uncertainty": _tu_smooth,
        "probmetrics": partial(_probmetrics, "smece"),
        "relplot": partial(_relplot, "smECE"),
    },
    "equal-mass ECE": {
        "calibrant": _ours(partial(cal.ece, binning="mass")),
        "torch-uncertainty": partial(_tu_ece, name="AdaptiveCalibrationError"),
        "uncertainty-calibration": partial(_uncertainty_calibration, "get_ece_em", num_bins=BINS),
        "scikit-learn": partial(_sklearn_ece, strategy="quantile"),
    },
    "Brier score": {
        "calibrant": _ours_brier,
        "torch-uncertainty": _tu_brier,
        "probmetrics": partial(_probmetrics, "brier"),
        "scikit-learn": partial(_sklearn_loss, "brier_score_loss"),
    },
    "NLL": {
        "calibrant": _ours_of_probabilities(cal.nll),
        "torch-uncertainty": _tu_nll,
        "probmetrics": partial(_probmetrics, "logloss"),
        "scikit-learn": _sklearn_nll,
    },
}

OF_TABLES_ONLY = ("top-label ECE of logits", "class-wise ECE")
