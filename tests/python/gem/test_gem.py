"""GEM: the paper's propositions, the expansion, streaming, pairs and scales."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from eigenfeat import GEM, ClassMoments


@pytest.fixture
def rows(rng):
    """Three classes of 120 rows with different shapes and means, 6 columns."""
    y = np.repeat([0, 1, 2], 120)
    shapes = rng.standard_normal((3, 6, 6)) + 2 * np.eye(6)
    X = np.einsum("ni,nij->nj", rng.standard_normal((360, 6)), shapes[y])
    order = rng.permutation(360)
    return (X + rng.standard_normal((3, 6))[y])[order], y[order]


def plain(**parameters):
    """GEM as in the paper's section 2: no ridge, no constant, columns as they are."""
    return GEM(**{"ridge": 0.0, "constant": False, "scale": "none", "threshold": 1.0} | parameters)


def projections(gem, X):
    return X @ gem.directions_ + gem.offset_


# ---- the paper's propositions --------------------------------------------------------------------


def test_proposition_1_projections_are_invariant_to_an_invertible_map(rows, rng):
    X, y = rows
    A = rng.standard_normal((6, 6)) + 3 * np.eye(6)
    before, after = plain().fit(X, y), plain().fit(X @ A.T, y)
    assert before.pairs_.tolist() == after.pairs_.tolist()
    np.testing.assert_allclose(after.eigenvalues_, before.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(
        np.abs(projections(after, X @ A.T)), np.abs(projections(before, X)), atol=1e-8
    )


def test_proposition_2_directions_of_a_pair_are_uncorrelated_on_its_denominator(rows):
    X, y = rows
    gem = plain().fit(X, y)
    assert len(gem.directions_.T) > 8
    for above, below in set(map(tuple, gem.pairs_.tolist())):
        of_pair = np.all(gem.pairs_ == [above, below], axis=1)
        small, large = (projections(gem, X[y == c])[:, of_pair] for c in (below, above))
        m = of_pair.sum()
        np.testing.assert_allclose(small.T @ small / 120, np.eye(m), atol=1e-10)
        expected = np.diag(gem.eigenvalues_[of_pair])
        np.testing.assert_allclose(large.T @ large / 120, expected, rtol=1e-9, atol=1e-8)


# ---- transform -----------------------------------------------------------------------------------


def expected_features(gem, X, expansion, powers):
    p = projections(gem, X)
    if expansion == "compressed":
        for denominator in np.unique(gem.pairs_[:, 1]):
            own = gem.pairs_[:, 1] == denominator
            p[:, own] /= np.sqrt(np.abs(p[:, own]).mean(axis=1, keepdims=True))
    waves = [np.maximum(0, p), np.maximum(0, -p)]
    if expansion == "none":
        return p
    if expansion not in ("shifted", "with_input"):
        return np.hstack([h ** (a / 2) for h in waves for a in powers])
    shifted = [(np.sqrt(1 + h) - 1) ** a for h in waves for a in powers]
    return np.hstack([X, *shifted] if expansion == "with_input" else shifted)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("scale", ["none", "columns"])
@pytest.mark.parametrize(
    ("expansion", "powers"),
    [
        ("half_wave", (1, 2, 3)),
        ("compressed", (1, 2, 3)),
        ("shifted", (3, 1)),
        ("with_input", (2,)),
        ("none", (1, 2, 3)),
    ],
)
def test_transform_is_the_formula(rows, expansion, powers, constant, scale):
    X, y = rows
    gem = GEM(expansion=expansion, powers=powers, constant=constant, scale=scale).fit(X, y)
    expected = expected_features(gem, X, expansion, powers)
    np.testing.assert_allclose(gem.transform(X), expected, rtol=1e-6, atol=1e-7)


def test_feature_names_tell_pair_rank_sign_and_power(rows):
    X, y = rows
    gem = GEM(pairs=[(2, 0), (0, 1)], n_directions=1, threshold=None, powers=(1, 3)).fit(X, y)
    names = gem.get_feature_names_out().tolist()
    stems = ["gem_2_vs_0_rank0", "gem_0_vs_1_rank0"]
    endings = ["_pos_pow1", "_pos_pow3", "_neg_pow1", "_neg_pow3"]
    assert names == [stem + ending for ending in endings for stem in stems]
    gem.set_params(expansion="none")
    assert gem.get_feature_names_out().tolist() == stems
    gem.set_params(expansion="with_input")
    assert gem.get_feature_names_out().tolist() == [f"x{i}" for i in range(6)] + names


# ---- streaming -----------------------------------------------------------------------------------


def test_moments_given_are_not_shared(rows):
    X, y = rows
    moments = ClassMoments().update(X, y)
    gem = GEM().fit_moments(moments).partial_fit(X, y)
    assert moments.weight(0) == 120
    assert gem.moments_.weight(0) == 240


# ---- errors and messages -------------------------------------------------------------------------


def test_errors_name_the_argument(rows):
    X, y = rows
    with pytest.raises(NotFittedError):
        GEM().directions_  # noqa: B018
    assert not hasattr(GEM(), "directions_")
    with pytest.raises(ValueError, match="at least two classes, got 1 class"):
        GEM().fit(X, np.zeros(360, dtype=int))
    with pytest.raises(TypeError, match="moments: expected ClassMoments, got list"):
        GEM().fit_moments([])
    with pytest.raises(ValueError, match="at least two classes, got none"):
        GEM().fit_moments(ClassMoments())
    with pytest.raises(ValueError, match=r"[Ww]eight"):
        GEM().fit(X, y, sample_weight=np.zeros(360))
    with pytest.raises(np.linalg.LinAlgError, match="ridge"):
        plain().fit(np.column_stack([X, X[:, 0]]), y)


def test_parameters_of_a_fit_hold_until_the_next(rows):
    X, y = rows
    gem = GEM(n_directions=1).partial_fit(X, y)
    gem.set_params(n_directions=4)
    assert gem.ranks_.max() == 0
    assert clone(gem).fit(X, y).ranks_.max() > 0
