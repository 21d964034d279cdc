"""Ridges and thresholds from numbers of rows, with which noise gives no directions."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from eigenfeat import GEM, ClassMoments
from eigenfeat.pencils import pair_directions
from eigenfeat.pencils.sampling_noise import auto_ridge, noise_edge

CASES = [  # columns, rows of the denominator and of the numerator, decay of deviations, ridge
    (30, 300, 1000, 0.0, 0.2),
    (30, 1000, 300, 0.0, 0.05),
    (200, 400, 50, 0.5, 0.1),
    (200, 100, 100, 1.0, 0.2),
    (20, 60, 60, 0.0, 0.01),
    (20, 2000, 2000, 0.0, 0.2),
]


def spectrum_of(rows):
    return np.maximum(np.linalg.eigvalsh(rows.T @ rows / len(rows)), 0.0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_edges_bound_the_eigenvalues_of_noise(rng, case):
    d, below, above, decay, ridge = case
    s = np.arange(1, d + 1.0) ** -decay
    edges, largest = [], []
    for _ in range(5):
        upper, lower = (rng.standard_normal((n, d)) * s for n in (above, below))
        B = lower.T @ lower / below
        shift = ridge * np.trace(B) / d
        top = (d - 1, d - 1)
        A = upper.T @ upper / above
        largest += scipy.linalg.eigh(
            A, B + shift * np.eye(d), eigvals_only=True, subset_by_index=top
        ).tolist()
        edges.append(noise_edge(spectrum_of(lower), shift, below, above))
    assert_allclose(np.mean(edges), np.mean(largest), rtol=0.3)


def test_edges_shrink_with_rows_and_ridge(rng):
    spectrum = spectrum_of(rng.standard_normal((80, 20)))
    edges = [noise_edge(spectrum, 0.2, n, n) for n in (30, 80, 300, 3000, 1e8)]
    assert np.all(np.diff(edges) < 0)
    assert edges[-1] == pytest.approx(1.0, abs=1e-2)
    assert np.all(np.diff([noise_edge(spectrum, r, 40, 40) for r in (0.01, 0.1, 1.0)]) < 0)
    assert noise_edge(np.zeros(3), 0.0, 5, 5) == np.inf
    assert noise_edge(np.zeros(3), 1.0, 5, 5) == 1.0


@pytest.mark.parametrize("options", [{}, {"denominator": "covariance"}, {"constant": False}])
def test_classes_of_one_distribution_give_next_to_no_directions(options):
    rng = np.random.default_rng(5)
    mixing = rng.standard_normal((40, 40)) * np.arange(1, 41.0) ** -0.5
    X = rng.standard_normal((900, 40)) @ mixing
    y = np.arange(900) % 3
    every = GEM(ridge=0.2, threshold=1.0, **options).fit(X, y)
    kept = GEM(ridge=0.2, threshold="auto", **options).fit(X, y)
    assert len(every.ranks_) > 40
    assert len(kept.ranks_) <= 4
    assert kept.transform(X).shape == (900, 6 * len(kept.ranks_))


def test_each_class_has_a_ridge_of_its_own():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 100, 4000])
    X = rng.standard_normal((len(y), 20)) * (1 + y[:, None])
    moments = ClassMoments().update(X, y)
    auto = pair_directions(moments, ridge="auto")
    for below in range(3):
        ridge = auto_ridge(np.linalg.eigvalsh(moments.second_moment(below)), moments.weight(below))
        pairs = [(c, below) for c in range(3) if c != below]
        given = pair_directions(moments, pairs=pairs, ridge=ridge)
        same = auto.pairs[:, 1] == below
        assert_array_equal(auto.eigenvalues[same], given.eigenvalues)
        assert_array_equal(auto.vectors[:, same], given.vectors)


def test_pairs_of_groups_have_directions_above_the_noise():
    X, y = load_digits(return_X_y=True)
    moments = ClassMoments().update(X, y)
    for pairs in ("one_vs_rest", "class_tree"):
        found = pair_directions(moments, pairs=pairs, ridge="auto", threshold="auto")
        assert len(found.ranks) > 50
        assert (found.eigenvalues > 1).all()
