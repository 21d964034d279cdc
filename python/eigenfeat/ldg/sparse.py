"""LDG with sparse directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from eigenfeat._base.types import RandomState
from eigenfeat._base.validation import check_memory, warn_caller
from eigenfeat.ldg._solving.admm import SparseDirection, sparse_direction
from eigenfeat.ldg._solving.coordinates import Basis
from eigenfeat.ldg._solving.scatters import Array
from eigenfeat.ldg._solving.selection import Problem
from eigenfeat.ldg.linear import LDG
from eigenfeat.moments.columns import signed
from eigenfeat.neighbours.local_means import LocalScatters
from eigenfeat.samples.block_samples import LabelledSamples

__all__ = ["SparseLDG"]

_N_MATRICES = 12  # (d, d) arrays in memory at a time


class SparseLDG(LDG):
    """LDG with sparse directions: each has nonzero weights on few columns.

    Use it for directions that people read. Set `n_components` and `sparsity` first. User guide:
    :doc:`/guide/reduction`; the convex relaxation: :doc:`/guide/objectives`.

    Parameters
    ----------
    n_components : int, "cv", "greedy" or sequence of int, default="cv"
        Number of directions, or how to choose it with the directions of `LDG`.
    gamma : float >= 0, "cv" or sequence of float, default="cv"
        Weight of A, or how to choose it with the directions of `LDG`.
    n_neighbors : int, "cv" or sequence of int, default="cv"
        Neighbours of a local mean, or how to choose their number, as in `LDG`.
    standardize : bool, default=True
        Whether columns are divided by their standard deviations first. Constant columns become 0.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds that choose `n_neighbors`.
    n_threads : int or None, default=None
        Number of threads; None uses all. Results do not depend on it.
    sparsity : float >= 1, default=3
        Bound of ``|b|_1^2`` for a unit vector b; c columns of equal weight have ``|b|_1^2 = c``.
        Values of d or more have no effect.
    deflation : {"sparse", "orthonormal"}, default="sparse"
        How later directions differ from earlier ones: by deflation of the matrix, or by being
        orthonormal, which makes later directions less sparse.
    tol : float in (0, 1), default=1e-4
        Tolerance of both relative residuals of the solver. Weights below ``10 tol`` times a
        direction's largest weight are set to 0.
    max_iter : int, default=2000
        Maximum number of steps for each direction; a step needs an eigendecomposition (d, d).

    Attributes
    ----------
    components_ : (n_components, d) array
        Unit directions in standardised features, one per row; exactly 0 in columns not used.
    eigenvalues_ : (n_components,) array
        ``b^T (V - gamma A) b`` of the directions b, in the order in which they were computed.
    sparsity_ : (n_components,) array of int
        Number of features with nonzero weight.
    gap_ : (n_components,) array
        Certified bound of the distance from the relaxation's minimum, over the spread of the
        eigenvalues.
    leading_ : (n_components,) array
        Largest eigenvalue of the relaxation's solution, a matrix of trace 1; the relaxation is
        exact if this eigenvalue is 1.
    residuals_ : (n_components, 2) array
        Relative primal and dual residuals.
    n_iter_ : int
        The largest number of steps for a direction.
    mean_ : (d,) array
        Means of the columns; features are ``((X - mean_) / scale_) @ components_.T``.
    scale_ : (d,) array
        Standard deviations of the columns; 1 for constant columns or without `standardize`.
    gamma_ : float
        The given or chosen `gamma`.
    n_neighbors_ : int
        The given or chosen number of neighbours.
    n_components_ : int
        The given or chosen number of directions.
    cv_results_ : dict
        Candidates of each chosen parameter and their accuracies, as in `LDG`.
    classes_ : (k,) array
        Labels, sorted.
    short_classes_ : (s,) array
        Labels of classes with at most `n_neighbors_` samples, as in `LDG`.

    Raises
    ------
    MemoryError
        If the solver's (d, d) matrices exceed the machine's memory.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ended the search for a direction.

    See Also
    --------
    LDG : Dense directions, much faster.
    sklearn.decomposition.SparsePCA : Without labels.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, section 3.3.3. A. d'Aspremont et al., SIAM
    Review 49, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat.ldg import SparseLDG
    >>> X, y = load_wine(return_X_y=True)
    >>> SparseLDG(n_components=2, n_neighbors=8, sparsity=2).fit(X, y).sparsity_  # of 13 columns
    array([3, 3])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LDG._parameter_constraints,
        "sparsity": [Interval(Real, 1, None, closed="left")],
        "deflation": [StrOptions({"sparse", "orthonormal"})],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | str | Sequence[int] = "cv",
        *,
        sparsity: float = 3,
        deflation: str = "sparse",
        gamma: float | str | Sequence[float] = "cv",
        n_neighbors: int | str | Sequence[int] = "cv",
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 2000,
        random_state: RandomState = None,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(
            n_components,
            gamma=gamma,
            n_neighbors=n_neighbors,
            standardize=standardize,
            random_state=random_state,
            n_threads=n_threads,
        )
        self.sparsity = sparsity
        self.deflation = deflation
        self.tol = tol
        self.max_iter = max_iter

    _in_span: ClassVar[bool] = False

    def _problem(self, samples: LabelledSamples) -> Problem:
        """Solve in the original columns; in a rotated basis directions would not be sparse."""
        problem = super()._problem(samples)
        check_memory("SparseLDG", _N_MATRICES, problem.rows.shape[1])
        basis = Basis(None, None, problem.rows.shape[1])
        return replace(problem, coordinates=problem.rows, basis=basis)

    def _solve(
        self, problem: Problem, scatters: LocalScatters, candidates: list[int]
    ) -> tuple[Array, Array]:
        count = len(super()._solve(problem, scatters, candidates)[0])
        matrix = scatters.within - self.gamma_ * scatters.weighted
        matrix = (matrix + matrix.T) / 2
        deflate = sparsely_deflated if self.deflation == "sparse" else orthonormally_deflated
        solutions, directions = deflate(
            matrix, count, self.sparsity, tol=self.tol, max_iter=self.max_iter
        )
        self._report(solutions, matrix, directions)
        return np.einsum("ij,ij->j", directions, matrix @ directions), directions

    def _report(self, solutions: list[SparseDirection], matrix: Array, directions: Array) -> None:
        spread = float(np.ptp(np.linalg.eigvalsh(matrix))) or 1.0
        self.gap_ = np.array([result.value - result.bound for result in solutions]) / spread
        self.leading_ = np.array([result.leading for result in solutions])
        self.residuals_ = np.array([result.residuals for result in solutions])
        self.n_iter_ = max(1, *(result.n_iter for result in solutions))
        self.sparsity_ = np.count_nonzero(directions, axis=0)
        largest = self.residuals_.max(axis=1)
        failed = np.count_nonzero(largest > self.tol)
        if failed:
            warn_caller(
                f"SparseLDG: {self.max_iter} steps left residuals up to {largest.max():.1e} in "
                f"{failed} of {len(largest)} directions, above tol={self.tol:g}; raise max_iter or "
                "tol",
                ConvergenceWarning,
            )


def sparsely_deflated(
    Z: Array, count: int, sparsity: float, *, tol: float, max_iter: int
) -> tuple[list[SparseDirection], Array]:
    """Find directions (d, count) of Z successively, by sparse deflation."""
    solutions: list[SparseDirection] = []
    rest, shifted = Z.copy(), False
    values = np.linalg.eigvalsh(Z)
    rounding = 10 * len(Z) * np.finfo(np.float64).eps * float(np.abs(values).max())
    while len(solutions) < count:
        result = sparse_direction(rest, sparsity, tol=tol, max_iter=max_iter)
        b = result.vector
        value = float(b @ rest @ b)
        if value >= -rounding and not shifted:
            # A direction that was deflated to eigenvalue 0 would be found repeatedly, or mixed with
            # other directions of eigenvalue 0; a shift makes the remaining eigenvalues negative.
            below = float(np.ptp(values)) or 1.0
            rest = rest - (float(np.linalg.eigvalsh(rest)[-1]) + below) * np.eye(len(Z))
            for before in (found.vector for found in solutions):
                rest -= float(before @ rest @ before) * np.outer(before, before)
            shifted = True
            continue
        rest = rest - value * np.outer(b, b)
        solutions.append(result)
    return solutions, np.column_stack([found.vector for found in solutions])


def orthonormally_deflated(
    Z: Array, count: int, sparsity: float, *, tol: float, max_iter: int
) -> tuple[list[SparseDirection], Array]:
    """Find orthonormal directions (d, count) of Z, each in the complement of earlier directions."""
    solutions, directions = [], np.zeros((len(Z), count))
    complement = np.eye(len(Z))
    for i in range(count):
        rest = complement.T @ Z @ complement
        result = sparse_direction((rest + rest.T) / 2, sparsity, tol=tol, max_iter=max_iter)
        solutions.append(result)
        directions[:, i] = complement @ result.vector
        complement = complement @ _complement(result.vector)
    return solutions, signed(directions) + 0.0  # + 0.0 turns -0.0 into 0.0


def _complement(vector: Array) -> Array:
    """Orthonormal columns (d, d - 1) orthogonal to a unit vector, by a Householder reflection.

    Where the vector is 0, columns are unit vectors.
    """
    pivot = int(np.argmax(np.abs(vector)))
    normal = vector.copy()
    normal[pivot] += np.copysign(1.0, vector[pivot])
    reflection = np.eye(len(vector)) - (2.0 / float(normal @ normal)) * np.outer(normal, normal)
    return np.delete(reflection, pivot, axis=1)
