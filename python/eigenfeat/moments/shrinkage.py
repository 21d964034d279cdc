"""Shrinkage of covariances of few rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ledoit_wolf"]

_Array = npt.NDArray[np.float64]


def ledoit_wolf(
    centred: _Array,
    covariance: _Array,
    shares: _Array | None = None,
    count: float | None = None,
) -> float:
    """Ledoit and Wolf's shrinkage towards the mean variance, in [0, 1].

    O. Ledoit and M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices",
    2004. The sum of the fourth moments is that of the rows' squared lengths, squared.

    Parameters
    ----------
    centred : (n, d) array
        Rows less their mean.
    covariance : (d, d) array
    shares : (n,) array, optional
        Weights of the rows, which sum to 1.
    count : float, optional
        How many rows they stand for; by default Kish's number.
    """
    d = centred.shape[1]
    mean = np.trace(covariance) / d
    if not mean > 0:
        return 1.0
    # In units of the mean variance, so that fourth powers neither overflow nor vanish.
    squares = ((centred / np.sqrt(mean)) ** 2).sum(axis=1) ** 2
    n = float(len(centred)) if shares is None else 1.0 / float(np.sum(shares**2))
    n = n if count is None else count
    fourth = squares.sum() / n if shares is None else shares @ squares
    size = ((covariance / mean) ** 2).sum()
    beta = (fourth - size) / (d * n)
    delta = (size - d) / d
    return float(np.clip(beta / delta, 0.0, 1.0)) if delta > 0 else 1.0
