"""What every recalibrator is: a map of logits, learnt from held-out predictions."""

from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, TypeVar, overload

import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from .. import _html as html
from ..predictions import Predictions
from ._chances import logits_of, only_heard, smallest_told
from ._form import Form
from ._inputs import Numbers, as_tensor, check_labels_in_range, counted, to_predictions
from ._judged import judged
from ._learnt import Learnt
from ._models import predictions_of
from ._persistence import read, write
from ._report import FitReport, Outcome
from ._settings import Settings

Kind = TypeVar("Kind", bound="Recalibrator")


class Recalibrator(Settings, Learnt):
    """Logits in, logits out, learnt from predictions that the model was not trained on.

    `fit(logits, labels)` learns, `transform(logits)` maps, `predict_proba(logits)` gives
    probabilities. torch in gives torch out, on the same device and of the same dtype; NumPy in
    gives NumPy out. A recalibrator is also an `nn.Module`, whose `state_dict` holds all it has
    learnt, and has scikit-learn's `get_params` and `set_params`.

    Where only probabilities are known, all three take them with `probabilities=True`. A zero, such
    as forests give, has no logarithm: with the least probability above zero that `fit` was told for
    a vote, it counts as if one more had been shared among the classes; and as no more than 1e-7
    where `fit` was told of no zero.

    A method is a subclass: settings in `__init__`, each kept under its own name; `_fit`, which
    hands what it learns to `_learn`; and `_transform`. It declares

    - `learnt`: names of what `_fit` learns, each ending in an underscore.
    - `keeps_order`: whether the predicted class can never change.
    - `contains_identity`: whether the method fits the likelihood over a family with the identity
      in it, so that the log-loss on the fitting set is never worse.
    - `needs_every_class`: whether every class must occur among the labels.
    - `fewest`: how many samples it needs.
    """

    keeps_order: ClassVar[bool] = False
    contains_identity: ClassVar[bool] = False
    needs_every_class: ClassVar[bool] = False
    fewest: ClassVar[int] = 3

    report_: FitReport

    def fit(
        self: Kind,
        logits: Numbers,
        labels: Numbers,
        *,
        weights: Numbers | None = None,
        class_dim: int = 1,
        ignore_index: int | None = None,
        multilabel: bool = False,
        probabilities: bool = False,
        folds: int = 5,
    ) -> Kind:
        """Learn from held-out predictions; returns the recalibrator itself.

        - `logits`: `(n, classes)`; `(n,)` for binary scores, the log-odds of class 1, judged as
          `evaluate_events` does, by the chance of 1; `(n, classes, d1, ...)` for pixels, or
          tokens with `class_dim=-1`.
        - `labels`: class indices, the shape of `logits` without its classes.
        - `weights`: how much each sample counts, the shape of `labels`; weight two is the sample
          twice.
        - `ignore_index`: positions with this label are left out.
        - `multilabel`: `logits` and `labels` are `(n, labels)`, log-odds and zeros or ones; one
          map is learnt for all labels, and `weights` are one per sample.
        - `probabilities`: `logits` are probabilities; then say so to `transform` too.
        - `folds`: how many parts of the samples `report_` judges, each by a fit to the others;
          0 skips that, and with it the time of so many fits.
        """
        given = as_tensor("logits", logits).detach()
        labels = as_tensor("labels", labels, given.device)
        if weights is not None:
            weights = as_tensor("weights", weights, given.device)
        _check_folds(folds)
        layout = (class_dim, ignore_index, multilabel)
        if not probabilities:
            predictions, form = to_predictions(given, labels, weights, *layout)
            return self._fit_to(predictions, form, folds, events=given.ndim == 1)
        scores = multilabel or given.ndim == 1
        if not scores and not -given.ndim <= class_dim < given.ndim:
            to_predictions(given, labels, weights, *layout, sure=True)  # which says so
        given, heard = only_heard(given, labels, weights, class_dim, ignore_index, scores=scores)
        smallest = smallest_told(heard, -1, scores=scores)
        parts = []
        for least in (smallest, None) if folds else (smallest,):
            told = logits_of(given, class_dim, scores=scores, smallest=least)
            parts.append(to_predictions(told, labels, weights, *layout, sure=True))
        (predictions, form), (before, _) = parts[0], parts[-1]
        form = replace(form, smallest=smallest)
        return self._fit_to(predictions, form, folds, events=given.ndim == 1, before=before)

    def fit_model(
        self: Kind,
        model: nn.Module,
        loader: Iterable[Any],
        *,
        device: torch.device | str | None = None,
        class_dim: int = 1,
        ignore_index: int | None = None,
        multilabel: bool = False,
        folds: int = 5,
    ) -> Kind:
        """Learn from what a model says of held-out batches.

        - `model`: called with the inputs, gives logits. It is in evaluation mode meanwhile, and
          as it was afterwards, also after an error.
        - `loader`: batches of `(inputs, labels)`.
        - `device`: where to run; where the model's parameters are, unless said.

        The rest is as in `fit`.
        """
        _check_folds(folds)
        predictions, form, events = predictions_of(
            model, loader, device, (class_dim, ignore_index, multilabel)
        )
        return self._fit_to(predictions, form, folds, events=events)

    @torch.no_grad()
    def _fit_to(
        self: Kind,
        predictions: Predictions,
        form: Form,
        folds: int,
        *,
        events: bool,
        before: Predictions | None = None,
    ) -> Kind:
        self._check_enough(predictions)
        before = None if before is None else counted(before)
        predictions = counted(predictions)
        self._check_enough(predictions)
        outcome = self._fit(predictions)
        self._take_form(form)
        self.to(predictions.logits.device)
        told = predictions if before is None else before
        self.report_ = judged(self, predictions, outcome, folds, events=events, before=told)
        return self

    def _check_enough(self, predictions: Predictions) -> None:
        """Enough samples, with labels that exist."""
        name, n, classes = type(self).__name__, len(predictions), predictions.classes
        if n < self.fewest:
            raise ValueError(
                f"{name} needs at least {self.fewest} samples to fit; got {n}. "
                "Hold out more of the data."
            )
        check_labels_in_range(predictions.labels, classes)
        if self.needs_every_class:
            missing = (predictions.labels.bincount(minlength=classes) == 0).nonzero()[:, 0]
            if len(missing):
                raise ValueError(
                    f"{name} needs every class among the labels; got none of class "
                    f"{int(missing[0])}, the first of {len(missing)} missing. Hold out more of "
                    "the data, or use TemperatureScaling, which needs no class in particular."
                )

    def _fit(self, predictions: Predictions) -> Outcome:
        """Learn, by `_learn`, and say how it went. No gradient is recorded meanwhile."""
        raise NotImplementedError

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        """Map rows of logits of float32 or float64; differentiable, without a look at values."""
        raise NotImplementedError

    def forward(self, logits: Tensor) -> Tensor:
        """Mapped logits of the same shape and dtype."""
        return self._fitted_form().through(self._transform, logits).to(logits.dtype)

    @overload
    def transform(self, logits: Tensor, *, probabilities: bool = False) -> Tensor: ...
    @overload
    def transform(self, logits: NDArray[Any], *, probabilities: bool = False) -> NDArray[Any]: ...
    def transform(
        self, logits: Tensor | NDArray[Any], *, probabilities: bool = False
    ) -> Tensor | NDArray[Any]:
        """Mapped logits, of the shape, dtype, device and kind that were given.

        - `probabilities`: whether probabilities were given.
        """
        if isinstance(logits, Tensor):
            return self._mapped(logits, probabilities).to(logits.dtype)
        with torch.no_grad():
            told = self._beside(logits)
            found: NDArray[Any] = self.transform(told, probabilities=probabilities).cpu().numpy()
        return found

    @overload
    def predict_proba(self, logits: Tensor, *, probabilities: bool = False) -> Tensor: ...
    @overload
    def predict_proba(
        self, logits: NDArray[Any], *, probabilities: bool = False
    ) -> NDArray[Any]: ...
    def predict_proba(
        self, logits: Tensor | NDArray[Any], *, probabilities: bool = False
    ) -> Tensor | NDArray[Any]:
        """Probabilities after the map.

        Of the shape of the logits: one per class, along the dimension that holds the classes;
        the chance of 1 where each score stands for an event of its own.

        - `probabilities`: whether probabilities were given, and not logits.
        """
        if not isinstance(logits, Tensor):
            with torch.no_grad():
                told = self._beside(logits)
                found: NDArray[Any] = (
                    self.predict_proba(told, probabilities=probabilities).cpu().numpy()
                )
            return found
        mapped = self._mapped(logits, probabilities)
        return self._fitted_form().probabilities(mapped).to(logits.dtype)

    def _mapped(self, given: Tensor, probabilities: bool) -> Tensor:
        """Logits after the map, where logits or probabilities were given."""
        form = self._fitted_form()
        logits = form.logits_of(given) if probabilities else given
        return form.through(self._transform, logits, sure=probabilities)

    def _beside(self, logits: Numbers) -> Tensor:
        """An array as a tensor where the learnt numbers are."""
        self._fitted_form()
        form: Tensor = self.get_buffer("form_")
        return as_tensor("logits", logits, form.device)

    def _repr_html_(self) -> str:
        """In a notebook: how the fit went, or what will be fitted."""
        report = getattr(self, "report_", None)
        return html.paragraph(repr(self)) if report is None else str(report._repr_html_())

    def save(self, path: str | PathLike[str]) -> None:
        """Write one safetensors file, all or nothing; `load` reads it back."""
        self._fitted_form()
        write(self, path)

    @classmethod
    def load(cls: type[Kind], path: str | PathLike[str]) -> Kind:
        """Read what `save` wrote: the same class, settings, learnt numbers and report."""
        loaded: Kind = read(cls, path)
        return loaded


def _check_folds(folds: int) -> None:
    if not isinstance(folds, int) or isinstance(folds, bool) or folds < 0 or folds == 1:
        raise ValueError(f"folds must be 0 or at least 2; got {folds!r}. Usual is 5.")
