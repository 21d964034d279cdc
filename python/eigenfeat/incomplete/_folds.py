"""Parts of the training rows for cross-validation, without chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["held_out"]


def held_out(y: NDArray[Any], n_folds: int) -> Iterator[NDArray[np.bool_]]:
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
