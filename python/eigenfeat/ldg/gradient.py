"""Minimise the discriminative Gaussian objective directly; LDG minimises a bound of it."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from eigenfeat._base.types import RandomState
from eigenfeat._base.validation import warn_caller
from eigenfeat.ldg._solving.descent import LocalGaussians, minimise
from eigenfeat.ldg._solving.scatters import Array
from eigenfeat.ldg._solving.selection import Problem
from eigenfeat.ldg.linear import LDG
from eigenfeat.moments.columns import signed
from eigenfeat.neighbours.local_means import LocalScatters, local_neighbours
from eigenfeat.samples.estimator import Iterative, Verbose, with_steps

__all__ = ["DiscriminativeGaussian"]


class DiscriminativeGaussian(Iterative, Verbose, LDG):
    """Directions that minimise a smooth leave-one-out error of local Gaussians.

    Use it for two or three dimensions; it takes seconds longer than `LDG`. Set `n_components`
    first, then `n_neighbors`. User guide: :doc:`/guide/reduction`; the objective and its
    minimisation: :doc:`/guide/objectives`.

    The search by L-BFGS starts from `LDG`; each number of components needs its own search.

    Parameters
    ----------
    n_components : int, "cv", "greedy" or sequence of int, default="cv"
        Number of directions, or how to choose it, as in `LDG`.
    gamma : float >= 0, "cv" or sequence of float, default="cv"
        Weight of A, as in `LDG`, for the initial directions only.
    n_neighbors : int, "cv" or sequence of int, default="cv"
        Neighbours of a local mean, as in `LDG`.
    standardize : bool, default=True
        Whether columns are divided by their standard deviations first. Constant columns become 0.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds that choose `n_neighbors`.
    n_threads : int or None, default=None
        Number of threads; None uses all. Results do not depend on it.
    tol : float >= 0, default=1e-4
        Largest gradient along the constraint at the end, relative to the gradient at the start.
    max_iter : int, default=1000
        Maximum number of steps.
    verbose : int, default=0
        1 prints the objective after each step on stderr.

    Attributes
    ----------
    components_ : (n_components, d) array
        Orthonormal directions in standardised features, one per row.
    eigenvalues_ : (n_components,) array
        Ascending eigenvalues of B^T times the gradient, which is diagonal in this basis.
    objective_ : float
        Smallest value of the objective.
    objective_history_ : (steps + 1,) array
        Values at the start and after each step.
    gradient_norm_ : float
        Norm of the gradient along the constraint, relative to the start.
    n_iter_ : int
        Number of steps.
    stop_reason_ : str
        "converged", "precision" (the decrease is below rounding error), "iterations" or "stopped"
        (by a callback).
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

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ended the search.

    See Also
    --------
    LDG : One eigenproblem; computes the initial directions.
    sklearn.neighbors.NeighborhoodComponentsAnalysis : Random neighbours.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, section 3.1.1.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat.ldg import DiscriminativeGaussian
    >>> X, y = load_wine(return_X_y=True)
    >>> model = DiscriminativeGaussian(n_components=2, n_neighbors=8).fit(X, y)
    >>> bool(model.objective_ < model.objective_history_[0])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LDG._parameter_constraints,
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int | str | Sequence[int] = "cv",
        *,
        gamma: float | str | Sequence[float] = "cv",
        n_neighbors: int | str | Sequence[int] = "cv",
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: RandomState = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_components,
            gamma=gamma,
            n_neighbors=n_neighbors,
            standardize=standardize,
            random_state=random_state,
            n_threads=n_threads,
        )
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    fit = with_steps(LDG.fit)

    def _solve(
        self, problem: Problem, scatters: LocalScatters, candidates: list[int]
    ) -> tuple[Array, Array]:
        """Minimise from LDG's directions."""
        _, start = super()._solve(problem, scatters, candidates)
        objective = self._objective(problem)
        result = minimise(
            objective,
            start,
            tol=self.tol,
            max_iter=self.max_iter,
            log=self._log,
            stops=self._step_done,
        )
        self.objective_, self.gradient_norm_ = result.objective, result.gradient_norm
        self.objective_history_ = np.array(result.history)
        self.n_iter_, self.stop_reason_ = len(result.history) - 1, result.reason
        if result.reason == "iterations":
            warn_caller(
                f"DiscriminativeGaussian: after {self.n_iter_} steps the relative gradient is "
                f"{self.gradient_norm_:.1e}, above tol={self.tol:g}; raise max_iter or tol",
                ConvergenceWarning,
            )
        # A rotation makes B^T times the gradient, which is symmetric up to rounding, diagonal.
        product = result.point.T @ objective(result.point)[1]
        curvatures, rotation = np.linalg.eigh((product + product.T) / 2)
        return curvatures, signed(result.point @ rotation)

    def _objective(self, problem: Problem) -> LocalGaussians:
        rows, codes = problem.coordinates, problem.samples.codes
        if np.bincount(codes).max() < 2:
            raise ValueError(
                "y: expected a class of two samples or more, got one sample of each class"
            )
        neighbours = local_neighbours(
            rows, codes, problem.n_classes, self.n_neighbors_, n_threads=self.n_threads
        )
        priors = np.bincount(codes) / len(codes)
        return LocalGaussians(rows.astype(np.float64), codes, neighbours, priors)
