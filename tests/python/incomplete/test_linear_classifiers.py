"""Every linear classifier of scikit-learn has discriminants that the rules can read."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils import all_estimators

from eigenfeat import MultinomialLogit
from eigenfeat.incomplete import ReliableClassifier
from eigenfeat.incomplete.discriminants import Linear, discriminants_of

pytestmark = pytest.mark.filterwarnings("ignore")  # of scikit-learn, about convergence and names


def problem(k, d=4):
    rng = np.random.default_rng(k + 10 * d)
    y = np.arange(20 * k) % k
    X = np.abs(rng.standard_normal((len(y), d)))
    X[np.arange(len(y)), y % d] += 3 + y // d
    return X, np.array(["u", "v", "w", "x"])[y]


def linear_classifiers():
    """Those of scikit-learn that have weights of columns, and MultinomialLogit, by name."""
    found = {}
    for name, make in all_estimators("classifier"):
        if not getattr(make, "_required_parameters", ()):
            model = fitted(make, 2)
            if model is not None and hasattr(model[0], "coef_"):
                found[name] = make
    found["SVC, linear"] = lambda: SVC(kernel="linear")
    found["NuSVC, linear"] = lambda: NuSVC(kernel="linear", nu=0.2)
    found["LinearSVC, joint"] = lambda: LinearSVC(multi_class="crammer_singer")
    return found | {"MultinomialLogit": MultinomialLogit}


def fitted(make, k, d=4):
    X, y = problem(k, d)
    try:
        return make().fit(X, y), X
    except (IndexError, TypeError, ValueError):
        return None  # such as a meta-estimator, which needs another


def test_discriminants_are_read():
    makers = linear_classifiers()
    assert len(makers) >= 10
    for name, make in makers.items():
        for k, d in ((2, 1), (2, 5), (3, 2), (4, 5)):
            model, X = fitted(make, k, d)
            if hasattr(model, "dual_coef_") and k > 2:  # one for each pair, which vote
                with pytest.raises(ValueError, match=r"^classifier: expected one with linear or q"):
                    discriminants_of(model, X)
                continue
            found = discriminants_of(model, X)
            assert isinstance(found, Linear), name
            assert found.slopes.shape == (k, d), name
            predicted = model.classes_[found.scores(X).argmax(axis=1)]
            assert np.mean(predicted == model.predict(X)) > 0.98, name  # ties


@pytest.mark.parametrize("d", [1, 2, 5])
def test_ridge_of_two_classes_without_an_intercept(d):
    from sklearn.linear_model import RidgeClassifier

    X, y = problem(2, d)
    for options in ({}, {"fit_intercept": False}):
        model = ReliableClassifier(RidgeClassifier(**options), rule="pairwise").fit(X, y)
        assert set(model.predict(X)) <= {"u", "v"}
