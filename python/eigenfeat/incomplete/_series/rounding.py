"""What rounding may have done to differences of discriminants before a rule looks at their sign.

With u = eps / 2 a sum of m products, in any order, is off by at most about (m + 2) u times the sum
of the products' magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
section 3.1). Scores, slopes and congruences S^T V S are sums in one or two stages of d products
each; ``share`` is four times what two stages need.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["of_quadratics", "of_variances", "share"]

_Array = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
LARGEST = 1e300  # an error past it is as good as infinite


def share(d: int) -> float:
    """Relative to magnitudes, of what is summed over d features."""
    return 4.0 * (d + 16) * EPS


def of_quadratics(curved: _Array, sloped: _Array, reach: _Array, d: int) -> _Array:
    """Of ``y^T V y + 2 g^T y``, |y| <= reach; `curved`, `sloped`: sizes of V's and g's terms."""
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.where(curved > 0, curved * reach * reach, 0.0)
        terms = terms + np.where(sloped > 0, 2.0 * sloped * reach, 0.0)
    return np.asarray(np.minimum(share(d) * terms, LARGEST))


def of_variances(slopes: _Array, covariance: _Array) -> _Array:
    """(k,), of ``b^T R b`` for the rows b of `slopes` (k, d): |R_ij| <= sqrt(R_ii R_jj)."""
    deviations = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    return np.asarray(share(len(deviations)) * (np.abs(slopes) @ deviations) ** 2)
