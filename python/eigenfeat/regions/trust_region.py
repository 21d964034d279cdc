r"""Quadratics over balls: global minima, and proved signs.

The trust-region subproblem :math:`\min x^T A x + 2 g^T x,\ |x| \le r` with any symmetric
:math:`A`, alone and in stacks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.matrices import symmetric_matrices
from eigenfeat._base.validation import RealArray, check_flag, real_array

__all__ = ["BallMinimum", "SignCertificate", "certified_sign", "trust_region_minimum"]

_Float64s = npt.NDArray[np.float64]
_Result = TypeVar("_Result", "BallMinimum", "SignCertificate")


@dataclass(frozen=True, eq=False)
class BallMinimum:
    """Global minima of n quadratics over balls; without the leading axis for a single quadratic.

    Attributes
    ----------
    value : ndarray of shape (n,)
        ``min x^T A x + 2 g^T x + constant``.
    x : ndarray of shape (n, d)
        A minimiser; the hard case may have two, or a sphere of minimisers.
    multiplier : ndarray of shape (n,)
        mu >= max(0, -a_min) with ``(A + mu I) x = -g`` and ``mu (radius - |x|) = 0``. Infinite for
        a radius of 0 and a nonzero slope.
    hard_case : ndarray of bool, shape (n,)
        Whether mu is ``-a_min`` to working precision, ``d eps |A|``.
    gap : ndarray of shape (n,)
        Estimate of the largest error of `value`: ``|q(x) - dual bound at mu|`` plus an allowance
        for rounding, ``4 sqrt(d) eps (|A| radius^2 + 2 |g| radius)`` for dense matrices and 8 eps
        times the sum of the terms' magnitudes for diagonal matrices. The allowance sufficed in
        experiments but is not proved; `certified_sign` gives proved bounds.
    residual : ndarray of shape (n,)
        ``|(A + mu I) x + g|`` over ``|A| |x| + |g|``, at least ``mu |radius - |x||`` over
        ``|A| radius + |g|``.
    iterations : ndarray of int, shape (n,)
        Newton steps on the secular equation.
    """

    value: Any
    x: RealArray
    multiplier: Any
    hard_case: Any
    gap: Any
    residual: Any
    iterations: Any


@dataclass(frozen=True, eq=False)
class SignCertificate:
    """Proved signs of the minima of n quadratics over balls; a single sign has no leading axis.

    Attributes
    ----------
    sign : ndarray of int, shape (n,)
        1: the minimum is at least 0. -1: it is below 0. 0: undecided because of rounding.
    lower : ndarray of shape (n,)
        Lower bounds of the minimum, including rounding, only as tight as the sign required.
    upper : ndarray of shape (n,)
        Upper bounds of the minimum, including rounding, only as tight as the sign required.
    passes : ndarray of int, shape (n,)
        Number of evaluations of the secular equation; 0 if the first bounds sufficed.
    """

    sign: Any
    lower: Any
    upper: Any
    passes: Any


def trust_region_minimum(
    A: npt.ArrayLike,
    g: npt.ArrayLike,
    radius: npt.ArrayLike,
    constant: npt.ArrayLike = 0.0,
    *,
    diagonal: bool = False,
    n_threads: int | None = None,
) -> BallMinimum:
    r"""Global minimum of ``x^T A x + 2 g^T x + constant`` over ``|x| <= radius``.

    `A` may be indefinite, singular or zero. Note the factors: the usual form
    :math:`\tfrac12 x^T H x + h^T x` has :math:`A = H / 2` and :math:`g = h / 2`.

    Parameters
    ----------
    A : array-like of shape (d, d) or (n, d, d); with `diagonal` (d,) or (n, d)
        Symmetric matrices, or diagonals. A single matrix is used for all items; with six or more
        items it is eigendecomposed once, and each item costs O(d^2). Separate matrices are reduced
        to tridiagonal form, 4/3 d^3 flops. Computed in float64.
    g : array-like of shape (d,) or (n, d)
        Half the gradients at 0.
    radius : float or array-like of shape (n,)
        Radii >= 0.
    constant : float or array-like of shape (n,), default=0
        Added to the values.
    diagonal : bool, default=False
        Whether `A` holds diagonals.
    n_threads : int or None, default=None
        Number of threads; all by default. The result does not depend on it, bit for bit.

    Returns
    -------
    BallMinimum
        Values, minimisers, multipliers, hard cases, gaps and residuals.

    Raises
    ------
    ValueError
        If shapes do not match, a matrix is not symmetric to rounding, a number is not finite, or a
        radius is negative.

    Warns
    -----
    RuntimeWarning
        If an item did not converge, that is, if its residual, or ``q(x)`` minus the dual bound over
        ``|A| radius^2 + 2 |g| radius``, exceeds ``(64 + 2 d) eps``, or `x` is outside the ball.

    References
    ----------
    J. J. More and D. C. Sorensen, "Computing a trust region step", SIAM J. Sci. Stat. Comput. 4,
    1983. N. Parrish, "Supervised Dimensionality Reduction for Different Learning Architectures",
    PhD thesis, University of Washington, 2012, Appendix B.

    Examples
    --------
    >>> from eigenfeat.regions import trust_region_minimum
    >>> found = trust_region_minimum([2.0, -1.0], [0.0, 0.0], 2.0, diagonal=True)
    >>> found.value, found.multiplier, found.hard_case
    (-4.0, 1.0, True)
    """
    problem = _problem(A, g, radius, constant, diagonal)
    minima = core.minimise_over_ball(
        problem.A, problem.g, problem.radius, threads.resolve(n_threads)
    )
    if minima.status.any():
        items = ", ".join(str(i) for i in np.flatnonzero(minima.status)[:5])
        warnings.warn(f"no convergence: item {items}", RuntimeWarning, stacklevel=2)
    result = BallMinimum(
        value=minima.values + problem.constant,
        x=minima.points,
        multiplier=minima.multipliers,
        hard_case=minima.hard.astype(bool),
        gap=minima.gaps,
        residual=minima.residuals,
        iterations=minima.iterations,
    )
    return _first(result) if problem.single else result


def certified_sign(
    A: npt.ArrayLike,
    g: npt.ArrayLike,
    constant: npt.ArrayLike,
    radius: npt.ArrayLike,
    *,
    diagonal: bool = False,
    n_threads: int | None = None,
) -> SignCertificate:
    r"""Prove whether ``x^T A x + 2 g^T x + constant >= 0`` for all ``|x| <= radius``.

    Every multiplier :math:`\mu \ge \max(0, -a_{min})` gives the lower bound
    :math:`c - \sum_i g_i^2 / (a_i + \mu) - \mu r^2`, and every point of the ball an upper bound.
    The search stops once a bound determines the sign. Rounding never gives a wrong sign: if both
    bounds are 0 to within rounding, the sign is 0.

    Parameters
    ----------
    A : array-like of shape (d, d) or (n, d, d); with `diagonal` (d,) or (n, d)
        Symmetric matrices, or diagonals, as in `trust_region_minimum`. For dense matrices, the
        bounds include the rounding error of the reduction, at most 4 d (d + 20) eps ``|A|`` for any
        matrix, and 128 times this number from d = 2,049, where LAPACK's blocked code is used. If
        the sign is then undecided, the measured rounding error of the eigenvectors is used.
    g : array-like of shape (d,) or (n, d)
        Half the gradients at 0.
    constant : float or array-like of shape (n,)
        Constants of the quadratics.
    radius : float or array-like of shape (n,)
        Radii >= 0.
    diagonal : bool, default=False
        Whether `A` holds diagonals.
    n_threads : int or None, default=None
        Number of threads; all by default. The result does not depend on it, bit for bit.

    Returns
    -------
    SignCertificate
        Signs and bounds that prove them.

    Raises
    ------
    ValueError
        See `trust_region_minimum`.

    Examples
    --------
    >>> from eigenfeat.regions import certified_sign
    >>> certified_sign([1.0, -1.0], [0.0, 0.5], [3.0, 1.0], [1.0, 1.0], diagonal=True).sign
    array([ 1, -1], dtype=int32)
    """
    problem = _problem(A, g, radius, constant, diagonal)
    found = core.certify_over_ball(
        problem.A, problem.g, problem.constant, problem.radius, threads.resolve(n_threads)
    )
    result = SignCertificate(found.verdicts, found.lower, found.upper, found.passes)
    return _first(result) if problem.single else result


def _first(result: _Result) -> _Result:
    """The result of the first item alone."""
    items = [getattr(result, name)[0] for name in vars(result)]
    return type(result)(*(item if item.ndim else item.item() for item in items))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Checked arguments of n quadratics over balls."""

    A: _Float64s  # (m, d, d) or (m, d), m = 1 or n
    g: _Float64s  # (n, d)
    radius: _Float64s  # (n,)
    constant: _Float64s  # (n,)
    single: bool


def _problem(A: Any, g: Any, radius: Any, constant: Any, diagonal: bool) -> _Problem:
    diagonal = check_flag(diagonal, "diagonal")
    slopes, radii, constants = (
        _finite(g, "g"),
        _finite(radius, "radius"),
        _finite(constant, "constant"),
    )
    # `symmetric_matrices` checks the entries of dense matrices.
    a = _finite(A, "A") if diagonal else real_array(A, "A", np.dtype(np.float64))
    axes = 1 if diagonal else 2
    d = a.shape[-1] if a.ndim else 0
    if a.ndim not in (axes, axes + 1) or d == 0 or (axes == 2 and a.shape[-2] != d):
        expected = "(d,) or (n, d)" if diagonal else "(d, d) or (n, d, d)"
        raise ValueError(f"A: expected shape {expected}, got {a.shape}")
    if slopes.ndim not in (1, 2) or slopes.shape[-1] != d:
        raise ValueError(f"g: expected shape ({d},) or (n, {d}), got {slopes.shape}")
    if radii.ndim > 1 or constants.ndim > 1:
        raise ValueError("radius, constant: expected numbers or shape (n,), got more dimensions")
    if (radii < 0).any():
        raise ValueError(f"radius: expected numbers >= 0, got {radii.min():g}")
    shapes = {"A": a.shape[:-axes], "g": slopes.shape[:-1]}
    shapes |= {"radius": radii.shape, "constant": constants.shape}
    counts = {name: shape[0] for name, shape in shapes.items() if shape}
    n = max(counts.values(), default=1)
    for name, count in counts.items():
        if count != n:
            raise ValueError(f"{name}: expected {n} items, as in other arguments, got {count}")
    if not diagonal:
        a = np.array(symmetric_matrices(a.reshape(-1, d, d), "A")).reshape(a.shape)
    return _Problem(
        np.ascontiguousarray(a.reshape(-1, *a.shape[-axes:])),
        np.ascontiguousarray(np.broadcast_to(slopes, (n, d))),
        np.ascontiguousarray(np.broadcast_to(radii, (n,))),
        np.ascontiguousarray(np.broadcast_to(constants, (n,))),
        single=not counts,
    )


def _finite(values: Any, name: str) -> _Float64s:
    array = real_array(values, name, np.dtype(np.float64))
    finite = np.isfinite(array)
    if not finite.all():
        at = tuple(np.argwhere(~finite)[0].tolist())
        where = f" at {at[0] if len(at) == 1 else at}" if at else ""
        raise ValueError(f"{name}: expected finite numbers, got {array[at]}{where}")
    return array
