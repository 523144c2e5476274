"""Recalibration of any scikit-learn classifier, fitted on predictions it was not trained on."""

from typing import Any

import numpy as np

from ..recalibration import BestOf, Recalibrator

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.model_selection import check_cv
    from sklearn.utils import _safe_indexing, indexable
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        _check_sample_weight,
        _num_samples,
        check_is_fitted,
        column_or_1d,
        has_fit_parameter,
    )
except ImportError as missing:
    raise ImportError(
        "the scikit-learn adapter needs scikit-learn: pip install 'calibrant[sklearn]'"
    ) from missing


# Types are left open, as scikit-learn's own are: its checks pass wrong ones on purpose.
class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier, and a recalibrator fitted on what the classifier says of unseen samples.

    The samples are dealt into folds; each fold is predicted by a clone of the classifier fitted
    to the others, and the recalibrator is fitted to those predictions. The classifier is then
    fitted to all samples, so nothing is lost.

    - `estimator`: any classifier with `predict_proba` or `decision_function`. One that is fitted
      already is wrapped in scikit-learn's `FrozenEstimator`, and `fit` given held-out samples.
    - `recalibrator`: a recalibrator, such as `TemperatureScaling()`; `BestOf()` if not given,
      which changes nothing where nothing helps.
    - `cv`: number of folds, or any splitter of scikit-learn.

    After `fit`: `estimator_`, `recalibrator_` (whose `report_` is not judged on folds of its own)
    and `classes_`.

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrant.recalibration import TemperatureScaling
    >>> X, y = make_classification(2_000, n_redundant=10, random_state=0)
    >>> bayes = RecalibratedClassifier(GaussianNB(), TemperatureScaling()).fit(X, y)
    >>> round(float(bayes.recalibrator_.temperature_), 1)
    6.6
    """

    def __init__(self, estimator: Any, recalibrator: Any = None, *, cv: Any = 5) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> "RecalibratedClassifier":
        """Fit the recalibrator on folds, then the classifier on everything.

        `groups` says which samples belong together, for a `cv` that keeps them so, such as
        `GroupKFold`.
        """
        if not (self.recalibrator is None or isinstance(self.recalibrator, Recalibrator)):
            raise TypeError(
                "recalibrator must be one that is made, such as TemperatureScaling(), or None; got "
                f"{self.recalibrator!r}. For a name pass RECALIBRATORS[name]()."
            )
        check_classification_targets(y)
        X, y, groups = indexable(X, column_or_1d(y, warn=True), groups)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least two classes to learn a classifier; got {len(self.classes_)} "
                f"class in {len(labels)} samples."
            )
        said = self._unseen(X, y, labels, sample_weight, groups)
        self.estimator_ = self._fitted(X, y, sample_weight)
        recalibrator = BestOf() if self.recalibrator is None else clone(self.recalibrator)
        self.recalibrator_ = recalibrator.fit(
            said, labels, weights=sample_weight, folds=0, **_kind(self.estimator_)
        )
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _unseen(self, X: Any, y: Any, labels: Any, weight: Any, groups: Any) -> Any:
        """What a classifier that was not fitted to it says of every sample."""
        folds = check_cv(self.cv, y, classifier=True)
        said = np.full((_num_samples(X), len(self.classes_)), np.nan)
        for seen, held in folds.split(X, y, groups):
            missing = sorted(set(range(len(self.classes_))) - set(labels[seen].tolist()))
            if missing:
                raise ValueError(
                    "every class must be among the samples of every fit; got a fold without "
                    f"{self.classes_[missing[0]]!r}. Give cv fewer folds, or stratify them."
                )
            own_weight = None if weight is None else weight[seen]
            fitted = self._fitted(_safe_indexing(X, seen), _safe_indexing(y, seen), own_weight)
            said[held] = _said(fitted, _safe_indexing(X, held))
        if np.isnan(said).any():
            raise ValueError(
                "cv must hold every sample out once; got a splitter that leaves some out. "
                "Use KFold or StratifiedKFold."
            )
        return said

    def _fitted(self, X: Any, y: Any, weight: Any) -> Any:
        estimator = clone(self.estimator)
        weighted = weight is not None and has_fit_parameter(estimator, "sample_weight")
        fitted = estimator.fit(X, y, **({"sample_weight": weight} if weighted else {}))
        known = getattr(fitted, "classes_", self.classes_)
        if not np.array_equal(known, self.classes_):  # one that is frozen knows its own
            raise ValueError(
                f"y must hold the classes that the estimator knows, {list(map(str, known))}; got "
                f"{list(map(str, self.classes_))}. Pass samples of each of them and of no other."
            )
        return fitted

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities, one column per class of `classes_`."""
        check_is_fitted(self)
        said = _said(self.estimator_, X)
        return self.recalibrator_.predict_proba(said, **_kind(self.estimator_))

    def predict(self, X: Any) -> Any:
        """The most probable class of each sample."""
        check_is_fitted(self)
        said = _said(self.estimator_, X)
        logits = self.recalibrator_.transform(said, **_kind(self.estimator_))
        return self.classes_[logits.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            tags.input_tags = inner().input_tags
        return tags


def _kind(estimator: Any) -> dict[str, bool]:
    """Whether a classifier says probabilities, as a recalibrator is told of it."""
    return {"probabilities": hasattr(estimator, "predict_proba")}


def _said(estimator: Any, X: Any) -> Any:
    """Rows of probabilities or of scores, two columns also where a classifier gives one score."""
    if hasattr(estimator, "predict_proba"):
        chances = np.asarray(estimator.predict_proba(X), dtype=float)
        return chances / chances.sum(axis=1, keepdims=True)
    if not hasattr(estimator, "decision_function"):
        raise TypeError(
            "estimator must be a classifier with predict_proba or decision_function; got "
            f"{type(estimator).__name__}."
        )
    scores = np.asarray(estimator.decision_function(X), dtype=float)
    if scores.ndim == 1:
        return np.stack([np.zeros_like(scores), scores], axis=1)
    if scores.shape[1] != len(estimator.classes_) or _of_pairs(estimator):
        raise ValueError(
            f"decision_function must give a score for each of {len(estimator.classes_)} classes; "
            f"got {scores.shape[1]} scores of pairs. Make it with decision_function_shape='ovr'."
        )
    return scores


def _of_pairs(estimator: Any) -> bool:
    """Whether its scores are of pairs of classes, of which three classes have three as well."""
    settings = estimator.get_params() if hasattr(estimator, "get_params") else {}
    return any(
        name.endswith("decision_function_shape") and chosen == "ovo"
        for name, chosen in settings.items()
    )
