r"""Metric learning from labels, with which Parrish (2012), chapter 3, compares LDG.

ITML minimises the divergence of a Mahalanobis metric M from the identity,

.. math::
    \mathrm{tr} M - \log\det M \quad \text{s.t.} \quad d_M(x_i, x_j)^2 \le u
    \ \text{if}\ g_i = g_j, \quad d_M(x_i, x_j)^2 \ge v \ \text{else} \qquad (2.11),

with slack, by cyclic Bregman projections (Davis et al. 2007, algorithm 1). With multipliers w of
the pairs' gaps z, and s = 1 for pairs of one class and -1 for others,

.. math:: M^{-1} = I + \sum_i s_i w_i z_i z_i^T.

A projection onto one constraint changes :math:`s_i w_i` by :math:`\delta`, and M by
:math:`-\delta / (1 + \delta z^T M z) \, M z z^T M`.

The features :math:`\Lambda^{1/2} L^T x` of :math:`M = L \Lambda L^T`, each split at its mean, are
ranked by mutual information with the labels less redundancy (section 2.2.5).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv, dsyr
from scipy.special import entr
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from eigenfeat._base.types import Codes, RandomState
from eigenfeat._base.validation import MOST, physical_memory, warn_caller
from eigenfeat.ldg._solving.base import ClassReducer
from eigenfeat.ldg._solving.scatters import Array, ClassDeviations, PrincipalBasis
from eigenfeat.pencils.rayleigh_matrices import count_components
from eigenfeat.samples.estimator import Iterative, with_steps

__all__ = [
    "ITML",
    "features_of",
    "learnt_metric",
    "pair_count",
    "pairs_of",
    "ranked_by_information",
]


_QUANTILES = (0.05, 0.95)  # of the squared distances of pairs: u and v
_MIN_SQUARE = 1e-12  # smallest squared distance of different samples, relative to the largest


class ITML(Iterative, ClassReducer):
    """Information-theoretic metric learning (2.11) with features ranked by mutual information.

    Use it for a Mahalanobis metric from pairs of samples, with up to a few hundred columns. Tune
    `slack`. User guide: :doc:`/guide/reduction`.

    The constraints, with slack, bound distances of random pairs of samples by the quantiles .05
    and .95 of these distances: from above for pairs of one class, from below for others. The cost
    is O(min(d, n)^2) for each pair and sweep.

    Parameters
    ----------
    n_components : int or None, default=None
        Features to keep, best first; None keeps all, which is the whole metric.
    slack : float > 0, default=1
        Weight of violated constraints against the metric's divergence from the identity.
    n_pairs : int or None, default=None
        Number of pairs; None uses 20 k (k - 1) for k classes, at least 200.
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
        The metric M.
    bounds_ : (2,) array
        Bounds u and v of the squared distances, in the units of the samples.
    n_iter_ : int
        Number of sweeps.
    mean_ : (d,) array
        Mean of the samples.
    classes_ : (k,) array
        Labels, sorted.

    Warns
    -----
    ConvergenceWarning
        If the multipliers have not converged after `max_iter` sweeps.

    See Also
    --------
    LDG : Faster; any number of features.
    sklearn.neighbors.NeighborhoodComponentsAnalysis : A linear map learnt by gradients.

    References
    ----------
    J. Davis, B. Kulis, P. Jain, S. Sra and I. Dhillon, "Information-theoretic metric learning",
    ICML 2007. N. Parrish, thesis, University of Washington, 2012, equation 2.11.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.ldg import ITML
    >>> X, y = load_iris(return_X_y=True)
    >>> ITML(n_components=2).fit_transform(X, y).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ClassReducer._parameter_constraints,
        "slack": [Interval(Real, 0, None, closed="neither")],
        "n_pairs": [Interval(Integral, 1, MOST, closed="both"), None],
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
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: RandomState = 0,
    ) -> None:
        self.n_components = n_components
        self.slack = slack
        self.n_pairs = n_pairs
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    fit = with_steps(ClassReducer.fit)

    def _solve(self, rows: ClassDeviations) -> Array:
        """The metric of pairs of samples, and `n_components` features.

        Outside the span of the samples, where they do not differ, the metric is the identity. With
        fewer samples than columns it is computed within the span, and features outside come last.
        """
        X = rows.centred
        n, d = X.shape
        m = count_components(self.n_components, d, "number of columns")
        codes = np.repeat(np.arange(len(rows.counts)), rows.counts)
        count = pair_count(self.n_pairs, len(rows.counts), d)
        first, second = check_random_state(self.random_state).randint(n, size=(2, count))
        basis = PrincipalBasis.of(X).basis if n < d else None
        X = X if basis is None else X @ basis
        gaps, same, bounds = pairs_of(X, codes, first, second)
        options: Any = {"slack": self.slack, "tol": self.tol, "max_iter": self.max_iter}
        metric, sweeps, _ = learnt_metric(gaps, same, bounds, stops=self._step_done, **options)
        if sweeps > self.max_iter:
            warn_caller(
                f"ITML: {self.max_iter} sweeps were not enough; raise max_iter or tol",
                ConvergenceWarning,
            )
        directions, r = features_of(metric), len(metric)
        if m < d:
            directions = directions[:, ranked_by_information(X @ directions, codes, min(m, r))]
        if basis is not None:
            outside = np.linalg.qr(basis, mode="complete")[0][:, r:m]
            directions = np.hstack([basis @ directions, outside])
            metric = np.eye(d) + basis @ (metric - np.eye(r)) @ basis.T
        with np.errstate(over="ignore"):
            self.metric_, self.bounds_ = metric, np.array(bounds) * rows.unit * rows.unit
        self.n_iter_ = min(sweeps, self.max_iter)
        return directions


def pair_count(given: int | None, n_classes: int, n_columns: int) -> int:
    """Return the number of pairs: as given, or 20 k (k - 1), at least 200.

    MemoryError if the pairs' differences do not fit into memory.
    """
    count = max(20 * n_classes * (n_classes - 1), 200) if given is None else int(given)
    if 24 * count * n_columns > physical_memory():  # both samples of each pair, and differences
        raise MemoryError(f"n_pairs: expected pairs that fit into memory, got {count}")
    return count


def pairs_of(
    X: Array, codes: NDArray[np.intp], first: NDArray[np.intp], second: NDArray[np.intp]
) -> tuple[Array, NDArray[np.bool_], tuple[float, float]]:
    """Return differences (p, d) of pairs of samples, the mask of pairs of one class, and bounds.

    Pairs of equal samples are left out; ValueError if there are no others. Bounds are quantiles of
    the squared distances.
    """
    gaps = X[first] - X[second]
    squares = np.einsum("ij,ij->i", gaps, gaps)
    distinct = squares > _MIN_SQUARE * squares.max(initial=0.0)
    if not distinct.any():
        raise ValueError("n_pairs: expected pairs of samples that differ, got equal samples only")
    low, high = np.quantile(squares[distinct], _QUANTILES).tolist()
    same = codes[first] == codes[second]
    return gaps[distinct], same[distinct], (low, high)


def learnt_metric(
    gaps: Array,
    same: NDArray[np.bool_],
    bounds: tuple[float, float],
    *,
    slack: float,
    tol: float,
    max_iter: int,
    stops: Callable[[], bool] = lambda: False,
) -> tuple[Array, int, Array]:
    """Return M of (2.11), the number of sweeps, and the multipliers w (p,).

    After each sweep `stops` is called; if it returns True, that sweep is the last. Without
    convergence the number of sweeps is `max_iter` + 1.
    """
    d, varies = gaps.shape[1], np.flatnonzero(gaps.any(axis=0))
    gaps = gaps[:, varies]
    metric = np.eye(len(varies), order="F")  # only the upper triangle is updated
    relaxed, weights = np.where(same, *bounds), np.zeros(len(gaps))
    share = slack / (slack + 1)  # part of a violation that the metric removes
    sweep, converged = 0, False
    while sweep < max_iter and not converged:
        sweep, before = sweep + 1, weights.copy()
        for i, (gap, sign) in enumerate(zip(gaps, np.where(same, 1.0, -1.0), strict=True)):
            image = dsymv(1.0, metric, gap)
            distance = gap @ image
            step = min(weights[i], share * sign * (1 / distance - 1 / relaxed[i]))
            if step == 0:
                continue
            weights[i] -= step
            relaxed[i] = 1 / (1 / relaxed[i] + sign * step / slack)
            turn = sign * step / (1 - sign * step * distance)
            metric = dsyr(turn, image, a=metric, overwrite_a=1)
        change = np.abs(weights - before).sum()
        converged = stops() or change <= tol * (weights.sum() + before.sum())
    upper = np.triu(metric, 1)
    result = np.eye(d)  # in columns where no pair differs, M is the identity
    result[np.ix_(varies, varies)] = upper + upper.T + np.diag(np.diag(metric))
    return result, sweep + (not converged), weights


def features_of(metric: Array) -> Array:
    """Return ``L Lambda^(1/2)`` (d, d), largest eigenvalue first: features with M's distances."""
    values, vectors = np.linalg.eigh(metric)
    directions: Array = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    return directions


def ranked_by_information(features: Array, codes: Codes, count: int) -> NDArray[np.intp]:
    """Return indices of the best `count` features, by maximal relevance and minimal redundancy.

    The criterion of Peng et al. (2005): mutual information with the codes (n,), minus the mean
    mutual information with the features chosen before. Features (n, d) are split at their means;
    ties go to the lower index.
    """
    bits = (features > features.mean(axis=0)).astype(np.intp)
    relevance = _information(bits, codes)
    chosen: list[int] = []
    redundancy = np.zeros(len(relevance))
    left = np.ones(len(relevance), dtype=bool)
    for _ in range(count):
        value = relevance - redundancy / max(len(chosen), 1)
        best = int(np.argmax(np.where(left, value, -np.inf)))
        chosen.append(best)
        left[best] = False
        redundancy += _information(bits, bits[:, best])
    return np.array(chosen)


def _information(bits: NDArray[np.intp], codes: NDArray[np.integer[Any]]) -> Array:
    """Return the mutual information (d,) of each column of bits (n, d) with codes, in nats."""
    classes = np.eye(int(codes.max()) + 1)[codes]
    ones, counts = bits.T @ classes, classes.sum(axis=0)
    joint = np.stack([ones, counts - ones]) / len(codes)
    marginals = entr(joint.sum(axis=2)).sum(axis=0) + entr(counts / len(codes)).sum()
    return np.asarray(marginals - entr(joint).sum(axis=(0, 2)))
