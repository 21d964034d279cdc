r"""Perturbation bounds for the eigenvalues of a definite pencil.

The Crawford number of symmetric A and B is the distance of their field of values from the origin,
:math:`c(A, B) = \min_{|x| = 1} |x^* (A + i B) x|`. (Karampatziakis and Mineiro 2014, section 2.2,
write its square. A bound that divides by the square would depend on the unit of the samples.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base.matrices import symmetric_matrices
from eigenfeat._base.types import Labels
from eigenfeat._base.validation import check_number, real_array
from eigenfeat.pencils.sampling_noise import spread_error

if TYPE_CHECKING:
    from eigenfeat.pencils.problems import Batch, ClassMatrices, Problems

__all__ = [
    "CrawfordNumber",
    "PairConditions",
    "conditions_of",
    "crawford_number",
    "eigenvalue_bounds",
]

_Array = npt.NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_MAX_TANGENTS = 100  # angles; about ten are usual
_TOLERANCE = 1e-6  # difference of the bounds, relative to the upper bound


@dataclass(frozen=True)
class CrawfordNumber:
    """Result of `crawford_number`.

    Attributes
    ----------
    lower : float
        Lower bound of the Crawford number; 0 if the pencil is not definite.
    upper : float
        Upper bound of the Crawford number; 0 if the pencil is not definite.
    angle : float
        Angle at which the smallest eigenvalue of ``cos(angle) A + sin(angle) B`` is `lower`.
    """

    lower: float
    upper: float
    angle: float


def crawford_number(A: npt.ArrayLike, B: npt.ArrayLike) -> CrawfordNumber:
    r"""Lower and upper bounds of the Crawford number of a symmetric pencil.

    The field of values is convex, so the Crawford number is the maximum over all angles t of the
    smallest eigenvalue of ``cos(t) A + sin(t) B`` (Cheng and Higham 1999, Theorem 2.2). Every angle
    gives a lower bound. Its eigenvector gives a point of the field; the hull of such points gives
    an upper bound and the next angle.

    Parameters
    ----------
    A : array-like of shape (d, d)
        Symmetric matrix.
    B : array-like of shape (d, d)
        Symmetric matrix.

    Returns
    -------
    CrawfordNumber
        The bounds differ by at most 1e-6 of the upper bound. An allowance for rounding errors of
        eigenvalues is subtracted from the lower bound.

    Raises
    ------
    ValueError
        If the matrices are not square, of one shape, symmetric and finite.

    References
    ----------
    C. R. Crawford, "A stable generalized eigenvalue problem", SIAM J. Numer. Anal. 13, 1976.
    S. H. Cheng and N. J. Higham, "The nearest definite pair for the Hermitian generalized
    eigenvalue problem", Linear Algebra Appl. 302-303, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.pencils import crawford_number
    >>> found = crawford_number(np.diag([3.0, 8.0]), np.diag([4.0, 1.0]))
    >>> round(found.lower, 6)
    5.0
    """
    a, b = _matrix(A, "A"), _matrix(B, "B")
    if b.shape != a.shape:
        raise ValueError(f"B: expected A's shape {a.shape}, got {b.shape}")
    size = max(float(np.abs(a).max()), float(np.abs(b).max()))
    if size == 0.0:
        return CrawfordNumber(0.0, 0.0, 0.0)
    exponent = int(np.frexp(size)[1])
    a, b = np.ldexp(a, -exponent), np.ldexp(b, -exponent)
    rounding = 4 * len(a) * _EPS * (float(np.linalg.norm(a)) + float(np.linalg.norm(b)))
    result = _enclosed(a, b, rounding)
    lower, upper = (float(np.ldexp(x, exponent)) for x in (result.lower, result.upper))
    return CrawfordNumber(lower, upper, result.angle)


def _matrix(matrix: Any, name: str) -> _Array:
    array = real_array(matrix, name, np.dtype(np.float64))
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ValueError(f"{name}: expected shape (d, d), got {array.shape}")
    checked: _Array = np.array(symmetric_matrices(array[None], name)[0])
    return checked


def _enclosed(a: _Array, b: _Array, rounding: float) -> CrawfordNumber:
    points = np.empty((0, 2))
    best, at, angle = -np.inf, 0.0, np.pi / 4
    for _ in range(_MAX_TANGENTS):
        turned = np.cos(angle) * a + np.sin(angle) * b
        values, vectors = np.linalg.eigh(turned)
        if values[0] - rounding > best:
            best, at = float(values[0]) - rounding, angle
        x = vectors[:, 0]
        points = np.vstack([points, [x @ a @ x, x @ b @ x]])
        nearest = _nearest(points)
        upper = float(np.linalg.norm(nearest))
        around = bool((points @ nearest < 0).any())  # whether the points' hull holds the origin
        if upper <= rounding or (around and not best > 0):
            return CrawfordNumber(0.0, 0.0, at)
        if upper - best <= max(_TOLERANCE * upper, 2 * rounding):
            break
        angle = float(np.arctan2(nearest[1], nearest[0]))
    if not best > 0:  # no angle shows that the pencil is definite
        return CrawfordNumber(0.0, upper + rounding, at)
    return CrawfordNumber(best, max(upper + rounding, best), at)


def _nearest(points: _Array) -> _Array:
    """Point of the segments between `points` (m, 2) that is nearest to the origin."""
    first, second = (points[i] for i in np.triu_indices(len(points)))
    along = second - first
    length = np.einsum("ij,ij->i", along, along)
    share = -np.einsum("ij,ij->i", first, along) / np.where(length > 0, length, 1.0)
    result = first + np.clip(share, 0.0, 1.0)[:, None] * along
    nearest: _Array = result[np.einsum("ij,ij->i", result, result).argmin()]
    return nearest


def eigenvalue_bounds(eigenvalues: ArrayLike, crawford: float, perturbation: float) -> _Array:
    r"""Intervals that contain the eigenvalues of a pencil under a bounded perturbation.

    Stewart (1979): if A and B are perturbed by symmetric E and F with
    :math:`\epsilon = \sqrt{|E|_2^2 + |F|_2^2} < c(A, B)`, the pencil is still definite, and the
    angles :math:`\arctan \lambda` of its eigenvalues, in order, move by at most
    :math:`\arcsin(\epsilon / c)`.

    Parameters
    ----------
    eigenvalues : array-like of shape (m,)
        Eigenvalues of ``A v = lambda B v``, with B positive definite.
    crawford : float >= 0
        Crawford number of the pencil, or a lower bound of it.
    perturbation : float >= 0
        Bound on epsilon.

    Returns
    -------
    ndarray of shape (m, 2)
        Lower and upper ends. The ends hold for eigenvalues of the perturbed pencil if its second
        matrix is also positive definite, as class matrices are. Ends without a bound are infinite.

    Raises
    ------
    ValueError
        If an argument is negative or not a number.

    References
    ----------
    G. W. Stewart, "Perturbation bounds for the definite generalized eigenvalue problem", Linear
    Algebra Appl. 23, 1979. G. W. Stewart and J. Sun, "Matrix Perturbation Theory", 1990, VI.3.

    Examples
    --------
    >>> from eigenfeat.pencils import eigenvalue_bounds
    >>> eigenvalue_bounds([1.0], crawford=2.0, perturbation=1.0).round(3)
    array([[0.268, 3.732]])
    """
    values = real_array(eigenvalues, "eigenvalues", np.dtype(np.float64))
    if values.ndim != 1 or np.isnan(values).any():
        raise ValueError(f"eigenvalues: expected numbers of shape (m,), got {values!r}")
    crawford = check_number(crawford, "crawford", at_least=0.0)
    perturbation = check_number(perturbation, "perturbation", at_least=0.0)
    out = np.empty((len(values), 2))
    out[:, 0], out[:, 1] = -np.inf, np.inf
    if perturbation < crawford:
        angles = np.arctan(values)
        turn = np.arcsin(perturbation / crawford)
        slack = 4 * _EPS  # rounding of the angles
        for column, ends in enumerate((angles - turn - slack, angles + turn + slack)):
            inside = np.abs(ends) < np.pi / 2
            out[inside, column] = np.tan(ends[inside])
    return out


# ---- pairs of classes ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairConditions:
    """Conditioning of the eigenvalues of P pencils; see `measure_pairs`.

    The sampling error is the estimated distance of the two matrices from their limits for
    infinitely many samples, ``sqrt(|E_i|^2 + (1 + ridge)^2 |E_j|^2)`` with ``|E_c|`` from
    `spread_error`. Crawford numbers include the ridge; they are lower bounds, to 1e-6.
    """

    pairs: Labels  # (P, 2) numerator and denominator
    crawford: _Array  # (P,)
    sampling_error: _Array  # (P,)

    def bounds(self, pairs: Labels, eigenvalues: _Array) -> _Array:
        """Ends (F, 2) of the `eigenvalues` (F,) of `pairs` (F, 2) for infinitely many samples.

        The ends are those of `eigenvalue_bounds` for the estimate `sampling_error`, infinite if
        the sampling error is not below the Crawford number, as with few samples.
        """
        known = {tuple(pair): at for at, pair in enumerate(self.pairs.tolist())}
        out = np.empty((len(eigenvalues), 2))
        for row, (pair, value) in enumerate(zip(pairs.tolist(), eigenvalues, strict=True)):
            at = known[tuple(pair)]
            crawford_and_error = float(self.crawford[at]), float(self.sampling_error[at])
            out[row] = eigenvalue_bounds([value], *crawford_and_error)[0]
        return out


def conditions_of(matrices: ClassMatrices, problems: Problems) -> PairConditions:
    """Form each pencil, one at a time, and measure it."""
    crawford, error = np.empty((2, len(problems.items)))
    for row, item in enumerate(problems.items):
        batch = matrices.batch(item[None])
        numerator, denominator = item.tolist()
        crawford[row] = crawford_number(batch.numerators[0], _with_shift(batch)).lower
        upper = _error(batch.numerators[0], matrices.effective_samples(numerator))
        lower = _error(batch.denominators[0], matrices.effective_samples(denominator))
        error[row] = np.hypot(upper, (1.0 + matrices.ridges[denominator]) * lower)
    return PairConditions(problems.names, crawford, error)


def _with_shift(batch: Batch) -> _Array:
    matrix = batch.denominators[0].copy()
    matrix[np.diag_indices_from(matrix)] += batch.shifts[0]
    return matrix


def _error(matrix: _Array, n: float) -> float:
    return spread_error(np.maximum(np.linalg.eigvalsh(matrix), 0.0), n)
