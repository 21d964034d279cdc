"""Parts of the training rows for cross-validation, without chance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Labels

__all__ = ["held_out", "spread_over_classes"]


def held_out(y: Labels, n_folds: int) -> Iterator[NDArray[np.bool_]]:
    """Which rows each fold leaves out; folds that leave out none or all are skipped.

    Rows of each class are dealt to the folds in turn, and the classes start at different folds.
    """
    _, codes = np.unique(y, return_inverse=True)
    turn = np.empty(len(codes), dtype=np.intp)
    turn[np.argsort(codes, kind="stable")] = np.arange(len(codes))
    for fold in range(min(n_folds, len(codes))):
        held = turn % n_folds == fold
        if held.any() and not held.all():
            yield held


def spread_over_classes(y: Labels, rows: int) -> NDArray[np.bool_]:
    """Which rows to take, of each class its first ones in the same proportion."""
    _, codes = np.unique(y, return_inverse=True)
    rank = np.empty(len(codes))
    for g in range(int(codes.max()) + 1):
        members = np.flatnonzero(codes == g)
        rank[members] = np.arange(len(members)) / len(members)
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[np.argsort(rank, kind="stable")[:rows]] = True
    return chosen
