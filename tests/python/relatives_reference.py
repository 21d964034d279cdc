"""The relatives of LDG as their papers define them: explicit (d, d) matrices, plain loops."""

import numpy as np
from scipy.linalg import eigh


def scatters(X, y):
    """S_b and S_w of Parrish (2012), 2.5 and 2.6."""
    n, d = X.shape
    S_b, S_w = np.zeros((d, d)), np.zeros((d, d))
    for c in np.unique(y):
        rows = X[y == c]
        apart = rows.mean(axis=0) - X.mean(axis=0)
        S_b += len(rows) / n * np.outer(apart, apart)
        for row in rows - rows.mean(axis=0):
            S_w += np.outer(row, row) / n
    return S_b, S_w


def ridged(S, ridge):
    return S + ridge * np.trace(S) / len(S) * np.eye(len(S))


def leading(A, B=None, m=None):
    """The m largest eigenvalues, descending, and vectors, one per row."""
    values, vectors = eigh(A, B)
    return values[::-1][:m], vectors.T[::-1][:m]


def affinities(X, y, k):
    """(n, n) affinities of Sugiyama (2007), row by row."""
    A = np.zeros((len(X), len(X)))
    sigma = np.zeros(len(X))
    for i in range(len(X)):
        distances = np.sort([np.linalg.norm(X[i] - x) for x in X[y == y[i]]])
        sigma[i] = distances[min(k, len(distances) - 1)]
    for i in range(len(X)):
        for j in range(len(X)):
            if y[i] == y[j] and sigma[i] * sigma[j] > 0:
                gap = np.linalg.norm(X[i] - X[j])
                A[i, j] = np.exp(-(gap**2) / (sigma[i] * sigma[j]))
    return A


def local_scatters(X, y, k):
    """S_b and S_w of 2.8 and 2.9 with Sugiyama's weights, over n; a loop over all pairs."""
    n, d = X.shape
    A = affinities(X, y, k)
    S_b, S_w = np.zeros((d, d)), np.zeros((d, d))
    for i in range(n):
        for j in range(n):
            pair = np.outer(X[i] - X[j], X[i] - X[j]) / (2 * n)
            if y[i] == y[j]:
                count = np.sum(y == y[i])
                S_w += A[i, j] / count * pair
                S_b += A[i, j] * (1 / n - 1 / count) * pair
            else:
                S_b += pair / n
    return S_b, S_w


def same_directions(found, expected, atol=1e-8):
    """Assert that rows are equal up to sign."""
    assert found.shape == expected.shape
    signs = np.sign(np.einsum("ij,ij->i", found, expected))
    scale = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found / scale, signs[:, None] * expected / scale, atol=atol)


def same_span(found, expected, atol=1e-8):
    """Assert that the rows of two matrices span the same space."""
    assert found.shape == expected.shape
    bases = [np.linalg.qr(rows.T)[0] for rows in (found, expected)]
    np.testing.assert_allclose(bases[0] @ bases[0].T, bases[1] @ bases[1].T, atol=atol)
