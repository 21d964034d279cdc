"""ECTS against sets of plain Python, and FixedTime against refitted models."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from bench.papers.baselines.early import ECTS, FixedTime
from eigenfeat.early.series import fold_masks

# ---- ECTS, by its definitions --------------------------------------------------------------------


def neighbours(X, i, length, others):
    """The nearest of the others by the first samples; several where equally near."""
    distance = {}
    for j in others:
        distance[j] = 0.0
        for t in range(length):
            distance[j] += (X[i, t] - X[j, t]) ** 2
    least = min(distance.values())
    return {j for j in others if distance[j] == least}


def plain_clusters(X, y):
    """Sets of one class that merging the nearest two clusters, again and again, goes through."""
    d = X.shape[1]
    gap = [
        [sum((X[i, t] - X[j, t]) ** 2 for t in range(d)) for j in range(len(X))]
        for i in range(len(X))
    ]
    clusters = [frozenset([i]) for i in range(len(X))]
    pure = set(clusters)
    while len(clusters) > 1:
        pairs = [(a, b) for k, a in enumerate(clusters) for b in clusters[k + 1 :]]
        a, b = min(pairs, key=lambda pair: min(gap[i][j] for i in pair[0] for j in pair[1]))
        clusters = [c for c in clusters if c not in (a, b)] + [a | b]
        if len({y[i] for i in a | b}) == 1:
            pure.add(a | b)
    return pure


def plain_lengths(X, y, support):
    n, d = X.shape
    found = [
        [neighbours(X, i, length, [j for j in range(n) if j != i]) for i in range(n)]
        for length in range(d + 1)
    ]

    def reverse(S, length):
        return {i for i in set(range(n)) - S if found[length][i] & S}

    def holds(S, length):
        if len(S) > 1 and any(not found[length][i] <= S for i in S):
            return False
        if len(S) == 1 and not reverse(S, d):
            return False
        return reverse(S, length) == reverse(S, d)

    lengths = [d] * n
    for S in plain_clusters(X, y):
        size = sum(label == y[min(S)] for label in y)
        if len(S) > 1 and len(S) < support * size:
            continue
        k = d
        while k > 1 and all(holds(S, length) for length in (k, k - 1)):
            k -= 1
        for i in S:
            lengths[i] = min(lengths[i], k)
    return lengths


def plain_early(X, y, lengths, x):
    rows = np.vstack([X, x])
    for length in range(1, X.shape[1] + 1):
        near = neighbours(rows, len(X), length, range(len(X)))
        votes = [y[j] for j in near if lengths[j] <= length]
        if votes:
            return max(sorted(set(votes)), key=votes.count), length
    raise AssertionError("the nearest neighbour at the end may always predict")


def series(rng, n, d, whole, spread=2.0):
    """Two or three classes that part on the way; `whole` rounds, which makes ties."""
    y = rng.integers(0, 3, n)
    X = rng.standard_normal((n, d)).cumsum(axis=1)
    X += spread * y[:, None] * np.linspace(0, 1, d)
    return (np.round(X) if whole else X), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize(
    ("n", "d", "support"), [(2, 3, 0.0), (9, 1, 0.3), (14, 6, 1.0), (25, 10, 0.0), (20, 8, 0.3)]
)
def test_lengths_and_decisions_are_the_definitions(rng, n, d, support):
    for whole in (False, True):
        X, y = series(rng, n, d, False)
        # Ties at short lengths, none between clusters: their hierarchy would not be unique.
        X[:, : d // 2] = np.round(X[:, : d // 2]) if whole else X[:, : d // 2]
        model = ECTS(support).fit(X, y)
        expected = plain_lengths(X / 2.0**4, y, support)
        assert_array_equal(model.lengths_, expected)
        rows, _ = series(rng, 12, d, False)
        rows[:, : d // 2] = np.round(rows[:, : d // 2]) if whole else rows[:, : d // 2]
        early = model.predict_early(rows)
        for x, label, time in zip(rows, early.label, early.time, strict=True):
            assert (label, time) == plain_early(X, y, expected, x)
        last = [plain_early(X, y, [d] * n, x)[0] for x in rows]
        assert_array_equal(model.predict(rows), last)


def test_equal_rows_and_blocks(rng, monkeypatch):
    X = np.zeros((6, 4))
    model = ECTS().fit(X, ["a", "a", "a", "a", "b", "b"])
    assert_array_equal(model.lengths_, 4 - 3 * np.ones(6, dtype=int))  # nothing ever changes
    assert_array_equal(model.predict_early(X[:2]).label, ["a", "a"])
    X, y = series(rng, 30, 8, True)
    early = ECTS().fit(X, y).predict_early(X)
    monkeypatch.setattr("bench.papers.baselines.early.BLOCK_NUMBERS", 1)
    one_by_one = ECTS().fit(X, y).predict_early(X)
    assert_array_equal(one_by_one.time, early.time)
    assert_array_equal(one_by_one.label, early.label)


def test_real_series(shared_data):
    data = shared_data("ucr/SyntheticControl.npz")
    model = ECTS().fit(data["X_train"], data["y_train"])
    complete = model.predict(data["X_test"])
    assert np.mean(complete == data["y_test"]) == 0.88  # the archive's figure for 1-NN
    early = model.predict_early(data["X_test"])
    assert np.mean(early.label == complete) > 0.9
    assert early.time.mean() < 60


# ---- one time for all ----------------------------------------------------------------------------


def test_a_given_time_is_a_classifier_of_prefixes(rng):
    X, y = series(rng, 80, 12, False)
    rows, _ = series(rng, 30, 12, False)
    for classifier in (None, LinearDiscriminantAnalysis()):
        model = FixedTime(classifier, 5).fit(X, y)
        plain = KNeighborsClassifier(1) if classifier is None else classifier
        early = model.predict_early(rows)
        assert_array_equal(early.label, plain.fit(X[:, :5], y).predict(rows[:, :5]))
        assert_array_equal(early.time, np.full(30, 5))
        assert_array_equal(model.predict(rows), plain.fit(X, y).predict(rows))


def test_the_time_is_the_earliest_that_does_as_well(rng):
    y = np.repeat([0, 1], 20)
    X = 0.3 * rng.standard_normal((40, 20))
    X[:, 12:] += 3 * y[:, None]
    model = FixedTime().fit(X, y)
    assert list(model.cv_accuracies_) == list(range(1, 21))
    assert model.time_ == 13
    right = 0
    for fold in fold_masks(y, 5):
        one = KNeighborsClassifier(1).fit(X[~fold, :13], y[~fold])
        right += np.sum(one.predict(X[fold, :13]) == y[fold])
    assert model.cv_accuracies_[13] == right / 40 == max(model.cv_accuracies_.values())
