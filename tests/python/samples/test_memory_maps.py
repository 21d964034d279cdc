"""An array gives the same results wherever it is: in memory, at odd bytes, mapped from a file."""

import numpy as np
import pytest
from block_support import mapped, misaligned
from every_estimator import ESTIMATORS, Y, good_rows, outputs, seeded
from sklearn.ensemble import VotingClassifier
from sklearn.utils.validation import has_fit_parameter

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
    weight = {}
    if has_fit_parameter(estimator, "sample_weight"):
        weight["sample_weight"] = 1.0 + np.arange(len(Y)) % 4
    expected = outputs(estimator.fit(X, Y, **more, **weight), X)
    for same, labels, given in (
        (mapped(tmp_path / "rows", X), read_only(Y), weight),
        (view_of_file(tmp_path / "wide", X), read_only(Y), weight),
        (misaligned(X), misaligned(Y), {key: misaligned(one) for key, one in weight.items()}),
    ):
        found = outputs(seeded(name)[0].fit(same, labels, **more, **given), same)
        for method, values in expected.items():
            np.testing.assert_array_equal(found[method], values)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_workers_of_joblib(class_weight):
    """joblib hands workers arrays beyond a megabyte as memory maps."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1100, 120))
    y = (np.abs(X[:, 0]) > 1) ^ (X[:, 1] > 0)
    model = TableClassifier(["columns"], class_weight=class_weight, n_threads=1)
    one, two = (
        VotingClassifier([("model", model)], voting="soft", n_jobs=n).fit(X, y) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.predict_proba(X[:100]), two.predict_proba(X[:100]))
