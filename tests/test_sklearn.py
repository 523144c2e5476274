"""Recalibration of scikit-learn's classifiers."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from scipy import sparse  # type: ignore[import-untyped]
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibrant.integrations.sklearn import RecalibratedClassifier
from calibrant.recalibration import RECALIBRATORS, TemperatureScaling


def samples(classes: int = 3) -> Any:
    return make_classification(
        1_200, n_informative=6, n_redundant=10, n_classes=classes, random_state=0
    )


@pytest.mark.filterwarnings("ignore")  # the checks warn of their own input
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [RecalibratedClassifier(LogisticRegression(), cv=3)]
)
def test_obeys_the_conventions_of_scikit_learn(
    estimator: Any, check: Callable[[Any], None]
) -> None:
    check(estimator)


def test_recalibrator_is_fitted_to_predictions_of_unseen_samples() -> None:
    X, y = samples()
    model = RecalibratedClassifier(GaussianNB(), TemperatureScaling()).fit(X, y)
    unseen = cross_val_predict(GaussianNB(), X, y, cv=5, method="predict_proba")
    expected = TemperatureScaling().fit(unseen, y, probabilities=True, folds=0)
    found = model.recalibrator_.get_buffer("temperature_").item()
    assert found == pytest.approx(expected.temperature_.item())
    assert model.recalibrator_.report_ == expected.report_
    whole = GaussianNB().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(
        model.predict_proba(X), expected.predict_proba(whole, probabilities=True)
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", [GaussianNB(), LinearSVC()], ids=repr)
def test_helps_classifiers_with_and_without_probabilities(estimator: Any, classes: int) -> None:
    X, y = samples(classes)
    names = np.array(["ant", "bee", "cat"])[y]
    model = RecalibratedClassifier(estimator, TemperatureScaling(), cv=3)
    model.fit(X[:800], names[:800])
    chances = model.predict_proba(X[800:])
    assert chances.shape == (400, classes)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert list(model.classes_) == sorted(set(names))
    plain = clone(estimator).fit(X[:800], names[:800])
    np.testing.assert_array_equal(model.predict(X[800:]), plain.predict(X[800:]))
    if hasattr(plain, "predict_proba"):
        assert log_loss(names[800:], chances) < log_loss(names[800:], plain.predict_proba(X[800:]))
    else:
        assert log_loss(names[800:], chances) < np.log(classes)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "method", ["temperature", "vector", "dirichlet", "platt", "beta", "scaling_binning"]
)
def test_zeros_of_a_forest_do_not_ruin_a_map(method: str, classes: int) -> None:
    X, y = samples(classes)
    forest = RandomForestClassifier(10, random_state=0).fit(X[:400], y[:400])
    assert (forest.predict_proba(X[400:]) == 0).mean() > 0.05
    loss = {}
    for name in (method, "isotonic"):  # of which only the order of the chances is asked
        model = RecalibratedClassifier(FrozenEstimator(forest), RECALIBRATORS[name]())
        model.fit(X[400:800], y[400:800])
        loss[name] = log_loss(y[800:], model.predict_proba(X[800:]))
    assert loss[method] < 1.1 * loss["isotonic"]


def test_a_fitted_classifier_is_frozen_and_recalibrated_on_held_out_samples() -> None:
    X, y = samples()
    fitted = GaussianNB().fit(X[:600], y[:600])
    model = RecalibratedClassifier(FrozenEstimator(fitted), TemperatureScaling())
    model.fit(X[600:], y[600:])
    said = fitted.predict_proba(X[600:])
    expected = TemperatureScaling().fit(said, y[600:], probabilities=True)
    found = model.recalibrator_.get_buffer("temperature_").item()
    assert found == pytest.approx(expected.temperature_.item())


def test_a_frozen_classifier_must_know_the_classes_of_the_held_out_samples() -> None:
    X, y = samples()
    names = np.array(["ant", "bee", "cat"])[y]
    fitted = FrozenEstimator(GaussianNB().fit(X[y < 2], names[y < 2]))
    for others in (y != 1, y < 3):  # as many classes, of which one is another; and one more
        with pytest.raises(ValueError, match=r"estimator knows, \['ant', 'bee'\]; got .*'cat'\]"):
            RecalibratedClassifier(fitted, TemperatureScaling()).fit(X[others], names[others])


@pytest.mark.parametrize("kind", ["list", "str", "category", "sparse"])
def test_samples_and_labels_of_any_kind_give_the_same(kind: str) -> None:
    X, y = samples()
    names = np.array(["ant", "bee", "cat"])[y]
    index = np.arange(len(y))[::-1]  # of which nothing may depend
    given: dict[str, Any] = {
        "list": (X.tolist(), names.tolist()),
        "str": (pd.DataFrame(X, index=index), pd.Series(names, index=index)),
        "category": (pd.DataFrame(X), pd.Series(names, dtype="category")),
        "sparse": (sparse.csr_array(X), names),
    }
    model = RecalibratedClassifier(LogisticRegression(max_iter=1_000), TemperatureScaling(), cv=3)
    expected = clone(model).fit(X, names).predict_proba(X[:9])
    fitted = pickle.loads(pickle.dumps(model.fit(*given[kind])))
    np.testing.assert_allclose(fitted.predict_proba(given[kind][0][:9]), expected, rtol=1e-4)
    assert list(fitted.classes_) == ["ant", "bee", "cat"]


def test_weights_reach_the_classifier_and_the_recalibrator() -> None:
    X, y = samples(2)
    weight = np.where(np.arange(len(y)) % 2, 1.0, 0.0)
    zeroed = RecalibratedClassifier(GaussianNB(), TemperatureScaling()).fit(X, y, weight)
    plain = RecalibratedClassifier(GaussianNB(), TemperatureScaling()).fit(X, y)
    assert zeroed.recalibrator_.report_.n == 600
    assert not np.allclose(zeroed.estimator_.theta_, plain.estimator_.theta_)


def test_fits_into_pipelines_and_searches() -> None:
    X, y = samples(2)
    model = make_pipeline(StandardScaler(), RecalibratedClassifier(GaussianNB(), cv=3))
    step = "recalibratedclassifier"
    grid = {f"{step}__recalibrator": [None, TemperatureScaling()]}
    search = GridSearchCV(model, grid, cv=2, scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.best_score_)
    inner = RecalibratedClassifier(GaussianNB(), TemperatureScaling())
    inner.set_params(recalibrator__objective="sb_ece", estimator__var_smoothing=1e-3)
    assert inner.recalibrator.objective == "sb_ece"


def test_samples_of_one_group_stay_together() -> None:
    X, y = samples()
    groups = np.arange(len(y)) // 40
    model = RecalibratedClassifier(GaussianNB(), TemperatureScaling(), cv=GroupKFold(3))
    unseen = cross_val_predict(
        GaussianNB(), X, y, groups=groups, cv=GroupKFold(3), method="predict_proba"
    )
    expected = TemperatureScaling().fit(unseen, y, probabilities=True, folds=0)
    found = model.fit(X, y, groups=groups).recalibrator_.get_buffer("temperature_").item()
    assert found == pytest.approx(expected.temperature_.item())


@pytest.mark.parametrize("classes", [3, 4])
def test_scores_of_pairs_of_classes_are_refused(classes: int) -> None:
    X, y = samples(classes)
    pairs = make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo"))
    with pytest.raises(ValueError, match=r"scores of pairs.*decision_function_shape='ovr'"):
        RecalibratedClassifier(pairs, TemperatureScaling(), cv=2).fit(X, y)


def test_what_is_no_classifier_is_refused() -> None:
    X, y = samples(2)
    with pytest.raises(
        TypeError, match=r"classifier with predict_proba or decision.*got LinearReg"
    ):
        RecalibratedClassifier(LinearRegression(), TemperatureScaling()).fit(X, y)


@pytest.mark.parametrize("strange", ["temperature", TemperatureScaling, GaussianNB()])
def test_what_is_no_recalibrator_is_refused(strange: Any) -> None:
    X, y = samples(2)
    with pytest.raises(TypeError, match=r"recalibrator must be one that is made.*RECALIBRATORS"):
        RecalibratedClassifier(GaussianNB(), strange).fit(X, y)


def test_folds_that_cannot_serve_are_refused() -> None:
    X, y = samples(2)
    with pytest.raises(ValueError, match="cv must hold every sample out once"):
        RecalibratedClassifier(GaussianNB(), cv=TimeSeriesSplit(3)).fit(X, y)
    with pytest.raises(ValueError, match=r"at least two classes.*got 1 class in 20 samples"):
        RecalibratedClassifier(GaussianNB()).fit(X[:20], np.zeros(20))
    rare = np.zeros(30, dtype=int)
    rare[0] = 1
    with pytest.raises(ValueError, match=r"got a fold without .*1"):
        RecalibratedClassifier(GaussianNB(), cv=KFold(3)).fit(X[:30], rare)
