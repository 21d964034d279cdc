"""The relatives of LDG against their definitions, and the properties that these imply."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from relatives_reference import (
    leading,
    local_scatters,
    ridged,
    same_directions,
    same_span,
    scatters,
)
from scipy.stats import ortho_group
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.exceptions import SingularDenominatorError
from eigenfeat.ldg import (
    DirectLDA,
    GSVDDiscriminant,
    LocalFisher,
    MaximumMarginCriterion,
    PCAFisher,
    RegularizedFisher,
)

MEMBERS = {
    "ridge": RegularizedFisher(2),
    "pca_fisher": PCAFisher(2),
    "direct": DirectLDA(2),
    "gsvd": GSVDDiscriminant(2),
    "margin": MaximumMarginCriterion(2),
    "local": LocalFisher(2),
    "local_pca": LocalFisher(2, pca_components="auto", ridge=0.1),
}


def make(rng, n, d, k=3):
    """Rows of k classes in turn, correlated columns, off the origin."""
    y = np.arange(n) % k
    mix = rng.standard_normal((d, d)) / np.sqrt(d) + np.eye(d)
    return rng.standard_normal((n, d)) @ mix + 1.5 * rng.standard_normal((k, d))[y] + 3.0, y


@pytest.fixture(params=[(60, 5), (12, 30)], ids=["tall", "wide"])
def problem(request, rng):
    return make(rng, *request.param)


# ---- the definitions -----------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [1e-3, 0.3])
def test_regularized_fisher(problem, ridge):
    X, y = problem
    S_b, S_w = scatters(X, y)
    values, V = leading(S_b, ridged(S_w, ridge), 2)
    model = RegularizedFisher(ridge=ridge).fit(X, y)
    assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    same_directions(model.components_, V)


def test_without_a_ridge_directions_span_those_of_scikit_learn(rng):
    X, y = make(rng, 80, 6, k=4)
    expected = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).scalings_.T[:3]
    for model in (RegularizedFisher(ridge=0), PCAFisher(), GSVDDiscriminant()):
        same_span(model.fit(X, y).components_, expected)
    S_b, S_w = scatters(X, y)
    values, V = leading(S_b, S_w, 3)
    same_directions(PCAFisher().fit(X, y).components_, V)
    assert_allclose(PCAFisher().fit(X, y).eigenvalues_, values, rtol=1e-9)


def test_pca_fisher(rng):
    X, y = make(rng, 14, 40)
    pca = PCA(14 - 3, svd_solver="full").fit(X)
    values, V = leading(*scatters(pca.transform(X), y), 2)
    model = PCAFisher().fit(X, y)
    assert model.pca_components_ == 11
    assert_allclose(model.eigenvalues_, values, rtol=1e-7)
    same_directions(model.components_, V @ pca.components_, atol=1e-7)


def test_direct_lda(problem):
    X, y = problem
    S_b, S_w = scatters(X, y)
    sizes, vectors = leading(S_b, m=2)
    white = vectors / np.sqrt(sizes)[:, None]
    values, turn = leading(-white @ S_w @ white.T)
    model = DirectLDA().fit(X, y)
    same_directions(model.components_, turn @ white)
    assert_allclose(model.eigenvalues_, -values, rtol=1e-8)
    V = model.components_
    assert_allclose(V @ S_b @ V.T, np.eye(2), atol=1e-10)
    assert_allclose(V @ S_w @ V.T, np.diag(model.eigenvalues_), atol=1e-8)
    same_directions(DirectLDA(1).fit(X, y).components_, V[:1])


@pytest.mark.parametrize("shape", [(60, 5), (12, 30), (9, 8), (40, 40)])
def test_gsvd_diagonalises_both_scatters(rng, shape):
    X, y = make(rng, *shape)
    S_b, S_w = scatters(X, y)
    model = GSVDDiscriminant().fit(X, y)
    V = model.components_
    scale = np.linalg.norm(S_b + S_w) * np.linalg.norm(V) ** 2
    tolerance = 100 * max(shape) * np.finfo(float).eps * scale
    assert_allclose(V @ S_b @ V.T, np.diag(model.alphas_**2), atol=tolerance)
    assert_allclose(V @ S_w @ V.T, np.diag(model.betas_**2), atol=tolerance)
    assert_allclose(model.alphas_**2 + model.betas_**2, 1.0, atol=1e-12)
    assert np.all(np.diff(model.alphas_) <= 1e-12)


def test_gsvd_of_few_rows_makes_each_class_a_point(rng):
    X, y = make(rng, 12, 30, k=4)
    model = GSVDDiscriminant().fit(X, y)
    assert np.all(model.betas_ == 0)
    Z = model.transform(X)
    for c in range(4):
        assert_allclose(Z[y == c], np.repeat(Z[y == c][:1], 3, axis=0), atol=1e-10)
    lengths = np.linalg.norm(model.components_, axis=1)
    assert np.all(np.diff(lengths) >= 0)  # rows spread most along the first direction


def test_maximum_margin_criterion(problem):
    X, y = problem
    S_b, S_w = scatters(X, y)
    values, V = leading(S_b - S_w, m=2)
    model = MaximumMarginCriterion(2).fit(X, y)
    assert_allclose(model.eigenvalues_, values, atol=1e-10 * np.abs(S_w).max())
    same_directions(model.components_, V)
    every = MaximumMarginCriterion(min(X.shape[1], len(X) - 1)).fit(X, y)
    assert_allclose(
        every.components_ @ every.components_.T, np.eye(len(every.components_)), atol=1e-12
    )
    assert_allclose(every.eigenvalues_.sum(), np.trace(S_b - S_w), rtol=1e-9)
    positive = int(np.sum(np.linalg.eigvalsh(S_b - S_w) > 1e-9))
    assert len(MaximumMarginCriterion().fit(X, y).components_) == max(1, positive)


@pytest.mark.parametrize(("k", "ridge"), [(2, 0.3), (7, 1e-3)])
def test_local_fisher(problem, ridge, k):
    X, y = problem
    S_b, S_w = local_scatters(X, y, k)
    values, V = leading(S_b, ridged(S_w, ridge), 4)
    model = LocalFisher(4, n_neighbors=k, ridge=ridge).fit(X, y)
    assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    same_directions(model.components_, V * np.sqrt(values)[:, None])


def test_pca_local_fisher(rng):
    X, y = make(rng, 20, 50, k=2)
    pca = PCA(18, svd_solver="full").fit(X)
    S_b, S_w = local_scatters(pca.transform(X), y, 7)
    values, V = leading(S_b, ridged(S_w, 0.01), 3)
    model = LocalFisher(3, pca_components="auto", ridge=0.01).fit(X, y)
    assert model.pca_components_ == 18
    same_directions(model.components_, np.sqrt(values)[:, None] * V @ pca.components_)
    exact = LocalFisher(pca_components="auto", ridge=0).fit(X, y)
    assert exact.components_.shape == (18, 50)
    X[1::2] = X[1]  # equal rows: a class that does not vary
    assert LocalFisher(pca_components="auto", ridge=0.01).fit(X, y).pca_components_ <= 9


# ---- hard rows -----------------------------------------------------------------------------------


def hard_rows(rng):
    X, y = make(rng, 30, 6)
    constant, duplicates, single = X.copy(), X.copy(), X.copy()
    constant[:, 1] = 0.1
    constant[y == 1, 3] = 1e7 + 0.3
    duplicates[10:] = duplicates[y[10:]]
    alone = np.where(np.arange(30) < 29, y % 2, 2)
    wide, labels = make(rng, 10, 300)
    return {
        "constant columns": (constant, y),
        "equal rows": (duplicates, y),
        "a class of one row": (single, alone),
        "linearly dependent columns": (np.column_stack([X, X[:, :3] + X[:, 3:]]), y),
        "units far apart": (X * np.logspace(-6, 6, 6), y),
        "few rows": (wide, labels),
        "few equal rows": (np.vstack([wide, wide]), np.tile(labels, 2)),
    }


@pytest.mark.parametrize("name", MEMBERS)
def test_hard_rows(rng, name):
    model = MEMBERS[name]
    for title, (X, y) in hard_rows(rng).items():
        Z = model.fit(X, y).transform(X)
        assert Z.shape == (len(X), 2), title
        assert np.isfinite(Z).all(), title
        assert np.isfinite(model.components_).all(), title
        assert np.ptp(Z, axis=0).min() > 0, title
        top = np.argmax(np.abs(model.components_), axis=1)
        assert np.all(model.components_[np.arange(2), top] > 0), title


@pytest.mark.parametrize("model", [PCAFisher(), GSVDDiscriminant()])
def test_a_column_constant_within_classes_comes_first(rng, model):
    X, y = make(rng, 60, 5)
    X[:, 2] = np.array([0.1, 0.7, 0.7])[y]
    X = X @ ortho_group.rvs(5, random_state=1)
    Z = model.fit(X, y).transform(X)
    within = max(np.ptp(Z[y == c, 0]) for c in range(3))
    assert within < 1e-6 * np.ptp(Z[:, 0])
    assert np.ptp(Z[y == 1, 1]) > 0.1


@pytest.mark.parametrize("model", [RegularizedFisher(), DirectLDA()])
def test_magnitudes_up_to_the_largest_numbers(rng, model):
    X, y = make(rng, 60, 5)
    weights = 1e8 * rng.uniform(1, 2, 60)
    expected = model.fit(X, y, weights).components_
    assert_allclose(1e300 * model.fit(1e300 * X, y, weights).components_, expected, rtol=1e-9)
    X[1] = 1.7e308
    with pytest.raises(ValueError, match="X: expected magnitudes below 1e307"):
        model.fit(X, y)


def test_constant_columns_have_no_part(rng):
    X, y = make(rng, 40, 6)
    X[:, 4] = 1e6 + 0.1
    for model in MEMBERS.values():
        assert_allclose(model.fit(X, y).components_[:, 4], 0, atol=1e-12)
        expected = model.transform(X)
        zeros = X.copy()
        zeros[:, 4] = 0.0
        assert_allclose(model.fit(zeros, y).transform(zeros), expected, atol=1e-9)


def test_singular_scatter_without_a_ridge(rng):
    X, y = make(rng, 30, 6)
    X[:, 5] = X[:, 0] - X[:, 1]
    for model in (RegularizedFisher(ridge=0), LocalFisher(ridge=0)):
        with pytest.raises(SingularDenominatorError, match=r"ridge: .* suffices") as caught:
            model.fit(X, y)
        ridge = float(str(caught.value).partition("; ridge=")[2].split()[0])
        assert 0 < ridge < 1e-8
        assert np.isfinite(model.set_params(ridge=ridge).fit(X, y).components_).all()
        model.set_params(ridge=0)
    with pytest.raises(SingularDenominatorError, match="any ridge > 0 suffices"):
        RegularizedFisher(ridge=0).fit(X[y], y)  # equal samples in each class


@pytest.mark.parametrize("kind", [PCAFisher, GSVDDiscriminant, MaximumMarginCriterion])
@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_copies_in_float32_differ_by_rounding_alone(kind, unit):
    """A linear function of another column, such as Fahrenheit of Celsius, adds no direction."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 3)) + y[:, None]
    X[:, 0] *= unit
    copy = 1.8 * X[:, 1] + 32
    rows = np.column_stack([X, copy]).astype(np.float32)
    known = kind().fit(X if kind is not MaximumMarginCriterion else rows[:, [0, 1, 2, 1]], y)
    found = kind().fit(rows, y)
    assert np.abs(found.components_).max() < 1e3
    if kind is not MaximumMarginCriterion:
        other = known.transform(X)
        assert_allclose(np.abs(found.transform(rows)), np.abs(other), rtol=0, atol=0.01)


# ---- how many components there are ---------------------------------------------------------------


FISHERS = (RegularizedFisher, PCAFisher, DirectLDA, GSVDDiscriminant)


@pytest.fixture
def rows(rng):
    """Three classes, of 4 columns."""
    y = np.repeat([7, 8, 9], 20)
    X = rng.standard_normal((60, 4)) + 2 * rng.standard_normal((3, 4))[y - 7] + 5.0
    order = rng.permutation(60)
    return X[order], y[order]


@pytest.mark.parametrize("member", FISHERS)
def test_how_many_components_fishers_have(rows, member):
    X, y = rows
    with pytest.raises(
        ValueError, match=r"expected at most 2 \(rank of the scatter between classes\), got 3"
    ):
        member(3).fit(X, y)
    assert len(member().fit(X, y).components_) == 2
    assert len(member().fit(X[:, :1], y).components_) == 1
    equal = np.vstack([X, X, X])
    with pytest.raises(ValueError, match="X: expected classes with different means"):
        member().fit(equal, np.repeat([0, 1, 2], 60))
    line = np.outer([-1.0, 0.0, 1.0], [1.0, 2.0, 0.0, 0.0])[y - 7]  # means on a line
    noise = np.tile(X[:20] - X[:20].mean(axis=0), (3, 1))[np.argsort(np.argsort(y, kind="stable"))]
    assert len(member().fit(line + noise, y).components_) == 1


def test_only_rows_that_differ_within_classes_have_neighbours():
    X, y = np.arange(12.0).reshape(4, 3), [0, 1, 2, 3]
    with pytest.raises(ValueError, match="X: expected samples that differ within classes"):
        LocalFisher().fit(X, y)
    for member in (RegularizedFisher, PCAFisher, DirectLDA, GSVDDiscriminant):
        assert len(member().fit(X, y).components_) == 1
    assert len(MaximumMarginCriterion().fit(X, y).components_) == 1


def test_errors_of_principal_components(rows):
    X, y = rows
    with pytest.raises(
        ValueError, match=r"n_components: expected at most 4 \(pca_components\), got 5"
    ):
        LocalFisher(5, pca_components="auto").fit(X, y)
    steep = np.column_stack([100.0 * y, X])  # the first component is the class itself
    with pytest.raises(
        ValueError, match="pca_components: expected samples that vary within classes"
    ):
        LocalFisher(pca_components="auto").fit(np.column_stack([100.0 * y, 0 * y]), y)
    assert PCAFisher().fit(steep, y).eigenvalues_[0] > 1e4
