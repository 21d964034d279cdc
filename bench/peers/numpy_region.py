"""What one has without eigenfeat: trust regions by NumPy and SciPy, prefixes one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve


def by_eigh(A: np.ndarray, g: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Minimisers over balls: ``eigh`` of the stack, and Newton on the secular equation of all.

    For matrices with a negative eigenvalue, and no hard case.
    """
    values, Q = np.linalg.eigh(A)
    slopes = (Q.transpose(0, 2, 1) @ g[:, :, None])[:, :, 0]
    low = values[:, 0]
    shift = np.abs(slopes[:, 0]) / radius
    for _ in range(100):
        x = slopes / (values + (shift - low)[:, None])
        square = (x**2).sum(axis=1)
        length = np.sqrt(square)
        bend = (x**2 / (values + (shift - low)[:, None])).sum(axis=1)
        step = square / bend * (length - radius) / radius
        shift += step
        if np.all(np.abs(step) <= 4e-16 * shift):
            break
    x = -slopes / (values + (shift - low)[:, None])
    return np.asarray((Q @ x[:, :, None])[:, :, 0])


def by_scipy(A: np.ndarray, g: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """The class behind ``minimize(method="trust-exact")``, whose quadratic is half of ours."""
    from scipy.optimize._trustregion_exact import IterativeSubproblem

    def one(a: np.ndarray, slope: np.ndarray, r: float) -> np.ndarray:
        problem = IterativeSubproblem(
            np.zeros(len(slope)),
            lambda x: 0.0,
            lambda x: slope,
            lambda x: a,
            k_easy=1e-10,
            k_hard=1e-10,
        )
        return np.asarray(problem.solve(r)[0])

    return np.stack([one(*each) for each in zip(A, g, radius, strict=True)])


def prefixes(X: np.ndarray, mean: np.ndarray, S: np.ndarray) -> list[tuple[Any, Any]]:
    """Means and covariances of what is missing after 1, ..., d - 1 samples, a factor each."""
    found = []
    for t in range(1, X.shape[1]):
        gains = cho_solve(cho_factor(S[:t, :t], lower=True), S[:t, t:])
        means = mean[t:] + (X[:, :t] - mean[:t]) @ gains
        found.append((means, S[t:, t:] - S[t:, :t] @ gains))
    return found
