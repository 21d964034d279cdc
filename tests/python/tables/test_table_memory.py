"""Peaks of the memory that fits to tables take, relative to the samples."""

import tracemalloc

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from eigenfeat import TableClassifier
from eigenfeat.tables.representations import TableStatistics
from eigenfeat.tables.trees import grow


def peak_of(function):
    """Peak of the memory that a call takes beyond what is in use before, in bytes."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_statistics_of_columns_take_one_copy_of_the_samples():
    X = np.random.default_rng(0).standard_normal((50_000, 40))
    assert peak_of(lambda: TableStatistics.fit(X, None)) < 1.3 * X.nbytes


def test_boosting_takes_one_copy_of_its_features_beside_that_of_scikit_learn():
    # Beyond 200,000 samples, scikit-learn copies the samples that it draws for its bins.
    X = np.random.default_rng(0).standard_normal((250_000, 20)).astype(np.float32, order="F")
    y, required = (X[:, 0] > 0).astype(int), np.ones(20, dtype=bool)
    boosting = HistGradientBoostingClassifier(max_iter=1, early_stopping=False)
    assert peak_of(lambda: grow(boosting, X, y, None, required, 1)) < 5.0 * X.nbytes


def test_pairs_of_columns_are_counted_in_pieces_of_the_samples():
    X = np.random.default_rng(0).standard_normal((200_000, 20))
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    model = TableClassifier(["columns", "interactions"], n_threads=1)
    assert peak_of(lambda: model.fit(X, y)) < 5.0 * X.nbytes
