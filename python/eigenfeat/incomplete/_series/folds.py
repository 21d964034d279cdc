"""Parts of the training rows for cross-validation, without chance."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Labels

__all__ = ["held_out", "of_few_rows", "spread_over_classes"]


def held_out(y: Labels, n_folds: int, repeat: int = 0) -> Iterator[NDArray[np.bool_]]:
    """Which rows each fold leaves out; folds that leave out none or all are skipped.

    Rows of each class are dealt to the folds in turn, and the classes start at different folds. The
    only row of a class is never left out, so that all classes are in what is left. Repeats other
    than 0 deal the rows in other orders.
    """
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    order = np.arange(len(codes))
    if repeat:
        order = np.random.default_rng(repeat).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    turn = np.empty(len(codes), dtype=np.intp)
    turn[order] = np.arange(len(codes))
    turn[(counts == 1)[codes]] = -1
    for fold in range(min(n_folds, len(codes))):
        held = (turn >= 0) & (turn % n_folds == fold)
        if held.any() and not held.all():
            yield held


@contextmanager
def of_few_rows() -> Iterator[None]:
    """Without the warning of scikit-learn's shrinkage for a class of one row, in every fit."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Only one sample available", UserWarning)
        yield


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
