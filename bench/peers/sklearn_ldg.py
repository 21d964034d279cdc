"""LDG written with NumPy and scikit-learn's neighbours, and scikit-learn's NCA."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from sklearn.neighbors import NearestNeighbors, NeighborhoodComponentsAnalysis


def scatters(X: np.ndarray, codes: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """V of (3.9) and A of (3.10): class by class, neighbours, gathered means, rank updates."""
    d = X.shape[1]
    V, A = np.zeros((d, d)), np.zeros((d, d))
    for c, count in zip(*np.unique(codes, return_counts=True), strict=True):
        members = np.flatnonzero(codes == c)
        found = NearestNeighbors(n_neighbors=n_neighbors + 1, algorithm="brute").fit(X[members])
        near = found.kneighbors(X, return_distance=False)
        own = codes == c
        # Leave out each row of the class itself, which is its own nearest neighbour.
        lists = np.where(own[:, None], near[:, 1:], near[:, :-1])
        D = X - X[members][lists].mean(axis=1)
        V += D[own].T @ D[own]
        A += (count / len(X)) * (D.T @ D)
    return V, A


def fitted(
    X: np.ndarray, codes: np.ndarray, n_neighbors: int, gamma: float, n_components: int
) -> np.ndarray:
    """Return directions (n_components, d) for standardised columns."""
    scale = X.std(axis=0)
    standard = ((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1)).astype(X.dtype)
    V, A = scatters(standard, codes, n_neighbors)
    return eigh(V - gamma * A, subset_by_index=(0, n_components - 1))[1].T


def nca(X: np.ndarray, codes: np.ndarray, n_components: int) -> NeighborhoodComponentsAnalysis:
    """Fit scikit-learn's neighbourhood components analysis from its default initialisation."""
    model = NeighborhoodComponentsAnalysis(n_components=n_components, random_state=0)
    return model.fit(X, codes)
