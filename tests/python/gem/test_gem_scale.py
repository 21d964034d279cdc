"""How GEM chooses whether to standardise columns and to add a constant, and its report."""

import numpy as np
import pytest

from eigenfeat import GEM, ClassMoments


@pytest.fixture
def rows(rng):
    """Three classes of 120 rows with different spreads, 6 columns."""
    y = np.arange(360) % 3
    return rng.standard_normal((360, 6)) * (1 + y[:, None] * np.arange(6)), y


def mixed_units(rng, n=900):
    """Two informative columns in tiny units, and columns of noise in large ones."""
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


def ink(rng, n=900, d=100):
    """Three classes of strokes of random strength on an empty background, with stains."""
    y = rng.integers(0, 3, n)
    strokes = rng.random((3, 3, d)) * (rng.random((3, 3, d)) < 0.3)
    stains = 2 * rng.exponential(size=(n, d)) * (rng.random((n, d)) < 0.3)
    return np.einsum("ns,nsd->nd", rng.exponential(size=(n, 3)), strokes[y]) + stains, y


def test_strokes_on_an_empty_background_need_no_constant():
    X, y = ink(np.random.default_rng(2))
    gem = GEM().fit(X, y)
    errors = gem.scale_report_.errors
    assert errors["no constant"] < errors[gem.scale_] - 0.02
    assert not gem.constant_
    assert "without a constant" in str(gem.scale_report_)
    given = GEM(scale="none", constant=False, ridge=0.5).fit(X, y)
    np.testing.assert_array_equal(gem.directions_, given.directions_)
    np.testing.assert_array_equal(gem.offset_, 0)
    assert not given.scale_report_.constant
    assert not GEM(constant=False).fit(X[:200], y[:200]).scale_report_.constant  # without a trial


def test_classes_far_from_zero_need_a_constant(rng):
    y = rng.integers(0, 3, 900)
    X = 50 + rng.standard_normal((900, 6)) + rng.standard_normal((3, 6))[y]
    gem = GEM().fit(X, y)
    assert gem.constant_
    assert gem.scale_report_.errors["no constant"] > gem.scale_report_.errors[gem.scale_] + 0.05
    few = GEM().fit(X[:200], y[:200])
    assert few.constant_
    assert few.scale_report_.errors == {}


def test_a_constant_stays_unless_it_costs_many_errors(rng):
    for _ in range(3):
        y = rng.integers(0, 3, 900)
        gem = GEM().fit(rng.standard_normal((900, 6)) + 0.8 * rng.standard_normal((3, 6))[y], y)
        errors = gem.scale_report_.errors
        assert abs(errors["no constant"] - errors[gem.scale_]) < 0.02
        assert gem.constant_


def test_few_rows_and_moments_are_decided_without_a_trial(rng):
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
