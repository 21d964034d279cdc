"""Results of searches: scikit-learn's columns, and scores of which the largest is best."""

import numpy as np
import pytest
from every_estimator import X, Y
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import eigenfeat as ef
from eigenfeat.samples.splits import cv_results

GRID = {"logit__penalty": [0.05, 1.0, 20.0]}
SEARCHES = {
    "GEMClassifierCV": lambda: ef.GEMClassifierCV(grid=GRID, cv=3),
    "GEMClassifierCV, log loss": lambda: ef.GEMClassifierCV(grid=GRID, cv=3, scoring="log_loss"),
    "MaxMarginShift": lambda: ef.MaxMarginShift(PCA(2), scales=[0.0, 0.5, 1.0], cv=3),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_columns_are_those_of_a_grid_search(name):
    search = SEARCHES[name]().fit(X, Y)
    theirs = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3).fit(X, Y)
    found = search.cv_results_
    wanted = {key for key in theirs.cv_results_ if not key.startswith(("mean_", "std_", "param_"))}
    assert wanted <= found.keys()
    n = len(found["params"])
    assert all(len(column) == n for column in found.values())
    scores = np.column_stack([found[f"split{s}_test_score"] for s in range(3)])
    assert np.allclose(found["mean_test_score"], scores.mean(axis=1), rtol=1e-12)  # equal folds
    assert np.allclose(found["std_test_score"], scores.std(axis=1))
    assert search.best_score_ == found["mean_test_score"][search.best_index_]
    if name != "MaxMarginShift":  # MaxMarginShift prefers scale 0 unless a gain is significant
        assert search.best_score_ == found["mean_test_score"].max()
        assert found["rank_test_score"][search.best_index_] == 1
        assert search.best_params_ == found["params"][search.best_index_]
    for place, params in enumerate(found["params"]):
        for key, value in params.items():
            assert found[f"param_{key}"][place] == value


def test_failed_candidates_come_last_and_missing_parameters_are_none():
    found = cv_results([{"a": 1}, {"b": None}, {"a": 2}], np.array([[1, 2], [np.nan, 1], [2, 3.0]]))
    assert found["rank_test_score"].tolist() == [2, 3, 1]
    assert found["param_a"] == [1, None, 2]
