"""LDG in a kernel's feature space: equation 3.29, linear and singular kernels, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import KernelCenterer

from eigenfeat.ldg import LDG, KernelLDG
from eigenfeat.neighbours.local_means import local_neighbours


@pytest.fixture
def rows(rng):
    """Two rings and a blob in three columns."""
    y = np.repeat([0, 1, 2], 30)
    angles = rng.uniform(0, 2 * np.pi, 90)
    radius = np.array([0.2, 2.0, 4.0])[y] + 0.1 * rng.standard_normal(90)
    X = np.column_stack([radius * np.cos(angles), radius * np.sin(angles)])
    order = rng.permutation(90)
    return np.hstack([X, 0.3 * rng.standard_normal((90, 1))])[order], y[order]


def same_up_to_sign(a, b, atol):
    signs = np.sign(np.sum(a * b, axis=0))
    assert_allclose(a * signs, b, atol=atol)


@pytest.mark.parametrize(("n_columns", "standardize"), [(3, True), (200, False)])
def test_the_linear_kernel_is_ldg_on_the_span(rows, rng, n_columns, standardize):
    X, y = rows
    if n_columns > 3:  # more columns than rows
        X = X[:, [0, 1, 2] * 10] ** 2 @ rng.standard_normal((30, n_columns))
        X += rng.standard_normal(X.shape)
    linear = LDG(3, gamma=0.8, n_neighbors=4, standardize=standardize).fit(X, y)
    kernel = KernelLDG(3, gamma=0.8, n_neighbors=4, standardize=standardize).fit(X, y)
    size = np.abs(linear.eigenvalues_).max()
    assert_allclose(kernel.eigenvalues_, linear.eigenvalues_, atol=1e-9 * size)
    expected = linear.transform(X)
    same_up_to_sign(kernel.transform(X), expected, 1e-6 * np.abs(expected).max())
    new = rng.standard_normal((7, n_columns))
    inside = linear.transform(new)
    same_up_to_sign(kernel.transform(new), inside, 1e-6 * np.abs(inside).max())
    # The directions themselves: X^T F, orthonormal.
    scale = X.std(axis=0) if standardize else 1.0
    directions = ((X - X.mean(axis=0)) / scale).T @ kernel.dual_coef_
    assert_allclose(directions.T @ directions, np.eye(3), atol=1e-8)
    assert_allclose(np.abs(np.diag(linear.components_ @ directions)), 1, atol=1e-8)


def laplacian_by_loops(points, y, n_neighbors, gamma):
    """L_V - gamma L_A of equations 3.24 and 3.25."""
    n, priors = len(y), np.bincount(y) / len(y)
    neighbours = local_neighbours(points, y, len(priors), n_neighbors)
    total = np.zeros((n, n))
    for j, prior in enumerate(priors):
        N = np.zeros((n, n))
        for i in range(n):
            N[i, neighbours[i, j]] = 1 / n_neighbors
        for i in range(n):
            part = np.zeros((n, n))
            part[i, i] = 1
            part[i] -= N[i]
            part[:, i] -= N[i]
            part += np.outer(N[i], N[i])
            total += ((y[i] == j) - gamma * prior) * part
    return total


@pytest.mark.parametrize(
    ("kernel", "parameters", "names"),
    [
        ("rbf", {"gamma": 0.5}, {"kernel_gamma": 0.5}),
        ("poly", {"gamma": 0.2, "degree": 2, "coef0": 1.5},
         {"kernel_gamma": 0.2, "kernel_params": {"degree": 2, "coef0": 1.5}}),
        ("laplacian", {}, {}),
    ],
)  # fmt: skip
def test_equation_3_29(rows, kernel, parameters, names):
    X, y = rows
    options = {"standardize": False, "gamma": 0.6, "n_neighbors": 3, **names}
    model = KernelLDG(2, kernel=kernel, **options).fit(X, y)
    K = KernelCenterer().fit_transform(pairwise_kernels(X, metric=kernel, **parameters))
    values, vectors = np.linalg.eigh(K)
    points = vectors * np.sqrt(np.maximum(values, 0))  # distances of the feature space
    L = laplacian_by_loops(points, y, 3, 0.6)
    F = model.dual_coef_
    assert_allclose(F.T @ K @ F, np.eye(2), atol=1e-8)
    assert (F[np.abs(F).argmax(axis=0), [0, 1]] > 0).all()
    # (3.28): K L K F = K F M. F has no part in the null space of K.
    left, right = K @ L @ K @ F, K @ F * model.eigenvalues_
    assert_allclose(left, right, atol=1e-9 * np.abs(left).max())
    every = np.linalg.eigvals(L @ K).real
    assert_allclose(np.sort(model.eigenvalues_), np.sort(every)[:2], rtol=1e-6)


def test_new_rows_and_other_ways_to_give_the_kernel(rows, rng):
    X, y = rows
    new = rng.standard_normal((11, 3))
    options = {"gamma": 0.6, "n_neighbors": 3, "standardize": False}
    model = KernelLDG(2, kernel="rbf", kernel_gamma=0.3, **options).fit(X, y)
    expected = model.transform(new)
    assert_allclose(model.transform(X[:5]), model.fit_transform(X, y)[:5], atol=1e-12)
    K, K_new = (pairwise_kernels(rows, X, metric="rbf", gamma=0.3) for rows in (X, new))
    given = KernelLDG(2, kernel="precomputed", **options).fit(K, y)
    assert_allclose(given.transform(K_new), expected, atol=1e-9)

    def rbf(a, b, width):
        return np.exp(-width * np.sum((a - b) ** 2))

    called = KernelLDG(2, kernel=rbf, kernel_params={"width": 0.3}, **options).fit(X, y)
    assert_allclose(called.transform(new), expected, atol=1e-7)
    sparse = KernelLDG(2, kernel="rbf", kernel_gamma=0.3, **options).fit(csr_array(X), y)
    assert_allclose(sparse.transform(csr_array(new)), expected, atol=1e-7)
    single = KernelLDG(2, kernel="rbf", kernel_gamma=0.3, **options).fit(X.astype(np.float32), y)
    assert single.transform(new.astype(np.float32)).dtype == np.float32
    assert_allclose(single.transform(new.astype(np.float32)), expected, atol=1e-3)


def test_singular_kernels_and_means(rows):
    X, y = rows
    X = np.vstack([X, X[:30]])  # duplicates
    y = np.concatenate([y, y[:30]])
    model = KernelLDG(2, gamma=0.6, n_neighbors=3).fit(X, y)
    assert len(model.kernel_eigenvalues_) == 3
    assert np.all(np.diff(model.kernel_eigenvalues_) <= 0)
    rbf = KernelLDG(2, kernel="rbf", kernel_gamma=0.1, gamma=0.6, n_neighbors=3).fit(X, y)
    assert len(rbf.kernel_eigenvalues_) < 90
    assert_allclose(rbf.transform(X).mean(axis=0), 0, atol=1e-9)
    poly = KernelLDG(2, kernel="poly", kernel_gamma=1.0, gamma=0.6, n_neighbors=3)
    poly.set_params(kernel_params={"degree": 1}, standardize=False)  # the linear kernel
    poly.fit(X + 1e4, y)  # far from 0
    model.set_params(standardize=False).fit(X, y)
    assert len(poly.kernel_eigenvalues_) == 3
    assert_allclose(np.abs(poly.transform(X + 1e4)), np.abs(model.transform(X)), atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_far_from_zero(rows, kernel):
    X, y = rows
    options = {"kernel": kernel, "kernel_gamma": 0.2, "gamma": 0.6, "n_neighbors": 3}
    near = KernelLDG(2, **options).fit(X, y)
    far = KernelLDG(2, **options).fit(X + 1e8, y)
    assert_allclose(far.transform(X[:9] + 1e8), near.transform(X[:9]), atol=1e-4)
    sparse = KernelLDG(2, **options).fit(csr_array(X), y)
    assert sparse.mean_ is None
    assert_allclose(sparse.transform(X[:9]), near.transform(X[:9]), atol=1e-6)
    assert_allclose(near.transform(csr_array(X[:9])), near.transform(X[:9]), atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
def test_columns_are_standardised_by_default(rows, kernel):
    X, y = rows
    X = np.column_stack([X * [1.0, 10.0, 100.0] + 7, np.full(len(X), 3.0)])
    options = {"kernel": kernel, "kernel_gamma": 0.1, "gamma": 0.6, "n_neighbors": 3}
    model = KernelLDG(2, **options).fit(X, y)
    scale = np.append(X[:, :3].std(axis=0), 1)
    assert_allclose(model.scale_, scale)
    standard = (X - X.mean(axis=0)) / scale
    by_hand = KernelLDG(2, standardize=False, **options).fit(standard, y)
    assert_allclose(model.transform(X), by_hand.transform(standard), atol=1e-7)
    sparse = KernelLDG(2, **options).fit(csr_array(X), y)
    assert_allclose(sparse.scale_, scale, rtol=1e-6)
    scaled = KernelLDG(2, standardize=False, **options).fit(csr_array(X / scale), y)
    assert_allclose(
        sparse.transform(csr_array(X)), scaled.transform(csr_array(X / scale)), atol=1e-6
    )


def test_bad_arguments_are_named(rows):
    X, y = rows
    model = KernelLDG(2, gamma=0.6, n_neighbors=3).fit(X, y)
    before = model.dual_coef_
    K = X @ X.T
    cases = [
        ({"kernel": "precomputed"}, X, "X: expected a square kernel matrix, got shape"),
        ({"kernel": "precomputed"}, K - 20 * np.eye(90), "expected a positive semidefinite"),
        ({"kernel": "precomputed"}, np.triu(K), "kernel: expected a symmetric matrix"),
        ({"kernel": lambda a, b: np.inf}, X, "kernel: expected finite values, got inf at"),
        ({"kernel": "cubic"}, X, "kernel"),
        ({"kernel": "linear"}, np.ones((90, 3)), "X: expected samples that differ in the kernel's"),
        ({"n_components": 4}, X, "n_components: expected at most 3"),
        ({"kernel": "poly"}, X[:2], r"at most 1, .*\(n_samples=2, n_features=3\), got 2"),
        ({"n_components": 2}, X[:, :0], "0 feature"),
    ]
    for parameters, wrong, message in cases:
        with pytest.raises(ValueError, match=message):
            model.set_params(**parameters).fit(wrong, np.arange(len(wrong)) % 3)
        model.set_params(kernel="linear", n_components=2)
    assert model.dual_coef_ is before
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X, np.zeros(90, dtype=int))
    assert_array_equal(model.classes_, [0, 1, 2])
