"""An array gives the same results whether it is in memory or mapped from a file, read-only."""

import numpy as np
import pytest
from block_support import mapped
from every_estimator import ESTIMATORS, Y, good_rows, outputs, seeded
from sklearn.ensemble import VotingClassifier

from eigenfeat import TableClassifier


def read_only(y):
    y = y.copy()
    y.flags.writeable = False
    return y


def view_of_file(path, X):
    """Every second row of a file, without its last column."""
    wide = np.concatenate([X, 0 * X[:, :1]], axis=1)
    return mapped(path, np.repeat(wide, 2, axis=0))[::2, :-1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator(name, tmp_path):
    X = good_rows(name)
    estimator, more = seeded(name)
    expected = outputs(estimator.fit(X, Y, **more), X)
    for form in (mapped, view_of_file):
        same, labels = form(tmp_path / f"{form.__name__}.npy", X), read_only(Y)
        found = outputs(seeded(name)[0].fit(same, labels, **more), same)
        for method, values in expected.items():
            np.testing.assert_array_equal(found[method], values)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_workers_of_joblib(class_weight):
    """joblib hands workers arrays beyond a megabyte as memory maps."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 60))
    y = (np.abs(X[:, 0]) > 1) ^ (X[:, 1] > 0)
    model = TableClassifier(["columns", "splines"], class_weight=class_weight, n_threads=1)
    one, two = (
        VotingClassifier([("model", model)], voting="soft", n_jobs=n).fit(X, y) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.predict_proba(X[:100]), two.predict_proba(X[:100]))
