"""Predictions and scores of samples and labels in plain arrays."""

import numpy as np
import pytest

from eigenfeat import TableClassifier
from eigenfeat.rayleigh import FisherLDA

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 5)), np.arange(60) % 3


def test_squares_that_overflow_leave_samples_valid():
    model = FisherLDA().fit(X, Y)
    huge = 1e160 * X
    np.testing.assert_array_equal(
        model.decision_function(huge), model.decision_function(huge.tolist())
    )


@pytest.mark.parametrize("model", [FisherLDA(), TableClassifier(["columns", "gem"])])
def test_scores_of_labels_in_arrays_of_objects(model):
    for labels in (Y == 1, Y, Y.astype(str)):
        model.fit(X, labels.astype(object))
        assert model.score(X, labels.astype(object)) == model.score(X, labels)
