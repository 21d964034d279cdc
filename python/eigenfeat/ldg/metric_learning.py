r"""Metric learning from labels, with which Parrish (2012), chapter 3, compares LDG.

ITML minimises the divergence of a Mahalanobis metric M from the identity,

.. math::
    \mathrm{tr} M - \log\det M \quad \text{s.t.} \quad d_M(x_i, x_j)^2 \le u
    \ \text{if}\ g_i = g_j, \quad d_M(x_i, x_j)^2 \ge v \ \text{else} \qquad (2.11),

with slack, by cyclic Bregman projections (Davis et al. 2007, algorithm 1). Its features
:math:`\Lambda^{1/2} L^T x` of :math:`M = L \Lambda L^T`, each split at its mean, are ranked by
mutual information with the labels less redundancy (section 2.2.5).
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from eigenfeat._base.types import RandomState, Targets
from eigenfeat._base.validation import MOST
from eigenfeat.ldg._solving.base import ClassReducer
from eigenfeat.ldg._solving.metrics import (
    check_quantiles,
    features_of,
    learnt_metric,
    pair_count,
    pairs_of,
    ranked_by_information,
)
from eigenfeat.ldg._solving.scatters import (
    Array,
    ClassDeviations,
    PrincipalBasis,
    Reduction,
    count_components,
)
from eigenfeat.samples.estimator import Iterative, with_steps

if TYPE_CHECKING:
    from eigenfeat.samples.blocks import RowBlocks

__all__ = [
    "ITML",
    "features_of",
    "learnt_metric",
    "pair_count",
    "pairs_of",
    "ranked_by_information",
]


class ITML(Iterative, ClassReducer):
    """Information-theoretic metric learning (2.11) with features ranked by mutual information.

    Use it for a Mahalanobis metric from pairs of samples, with up to a few hundred columns. Tune
    `slack`. User guide: :doc:`/guide/reduction`.

    The constraints, with slack, bound distances of random pairs of samples by quantiles of these
    distances: from above for pairs of one class, from below for pairs of two classes. The cost is
    O(min(d, n)^2) for each pair and sweep.

    Parameters
    ----------
    n_components : int or None, default=None
        Features to keep, best first; None keeps all, which is the whole metric.
    slack : float > 0, default=1
        Weight of violated constraints against the metric's divergence from the identity.
    n_pairs : int or None, default=None
        Number of pairs; None uses 20 k (k - 1) for k classes, at least 200.
    quantiles : pair of float, default=(0.05, 0.95)
        Quantiles of the squared distances that give the bounds u and v.
    tol : float > 0, default=1e-3
        The iteration stops when a sweep changes the multipliers by at most this relative amount.
    max_iter : int, default=1000
        Maximum number of sweeps.
    random_state : int, RandomState or None, default=0
        Seed of the pairs.

    Attributes
    ----------
    components_ : (ell, d) array
        Rows of ``Lambda^(1/2) L^T``: distances between features are those of the metric.
    metric_ : (d, d) array
        M.
    bounds_ : (2,) array
        u and v, in the units of the samples.
    n_iter_ : int
        Number of sweeps.
    mean_, classes_
        As in `RegularizedFisher`.

    Warns
    -----
    ConvergenceWarning
        If the multipliers have not converged after `max_iter` sweeps.

    See Also
    --------
    LDG : Faster; any number of features.
    sklearn.neighbors.NeighborhoodComponentsAnalysis : By gradients.

    References
    ----------
    J. Davis, B. Kulis, P. Jain, S. Sra and I. Dhillon, "Information-theoretic metric learning",
    ICML 2007. N. Parrish, thesis, University of Washington, 2012, equation 2.11.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.ldg import ITML
    >>> X, y = load_iris(return_X_y=True)
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(ITML(n_components=2), KNeighborsClassifier(3))
    >>> round(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    0.96
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ClassReducer._parameter_constraints,
        "slack": [Interval(Real, 0, None, closed="neither")],
        "n_pairs": [Interval(Integral, 1, MOST, closed="both"), None],
        "quantiles": ["array-like"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }
    _in_blocks = False

    def __init__(
        self,
        n_components: int | None = None,
        *,
        slack: float = 1.0,
        n_pairs: int | None = None,
        quantiles: tuple[float, float] = (0.05, 0.95),
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: RandomState = 0,
    ) -> None:
        self.n_components = n_components
        self.slack = slack
        self.n_pairs = n_pairs
        self.quantiles = quantiles
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @with_steps
    def fit(self, X: ArrayLike | RowBlocks, y: Targets = None) -> ITML:
        """Learn the metric.

        Parameters
        ----------
        X : (n, d) array-like
            Finite samples.
        y : (n,) array-like
            Labels of at least two classes.

        Returns
        -------
        ITML
            The estimator itself. If an error is raised, it is unchanged.
        """
        return super().fit(X, y)

    def _reduce(self, rows: ClassDeviations) -> Reduction:
        X = rows.centred
        quantiles = check_quantiles(self.quantiles)
        codes = np.repeat(np.arange(len(rows.counts)), rows.counts)
        count = pair_count(self.n_pairs, len(rows.counts), X.shape[1])
        first, second = check_random_state(self.random_state).randint(len(X), size=(2, count))
        result = self._solve(X, codes, (first, second), quantiles)
        result.attributes["bounds_"] *= rows.unit**2
        return result

    def _solve(
        self,
        X: Array,
        codes: NDArray[np.intp],
        pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
        quantiles: tuple[float, float],
    ) -> Reduction:
        """The metric of pairs of samples, and `n_components` features.

        Outside the span of the samples, where they do not differ, the metric is the identity. With
        fewer samples than columns it is computed within the span, and features outside come last.
        """
        n, d = X.shape
        m = count_components(self.n_components, d, "number of columns")
        basis = PrincipalBasis.of(X).basis if n < d else None
        rows = X if basis is None else X @ basis
        gaps, same, bounds = pairs_of(rows, codes, *pairs, quantiles)
        metric, sweeps, _ = learnt_metric(
            gaps,
            same,
            bounds,
            slack=self.slack,
            tol=self.tol,
            max_iter=self.max_iter,
            stops=self._step_done,
        )
        if sweeps > self.max_iter:
            warnings.warn(
                f"ITML: {self.max_iter} sweeps were not enough; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        directions = features_of(metric)
        r = len(metric)
        selected = (
            ranked_by_information(rows @ directions, codes, min(m, r)) if m < d else np.arange(r)
        )
        directions = directions[:, selected]
        if basis is not None:
            outside = np.linalg.qr(basis, mode="complete")[0][:, r:m]
            directions = np.hstack([basis @ directions, outside])
            metric = np.eye(d) + basis @ (metric - np.eye(r)) @ basis.T
        result = {
            "metric_": metric,
            "bounds_": np.array(bounds),
            "n_iter_": min(sweeps, self.max_iter),
        }
        return Reduction(directions, result)
