"""Many problems at once: batches of bounded memory give what a single one gives."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import ClassMoments
from eigenfeat._base import validation
from eigenfeat.exceptions import SingularDenominatorError
from eigenfeat.pencils import pair_directions
from eigenfeat.pencils import pencils as _pencils
from eigenfeat.pencils.pencils import solve


def sample(rng, n=300, d=5, k=8):
    """Rows and labels; classes with means and covariances of their own."""
    y = np.arange(n) % k
    maps = rng.standard_normal((k, d, d))
    X = np.einsum("nij,nj->ni", maps[y], rng.standard_normal((n, d)))
    return X + 2 * rng.standard_normal((k, d))[y], y


@pytest.mark.parametrize("denominator", ["second_moment", "covariance"])
@pytest.mark.parametrize("pairs", ["all", "one_vs_rest", "class_tree", "confusion"])
def test_many_batches_find_what_one_does(rng, monkeypatch, pairs, denominator):
    moments = ClassMoments().update(*sample(rng))
    options = {"denominator": denominator, "constant": True, "n_directions": 2, "ridge": 0.1}
    one = pair_directions(moments, pairs, **options)
    sizes = []
    monkeypatch.setattr(_pencils, "_FEWEST", 4)
    monkeypatch.setattr(_pencils, "_BYTES", 1)
    monkeypatch.setattr(_pencils, "_SHARED_BYTES", 1)

    def counted(numerators, denominators, *others):
        sizes.append(len({*map(id, numerators + denominators)}))
        return solve(numerators, denominators, *others)

    many = pair_directions(moments, pairs, solve_with=counted, **options)
    assert len(sizes) > 2
    assert max(sizes) <= 4
    for name in ("pairs", "ranks", "solved_pairs", "status", "solver"):
        assert_array_equal(getattr(one, name), getattr(many, name))
    for name in ("eigenvalues", "vectors", "offset"):
        assert_allclose(getattr(many, name), getattr(one, name), rtol=1e-9, atol=1e-9)
    threaded = [pair_directions(moments, pairs, n_threads=t, **options) for t in (1, 2, 7)]
    for found in threaded:
        assert_array_equal(found.vectors, many.vectors)


def test_singular_denominators_of_all_batches_are_named(rng, monkeypatch):
    X, y = sample(rng, k=6)
    X[(y == 1) | (y == 5), 0] = 0.0
    moments = ClassMoments().update(X, y)
    monkeypatch.setattr(_pencils, "_FEWEST", 2)
    monkeypatch.setattr(_pencils, "_SHARED_BYTES", 1)
    with pytest.raises(SingularDenominatorError, match=r"denominator of class 1, 5 is"):
        pair_directions(moments, "all", 0.0)


def test_one_set_of_matrices_is_enough(rng):
    """With the constant, numerators serve as denominators; one_vs_rest keeps a bounded number."""
    d, k = 300, 8
    moments = ClassMoments().update(rng.standard_normal((k * 3, d)), np.arange(k * 3) % k)
    for pairs, most in (("all", k), ("one_vs_rest", 2 * k), ([(0, i) for i in range(1, k)], k)):
        tracemalloc.start()
        pair_directions(moments, pairs, n_directions=1, constant=True)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        kept = 6 if pairs == "one_vs_rest" else 0
        assert peak < (most + kept + 3) * 8 * (d + 1) ** 2


def test_memory_is_checked_before_it_is_taken(rng, monkeypatch):
    moments = ClassMoments().update(*sample(rng))
    monkeypatch.setattr(validation, "physical_memory", lambda: 3000)
    with pytest.raises(MemoryError, match=r"pair_directions: \d+ matrices of 6 x 6 take"):
        pair_directions(moments, "one_vs_rest", constant=True)
