"""Finite floats of a plain array need no check before a prediction; all others are checked."""

import numpy as np
import pytest

from eigenfeat import TableClassifier
from eigenfeat.rayleigh import FisherLDA

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 5)), np.arange(60) % 3


@pytest.fixture(scope="module", params=[FisherLDA(), TableClassifier("gem"), TableClassifier()])
def model(request):
    return request.param.fit(X, Y)


def test_squares_that_overflow_leave_samples_valid():
    model = FisherLDA().fit(X, Y)
    huge = 1e160 * X
    np.testing.assert_array_equal(
        model.decision_function(huge), model.decision_function(huge.tolist())
    )


@pytest.mark.parametrize("make", [FisherLDA, TableClassifier])
def test_scores_of_labels_in_arrays_of_objects(make):
    for labels in (Y == 1, Y, Y.astype(str)):
        model = make().fit(X, labels.astype(object))
        assert model.score(X, labels.astype(object)) == model.score(X, labels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[:, :4], "4 features"),
        (lambda X: np.where(X > 1, np.inf, X), "infinity"),
        (lambda X: np.where(X > 1, np.nan, X), "NaN"),
        (lambda X: X[0], "1D array"),
        (lambda X: X[:0], "0 sample"),
    ],
)
def test_others_are_refused_as_ever(change, message, model):
    with pytest.raises(ValueError, match=message):
        model.predict_proba(change(X))
