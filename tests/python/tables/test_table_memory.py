"""Peaks of the memory that fits to tables take, relative to the samples."""

import tracemalloc

import numpy as np
import pytest

from eigenfeat import TableClassifier, TableRegressor
from eigenfeat.tables.representations import TableStatistics


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


@pytest.mark.long
def test_boosting_takes_few_copies_of_the_samples():
    X = np.random.default_rng(0).standard_normal((60_000, 40))
    model = TableRegressor(["columns", "boosting"], n_threads=1)
    assert peak_of(lambda: model.fit(X, X[:, 0] * X[:, 1])) < 2.0 * X.nbytes


def test_boosting_of_pairs_takes_few_copies_of_the_samples():
    X = np.random.default_rng(0).standard_normal((60_000, 10))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = TableClassifier(["columns", "boosting_pairs"], n_threads=1)
    # Pairs of ten columns are 90 features, of which the trees read 16.
    assert peak_of(lambda: model.fit(X, y)) < 6.0 * X.nbytes


@pytest.mark.parametrize(
    "view",
    [
        "splines",
        pytest.param("gem_ranks", marks=pytest.mark.long),
        pytest.param("kernel", marks=pytest.mark.long),
    ],
)
def test_views_of_regressions_take_few_copies_of_the_samples(view):
    X = np.random.default_rng(0).standard_normal((120_000, 30))
    model = TableRegressor([view], n_threads=1)
    assert peak_of(lambda: model.fit(X, X[:, 0] * X[:, 1])) < 2.7 * X.nbytes


def test_pairs_of_columns_are_counted_in_pieces_of_the_samples():
    X = np.random.default_rng(0).standard_normal((200_000, 20))
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    model = TableClassifier(["columns", "interactions"], n_threads=1)
    assert peak_of(lambda: model.fit(X, y)) < 5.0 * X.nbytes


def test_columns_with_gaps_are_kept_once():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 60))
    y = X[:, 0] > 0
    X[rng.random((len(X), 60)) < 0.05 * (np.arange(60) < 10)] = np.nan
    model = TableClassifier(["columns"], n_threads=1)
    assert peak_of(lambda: model.fit(X, y)) < 4.0 * X.nbytes
