"""Crawford numbers of class pairs' pencils, beside what their sampling may have cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import Labels
from eigenfeat.pencils.crawford import crawford_number, eigenvalue_bounds
from eigenfeat.pencils.sampling_noise import spread_error

if TYPE_CHECKING:
    from eigenfeat.pencils.class_matrices import Batch, ClassMatrices
    from eigenfeat.pencils.pairs import Problems

__all__ = ["PairConditions", "conditions_of"]

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairConditions:
    """Conditioning of the eigenvalues of P pencils; see `pair_conditions`.

    Attributes
    ----------
    pairs : ndarray of labels, shape (P, 2)
        Numerator and denominator.
    crawford : ndarray of shape (P,)
        Crawford number of each pencil, including the ridge: a lower bound, to 1e-6.
    sampling_error : ndarray of shape (P,)
        Estimated distance of the two matrices together from those of infinitely many samples:
        ``sqrt(|E_i|^2 + (1 + ridge)^2 |E_j|^2)`` with
        ``|E_c| = |C_c| (2 sqrt(r_c / n_c) + r_c / n_c)`` and the effective rank
        ``r_c = tr C_c / |C_c|``. An estimate for Gaussian samples.
    """

    pairs: Labels
    crawford: _Array
    sampling_error: _Array

    def bounds(self, pairs: Labels, eigenvalues: _Array) -> _Array:
        """Ends (F, 2) of the `eigenvalues` (F,) of `pairs` (F, 2) for infinitely many samples.

        They are those of `eigenvalue_bounds`, and as reliable as the estimate `sampling_error`.
        They are infinite if it is not less than the Crawford number, as with few samples.
        """
        known = {tuple(pair): at for at, pair in enumerate(self.pairs.tolist())}
        out = np.empty((len(eigenvalues), 2))
        for row, (pair, value) in enumerate(zip(pairs.tolist(), eigenvalues, strict=True)):
            at = known[tuple(pair)]
            known_here = float(self.crawford[at]), float(self.sampling_error[at])
            out[row] = eigenvalue_bounds([value], *known_here)[0]
        return out


def conditions_of(matrices: ClassMatrices, problems: Problems) -> PairConditions:
    """Form each pencil, one at a time, and measure it."""
    crawford, error = np.empty((2, len(problems.items)))
    for row, item in enumerate(problems.items):
        batch = matrices.batch(item[None])
        above, below = item.tolist()
        crawford[row] = crawford_number(batch.numerators[0], _with_shift(batch)).lower
        upper = _error(batch.numerators[0], matrices.rows(above))
        lower = _error(batch.denominators[0], matrices.rows(below))
        error[row] = np.hypot(upper, (1.0 + matrices.ridges[below]) * lower)
    return PairConditions(problems.names, crawford, error)


def _with_shift(batch: Batch) -> _Array:
    matrix = batch.denominators[0].copy()
    matrix[np.diag_indices_from(matrix)] += batch.shifts[0]
    return matrix


def _error(matrix: _Array, rows: float) -> float:
    return spread_error(np.maximum(np.linalg.eigvalsh(matrix), 0.0), rows)
