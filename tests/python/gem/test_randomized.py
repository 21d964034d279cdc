"""RandomizedGEM against GEM, which solves from moments, and with more columns than GEM can hold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.pipeline import make_pipeline

from eigenfeat import GEM, MultinomialLogit, load, save
from eigenfeat.exceptions import SingularDenominatorError
from eigenfeat.gem import RandomizedGEM
from eigenfeat.gem._randomized import denominator
from eigenfeat.gem._randomized.pencils import TOLERANCES

OPTIONS = [
    {},
    {"constant": False, "denominator": "covariance"},
    {"scale": "columns"},
    {"scale": "columns", "denominator": "covariance"},
    {"ridge": 1e-3},
    {"ridge": 1e3, "denominator": "covariance"},
]


def words(n=240, d=90, k=3, seed=0, dtype=np.float64):
    """Counts of terms whose rates differ by class; each class has a term of its own."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    rates = 0.2 * np.exp(rng.standard_normal((k, d)))
    X = rng.poisson(rates[y]).astype(dtype)
    X[:, :k] *= y[:, None] == np.arange(k)
    return sparse.csr_matrix(X), y


def fitted(X, y, weight=None, **options):
    return RandomizedGEM(**{"n_directions": 4, "ridge": 0.2, **options}).fit(X, y, weight)


def exactly(X, y, weight=None, **options):
    settings = {"scale": "none", "n_directions": 4, "ridge": 0.2, **options}
    return GEM(**settings).fit(X, y, weight)


def dense(directions):
    return directions.toarray()


def assert_same_directions(wide, exact, eps):
    """Compare eigenvalues up to tolerance^2, directions up to tolerance / relative gap."""
    assert_array_equal(wide.pairs_, exact.pairs_)
    assert_array_equal(wide.ranks_, exact.ranks_)
    assert_allclose(wide.eigenvalues_, exact.eigenvalues_, rtol=200 * eps**1.5)
    assert wide.residuals_.max() <= 3 * eps
    size = np.linalg.norm(exact.directions_, axis=0)
    gap = np.linalg.norm(dense(wide.directions_) - exact.directions_, axis=0) / size
    assert gap.max() <= 100 * eps
    assert_allclose(wide.offset_, exact.offset_, rtol=0, atol=100 * eps * (1 + size.max()))


@pytest.mark.parametrize(
    ("options", "dtype"),
    [*((options, np.float64) for options in OPTIONS), *((o, np.float32) for o in OPTIONS[2:4])],
)
def test_agrees_with_moments(options, dtype):
    X, y = words(dtype=dtype)
    weight = np.random.default_rng(1).random(len(y)) + 0.5
    shared = {"threshold": None, **options}
    exact = exactly(X, y, weight, **shared)
    eps = TOLERANCES[np.dtype(dtype)]
    for rows in (X, X.toarray()):
        wide = fitted(rows, y, weight, **shared)
        assert_same_directions(wide, exact, eps)
        expected = exact.transform(X[:50]).astype(np.float64)
        got = wide.transform(rows[:50])
        assert got.dtype == dtype
        assert_allclose(got, expected, rtol=0, atol=300 * eps * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("max_exact", [10, 30])
def test_conjugate_gradients_agree(kind, max_exact, monkeypatch):
    """Denominators of more rows than are factorised, with columns of one row or few columns."""
    monkeypatch.setattr(denominator, "MAX_EXACT", max_exact)
    X, y = words(d=20)
    if max_exact == 10:
        X = sparse.csr_matrix(sparse.hstack([X, sparse.eye(len(y), format="csc")[:, ::2]]))
    rows = X if kind == "sparse" else X.toarray()
    for options in ({"denominator": "covariance"}, {"constant": False}):
        exact = exactly(X, y, threshold=None, **options)
        assert_same_directions(fitted(rows, y, threshold=None, **options), exact, 1e-6)


def test_threshold_and_pairs():
    X, y = words()
    for options in (
        {"threshold": 1.8},
        {"pairs": [(0, 1), (2, 1), (1, 2)]},
        {"pairs": "hypercube"},
    ):
        assert_same_directions(fitted(X, y, **options), exactly(X, y, **options), 1e-6)
    assert fitted(X, y, threshold=1e6).directions_.shape == (X.shape[1], 0)
    with pytest.raises(ValueError, match="pairs"):
        fitted(X, y, pairs="one_vs_rest")


@pytest.mark.parametrize("n_directions", [2, 10])
def test_few_directions_above_the_threshold_are_found(n_directions):
    """All variances are 1 but that of one column: a flat spectrum, in which search is slow."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((1000, 60)), np.repeat([0, 1], 500)
        X[:500, 7] *= 1.9
        options = {"n_directions": n_directions, "threshold": 2.5, "constant": False}
        exact = exactly(X, y, **options)
        assert exact.pairs_.tolist() == [[0, 1]]
        assert_same_directions(fitted(X, y, **options), exact, 1e-6)


def test_residuals_are_those_of_the_pencil():
    X, y = words(dtype=np.float32)
    wide = fitted(X, y, constant=False)
    rows, d = X.toarray().astype(float), X.shape[1]
    V = dense(wide.directions_).astype(float)
    for f, (i, j) in enumerate(wide.pairs_):
        A, B = (rows[y == c].T @ rows[y == c] / np.sum(y == c) for c in (i, j))
        B = B + 0.2 * np.trace(B) / d * np.eye(d)
        Bv = wide.eigenvalues_[f] * (B @ V[:, f])
        residual = np.linalg.norm(A @ V[:, f] - Bv) / np.linalg.norm(Bv)
        assert_allclose(wide.residuals_[f], residual, rtol=0.1, atol=1e-5)
        assert_allclose(V[:, f] @ B @ V[:, f], 1.0, rtol=1e-4)


def test_directions_that_did_not_converge_warn(monkeypatch):
    monkeypatch.setattr("eigenfeat.gem._randomized.krylov.MAX_STEPS", 4)
    X, y = words()
    with pytest.warns(RuntimeWarning, match="got larger residuals of"):
        wide = fitted(X, y)
    assert wide.residuals_.max() > 1e-6


def test_seeds_and_threads(monkeypatch):
    monkeypatch.setattr(denominator, "MAX_EXACT", 10)
    X, y = words(n=400, d=1000, k=2, dtype=np.float32)
    options = {"n_directions": 1, "ridge": 30.0}
    fits = [fitted(X, y, n_threads=t, **options) for t in (1, 7)]
    for other in fits[1:]:
        assert_array_equal(other.directions_.toarray(), fits[0].directions_.toarray())
        assert_array_equal(other.transform(X[:99]), fits[0].transform(X[:99]))
    another = fitted(X, y, random_state=7, **options)
    assert_allclose(another.eigenvalues_, fits[0].eigenvalues_, rtol=1e-4)
    assert not np.array_equal(another.eigenvalues_, fits[0].eigenvalues_)


@pytest.mark.parametrize("ridge", [1e-6, 1e6])
def test_hard_rows(ridge):
    """Empty columns and rows, a class of one row, duplicates, a class of zeros."""
    X, _ = words(n=60, d=40)
    X = sparse.csr_matrix(sparse.hstack([X[:, :20], sparse.csr_matrix((60, 9)), X[:, 20:]]))
    y = np.repeat([0, 1, 2, 3], [1, 29, 20, 10])
    X = sparse.csr_matrix(sparse.vstack([X[:30], X[5:15], X[5:15], sparse.csr_matrix((10, 49))]))
    exact = exactly(X, y, ridge=ridge, threshold=1e-3)
    wide = fitted(X, y, ridge=ridge, threshold=1e-3)
    assert_array_equal(wide.pairs_, exact.pairs_)
    # The exact solver's own rounding is eps times the condition number, which the ridge bounds.
    assert_allclose(wide.eigenvalues_, exact.eigenvalues_, rtol=1e-7 + 1e-12 / ridge)
    assert np.all(np.isfinite(wide.transform(X)))
    assert_array_equal(dense(wide.directions_)[20:29], 0.0)
    # Columns that no row of the pair has are zero exactly; see the pair of one row and of zeros.
    row = X[0].toarray()[0]
    at = (wide.pairs_ == [0, 3]).all(axis=1)
    assert_array_equal(dense(wide.directions_)[np.ix_(row == 0, at)], 0.0)


def test_samples_far_from_zero():
    """Dense rows are centred first, so that a large mean costs no digits of the variance."""
    X, y = words()
    exact = exactly(X.toarray(), y, threshold=None)
    moved = fitted(X.toarray() + 1e5, y, threshold=None)
    assert_allclose(moved.eigenvalues_, exact.eigenvalues_, rtol=1e-8)


@pytest.fixture(scope="module")
def many_terms():
    """Counts of 30,000 terms, for which a d x d matrix of each class would take 7 GB."""
    rng = np.random.default_rng(5)
    n, d = 900, 30_000
    y = rng.integers(0, 3, n)
    rank = (np.exp(rng.random((n, 60)) * np.log(d)) - 1).astype(int)
    topical = rng.random((n, 60)) < 0.3
    terms = np.where(topical, (rank * 7919 + 101 * y[:, None]) % d, rank)
    X = sparse.csr_matrix((np.ones(n * 60, np.float32), terms.ravel(), np.arange(n + 1) * 60),
                          shape=(n, d))  # fmt: skip
    X.sum_duplicates()
    X.data = np.sqrt(X.data)
    return X, y


def test_many_columns(many_terms, monkeypatch):
    X, y = many_terms
    gem = RandomizedGEM(n_directions=2, expansion="none").fit(X[:600], y[:600])
    assert gem.residuals_.max() < 1e-2
    assert "RowCombinations(12 directions of 6 pairs, 30000 features)" in repr(gem.directions_)
    projections = gem.transform(X[600:])
    by_hand = X[600:] @ gem.directions_.tocsc()
    assert_allclose(projections, by_hand.toarray() + gem.offset_, rtol=0, atol=1e-3)
    assert_array_equal(gem.transform(X[600:].toarray()), projections)
    monkeypatch.setattr("eigenfeat.gem._randomized.directions.GROUP_BYTES", 1.0)
    groups = RandomizedGEM(n_directions=2, expansion="none").fit(X[:600], y[:600])
    assert_array_equal(groups.transform(X[600:]), projections)


def test_before_a_classifier(many_terms, tmp_path):
    X, y = many_terms
    model = make_pipeline(RandomizedGEM(n_directions=2), MultinomialLogit(penalty="auto"))
    model.fit(X[:700], y[:700])
    assert model.score(X[700:], y[700:]) > 0.6  # a third by chance
    gem = model[0]
    save(gem, tmp_path / "gem.efm")
    assert_array_equal(load(tmp_path / "gem.efm").transform(X[:9]), gem.transform(X[:9]))
    # A file holds the samples and their coefficients, not 30,000 numbers for each direction.
    assert (tmp_path / "gem.efm").stat().st_size < 8 * 30_000 * len(gem.offset_)


def test_gem_names_the_alternative():
    X = sparse.csr_matrix(([1.0, 1.0], ([0, 1], [0, 999_999])), shape=(2, 1_000_000))
    with pytest.raises(MemoryError, match=r"bytes .*use eigenfeat\.gem\.RandomizedGEM"):
        GEM().fit(X, [0, 1])


def test_zeros_and_overflow_are_refused():
    with pytest.raises(SingularDenominatorError, match="all samples are zero or equal"):
        fitted(sparse.csr_matrix((10, 5)), np.arange(10) % 2)
    X, y = words()
    with pytest.raises(ValueError, match="X: expected samples whose squares fit float64"):
        fitted(1e160 * X, y)


def test_the_default_ridge_follows_samples_and_columns():
    X, y = words(n=60, d=900)
    X, y = X[:50], np.repeat([0, 1], [40, 10])
    default = fitted(X, y, ridge=None, threshold=None)
    for above, below, n in ((1, 0, 40), (0, 1, 10)):
        given = fitted(X, y, ridge=0.2 * 900 / n, threshold=None)
        of = [(m.pairs_ == [above, below]).all(axis=1) for m in (default, given)]
        assert_allclose(default.eigenvalues_[of[0]], given.eigenvalues_[of[1]], rtol=1e-6)
    few = words(n=900, d=20, k=2)
    default, given = (fitted(*few, ridge=ridge).eigenvalues_ for ridge in (None, 0.2))
    assert_array_equal(default, given)


def test_numerators_of_few_different_rows():
    """Krylov blocks with dependent columns, until the Krylov space is the whole space."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [8, 40, 40])
    X = rng.integers(0, 3, (88, 9)).astype(float)
    X[:8] = X[rng.integers(0, 5, 8)]
    X[:, 2:5] *= rng.random((88, 3)) < 0.3
    X[5:8] = 0
    wide = fitted(X, y, n_directions=6, threshold=None)
    exact = exactly(X, y, n_directions=6, threshold=None)
    assert wide.residuals_.max() < 1e-6
    for pair in np.unique(wide.pairs_, axis=0):
        values, expected = (
            np.array(model.eigenvalues_)[(model.pairs_ == pair).all(axis=1)]
            for model in (wide, exact)
        )
        assert_allclose(values, expected[: len(values)], rtol=1e-8)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-3), (np.float64, 1e-6)])
def test_conjugate_gradients_and_small_ridges(dtype, tolerance, monkeypatch):
    monkeypatch.setattr(denominator, "MAX_EXACT", 10)
    X, y = words()
    for ridge in (1e-1, 1e-2):
        assert fitted(X.astype(dtype), y, ridge=ridge).residuals_.max() <= tolerance
    with pytest.warns(RuntimeWarning, match="expected residuals of at most"):
        fitted(X.astype(dtype), y, ridge=1e-8)


def test_conjugate_gradients_do_not_leave_the_centred_samples(monkeypatch):
    monkeypatch.setattr(denominator, "MAX_EXACT", 10)
    X = sparse.random(200, 3000, 0.01, format="csr", random_state=0)
    assert fitted(X, np.arange(200) % 3, ridge=1e-7).residuals_.max() <= 1e-6


@pytest.mark.parametrize("denominator", ["second_moment", "covariance"])
def test_dense_columns_of_rounding_errors_keep_their_unit(denominator):
    X, y = words(d=6)
    rounded = np.where(np.arange(len(y)) % 2, 0.3, 0.1 + 0.2)
    X = np.column_stack([X.toarray(), rounded])
    model = fitted(X, y, scale="columns", denominator=denominator)
    assert model.column_scale_[-1] == 1.0
    assert np.abs(dense(model.directions_)[-1]).max() < 1e-12


@pytest.mark.parametrize("n", [60, 90, 120])
def test_constant_columns_keep_their_unit(rng, n):
    X, y = words(n, d=6)
    X = sparse.hstack([X, sparse.csr_matrix(np.full((n, 1), 0.1))], format="csr")
    for weight in (None, rng.random(n)):
        assert fitted(X, y, weight, scale="columns").column_scale_[-1] == 1.0


@pytest.mark.parametrize("scale", [1e-152, 1e-154, 1e-160])
def test_small_samples_have_finite_features_or_are_refused(rng, scale):
    X, y = scale * rng.standard_normal((14, 2)), np.arange(14) % 3
    model = RandomizedGEM(n_directions=1)
    if scale > 1e-153:
        assert np.isfinite(model.fit_transform(X, y)).all()
        return
    with pytest.raises(ValueError, match=r"^X: expected samples whose squares .* vanish"):
        model.fit(X, y)
