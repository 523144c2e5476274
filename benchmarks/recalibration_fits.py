"""How each library is asked to fit each method of recalibration.

Every fit takes logits and labels and returns the fitted map, from logits to probabilities. The
peers' settings are their own defaults, but for progress bars and plots.
"""

import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from calibrant.recalibration import RECALIBRATORS

Map = Callable[[Tensor], Tensor]
Fit = Callable[[Tensor, Tensor], Map]

HERE = Path(__file__).parent

PACKAGES = {
    "calibrant": "calibrant",
    "scikit-learn": "scikit-learn",
    "netcal": "netcal",
    "probmetrics": "probmetrics",
    "torch-uncertainty": "torch_uncertainty",
}


def _ours(name: str, **settings: Any) -> Fit:
    def fit(logits: Tensor, labels: Tensor) -> Map:
        fitted = RECALIBRATORS[name]().set_params(**settings).fit(logits, labels, folds=0)
        return fitted.predict_proba

    return fit


def _scikit_learn_temperature(logits: Tensor, labels: Tensor) -> Map:
    from sklearn.calibration import _TemperatureScaling

    fitted = _TemperatureScaling().fit(logits.numpy(), labels.numpy())
    return lambda given: torch.as_tensor(fitted.predict(given.numpy()))


def _scikit_learn_isotonic(logits: Tensor, labels: Tensor) -> Map:
    """One regression per class, then rows made to sum to one, as CalibratedClassifierCV does."""
    from sklearn.isotonic import IsotonicRegression

    chances = logits.softmax(dim=1).double().numpy()
    fitted = [
        IsotonicRegression(out_of_bounds="clip").fit(chances[:, k], (labels == k).double().numpy())
        for k in range(logits.shape[1])
    ]

    def apply(given: Tensor) -> Tensor:
        chances = given.softmax(dim=1).double().numpy()
        columns = [torch.as_tensor(each.predict(chances[:, k])) for k, each in enumerate(fitted)]
        return _normalised(torch.stack(columns, dim=1))

    return apply


def _netcal(part: str, name: str, *, quiet: bool, **settings: Any) -> Fit:
    def fit(logits: Tensor, labels: Tensor) -> Map:
        method = getattr(importlib.import_module(f"netcal.{part}"), name)(**settings)
        more = {"tensorboard": False} if quiet else {}
        method.fit(logits.softmax(dim=1).numpy(), labels.numpy(), **more)
        return lambda given: torch.as_tensor(method.transform(given.softmax(dim=1).numpy()))

    return fit


@cache
def _apart(name: str) -> ModuleType:
    """A module imported while this folder is out of the way, whose names others use too."""
    path, sys.path = sys.path, [each for each in sys.path if Path(each or ".") != HERE]
    try:
        return importlib.import_module(name)
    finally:
        sys.path = path


def _probmetrics(name: str) -> Fit:
    def fit(logits: Tensor, labels: Tensor) -> Map:
        as_logits = _apart("probmetrics.distributions").CategoricalLogits
        fitted = _apart("probmetrics.calibrators").get_calibrator(name)
        fitted.fit_torch(as_logits(logits), labels)

        def apply(given: Tensor) -> Tensor:
            said: Tensor = fitted.predict_proba_torch(as_logits(given)).get_probs()
            return said

        return apply

    return fit


@cache
def _torch_uncertainty() -> ModuleType:
    """Its scalers by themselves: the package as a whole wants Lightning and more."""
    found = importlib.util.find_spec("torch_uncertainty")
    if found is None or not found.submodule_search_locations:
        raise ImportError("torch-uncertainty is not installed")
    root = found.submodule_search_locations[0]
    for name, place in (("", ""), (".post_processing", "/post_processing")):
        package = ModuleType(f"torch_uncertainty{name}")
        package.__path__ = [root + place]
        sys.modules[package.__name__] = package
    outer = sys.modules["torch_uncertainty.post_processing"]
    abstract = importlib.import_module("torch_uncertainty.post_processing.abstract")
    outer.PostProcessing = abstract.PostProcessing  # type: ignore[attr-defined]
    return importlib.import_module("torch_uncertainty.post_processing.calibration")


def _torch_uncertainty_scaler(name: str, *, counts: bool = False) -> Fit:
    def fit(logits: Tensor, labels: Tensor) -> Map:
        logging.disable(logging.WARNING)  # it warns of what is meant here
        settings = {"num_classes": logits.shape[1]} if counts else {}
        scaler = getattr(_torch_uncertainty(), name)(model=nn.Identity(), **settings)
        loader = DataLoader(TensorDataset(logits, labels), batch_size=1024)
        scaler.fit(loader, progress=False)
        return lambda given: scaler(given).softmax(dim=1)

    return fit


def _lbfgs(logits: Tensor, labels: Tensor) -> Map:
    """The released code of Guo et al.: LBFGS on T from 1.5, rate 0.01, 50 iterations."""
    temperature = nn.Parameter(torch.full((1,), 1.5))
    optimiser = torch.optim.LBFGS([temperature], lr=0.01, max_iter=50)

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = nn.functional.cross_entropy(logits / temperature, labels)
        value.backward()
        return value

    optimiser.step(loss)
    found = temperature.detach()
    return lambda given: (given / found).softmax(dim=1)


def _normalised(chances: Tensor) -> Tensor:
    total = chances.sum(dim=1, keepdim=True)
    return torch.where(total > 0, chances / total, 1 / chances.shape[1])


FITS: dict[str, dict[str, Fit]] = {
    "temperature": {
        "calibrant": _ours("temperature"),
        "scikit-learn": _scikit_learn_temperature,
        "netcal": _netcal("scaling", "TemperatureScaling", quiet=True),
        "probmetrics": _probmetrics("temp-scaling"),
        "torch-uncertainty": _torch_uncertainty_scaler("TemperatureScaler"),
        "LBFGS (Guo et al.)": _lbfgs,
    },
    "temperature, SB-ECE": {"calibrant": _ours("temperature_sb_ece")},
    "temperature, ECE": {"calibrant": _ours("temperature_ece")},
    "vector": {
        "calibrant": _ours("vector"),
        "probmetrics": _probmetrics("svs"),  # with a ridge of its own: another optimum
        "torch-uncertainty": _torch_uncertainty_scaler("VectorScaler", counts=True),
    },
    "isotonic": {
        "calibrant": _ours("isotonic"),
        "scikit-learn": _scikit_learn_isotonic,
        "netcal": _netcal("binning", "IsotonicRegression", quiet=False),
    },
    "dirichlet": {
        "calibrant": _ours("dirichlet"),
        "probmetrics": _probmetrics("dircal"),
        "torch-uncertainty": _torch_uncertainty_scaler("DirichletScaler", counts=True),
    },
}
