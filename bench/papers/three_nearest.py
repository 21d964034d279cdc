"""The classifier of the thesis's experiments: 3 nearest rows, on reduced data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat.neighbours.local_means import local_neighbours

VOTES = 3
SIGNIFICANCE = 0.05
Codes = NDArray[np.int64]


def leave_one_out(rows: NDArray[Any], codes: Codes) -> float:
    """Return the share of rows (n, d) that the others get right, by 3 nearest ones."""
    return _right(rows, codes, codes)


def accuracy(rows: NDArray[Any], codes: Codes, queries: NDArray[Any], asked: Codes) -> float:
    """Return the share of queries (m, d) of codes `asked` that rows (n, d) get right."""
    return _right(rows, codes, asked, queries=queries)


def _right(rows: NDArray[Any], codes: Codes, asked: Codes, **given: Any) -> float:
    """Let two of three rows decide, or the nearest one where all differ."""
    together = np.zeros(len(codes), dtype=np.int64)
    found = local_neighbours(rows, together, 1, VOTES, **given)[:, 0]
    votes = np.where(found >= 0, codes[found], -1)
    pair = (votes[:, 1] == votes[:, 2]) & (votes[:, 1] >= 0)
    return float(np.mean(np.where(pair, votes[:, 1], votes[:, 0]) == asked))


def best_or_tied(accuracies: dict[str, list[float]]) -> set[str]:
    """Return the methods that are best on average, or not significantly worse.

    By the paired t-test over the same splits, two-sided with 95% confidence. `accuracies` has one
    number a split for each method.
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
        error = float(np.std(gaps, ddof=1)) / np.sqrt(n) if n > 1 else 0.0
        # Without any spread a gap is what it is.
        if float(gaps.mean()) <= (limit * error if error > 0 else 1e-12):
            tied.add(name)
    return tied
