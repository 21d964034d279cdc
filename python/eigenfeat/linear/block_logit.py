"""The logit's problem on blocks of rows: each evaluation is a pass over them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eigenfeat._base.threads import resolve
from eigenfeat.expansion.features import core_rows
from eigenfeat.linear.logit_problem import Gram, LogitObjective, far_means
from eigenfeat.rows import reductions
from eigenfeat.rows.surveyed import SurveyedBlocks

__all__ = ["BlockLogit", "block_centre"]

_Array = npt.NDArray[np.float64]


class BlockLogit(LogitObjective):
    """Passes over blocks of rows; beyond a block, nothing of the rows' number is held.

    Parameters
    ----------
    rows : SurveyedBlocks
        Whose labels are those of the survey.
    constant : bool
        Whether there is a last feature of ones (the intercept).
    """

    def __init__(self, rows: SurveyedBlocks, *, constant: bool) -> None:
        self.rows, self.constant = rows, constant
        self.n_threads = resolve(rows.reading.n_threads)
        self.n_rows, self.dtype = rows.n_rows, rows.dtype
        squares, total = rows.reduce(reductions.squares, reductions.add, *self._how)
        self.shape = (len(squares), len(rows.classes))
        self._hold(squares, total)

    @property
    def _how(self) -> tuple[bool, int | None]:
        return self.constant, self.rows.reading.n_threads

    def terms(self, W: _Array, energy_weight: float) -> tuple[float, float, _Array]:
        """Loss, energy of the logits, and the gradient of their weighted sum, at W (p, k)."""
        found: tuple[float, float, _Array] = self.rows.reduce(
            reductions.logit_terms, reductions.add, *self._how, energy_weight, W
        )
        return found

    def gram(self, sample: npt.NDArray[np.intp] | None, half: bool) -> Gram:
        """What makes the metric: the Gram matrix of all rows, or of those with these numbers.

        Rows are brought here where they take fewer bytes than the matrix, or where the dual needs
        them; otherwise the matrix is summed where the rows are.
        """
        rows = self.rows if sample is None else self.rows.subset(sample)
        p = self.shape[0]
        width = rows.survey.n_features
        if rows.n_rows < p or rows.n_rows * width <= p * (p + 1):  # float32 against float64
            taken = rows.take(np.arange(rows.n_rows))
            features = core_rows(rows.features(taken), self.constant)
            return Gram.of_rows(features, taken.weight, self.scale, half, self.n_threads)
        gram, squares, weight = rows.reduce(
            reductions.scaled_gram, reductions.add, *self._how, self.scale, half
        )
        return Gram.summed(gram, squares, weight, self.scale, self.n_threads)


def block_centre(rows: SurveyedBlocks) -> _Array | None:
    """What `centred` subtracts from the columns of rows in memory; None for none."""
    if rows.survey.sparse or rows.reading.layers:
        return None
    sums, squares, total, ranges = rows.reduce(
        reductions.column_sums, reductions.merge_column_sums, rows.reading.n_threads
    )
    return far_means(sums, squares, total, lambda: ranges[0] < ranges[1])
