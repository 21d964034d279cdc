"""The classifier of the thesis's experiments: 3 nearest rows, on reduced data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat.neighbours.local_means import local_neighbours

__all__ = ["accuracy", "best_or_tied", "leave_one_out"]

VOTES = 3
SIGNIFICANCE = 0.05


def leave_one_out(rows: NDArray[Any], codes: NDArray[np.int64]) -> float:
    """Return the share of rows (n, d) that the others get right."""
    together = np.zeros(len(codes), dtype=np.int64)
    found = local_neighbours(rows, together, 1, VOTES)[:, 0]
    return float(np.mean(_vote(found, codes) == codes))


def accuracy(
    rows: NDArray[Any],
    codes: NDArray[np.int64],
    queries: NDArray[Any],
    query_codes: NDArray[np.int64],
) -> float:
    """Return the share of queries (m, d) that rows (n, d) get right."""
    together = np.zeros(len(codes), dtype=np.int64)
    found = local_neighbours(rows, together, 1, VOTES, queries=queries)[:, 0]
    return float(np.mean(_vote(found, codes) == query_codes))


def best_or_tied(accuracies: dict[str, list[float]]) -> set[str]:
    """Return the methods that are best on average, or not significantly worse.

    By the paired t-test over the same splits, two-sided with 95% confidence.

    Parameters
    ----------
    accuracies : dict of str to list of float
        Of each method, one a split.
    """
    from scipy.stats import t

    if not accuracies:
        return set()
    best = max(accuracies.values(), key=lambda values: float(np.mean(values)))
    n = len(best)
    limit = float(t.ppf(1 - SIGNIFICANCE / 2, n - 1)) if n > 1 else np.inf
    tied = set()
    for name, values in accuracies.items():
        gaps = np.asarray(best) - np.asarray(values)
        spread = float(np.std(gaps, ddof=1)) if n > 1 else 0.0
        # Without any spread a gap is what it is.
        error = spread / np.sqrt(n)
        if float(gaps.mean()) <= (limit * error if error > 0 else 1e-12):
            tied.add(name)
    return tied


def _vote(found: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class of two of three rows, nearest first; where all differ, the nearest decides."""
    votes = np.where(found >= 0, codes[found], -1)
    pair = (votes[:, 1] == votes[:, 2]) & (votes[:, 1] >= 0)
    winners: NDArray[np.int64] = np.where(pair, votes[:, 1], votes[:, 0])
    return winners
