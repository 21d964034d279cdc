"""Every public estimator passes scikit-learn's checks, but for those that a page declares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from declared_checks import DECLARED
from every_estimator import ESTIMATORS
from sklearn.decomposition import PCA
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

import eigenfeat as ef
from eigenfeat import incomplete, ldg

PAGE = Path(__file__).parents[3] / "docs" / "api" / "checks.rst"
# Configurations for rows with any number of columns.
FREE = {
    "OrientedPCA": ef.rayleigh.OrientedPCA,
    "PartitionedReducer": lambda: ldg.PartitionedReducer(ldg.LDG(1)),
    "MaxMarginShift": lambda: ef.MaxMarginShift(PCA(1), sigma2=0.5),
    "ReliableClassifier": lambda: incomplete.ReliableClassifier(GaussianNB(), correct=False),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if "," not in name])
def test_no_check_fails_that_is_not_declared(name):
    estimator = FREE.get(name, ESTIMATORS[name])()
    declared = DECLARED.get(name, {})
    found = check_estimator(estimator, expected_failed_checks=declared, on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert failed == {}
    assert {one["check_name"] for one in found if one["status"] == "xfail"} == set(declared)
    assert sum(one["status"] == "passed" for one in found) > 25


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ is not there")
def test_the_page_declares_them():
    text = " ".join(PAGE.read_text().split())
    for name, checks in DECLARED.items():
        assert f"`{name}" in text
        for reason in checks.values():
            assert reason in text, (name, reason)


def test_early_decisions_about_one_column(rng):
    X = rng.standard_normal((40, 1)) + np.repeat([0, 3], 20)[:, None]
    y = np.repeat(["a", "b"], 20)
    model = incomplete.ReliableClassifierCV(n_folds=2).fit(X, y)
    found = model.best_estimator_.predict_early(X, trace=True)
    assert found.time.tolist() == [1] * 40
    assert found.trace_label.tolist() == [[label] for label in model.predict(X)]
    assert found.trace_reliability.tolist() == [[1.0]] * 40
