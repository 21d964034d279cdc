"""Classes by their nearest rows, against plain loops, and in reliable classifiers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from eigenfeat.incomplete import ClassNearest, ReliableClassifier


@parametrize_with_checks([ClassNearest(), ClassNearest(3, n_threads=1)])
def test_estimator_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("k", [1, 3, 20])
def test_mean_squared_distances_to_the_nearest_of_each_class(k, rng):
    X, fresh = rng.standard_normal((60, 4)), rng.standard_normal((50, 4))
    y = np.where(np.arange(60) < 12, "few", np.where(X[:, 0] > 0, "a", "b"))
    model = ClassNearest(k).fit(X, y)
    for row, label in zip(fresh, model.predict(fresh), strict=True):
        means = {}
        for g in model.classes_:
            squares = np.sort(((X[y == g] - row) ** 2).sum(axis=1))
            means[g] = squares[:k].mean()
        assert label == min(means, key=means.get)
    if k == 1:
        assert_array_equal(model.predict(fresh), KNeighborsClassifier(1).fit(X, y).predict(fresh))


def test_the_shortcut_decides_no_later_than_the_conservative_way(rng):
    y = np.arange(80) % 2
    X = rng.standard_normal((80, 12)).cumsum(axis=1) + 2.5 * y[:, None] * np.arange(12) / 4
    fresh = rng.standard_normal((200, 12)).cumsum(axis=1)
    options = {"rule": "quadratic", "correct": False}
    careful = ReliableClassifier(KNeighborsClassifier(1), **options).fit(X, y)
    short = ReliableClassifier(ClassNearest(), **options).fit(X, y)
    slow, fast = careful.predict_early(fresh, 0.9), short.predict_early(fresh, 0.9)
    assert_array_equal(short.predict(fresh), careful.predict(fresh))
    assert np.all(fast.time <= slow.time)
    assert fast.time.mean() < slow.time.mean()
    assert np.mean(slow.label == careful.predict(fresh)) >= 0.9
    assert ReliableClassifier(ClassNearest(3), correct=False).fit(X, y).rule_ == "sampled"
