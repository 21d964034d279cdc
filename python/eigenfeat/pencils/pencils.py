r"""Generalized symmetric eigenproblems, alone, in stacks, and of pairs of classes.

The largest eigenpairs of :math:`A v = \lambda B v` with :math:`A` symmetric and :math:`B` symmetric
positive definite, scaled to :math:`v^T B v = 1`. With the second moments of classes for A and B,
the eigenvectors are the directions of pairs of classes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.matrices import symmetric_matrices
from eigenfeat._base.types import Codes, Labels, Pairs, Seed
from eigenfeat._base.validation import (
    RealArray,
    check_memory,
    check_whole,
    real_array,
    show,
)
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.contrasts import Contrasts
from eigenfeat.pencils.crawford import PairConditions, conditions_of
from eigenfeat.pencils.problems import (
    SOLVERS,
    Batch,
    ClassMatrices,
    PencilOptions,
    Problems,
    check_solver,
    check_threshold,
    directions_per_pair,
    matrices_of,
)
from eigenfeat.pencils.span import span_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


__all__ = [
    "PairDirections",
    "PencilResult",
    "Status",
    "generalized_eigh",
    "measure_pairs",
    "pair_directions",
    "solve",
    "solve_pairs",
]

# A batch has at least _MIN_MATRICES matrices, and more up to a number of bytes. The limit is higher
# if problems share matrices: larger batches then form and factorise them less often.
_MAX_SHARED_BYTES = 2**30
_MAX_BYTES = 2**27
_MIN_MATRICES = 16


class Status(IntEnum):
    """Numerical outcome of one eigenproblem."""

    OK = 0  #: computed, and the residuals are within the tolerance
    NOT_POSITIVE_DEFINITE = 1  #: B is singular or indefinite to working precision
    NOT_CONVERGED = 2  #: LAPACK reported a failure to converge
    INACCURATE = 3  #: computed, but a residual exceeds the tolerance


@dataclass(frozen=True, eq=False)
class PencilResult:
    """Eigenpairs of n pencils; for a single pencil, without the leading axis.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n, m)
        Descending; NaN after the first ``n_eigenpairs``.
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
        Solver of the result: "full", "subset", "tridiagonal" or "krylov".
    status : ndarray of int, shape (n,), or Status
        Outcome of each pencil.
    """

    eigenvalues: RealArray
    vectors: RealArray
    residuals: RealArray
    n_eigenpairs: Any
    iterations: Any
    solver: Any
    status: Any

    def _first(self) -> PencilResult:
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
    solver : {"auto", "full", "subset", "tridiagonal", "krylov"}, default="auto"
        full: LAPACK's sygvd. subset: reduction to standard form, then syevr for the wanted range.
        tridiagonal: for up to 64 and d / 2 vectors, multisection and inverse iteration after the
        reduction, else subset. krylov: block Lanczos; tridiagonal for small problems (d below 256,
        or below about 3 `n_vectors` + 96) and where Lanczos does not converge. auto: the cheapest
        by a measured cost model.
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
        If no pencil has a result: a single pencil with a `B` that is not positive definite to
        working precision, or a stack of such pencils alone.

    Warns
    -----
    RuntimeWarning
        If some pencils of a stack have no result (their entries are NaN), or a residual is above
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
    options = core.PencilOptions(
        n_vectors=m,
        threshold=check_threshold(threshold),
        solver=check_solver(solver),
        n_threads=threads.resolve(n_threads),
    )
    batch = Batch(
        symmetric_matrices(numerators, "A"),
        symmetric_matrices(denominators, "B"),
        np.zeros(len(denominators), dtype=numerators.dtype),
        items.astype(np.int64, copy=False),
    )
    result = solve(batch, options)
    _report(result.status, [f"pencil {i}" for i in range(n)])
    return result._first() if single else result


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


def solve(batch: Batch, options: core.PencilOptions) -> PencilResult:
    """Solve checked pencils in the core."""
    solution = core.solve_pencils(
        batch.numerators, batch.denominators, batch.shifts, batch.items, options
    )
    return PencilResult(
        eigenvalues=solution.eigenvalues,
        vectors=np.swapaxes(solution.vectors, 1, 2),
        residuals=solution.residuals,
        n_eigenpairs=solution.found,
        iterations=solution.iterations,
        solver=np.array(SOLVERS)[solution.solver],
        status=solution.status,
    )


def _report(status: Codes, names: list[str]) -> None:
    """Raise LinAlgError if no pencil has a result; warn if only some have, or are inaccurate."""
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
    if ((status == Status.NOT_POSITIVE_DEFINITE) | (status == Status.NOT_CONVERGED)).all():
        raise np.linalg.LinAlgError("; ".join(parts))
    if parts:
        warnings.warn("; ".join(parts), RuntimeWarning, stacklevel=3)


# ---- pairs of classes ----------------------------------------------------------------------------


@threads.one_blas_thread()
def pair_directions(
    moments: ClassMoments,
    pairs: Pairs | Contrasts = "all",
    ridge: float | str = 0.1,
    n_directions: int | str = 10,
    threshold: float | str | None = None,
    denominator: str = "second_moment",
    solver: str = "auto",
    n_threads: int | None = None,
    *,
    constant: bool = False,
    scale: ArrayLike | None = None,
    random_state: Seed = None,
) -> PairDirections:
    r"""Directions with a large mean square for one class of a pair and a small one for the other.

    For an ordered pair (i, j), these are the leading eigenvectors of

    .. math::
        C_i v = \lambda (C_j + r_j I) v, \quad r_j = \text{ridge} \cdot \mathrm{tr}(C_j) / d,
        \quad v^T (C_j + r_j I) v = 1

    (Karampatziakis and Mineiro 2014, eq. 3), where :math:`C_c` is the second moment of class c.
    User guide: :doc:`/guide/gem`.

    Parameters
    ----------
    moments : ClassMoments
        Moments of at least two classes of positive weight; classes without weight are ignored.
    pairs : str, tuple, sequence of (label, label) or Contrasts, default="all"
        As in :class:`eigenfeat.GEM`.
    ridge : float >= 0 or "auto", default=0.1
        Ridge, relative to a denominator's mean eigenvalue. "auto": .03 to 1 by its spectrum.
    n_directions : int >= 1 or "auto", default=10
        Maximum number of directions per pair. "auto": 10, or fewer with more than 300 pairs.
    threshold : float or "auto", optional
        Minimum eigenvalue; the paper advises more than 1. "auto": above what sampling noise alone
        would give.
    denominator : {"second_moment", "covariance"}, default="second_moment"
        With "covariance", both matrices are about the denominator's mean.
    solver : {"auto", "full", "subset", "tridiagonal", "krylov"}, default="auto"
        Solver, as in `generalized_eigh`.
    n_threads : int, optional
        Number of threads; all by default. The result does not depend on it, bit for bit.
    constant : bool, default=False
        Solve for samples (x - m, 1), where m is the mean of all samples. The constant gets no
        ridge; the returned offset is for x.
    scale : array-like of shape (d,), optional
        Positive column scales. Pairs are solved for x / scale; the returned directions are for x.
    random_state : None, int or NumPy generator, default=None
        Seed for random pairs.

    Returns
    -------
    PairDirections
        Directions, pair by pair; the entry of largest magnitude of each is positive. A warning says
        which pairs did not converge or have a residual above the tolerance.

    Raises
    ------
    SingularDenominatorError
        If a denominator is singular; the message names the class and a ridge that suffices.
    numpy.linalg.LinAlgError
        If no pair could be solved.

    See Also
    --------
    eigenfeat.GEM : Features of these directions.
    eigenfeat.generalized_eigh : One pencil.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import ClassMoments
    >>> from eigenfeat.pencils import pair_directions
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> pairs = pair_directions(ClassMoments().update(X, y), n_directions=2)
    >>> pairs.pairs.tolist(), pairs.vectors.shape
    ([[0, 1], [0, 1], [1, 0], [1, 0]], (64, 4))
    """
    return solve_pairs(
        moments,
        PencilOptions(
            pairs,
            ridge,
            n_directions,
            threshold,
            denominator,
            constant,
            scale,
            solver,
            random_state,
            n_threads,
        ),
    )


@threads.one_blas_thread()
def measure_pairs(moments: ClassMoments, options: PencilOptions) -> PairConditions:
    """Measure the pencils that `solve_pairs` solves with these options.

    Each pair needs about ten decompositions of a matrix of the columns. Karampatziakis and Mineiro
    (2014), section 2.2; Koltchinskii and Lounici, Bernoulli 23, 2017.
    """
    labels = _active_classes(moments)
    options = options.checked(moments.n_features_in_)
    problems, matrices, _ = matrices_of(moments, labels, options)
    return conditions_of(matrices, problems)


def _active_classes(moments: ClassMoments) -> Labels:
    """Labels of the classes of positive weight, at least two."""
    if not isinstance(moments, ClassMoments):
        raise ValueError(f"moments: expected ClassMoments, got {show(moments)}")
    labels = moments.active_classes
    check_two_labels(labels, name="moments")
    return labels


@dataclass(frozen=True, eq=False)
class PairDirections:
    """F directions of P class pairs, for d features.

    Attributes
    ----------
    vectors : ndarray of shape (d, F)
        One direction per column, in the units of the samples: projections are ``X @ vectors``, plus
        ``offset`` if it is not None.
    eigenvalues : ndarray of shape (F,)
        Descending within a pair: mean square of the projections of the numerator's samples, divided
        by that of the (regularised) denominator.
    pairs : ndarray of labels, shape (F, 2)
        Numerator and denominator class of each direction; for groups of classes, their names in
        `Contrasts`.
    ranks : ndarray of int, shape (F,)
        Rank within its pair, from 0.
    residuals : ndarray of shape (F,)
        Relative residuals, as in `PencilResult`.
    offset : ndarray of shape (F,), or None
        With ``constant=True``, the contribution of the constant column; with the covariance as
        denominator, minus the projection of the denominator's mean.
    solved_pairs : ndarray of labels, shape (P, 2)
        All solved pairs, including those without directions.
    status : ndarray of int, shape (P,)
        Outcome (`Status`) of each solved pair.
    iterations : ndarray of int, shape (P,)
        Iterations of krylov, as in `PencilResult`.
    solver : ndarray of str, shape (P,)
        Solver of each solved pair.
    """

    vectors: npt.NDArray[np.float64]
    eigenvalues: npt.NDArray[np.float64]
    pairs: Labels
    ranks: npt.NDArray[np.int64]
    residuals: npt.NDArray[np.float64]
    offset: npt.NDArray[np.float64] | None
    solved_pairs: Labels
    status: npt.NDArray[np.int32]
    iterations: npt.NDArray[np.int64]
    solver: npt.NDArray[np.str_]

    def __repr__(self) -> str:
        d, n = self.vectors.shape
        return f"PairDirections({n} directions of {len(self.status)} pairs, {d} features)"


_Array = npt.NDArray[np.float64]
_Indices = npt.NDArray[np.int64]


def solve_pairs(moments: ClassMoments, options: PencilOptions) -> PairDirections:
    """`pair_directions` with its arguments in one object (Algorithm 1, lines 2 to 5)."""
    labels = _active_classes(moments)
    options = options.checked(moments.n_features_in_)
    span = None
    if moments.keeps_samples:
        about_mean = bool(options.constant) or options.about_mean
        span = span_of(moments, options.scale, about_mean=about_mean)
    problems, matrices, options = matrices_of(moments, labels, options, span)
    result = _solve_problems(problems, matrices, options)
    if (result.status != Status.OK).any():
        _report(result.status, [f"pair {show(tuple(pair))}" for pair in problems.names.tolist()])
    if span is None:
        return result
    constants = None
    if matrices.centre is not None and result.offset is not None:
        constants = result.offset + matrices.centre @ result.vectors
    vectors, offset = span.mapped(result.vectors, result.offset, constants)
    return replace(result, vectors=vectors, offset=offset)


# ---- batches with a bounded number of matrices ---------------------------------------------------


def _solve_problems(
    problems: Problems, matrices: ClassMatrices, options: PencilOptions
) -> PairDirections:
    """Solve batch by batch, then raise SingularDenominatorError if denominators were singular."""
    m = directions_per_pair(options.n_directions, len(problems.items), problems.random_groups)
    m, threshold = min(m, matrices.order), options.threshold
    if options.noise_threshold:
        threshold = 1.0
    batches = _batches(problems.items, matrices.order, options.about_mean)
    solver = options.solver
    if solver == "auto":  # chosen once, for all batches
        per_denominator = len(problems.items) / len(np.unique(problems.items[:, 1]))
        solver = core.choose_solver(matrices.order, m, per_denominator)
    core_options = core.PencilOptions(
        n_vectors=m,
        threshold=threshold,  # type: ignore[arg-type]
        solver=solver,
        n_threads=threads.resolve(options.n_threads),
    )
    _check_memory(problems, batches, matrices.order, options.about_mean, core_options)
    results: list[PencilResult] = []
    failed: set[int] = set()
    for rows in batches:
        batch = matrices.batch(problems.items[rows])
        result = solve(batch, core_options)
        if options.noise_threshold:
            result = _exceeding(result, matrices.noise_edges(problems.items[rows]))
        singular = result.status == Status.NOT_POSITIVE_DEFINITE
        failed.update(problems.items[rows[singular], 1].tolist())
        results.append(result)
        del batch
    if failed:
        groups = sorted(failed)
        what = "class" if problems.of_classes else "contrast"
        raise matrices.singular(groups, what, problems.names_below(groups))
    return _joined(results, batches, problems, matrices, options)


def _exceeding(result: PencilResult, edges: _Array) -> PencilResult:
    """Leave out the eigenvalues that do not exceed `edges` (n,)."""
    selected = (result.eigenvalues > edges[:, None]).sum(axis=1)  # False for NaN
    return replace(
        result,
        n_eigenpairs=np.minimum(result.n_eigenpairs, selected).astype(result.n_eigenpairs.dtype),
    )


def _offset_below(vectors: _Array, below: _Indices, matrices: ClassMatrices) -> _Array:
    """Minus the projection (F,) of each denominator's mean; vectors are in the scaled columns."""
    offset = np.empty(len(below))
    scale = 1.0 if matrices.scale is None else matrices.scale
    for group in np.unique(below).tolist():
        columns = below == group
        offset[columns] = -(matrices.mean(group) / scale) @ vectors[:, columns]
    return offset


def _batches(items: _Indices, order: int, about_mean: bool) -> list[_Indices]:
    """Divide the problems into batches that need a bounded number of matrices.

    About the denominator's mean, no two problems share a numerator.
    """
    n_groups = len(np.unique(items))
    n_bytes = _MAX_SHARED_BYTES if len(items) > n_groups else _MAX_BYTES
    room = max(_MIN_MATRICES, n_bytes // (8 * order * order))
    matrix = items
    if about_mean:
        matrix = np.column_stack([items.max() + 1 + np.arange(len(items)), items[:, 1]])
    if len(np.unique(matrix)) <= room:
        return [np.arange(len(items))]
    block = items[:, 1] if about_mean else items[:, 1] // max(1, room // 4)
    rows = np.lexsort((items[:, 1], items[:, 0], block))
    return [np.sort(batch) for batch in _cut(rows, matrix, room)]


def _cut(rows: npt.NDArray[Any], items: _Indices, room: int) -> Iterator[npt.NDArray[Any]]:
    """Cut `rows` wherever the next row of `items` would need more than `room` matrices."""
    needed: set[int] = set()
    first = 0
    for at, row in enumerate(rows):
        needed.update(items[row].tolist())
        if len(needed) > room:
            yield rows[first:at]
            needed, first = set(items[row].tolist()), at
    yield rows[first:]


def _check_memory(
    problems: Problems,
    batches: list[_Indices],
    order: int,
    about_mean: bool,
    options: core.PencilOptions,
) -> None:
    """Raise MemoryError, before allocating, if matrices, scratch and directions would not fit."""
    n_matrices, largest = 0, 0.0
    for rows in batches:
        items = problems.items[rows]
        n_below = len(np.unique(items[:, 1]))
        formed = len(np.unique(items)) + len(rows) * about_mean
        n_matrices = max(n_matrices, formed)
        largest = max(largest, core.pencil_bytes(order, len(rows), n_below, options))
    halves = 0
    if any(group.others for group in problems.groups):
        halves = 2 + len(problems.labels).bit_length()
    directions = len(problems.items) * options.n_vectors / order  # upper bound, in matrices
    scratch = math.ceil(largest / (8 * order * order) + 4 * directions)
    check_memory("pair_directions", n_matrices + 2 + halves + scratch, order)


def _joined(
    results: list[PencilResult],
    batches: list[_Indices],
    problems: Problems,
    matrices: ClassMatrices,
    options: PencilOptions,
) -> PairDirections:
    """Eigenpairs in the order of the problems and in the units of the samples."""
    order = np.argsort(np.concatenate(batches))

    def all_of(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(result, name) for result in results])[order]

    values, d = all_of("eigenvalues"), matrices.n_features
    selected = np.arange(values.shape[1]) < all_of("n_eigenpairs")[:, None]
    pair_of, ranks = np.nonzero(selected)
    rows = np.concatenate([np.swapaxes(result.vectors, 1, 2) for result in results])
    directions = rows[order][selected].T
    vectors = np.ascontiguousarray(directions[:d])
    offset = directions[d].copy() if options.bordered else None
    if options.about_mean:
        offset = _offset_below(vectors, problems.items[pair_of, 1], matrices)
    if matrices.scale is not None:
        vectors /= matrices.scale[:, None]
    if offset is not None and matrices.centre is not None:
        offset = offset - matrices.centre @ vectors
    return PairDirections(
        vectors=vectors,
        eigenvalues=values[selected],
        pairs=problems.names[pair_of],
        ranks=ranks,
        residuals=all_of("residuals")[selected],
        offset=offset,
        solved_pairs=problems.names,
        status=all_of("status"),
        iterations=all_of("iterations"),
        solver=all_of("solver"),
    )
