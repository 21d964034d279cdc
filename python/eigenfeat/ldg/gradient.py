"""Minimise the discriminative Gaussian objective, of which LDG minimises a bound."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from eigenfeat._base.spread import signed
from eigenfeat._base.types import RandomState, Rows
from eigenfeat._base.verbose import Verbose, warn_caller
from eigenfeat.ldg._solving.descent import LocalGaussians, minimise
from eigenfeat.ldg.linear import LDG
from eigenfeat.neighbours.local_means import local_neighbours
from eigenfeat.rows.estimator import Iterative, unchanged_on_error, with_steps

__all__ = ["DiscriminativeGaussian"]


class DiscriminativeGaussian(Iterative, Verbose, LDG):
    r"""Directions that minimise a smooth leave-one-out error of local Gaussians.

    Use it for two or three dimensions, if some seconds do not matter. Set `n_components` first,
    then `n_neighbors`. User guide: :doc:`/guide/reduction`.

    Algorithm 1: a gradient search over matrices B with :math:`B^T B = I` for a minimum of

    .. math::
        f(B) = \sum_i \log \sum_j p_j e^{-|B^T \Delta_{ij}|^2 / 2}
               + \tfrac12 |B^T \Delta_{i,g_i}|^2 \quad (3.4),

    where :math:`\Delta_{ij}` is sample i less the mean of its nearest neighbours in class j. It
    starts from `LDG`, the minimum of a bound, and orthonormalises by QR after each step (3.5). The
    minimum is local, for the neighbours of the original space, which are kept fixed. Samples
    without another sample of their class are ignored. B is not nested: each number of components
    needs its own search.

    The search ends when the gradient along the constraint is at most `tol` times the gradient at
    the start, or when the decrease is below rounding error. Ctrl-C ends it, too: the estimator is
    then fitted to the best directions so far, and KeyboardInterrupt is raised.

    Parameters
    ----------
    n_components, gamma, n_neighbors, standardize, random_state, n_threads
        As in `LDG`, which chooses those not given; gamma matters only for the start.
    step : {"barzilai-borwein", "halving"}, default="barzilai-borwein"
        halving: Algorithm 1, which halves the step length whenever a step would raise the
        objective. barzilai-borwein: a length from the last change of the gradient along the
        constraint, with a nonmonotone line search; ten times fewer steps.
    learning_rate : float > 0 or None, default=None
        First step length; None uses one over the norm of the gradient along the constraint.
    tol : float >= 0, default=1e-4
        Tolerance of the gradient.
    max_iter : int, default=1000
        Maximum number of steps, including rejected ones.
    verbose : int, default=0
        Whether to print the objective after each step, on standard error.

    Attributes
    ----------
    components_ : (n_components, d) array
        Orthonormal directions in standardised features, one per sample.
    eigenvalues_ : (n_components,) array
        Ascending eigenvalues of B^T times the gradient. The directions are the basis of the
        subspace in which this matrix is diagonal.
    objective_ : float
        The least value of (3.4) that was found.
    objective_history_ : (steps + 1,) array
        Values at the start and after every accepted step; with `step="halving"` they never rise.
    gradient_norm_ : float
        Norm of the gradient along the constraint over the norm of the gradient at the start.
    n_iter_ : int
        Number of steps, including rejected ones.
    stop_reason_ : str
        "converged", "precision" (the decrease is below rounding error), "iterations", "stopped" (by
        a callback) or "interrupted".
    mean_, scale_, gamma_, n_neighbors_, n_components_, cv_results_, classes_, short_classes_
        As in `LDG`.

    Raises
    ------
    ValueError
        As `LDG`.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ended the search.
    RuntimeWarning
        As `LDG`.

    See Also
    --------
    LDG : One eigenproblem; its start.
    NCA : Random neighbours instead of local Gaussians.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, section 3.1.1. Z. Wen and W. Yin, "A
    feasible method for optimization with orthogonality constraints", Math. Program. 142, 2013.

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
        "step": [StrOptions({"barzilai-borwein", "halving"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
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
        step: str = "barzilai-borwein",
        learning_rate: float | None = None,
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
        self.step = step
        self.learning_rate = learning_rate
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @with_steps
    def fit(self, X: Rows, y: ArrayLike) -> DiscriminativeGaussian:
        """Fit LDG, and minimise the objective from its directions.

        Parameters
        ----------
        X, y
            As in `LDG.fit`.

        Returns
        -------
        DiscriminativeGaussian
            The estimator itself.
        """
        with unchanged_on_error(self):
            super().fit(X, y)
            if self.stop_reason_ == "iterations":
                warn_caller(
                    f"DiscriminativeGaussian: {self.n_iter_} steps left the gradient at "
                    f"{self.gradient_norm_:.1e} of the start's, above tol={self.tol:g}; raise "
                    "max_iter or tol",
                    ConvergenceWarning,
                )
        if self.stop_reason_ == "interrupted":
            raise KeyboardInterrupt  # what was found until then stays
        return self

    def _keep(
        self,
        problem: Any,
        classes: NDArray[Any],
        n_neighbors: int,
        gamma: float,
        values: NDArray[np.float64],
        vectors: NDArray[np.float64],
    ) -> None:
        """Start from LDG's directions, and keep those that the search ends with."""
        objective = self._objective(problem, n_neighbors)
        result = minimise(
            objective,
            vectors,
            step=self.step,
            learning_rate=self.learning_rate,
            tol=self.tol,
            max_iter=self.max_iter,
            say=self._log,
            stops=self._step_done,
        )
        curvatures, rotated = _principal(result.point, objective(result.point)[1])
        super()._keep(problem, classes, n_neighbors, gamma, curvatures, rotated)
        self.objective_, self.gradient_norm_ = result.objective, result.gradient_norm
        self.objective_history_ = np.array(result.history)
        self.n_iter_, self.stop_reason_ = result.n_iter, result.reason

    def _objective(self, problem: Any, n_neighbors: int) -> LocalGaussians:
        rows, codes = problem.coordinates, problem.codes
        neighbours = local_neighbours(
            rows, codes, problem.n_classes, n_neighbors, n_threads=self.n_threads
        )
        priors = np.bincount(codes) / len(codes)
        return LocalGaussians(rows.astype(np.float64), codes, neighbours, priors)


def _principal(
    B: NDArray[np.float64], gradient: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rotate B so that B^T times the gradient, symmetric but for rounding, is diagonal."""
    product = B.T @ gradient
    values, rotation = np.linalg.eigh((product + product.T) / 2)
    return values, signed(B @ rotation)
