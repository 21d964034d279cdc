"""Pairs between random groups of classes, and bounds of the number of directions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import GEM, ClassMoments
from eigenfeat.pencils.contrasts import Contrasts, random_partitions
from eigenfeat.pencils.pencils import measure_pairs, pair_directions
from eigenfeat.pencils.problems import PencilOptions, directions_per_pair


def many(rng, k=60, d=5, n=6, dtype=np.float64):
    y = np.repeat(np.arange(k), n)
    X = (rng.standard_normal((k, d)) * 2)[y] + rng.standard_normal((k * n, d))
    return X.astype(dtype), y


@pytest.mark.parametrize("denominator", ["second_moment", "covariance"])
@pytest.mark.parametrize("constant", [False, True])
def test_directions_are_those_of_contrasts_of_the_same_groups(rng, denominator, constant):
    X, y = many(rng)
    moments = ClassMoments(classes=np.arange(62)).update(X, y)  # two classes without rows
    options = {"n_directions": 2, "denominator": denominator, "constant": constant, "ridge": 0.1}
    found = pair_directions(moments, ("random_groups", 60), random_state=3, **options)
    assert len(found.solved_pairs) == 60
    assert found.vectors.shape == (5, 120)
    above, below = [], []
    partitions = random_partitions(60, 5, 60, np.random.RandomState(3))
    for name_above, name_below in found.solved_pairs:
        for name, side in ((name_above, above), (name_below, below)):
            r, g = map(int, name.removeprefix("group").split("."))
            side.append((partitions[r] == g) * 1.0)
    contrasts = Contrasts.of(above, below, found.solved_pairs, classes=np.arange(60))
    slow = pair_directions(moments, contrasts, **options)
    assert_allclose(found.eigenvalues, slow.eigenvalues, rtol=1e-9)
    assert_allclose(found.vectors, slow.vectors, rtol=1e-6, atol=1e-8)
    options = PencilOptions(("random_groups", 60), random_state=3, constant=constant)
    conditions = measure_pairs(moments, options)
    assert len(conditions.crawford) == 60


def test_the_default_of_many_classes_has_one_direction_per_pair_and_no_threshold(rng):
    X, y = many(rng)
    gem = GEM(threshold=50.0).fit(X, y)
    assert gem.directions_.shape == (5, 600)
    assert gem.pairs_[0].tolist() == ["group0.0", "group0.1"]
    assert GEM().fit(X[y < 50], y[y < 50]).pairs_.dtype == y.dtype
    again = GEM(n_threads=1).fit(X, y)
    assert_array_equal(again.directions_, gem.directions_)


@pytest.mark.parametrize("k", [2, 5, 10, 11, 26, 50, 51, 191, 1000, 5000])
def test_directions_of_one_layer_keep_the_documented_bounds(k):
    """The number F of directions in `docs/scaling.md`, for 200 columns."""
    groups = k > 50
    pairs = k * (k - 1)
    if groups:
        pairs = 30 * len(random_partitions(k, 200, None, np.random.RandomState(0)))
    total = pairs * directions_per_pair("auto", pairs, groups)
    assert total <= (900 if k <= 10 else 7400 if k <= 50 else 600)
    assert total >= 150 or k < 5
