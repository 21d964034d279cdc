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
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from eigenfeat._base.types import Codes, RandomState, Targets
from eigenfeat._base.validation import MOST, physical_memory, show
from eigenfeat.ldg._solving.base import ClassReducer
from eigenfeat.ldg._solving.scatters import Array, ClassRows, Reduction, count_components
from eigenfeat.rows.callbacks import Iterative, StoppedError, with_steps

if TYPE_CHECKING:
    from eigenfeat.rows.blocks import RowBlocks

__all__ = ["ITML", "NCA", "ranked_by_information"]

_LEAST = 1e-12  # of a squared distance, relative to the largest: equal rows constrain nothing


class ITML(ClassReducer):
    """Information-theoretic metric learning (2.11) with features ranked by mutual information.

    The constraints, with slack, bound distances of random pairs of rows by quantiles of distances
    between random rows: from above for pairs of one class, from below for pairs of two classes.
    The cost is O(d^2) for each pair and sweep.

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
        Stops when a sweep changes the multipliers by at most this relative amount.
    max_iter : int, default=1000
        Maximum number of sweeps.
    random_state : int, RandomState or None, default=0
        For drawing the pairs.

    Attributes
    ----------
    components_ : (ell, d) array
        Rows of ``Lambda^(1/2) L^T``: distances between features are those of the metric.
    metric_ : (d, d) array
        M.
    bounds_ : (2,) array
        u and v, in the units of the rows.
    n_iter_ : int
        Number of sweeps.
    mean_, classes_, n_features_in_
        As in `RegularizedFisher`.

    Raises
    ------
    ValueError
        If rows, labels or parameters are invalid, or rows are sparse.

    Warns
    -----
    ConvergenceWarning
        If the multipliers have not converged after `max_iter` sweeps.

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

    def _reduce(self, rows: ClassRows) -> Reduction:
        X = rows.centred
        d = X.shape[1]
        m = count_components(self.n_components, d, "number of columns")
        codes = np.repeat(np.arange(len(rows.counts)), rows.counts)
        gaps, same, bounds = self._pairs(X, codes)
        metric, sweeps, _ = learnt_metric(
            gaps, same, bounds, slack=self.slack, tol=self.tol, max_iter=self.max_iter
        )
        if sweeps > self.max_iter:
            warnings.warn(
                f"ITML: {self.max_iter} sweeps were not enough; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        values, vectors = np.linalg.eigh(metric)
        directions = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
        kept = ranked_by_information(X @ directions, codes, m) if m < d else np.arange(d)
        found = {
            "metric_": metric,
            "bounds_": np.array(bounds) * rows.unit**2,
            "n_iter_": min(sweeps, self.max_iter),
        }
        return Reduction(directions[:, kept], found)

    def _pairs(
        self, X: Array, codes: NDArray[np.intp]
    ) -> tuple[Array, NDArray[np.bool_], tuple[float, float]]:
        """Differences of pairs (p, d), which of them are of one class, and the bounds."""
        low, high = _check_quantiles(self.quantiles)
        k = int(codes.max()) + 1
        count = max(20 * k * (k - 1), 200) if self.n_pairs is None else int(self.n_pairs)
        if 3 * count * X.shape[1] * X.itemsize > physical_memory():
            raise MemoryError(f"n_pairs: expected pairs that fit into memory, got {count}")
        random = check_random_state(self.random_state)
        first, second = random.randint(len(X), size=(2, count))
        gaps = X[first] - X[second]
        squares = np.einsum("ij,ij->i", gaps, gaps)
        apart = squares > _LEAST * squares.max(initial=0.0)
        if not apart.any():
            raise ValueError("n_pairs: expected pairs of rows that differ, got equal rows only")
        bounds = np.quantile(squares[apart], [low, high])
        same = codes[first] == codes[second]
        return gaps[apart], same[apart], (float(bounds[0]), float(bounds[1]))


class NCA(Iterative, ClassReducer):
    """Neighbourhood components analysis by scikit-learn, with the interface of this module.

    Maximises the probability that a row's random neighbour is of its class, by gradient steps.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of directions; None means as many as columns.
    init : {"auto", "pca", "lda", "identity", "random"}, default="auto"
        Initial directions.
    max_iter : int, default=50
        Maximum number of iterations.
    tol : float > 0, default=1e-5
        Tolerance of the optimiser.
    random_state : int, RandomState or None, default=0
        For random starts.

    Attributes
    ----------
    components_ : (ell, d) array
        Directions, one a row. The entry of largest magnitude is positive.
    n_iter_ : int
        Number of iterations.
    mean_, classes_, n_features_in_
        As in `RegularizedFisher`.

    Raises
    ------
    ValueError
        If rows, labels or parameters are invalid, or rows are sparse.

    References
    ----------
    J. Goldberger et al., "Neighbourhood components analysis", NIPS 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.ldg import NCA
    >>> X, y = load_iris(return_X_y=True)
    >>> NCA(n_components=2).fit_transform(X, y).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ClassReducer._parameter_constraints,
        "init": [StrOptions({"auto", "pca", "lda", "identity", "random"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }
    _in_blocks = False

    def __init__(
        self,
        n_components: int | None = None,
        *,
        init: str = "auto",
        max_iter: int = 50,
        tol: float = 1e-5,
        random_state: RandomState = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @with_steps
    def fit(self, X: ArrayLike | RowBlocks, y: Targets = None) -> NCA:
        """Find the components.

        Parameters
        ----------
        X : (n, d) array-like
            Finite rows.
        y : (n,) array-like
            Labels of at least two classes.

        Returns
        -------
        NCA
            The estimator itself. If an error is raised, it is unchanged.
        """
        return super().fit(X, y)

    def _reduce(self, rows: ClassRows) -> Reduction:
        X = rows.centred
        m = count_components(self.n_components, X.shape[1], "number of columns")
        codes = np.repeat(np.arange(len(rows.counts)), rows.counts)
        search = NeighborhoodComponentsAnalysis(
            m,
            init=self.init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
        )
        size = float(np.sqrt((X**2).mean())) or 1.0
        found, steps = self._steps(search, X / size, codes)
        return Reduction(found.T / (size * rows.unit), {"n_iter_": steps})

    def _steps(self, search: Any, X: Array, codes: Codes) -> tuple[Array, int]:
        """Directions, one a row, and the number of steps."""
        seen: list[Any] = [None, 0]

        def told(flat: Array, step: int) -> None:
            seen[:] = flat.reshape(-1, X.shape[1]).copy(), step
            if self._step_done():
                raise StoppedError

        search.callback = told
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                search.fit(X, codes)
        except StoppedError:
            return seen[0], int(seen[1])
        return search.components_, int(search.n_iter_)


def learnt_metric(
    gaps: Array,
    same: NDArray[np.bool_],
    bounds: tuple[float, float],
    *,
    slack: float,
    tol: float,
    max_iter: int,
) -> tuple[Array, int, Array]:
    """M of (2.11) by Bregman projections onto one pair's constraint after the other.

    Returns
    -------
    metric : (d, d) array
    sweeps : int
        More than `max_iter` if these were not enough.
    weights : (p,) array
        Multipliers, 0 or more: ``M^-1`` is the identity plus the pairs' ``gap gap^T`` by their
        multipliers, which count as negative for pairs of two classes.
    """
    metric = np.eye(gaps.shape[1])
    sign = np.where(same, 1.0, -1.0)
    held = np.where(same, *bounds)
    weights = np.zeros(len(gaps))
    for sweep in range(1, max_iter + 1):
        before = weights.copy()
        for i, gap in enumerate(gaps):
            image = metric @ gap
            distance = float(gap @ image)
            share = slack / (slack + 1)  # of the gap that the metric closes; its bound, the rest
            step = min(weights[i], share * sign[i] * (1 / distance - 1 / held[i]))
            weights[i] -= step
            held[i] = 1 / (1 / held[i] + sign[i] * step / slack)
            turn = sign[i] * step / (1 - sign[i] * step * distance)
            metric += turn * np.outer(image, image)
        size = np.abs(weights).sum() + np.abs(before).sum()
        if np.abs(weights - before).sum() <= tol * size:
            return metric, sweep, weights
    return metric, max_iter + 1, weights


def ranked_by_information(features: Array, codes: Codes, count: int) -> NDArray[np.intp]:
    """Numbers of the best features: most mutual information with the codes, least with each other.

    The criterion of maximal relevance and minimal redundancy (Peng et al. 2005), on features that
    are split at their means.

    Parameters
    ----------
    features : (n, d) array
    codes : (n,) array of classes from 0
    count : int

    Returns
    -------
    (count,) array
        Best first; of equals the lower number.
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
    """Mutual information (d,) of each column of bits with codes, in nats."""
    n = len(codes)
    classes = np.eye(int(codes.max()) + 1)[codes]
    ones = bits.T @ classes / n
    shares = classes.mean(axis=0)
    total = np.zeros(bits.shape[1])
    for joint in (ones, shares - ones):
        alone = joint.sum(axis=1, keepdims=True) * shares
        some = joint > 1e-15
        ratio = np.where(some, joint / np.where(some, alone, 1.0), 1.0)
        total += (joint * np.log(ratio)).sum(axis=1)
    return total


def _check_quantiles(quantiles: Any) -> tuple[float, float]:
    try:
        values = np.asarray(quantiles, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (2,) or not (0 <= values[0] < values[1] <= 1):
        raise ValueError(
            f"quantiles: expected two numbers 0 <= low < high <= 1, got {show(quantiles)}"
        )
    return float(values[0]), float(values[1])
