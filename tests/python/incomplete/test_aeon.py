"""Early classifiers behind aeon's interface, by aeon's own checks where it is installed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("aeon", reason="aeon is not installed (extra aeon)")

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.incomplete import ECTS, MinimumCostClassifier, ReliableClassifier, early_scores
from eigenfeat.incomplete.aeon import AeonEarlyClassifier


@pytest.mark.parametrize("estimator", [AeonEarlyClassifier(), AeonEarlyClassifier(ECTS())])
def test_aeon_contract(estimator):
    from aeon.testing.estimator_checking import check_estimator
    from aeon.testing.testing_config import EXCLUDED_TESTS

    # As for aeon's own: `predict` stores what `update_predict` goes on from.
    EXCLUDED_TESTS["AeonEarlyClassifier"] = ["check_non_state_changing_method"]
    found = check_estimator(estimator, raise_exceptions=True)
    assert sum(result == "PASSED" for result in found.values()) > 15


@pytest.mark.parametrize(
    "estimator",
    [
        ReliableClassifier(LinearDiscriminantAnalysis(), reliability=0.8, correct=False),
        ECTS(),
        MinimumCostClassifier(n_times=5),
    ],
)
def test_updates_decide_as_complete_series_do(estimator, rng):
    y = np.repeat(["up", "down"], 30)
    X = np.outer(np.where(y == "up", 1.0, -1.0), np.arange(12)) / 4
    X = (X + rng.standard_normal(X.shape))[:, None]
    model = AeonEarlyClassifier(estimator).fit(X[::2], y[::2])
    fresh, truth = X[1::2], y[1::2]
    whole = model.estimator_.predict_early(fresh[:, 0])
    left = np.arange(len(fresh))
    for t in (3, 4, 7, 12):
        if not len(left):  # aeon takes no empty collections
            break
        part = fresh[left, :, :t]
        labels, decided = model.predict(part) if t == 3 else model.update_predict(part)
        assert_array_equal(decided, whole.time[left] <= t)
        assert_array_equal(labels[decided], whole.label[left[decided]])
        assert set(labels[~decided]) <= {"-1"}
        left = left[~decided]
    assert not len(left)
    scores = early_scores(whole, 12, y=truth)
    assert_allclose(
        model.score(fresh, truth), (scores.harmonic_mean, scores.accuracy, scores.earliness)
    )
    proba, decided = model.predict_proba(fresh[:, :, :3])
    assert_array_equal(proba[~decided], -1)
    assert_allclose(proba[decided].sum(axis=1), 1)
    with pytest.raises(ValueError, match="X: expected the"):
        model.update_predict(fresh[:, :, :3])
    with pytest.raises(ValueError, match="X: expected at most 12 samples"):
        model.predict(np.concatenate([fresh, fresh], axis=2))
