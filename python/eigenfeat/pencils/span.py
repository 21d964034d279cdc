r"""Problems of few samples and many columns, in the span of the samples.

Let Z (n, d) be samples, less an origin and divided by column scales, n < d, and :math:`Z^T = Q R`
with orthonormal columns of Q (d, r), r = n. All second moments and covariances of the samples about
points of their span are :math:`Q S Q^T`, where S (r, r) is that of the coordinates :math:`R^T`, and
with a ridge :math:`B = Q (S_j + \rho I) Q^T + \rho (I - Q Q^T)`. On the complement of the span, the
numerator vanishes and the denominator is :math:`\rho I`. Hence the eigenpairs with
:math:`\lambda \neq 0` of

.. math::

    Q S_i Q^T v = \lambda B v \quad \text{are} \quad
    v = Q u, \quad S_i u = \lambda (S_j + \rho I) u,

with the same scale, as :math:`v^T B v = u^T (S_j + \rho I) u`. Directions are the same to rounding
as those of the d x d matrices. A ridge that is a multiple of a mean eigenvalue, trace / d, is one
of trace / r with the multiple r / d times as large. Cost: 4 n^2 d operations and 8 n d bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from eigenfeat._base.spread import varying
from eigenfeat._base.threads import one_blas_thread
from eigenfeat.moments.class_moments import ClassMoments

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Span", "span_of"]

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Span:
    """Coordinates in which all scaled samples are written.

    Attributes
    ----------
    moments : ClassMoments
        Moments (r columns) of the coordinates ``((x - origin) / scale) @ basis``.
    basis : (d, r) array
        Orthonormal columns.
    origin, scale : (d,) arrays
    """

    moments: ClassMoments
    basis: _Array
    origin: _Array
    scale: _Array

    @property
    def share(self) -> float:
        """Factor r / d, by which multiples of mean eigenvalues change."""
        return self.basis.shape[1] / self.basis.shape[0]

    def mapped(
        self, vectors: _Array, offset: _Array | None, constants: _Array | None = None
    ) -> tuple[_Array, _Array | None]:
        """Directions (d, F) and offsets (F,), in the units of the samples, of those here (r, F).

        A direction's entry of largest magnitude, in the scaled columns, is positive; `constants`
        (F,) are entries beside those of the columns.
        """
        scaled = self.basis @ vectors
        entries = scaled if constants is None else np.vstack([scaled, constants])
        top = np.argmax(np.abs(entries), axis=0)
        signs = np.where(entries[top, np.arange(entries.shape[1])] < 0, -1.0, 1.0)
        directions = scaled * signs / self.scale[:, None]
        if offset is None:
            return directions, None
        return directions, offset * signs - self.origin @ directions


def span_of(moments: ClassMoments, scale: ArrayLike | None, *, about_mean: bool) -> Span | None:
    """The span of samples that are few, or None.

    Parameters
    ----------
    moments : ClassMoments
        Whose matrices have not been formed; see `ClassMoments.few_samples`.
    scale : (d,) array-like or None
        Divisors of the columns; None for ones.
    about_mean : bool
        Whether only differences of samples matter. The origin is their mean then, else zero.
    """
    few = moments.few_samples()
    if few is None:
        return None
    X, y, weights = few
    divisors = np.ones(X.shape[1]) if scale is None else np.asarray(scale, dtype=np.float64)
    shares = weights / weights.sum()
    origin = X[0] + shares @ (X - X[0]) if about_mean else np.zeros(X.shape[1])
    apart = X - origin
    if about_mean:
        apart[:, varying(shares @ apart**2, origin, len(X)) == 0] = 0.0
    with one_blas_thread():  # many short steps
        basis, coordinates = np.linalg.qr((apart / divisors).T)
    reduced = ClassMoments(moments.classes_).update(coordinates.T, y, weights)
    return Span(reduced, basis, origin, divisors)
