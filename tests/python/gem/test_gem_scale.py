"""GEM decides whether columns are divided by their standard deviations, and says why."""

import numpy as np
import pytest

from eigenfeat import GEM, ClassMoments


@pytest.fixture
def rows(rng):
    """Three classes of 120 rows with different spreads, 6 columns."""
    y = np.arange(360) % 3
    return rng.standard_normal((360, 6)) * (1 + y[:, None] * np.arange(6)), y


def mixed_units(rng, n=900):
    """Two informative columns in tiny units beside loud columns without information."""
    y = rng.integers(0, 3, n)
    X = rng.standard_normal((n, 8))
    X[:, 0] *= 1 + 3 * y
    X[:, 1] *= 4 - y
    return X * [1e-3, 1e-3, 1e3, 1e3, 1e3, 1, 1, 1], y


def test_auto_scales_columns_of_mixed_units(rng):
    X, y = mixed_units(rng)
    gem = GEM().fit(X, y)
    assert (gem.scale_, gem.scale_report_.basis) == ("columns", "trial")
    errors = gem.scale_report_.errors
    assert errors["columns"] < errors["none"] - 0.1
    np.testing.assert_allclose(gem.column_scale_, X.std(axis=0), rtol=1e-9)


def test_few_rows_and_moments_go_by_the_rule(rng):
    X, y = mixed_units(rng)
    moments = ClassMoments().update(X, y)
    for gem in (GEM().fit(X[:200], y[:200]), GEM().fit_moments(moments)):
        assert (gem.scale_, gem.scale_report_.basis) == ("columns", "rule")
    even = X / X.std(axis=0)
    assert GEM().fit(even[:200], y[:200]).scale_ == "none"


def test_scaling_by_columns_is_fitting_on_scaled_columns(rows):
    X, y = rows
    X = X * [1, 10, 100, 1e-3, 1, 5]
    scaled = GEM(scale="columns").fit(X, y)
    by_hand = GEM(scale="none").fit(X / X.std(axis=0), y)
    np.testing.assert_allclose(
        scaled.transform(X), by_hand.transform(X / X.std(axis=0)), rtol=1e-6, atol=1e-7
    )
