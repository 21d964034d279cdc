"""Principal and vanishing components of each class: definitions, edge cases and errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from eigenfeat import ClassMoments
from eigenfeat.gem import ClassComponents
from eigenfeat.rayleigh import RayleighPCA, VanishingComponents

X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    ("kind", "alone"), [("principal", RayleighPCA), ("vanishing", VanishingComponents)]
)
def test_components_depend_on_their_class_only(kind, alone):
    model = ClassComponents(kind, 3, scale="none", expansion="none").fit(X, Y)
    for c in range(3):
        own = model.pairs_[:, 0] == c
        one = alone(3).fit(X[c == Y])
        assert_allclose(model.eigenvalues_[own], one.eigenvalues_, rtol=1e-9)
        assert_allclose(model.transform(X)[:, own], one.transform(X), atol=1e-9)
    assert_array_equal(model.pairs_[:, 0], model.pairs_[:, 1])
    assert model.get_feature_names_out()[4] == f"{kind}_1_rank1"
    for name in ("pair_conditions_", "eigenvalue_bounds_"):
        with pytest.raises(AttributeError, match="needs pairs of classes, got single classes"):
            getattr(model, name)


@pytest.mark.parametrize("dtype", [object, str, np.uint8])
def test_pairs_have_the_type_of_the_labels(dtype):
    model = ClassComponents("principal", 1).fit(X, Y.astype(str).astype(dtype))
    assert model.pairs_.dtype == model.classes_.dtype


@pytest.mark.parametrize("center", ["class", "all"])
@pytest.mark.parametrize("scale", ["none", "columns"])
def test_eigenvalues_are_mean_squares(center, scale):
    model = ClassComponents("vanishing", 4, center=center, scale=scale, expansion="none").fit(X, Y)
    projections = model.transform(X)
    for f, (c, _) in enumerate(model.pairs_):
        square = np.mean(projections[c == Y, f] ** 2)
        assert_allclose(square, model.eigenvalues_[f], rtol=1e-8, atol=1e-14)
    lengths = np.linalg.norm(model.directions_ * model.column_scale_[:, None], axis=0)
    assert_allclose(lengths, 1.0)


def test_rows_that_vanish():
    rng = np.random.default_rng(0)
    t = rng.standard_normal((60, 2))
    y = np.arange(60) % 2
    rows = np.column_stack([t, np.where(y == 0, t[:, 0] + 2, 3 * t[:, 1] - 1)])
    model = ClassComponents("vanishing", 1, scale="none", expansion="none").fit(rows, y)
    out = model.transform(rows)
    assert np.abs(out[y == 0, 0]).max() < 1e-7
    assert np.abs(out[y == 1, 1]).max() < 1e-7
    assert np.abs(out[y == 1, 0]).mean() > 0.3


def test_moments_and_samples_give_the_same_components():
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    model = ClassComponents("principal", 2).fit(X, Y, weight)
    other = ClassComponents("principal", 2).fit_moments(ClassMoments().update(X, Y, weight))
    assert_allclose(other.transform(X), model.transform(X), atol=1e-9)


def test_more_directions_than_columns_and_float32():
    model = ClassComponents(n_directions=99).fit(X.astype(np.float32), Y)
    assert model.directions_.shape == (4, 12)
    assert model.transform(X.astype(np.float32)).dtype == np.float32
