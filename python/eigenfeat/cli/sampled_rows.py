"""Rows of files in memory: all of them, or some that are drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from eigenfeat._base.types import Floats, Labels
from eigenfeat.cli.output import Output
from eigenfeat.tables import FileRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["some_rows"]


def some_rows(rows: FileRows, most: int, output: Output) -> tuple[Floats | csr_array, Labels, int]:
    """All rows, or `most` of them drawn at random in one pass, in their order; and their number."""
    rng = np.random.default_rng(0)
    X: Any = None
    y: NDArray[Any] = np.empty(0)
    keys: NDArray[Any] = np.empty(0)
    n = 0
    with output.rows("reading") as advance:
        for block, position in rows.blocks():
            fresh = rng.random(len(block))
            stack = sp.vstack if sp.issparse(block.X) else np.concatenate
            X = block.X.copy() if X is None else stack([X, block.X])
            y = np.concatenate([y, block.y]) if len(keys) else block.y.copy()
            keys = np.concatenate([keys, fresh])
            n += len(block)
            if len(keys) > most:
                kept = np.sort(np.argpartition(keys, most)[:most])
                X, y, keys = (X.tocsr() if sp.issparse(X) else X)[kept], y[kept], keys[kept]
            advance(len(block), rows.fraction(position))
    if n == 0:
        skipped = f"; {rows.n_skipped:,} bad rows were left out" if rows.n_skipped else ""
        raise ValueError(f"{rows.sources[0].path}: expected at least one row, got none{skipped}")
    return (X.tocsr() if sp.issparse(X) else X), y, n
