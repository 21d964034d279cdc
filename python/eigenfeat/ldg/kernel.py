"""LDG in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.threads import count_cores, one_blas_thread
from eigenfeat._base.types import Floats, RandomState, Rows
from eigenfeat._base.validation import FLOATS, show
from eigenfeat.expansion.features import expand
from eigenfeat.ldg._solving.coordinates import Columns, KernelRoot, check_kernel_memory
from eigenfeat.ldg._solving.scatters import Array
from eigenfeat.ldg._solving.selection import Problem
from eigenfeat.ldg.linear import LocalDiscriminant
from eigenfeat.moments.columns import deviations, in_any_order, signed
from eigenfeat.samples.block_samples import LabelledSamples
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import validate_data
from eigenfeat.samples.out_of_core import over_blocks

__all__ = ["KernelLDG"]

_NONNEGATIVE = ("additive_chi2", "chi2")  # kernels of nonnegative numbers
_UNSCALED = (*_NONNEGATIVE, "precomputed")  # kernels without standardisation
_INVARIANT = ("linear", "rbf", "laplacian")  # centred kernels that are invariant under translation


class KernelLDG(LocalDiscriminant):
    r"""LDG in the feature space of a kernel: nonlinear directions.

    Use it for curved classes with up to a few thousand samples: time is O(n^3), memory O(n^2). Tune
    `kernel_gamma` first, then `n_components`. The kernel is centred; the linear kernel gives `LDG`.
    User guide: :doc:`/guide/reduction`; equations: :doc:`/guide/objectives`.

    Parameters
    ----------
    n_components : int, "cv", "greedy" or sequence of int, default="cv"
        Number of directions, or how to choose it, as in `LDG`.
    gamma : float >= 0, "cv" or sequence of float, default="cv"
        Weight of A, as in `LDG`; it is no parameter of the kernel.
    n_neighbors : int, "cv" or sequence of int, default="cv"
        Neighbours of a local mean, as in `LDG`.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds that choose `n_neighbors`.
    n_threads : int or None, default=None
        Number of threads; None uses all. Results do not depend on it.
    kernel : str or callable, default="linear"
        One of scikit-learn's pairwise kernels, "precomputed" (`X` is then the (n, n) kernel matrix
        in `fit`, and (m, n) between new and training samples in `transform`), or a function of two
        samples that returns a number. The kernel must be positive semidefinite.
    kernel_gamma : float > 0 or None, default=None
        ``gamma`` of "rbf", "poly", "sigmoid", "laplacian" and "chi2"; None is the kernel's default.
    kernel_params : dict or None, default=None
        Further arguments of the kernel, such as `degree` and `coef0` of "poly". A callable kernel
        receives these alone.
    standardize : bool, default=True
        Whether columns are standardised before the kernel, as in `LDG`; sparse samples are only
        scaled. No effect on "precomputed", "chi2", "additive_chi2" and callable kernels.

    Attributes
    ----------
    dual_coef_ : (n, n_components) array
        Projections are ``K @ dual_coef_`` for the centred kernel K between samples and training
        samples. The entry of largest magnitude in each column is positive.
    eigenvalues_ : (n_components,) array
        Eigenvalues of :math:`V - \gamma A` in the feature space, ascending.
    kernel_eigenvalues_ : (r,) array
        Nonzero eigenvalues of the centred kernel matrix, descending.
    X_fit_ : (n, d) array or sparse matrix
        The training samples; for "precomputed" kernels their kernel matrix.
    mean_ : (d,) array or None
        Means that are subtracted from dense samples, if any.
    scale_ : (d,) array or None
        Standard deviations that divide samples, if any; 1 for constant columns.
    kernel_means_ : (n,) array
        Column means of the kernel matrix, used for centring.
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
        If the (n, n) matrices exceed the machine's memory.

    See Also
    --------
    LDG : Linear directions.
    sklearn.decomposition.KernelPCA : Without labels.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, section 3.3.2. B. Schölkopf et al.,
    "Nonlinear component analysis as a kernel eigenvalue problem", Neural Computation 10, 1998.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from eigenfeat.ldg import KernelLDG
    >>> X, y = make_circles(200, noise=0.15, factor=0.4, random_state=0)
    >>> KernelLDG(1, kernel="rbf", kernel_gamma=1.0, n_neighbors=8).fit_transform(X, y).shape
    (200, 1)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LocalDiscriminant._parameter_constraints,
        "kernel": [StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), callable],
        "kernel_gamma": [Interval(Real, 0, None, closed="neither"), None],
        "kernel_params": [dict, None],
    }

    def __init__(
        self,
        n_components: int | str | Sequence[int] = "cv",
        *,
        kernel: str | Callable[..., float] = "linear",
        kernel_gamma: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        standardize: bool = True,
        gamma: float | str | Sequence[float] = "cv",
        n_neighbors: int | str | Sequence[int] = "cv",
        random_state: RandomState = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.kernel_gamma = kernel_gamma
        self.kernel_params = kernel_params
        self.standardize = standardize
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.random_state = random_state
        self.n_threads = n_threads

    @over_blocks
    def transform(self, X: Rows | RowBlocks) -> Floats:
        """Project samples onto the directions of the feature space.

        Parameters
        ----------
        X : (m, d) array-like, sparse matrix or RowBlocks
            Finite samples; with a precomputed kernel, its (m, n) values with the training samples.
            For blocks the result is an iterator over blocks.

        Returns
        -------
        (m, n_components) array, float32 if `X` is float32, else float64
        """
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, order="C", reset=False)
        kernel = self._kernel(rows, self.X_fit_)
        # Columns of the coefficients sum to 0, so that no other centring is needed.
        centred = np.ascontiguousarray(kernel - self.kernel_means_)
        projected = expand(centred, self.dual_coef_, expansion="none", n_threads=self.n_threads)
        return projected.astype(rows.dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.dual_coef_.shape[1])

    def _problem(self, samples: LabelledSamples) -> Problem:
        """Return coordinates of the samples in the feature space."""
        X = samples.together().X
        check_kernel_memory("KernelLDG", X.shape[0])
        self.X_fit_ = X.copy()
        self.mean_, self.scale_ = self._standards(X)
        kernel = self._kernel(X, X, in_any_order(X))
        if kernel.shape[0] != kernel.shape[1]:
            raise ValueError(f"X: expected a square kernel matrix, got shape {kernel.shape}")
        root = KernelRoot.of(kernel)
        self.kernel_eigenvalues_, self.kernel_means_ = root.eigenvalues, root.means
        rank = len(root.eigenvalues)
        columns = Columns(np.zeros(rank), np.ones(rank), np.arange(rank))
        return Problem(samples, root.rows, root.rows, root, columns)

    def _keep(self, problem: Problem, vectors: Array) -> None:
        self.dual_coef_ = signed(problem.basis.expand(vectors))

    def _standards(self, X: Any) -> tuple[Array | None, Array | None]:
        """Return the columns' means and standard deviations; None if they are not used."""
        unscaled = not isinstance(self.kernel, str) or self.kernel in _UNSCALED
        scaled = self.standardize and not unscaled
        # Samples are centred: products of samples far from 0 would cancel.
        centred = not issparse(X) and (scaled or self.kernel in _INVARIANT)
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)) if centred else None
        if not scaled:
            return mean, None
        deviation = deviations(X)
        return mean, np.where(deviation > 0, deviation, 1.0)

    def _standardised(self, X: Any) -> Any:
        """Return samples in float64, centred and scaled as the training samples."""
        rows = X.astype(np.float64)
        if self.mean_ is not None:
            rows = (rows.toarray() if issparse(rows) else rows) - self.mean_
        if self.scale_ is None:
            return rows
        return rows.multiply(1.0 / self.scale_).tocsr() if issparse(rows) else rows / self.scale_

    def _check_signs(self, X: Any) -> None:
        """Raise ValueError for negative numbers if the kernel divides by sums of two numbers."""
        if isinstance(self.kernel, str) and self.kernel in _NONNEGATIVE:
            least = X.min() if X.shape[0] else 0.0
            if least < 0:
                raise ValueError(
                    f"X: expected numbers >= 0 with kernel={self.kernel!r}, got {show(least)}"
                )

    def _kernel(self, X: Any, other: Any, order: Any = None) -> Array:
        """Return the kernel between samples, in float64."""
        self._check_signs(X)
        count_cores()
        parameters = dict(self.kernel_params or {})
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            matrix = X
        elif callable(self.kernel):
            matrix = pairwise_kernels(X, other, metric=self.kernel, **parameters)
        else:
            if self.kernel_gamma is not None:
                parameters["gamma"] = self.kernel_gamma
            rows, others = (self._standardised(part) for part in (X, other))
            if order is not None:
                rows, others = rows[:, order], others[:, order]
                if issparse(rows):
                    rows.sort_indices()
                    others.sort_indices()
            with one_blas_thread():
                matrix = pairwise_kernels(
                    rows, others, metric=self.kernel, filter_params=True, **parameters
                )
        dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        result: Array = np.asarray(dense, dtype=np.float64)
        if not np.isfinite(result).all():
            at = tuple(np.argwhere(~np.isfinite(result))[0].tolist())
            raise ValueError(f"kernel: expected finite values, got {show(result[at])} at {at}")
        return result
