r"""Generalized symmetric eigenproblems, alone and in stacks.

The largest eigenpairs of :math:`A v = \lambda B v` with :math:`A` symmetric and :math:`B` symmetric
positive definite, scaled to :math:`v^T B v = 1`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.saved import Saved
from eigenfeat._base.types import Codes
from eigenfeat._base.validation import (
    RealArray,
    check_number,
    check_whole,
    real_array,
    show,
    symmetric_matrices,
)

__all__ = ["PencilResult", "Status", "check_threshold", "generalized_eigh", "report", "solve"]

_SOLVERS = ("auto", "full", "subset", "krylov")


class Status(IntEnum):
    """Numerical outcome of one eigenproblem."""

    OK = 0  #: computed, and the residuals are within the tolerance
    NOT_POSITIVE_DEFINITE = 1  #: B is singular or indefinite to working precision
    NOT_CONVERGED = 2  #: LAPACK reported a failure to converge
    INACCURATE = 3  #: computed, but a residual exceeds the tolerance


@dataclass(frozen=True, eq=False)
class PencilResult(Saved):
    """Eigenpairs of n pencils; for a single pencil, without the leading axis.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n, m)
        Descending; NaN beyond ``n_eigenpairs``.
    vectors : ndarray of shape (n, d, m)
        Eigenvectors in columns, as in `scipy.linalg.eigh`. The entry of largest magnitude is
        positive.
    residuals : ndarray of shape (n, m)
        ``|A v - lambda B v| / (max(|lambda|, |lambda_1| / 1000) |B| |v|)``.
    n_eigenpairs : ndarray of int, shape (n,), or int
        Number of eigenpairs: at most m, and only those with eigenvalue >= threshold.
    iterations : ndarray of int, shape (n,), or int
        Number of columns the operator was applied to (krylov), else 0.
    solver : ndarray of str, shape (n,), or str
        Solver of the result: "full", "subset" or "krylov".
    status : ndarray of int, shape (n,), or Status
        Outcome of each pencil.
    """

    _saved: ClassVar[dict[str, str]] = {
        "eigenvalues": "value",
        "vectors": "value",
        "residuals": "value",
        "n_eigenpairs": "value",
        "iterations": "value",
        "solver": "value",
        "status": "value",
    }

    eigenvalues: RealArray
    vectors: RealArray
    residuals: RealArray
    n_eigenpairs: Any
    iterations: Any
    solver: Any
    status: Any

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if type(self.status) is int:  # of a single pencil, as files have it
            vars(self)["status"] = Status(self.status)

    def _only(self) -> PencilResult:
        return PencilResult(
            self.eigenvalues[0],
            self.vectors[0],
            self.residuals[0],
            int(self.n_eigenpairs[0]),
            int(self.iterations[0]),
            str(self.solver[0]),
            Status(int(self.status[0])),
        )


def generalized_eigh(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    n_vectors: int | None = None,
    threshold: float | None = None,
    solver: str = "auto",
    n_threads: int | None = None,
) -> PencilResult:
    """Largest eigenpairs of ``A v = lambda B v``, for one pencil or a stack of them.

    Parameters
    ----------
    A : array-like of shape (d, d) or (n, d, d)
        Symmetric matrices. Computed in float32 if `A` and `B` both are, else in float64.
    B : array-like of shape (d, d) or (n, d, d)
        Symmetric positive definite matrices. A single `B` is used for all pencils of a stack and
        factorised once. A single `A` is also used for all.
    n_vectors : int, optional
        Number of eigenpairs, 1 to d; all by default.
    threshold : float, optional
        Minimum eigenvalue.
    solver : {"auto", "full", "subset", "krylov"}
        full: LAPACK's sygvd. subset: reduction to standard form, then syevr for the wanted range.
        krylov: block Lanczos, with subset for small problems (d below 256, or below some 3
        `n_vectors` + 96) and for those in which it does not converge. auto: the cheapest by a
        measured cost model.
    n_threads : int, optional
        Number of threads; all by default. The result does not depend on it, bit for bit.

    Returns
    -------
    PencilResult
        Eigenvalues in descending order, vectors with ``v^T B v = 1``, and status, residuals and
        iterations for each pencil.

    Raises
    ------
    ValueError
        If shapes do not match, a matrix is not symmetric to rounding or not finite (the message
        gives item and entry), or another argument is out of range.
    numpy.linalg.LinAlgError
        If no pencil has a result: a single one with a `B` that is not positive definite to working
        precision, or a stack of only such pencils.

    Warns
    -----
    RuntimeWarning
        If some pencils of a stack have no result (their numbers are NaN), or a residual is above
        the tolerance (1e-10 in float64, 1e-4 in float32). ``status`` shows which.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat import generalized_eigh
    >>> result = generalized_eigh(np.diag([2.0, 9.0]), np.diag([1.0, 3.0]))
    >>> result.eigenvalues
    array([3., 2.])
    """
    numerators, denominators, single = _stacks(A, B)
    d = numerators.shape[-1]
    m = d if n_vectors is None else check_whole(n_vectors, "n_vectors", at_least=1, at_most=d)
    n = max(len(numerators), len(denominators))
    count = np.arange(n)
    items = np.column_stack([np.minimum(count, len(s) - 1) for s in (numerators, denominators)])
    result = solve(
        symmetric_matrices(numerators, "A"),
        symmetric_matrices(denominators, "B"),
        np.zeros(len(denominators), dtype=numerators.dtype),
        items,
        m,
        check_threshold(threshold),
        solver,
        threads.resolve(n_threads),
    )
    report(result.status, [f"pencil {i}" for i in range(n)])
    return result._only() if single else result


def _stacks(A: Any, B: Any) -> tuple[RealArray, RealArray, bool]:
    a, b = real_array(A, "A"), real_array(B, "B")
    for matrix, name in ((a, "A"), (b, "B")):
        if matrix.ndim not in (2, 3) or matrix.shape[-1] != matrix.shape[-2] or not matrix.size:
            raise ValueError(f"{name}: expected shape (d, d) or (n, d, d), got {matrix.shape}")
    if b.shape[-1] != a.shape[-1] or (a.ndim == b.ndim == 3 and len(a) != len(b)):
        raise ValueError(f"B: expected a shape that fits A's {a.shape}, got {b.shape}")
    dtype = np.result_type(a, b)
    single = a.ndim == b.ndim == 2
    stacks = [np.ascontiguousarray(s, dtype=dtype).reshape(-1, *s.shape[-2:]) for s in (a, b)]
    return stacks[0], stacks[1], single


def check_threshold(threshold: float | None) -> float:
    """The number that eigenvalues must reach; None is minus infinity."""
    return -math.inf if threshold is None else check_number(threshold, "threshold", infinite=True)


def solve(
    numerators: list[RealArray],
    denominators: list[RealArray],
    shifts: RealArray,
    items: npt.NDArray[np.int64],
    n_vectors: int,
    threshold: float,
    solver: str,
    n_threads: int,
) -> PencilResult:
    """One call of the core: checked arguments, but for the solver's name."""
    if not isinstance(solver, str) or solver not in _SOLVERS:
        raise ValueError(f"solver: expected one of {', '.join(_SOLVERS)}, got {show(solver)}")
    solution = core.solve_pencils(
        numerators,
        denominators,
        shifts,
        np.ascontiguousarray(items, dtype=np.int64),
        n_vectors,
        threshold,
        solver,
        0.0,
        n_threads,
    )
    return PencilResult(
        eigenvalues=solution.eigenvalues,
        vectors=np.swapaxes(solution.vectors, 1, 2),
        residuals=solution.residuals,
        n_eigenpairs=solution.found,
        iterations=solution.iterations,
        solver=np.array(_SOLVERS)[solution.solver],
        status=solution.status,
    )


def report(status: Codes, names: list[str]) -> None:
    """The written policy: nothing at all is an error, something amiss a warning."""
    without = (status == Status.NOT_POSITIVE_DEFINITE) | (status == Status.NOT_CONVERGED)
    if without.all():
        raise np.linalg.LinAlgError(_outcomes(status, names))
    if (status != Status.OK).any():
        warnings.warn(_outcomes(status, names), RuntimeWarning, stacklevel=3)


def _outcomes(status: npt.NDArray[Any], names: list[str]) -> str:
    texts = {
        Status.NOT_POSITIVE_DEFINITE: "B is not positive definite to working precision",
        Status.NOT_CONVERGED: "the solver did not converge",
        Status.INACCURATE: "a residual exceeds the tolerance",
    }
    parts = []
    for outcome, text in texts.items():
        which = np.flatnonzero(status == outcome)
        if len(which):
            more = f" and {len(which) - 5} more" if len(which) > 5 else ""
            parts.append(f"{text}: {', '.join(names[i] for i in which[:5])}{more}")
    return "; ".join(parts)
