"""Multinomial logistic regression with second-order steps, on rows or on implicit features."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.speaking import warn_caller
from eigenfeat._base.types import RandomState, Targets, Weights
from eigenfeat._base.validation import check_number, check_whole
from eigenfeat.linear.gap_bound import gap_bound
from eigenfeat.linear.lbfgs import Minimum, minimise
from eigenfeat.linear.linear import Features, LinearClassifier
from eigenfeat.linear.logit_problem import LogitProblem, Penalty, gram_rows, uncentred
from eigenfeat.linear.logit_watch import Watch
from eigenfeat.rows.callbacks import Iterative, with_steps
from eigenfeat.rows.out_of_core import given_blocks
from eigenfeat.rows.row_weights import weighted_rows

__all__ = ["MultinomialLogit"]


class MultinomialLogit(Iterative, LinearClassifier):
    r"""Multinomial logistic regression by L-BFGS, preconditioned with a bound on the curvature.

    The objective, minimised over weights W with logits ``z_i = W^T phi_i + b``, is

    .. math::

        \sum_i w_i \ell_i + \tfrac{\mu}{2} \Bigl( \tfrac12 \sum_i w_i |z_i|^2
        + \lambda \sqrt{n} \sum_j r_j^2 |W_j|^2 \Bigr) + \tfrac{\alpha}{2} \sum_j |W_j|^2

    where :math:`\ell` is the logistic loss and :math:`r_j` the root mean square of feature j. For
    arrays and with an intercept, it is the standard deviation if the mean exceeds ten standard
    deviations. The term with :math:`\mu` is the energy of the logits: the penalty ``tr(W^T H W)``
    in the metric ``H = 1/2 Phi^T Phi + lambda sqrt(n) D^2`` that bounds the curvature of the loss.
    It does not depend on the units of the features nor, except for :math:`\lambda`, on invertible
    linear maps of them. With ``ridge_scale="common"``, all :math:`r_j^2` are replaced by their
    mean.

    Parameters
    ----------
    penalty : float >= 0, default=0.03
        Weight of the energy of the logits, mu.
    l2 : float >= 0, default=0
        Weight of the L2 penalty, alpha; ``1 / C`` in scikit-learn.
    ridge : float >= 0, default=0.5
        lambda: damping of the metric, also part of the penalty.
    ridge_scale : {"columns", "common"}, default="columns"
        Scale of lambda: the mean square of each feature, for features of mixed units, or the mean
        over all features, for features of one unit, such as GEM's. "common" shrinks the weights of
        features that are nearly always small.
    fit_intercept : bool, default=True
        Whether to add a constant feature, which is left out of the sums over j.
    gram_rows : int, "auto" or None, default="auto"
        Number of rows for the Gram matrix of the metric. The optimum does not depend on it; the
        number of iterations does. None means all, "auto" at most 20,000: fewer if a Gram matrix of
        so many costs more than the iterations that it saves, as with thousands of features that
        are not sparse and a `tol` that is not small. With fewer rows than features, the matrix is
        never formed. About 2,000 rows are cheapest if a few iterations suffice.
    tol : float > 0, default=1e-4
        Iterations stop when the estimate `gap_` is at most this fraction of the objective.
    max_iter : int >= 1, default=200
        Maximum number of iterations.
    early_stopping : bool, default=False
        Whether to hold out rows, stop once their loss has not decreased for three iterations, and
        keep the weights with the smallest held-out loss.
    validation_fraction : float, default=0.1
        Fraction of rows to hold out, class by class.
    warm_start : bool, default=False
        Whether `fit` starts from the existing weights.
    random_state : int, RandomState or None, default=0
        Seed for drawing the rows of the Gram matrix and the held-out rows.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. Results do not depend on it.
    verbose : int, default=0
        1 prints a line for each iteration on stderr.

    Attributes
    ----------
    coef_ : (k, p) array, or (1, p) with two classes
        Weights in the units of the features.
    intercept_ : (k,) array, or (1,)
    classes_ : (k,) array
        Labels, sorted.
    n_iter_ : (1,) array of int
        Number of iterations.
    objective_ : float
        The objective at `coef_`.
    objective_history_ : list of float
        Objective at the start and after every iteration.
    gradient_norm_ : float
        Norm of the gradient in the metric, ``sqrt(tr G^T H^-1 G)``.
    gap_ : float
        Estimate, not a bound, of the objective's excess over its minimum: the larger of the
        decrease predicted by the quadratic model and the decrease in the last steps. See Notes.
    stop_reason_ : {"converged", "precision", "stopped", "iterations"}
        Reason for stopping: estimated gap, rounding errors, held-out rows, or `max_iter`.
    validation_history_ : list of float
        With `early_stopping`, mean loss of the held-out rows at the start and after every
        iteration.
    n_features_in_ : int
        Number of features, p.

    Raises
    ------
    ValueError
        If there are fewer than two classes, or rows, labels, weights or parameters are invalid.

    Warns
    -----
    ConvergenceWarning
        If the search did not converge in `max_iter` iterations.

    Notes
    -----
    `X` may be an array, a sparse matrix, or :class:`ExpandedRows`, whose features are computed by
    tiles and never stored. float32 features are multiplied in float32, with sums in float64. So are
    those of a float64 array of half a million to 250 million numbers in the first steps, in a copy;
    the last evaluations, and what is stored of them, are in float64. One
    Cholesky factor of a (p, p) float32 matrix is kept during `fit`: 2 p^2 bytes, and twice that
    while it is summed. With m = `gram_rows` below p, it is one of an (m, m) float64 matrix: 4 m^2
    bytes, and about 100 MB while it is summed. Such a metric is damped by the mean curvature of the
    directions that m rows leave open, estimated from how far rows are from the span of others.

    `gap_` was too small by a factor of at most 4.1 in 400 fits with a penalty of 0.001 or more or
    an l2 of 1 or more, on four common data sets and, with the default penalty, on separable rows;
    and by a factor of at most 5 in 48 fits with an l2 of 0.01. On separable rows with more columns
    than rows and only an l2 penalty, the search crosses plateaus: `gap_` was too small by a factor
    of up to 53 with an l2 of 1, and up to 200 with 0.01 (384 fits); on simulated rows of half as
    many columns, nearly separable, by up to 10 with an l2 of 1 (60 fits). Where the metric is of
    few rows, it was 4 to 6 times too small. Use a smaller `tol` there; `gap_bound` shows how small.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors", ICML
    2014, Algorithm 1, line 8. D. Boehning, "Multinomial logistic regression algorithm", Annals of
    the Institute of Statistical Mathematics 44, 1992: bound on the curvature.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat import MultinomialLogit
    >>> X, y = load_iris(return_X_y=True)
    >>> MultinomialLogit(penalty=0.01).fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [Interval(Real, 0, np.inf, closed="left")],
        "l2": [Interval(Real, 0, np.inf, closed="left")],
        "ridge": [Interval(Real, 0, np.inf, closed="left")],
        "ridge_scale": [StrOptions({"columns", "common"})],
        "fit_intercept": ["boolean"],
        "gram_rows": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        penalty: float = 0.03,
        l2: float = 0.0,
        ridge: float = 0.5,
        ridge_scale: str = "columns",
        fit_intercept: bool = True,
        gram_rows: int | str | None = "auto",
        tol: float = 1e-4,
        max_iter: int = 200,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.l2 = l2
        self.ridge = ridge
        self.ridge_scale = ridge_scale
        self.fit_intercept = fit_intercept
        self.gram_rows = gram_rows
        self.tol = tol
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    @with_steps
    def fit(
        self, X: Features, y: Targets = None, sample_weight: Weights = None
    ) -> MultinomialLogit:
        """Fit the weights.

        Parameters
        ----------
        X : (n, p) array-like, sparse matrix, ExpandedRows or RowBlocks
            Finite features. Blocks and memory-mapped arrays are read in every iteration; memory
            grows with the number of rows by only one to four bytes per row.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the rows.

        Returns
        -------
        MultinomialLogit
            The estimator itself.
        """
        self.fit_path(X, y, [self.penalty], sample_weight)
        return self

    def fit_path(
        self, X: Features, y: Targets, penalties: Sequence[float], sample_weight: Weights = None
    ) -> list[MultinomialLogit]:
        """Fit one model for each of several penalties, with a common Gram matrix.

        Each fit starts from the weights of the previous penalty; decreasing penalties work best.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        penalties : sequence of float
            Values of `penalty`.

        Returns
        -------
        list of MultinomialLogit
            Fitted models; the estimator itself is fitted with the last penalty.
        """
        return list(self.iterate_path(X, y, penalties, sample_weight))

    def iterate_path(
        self, X: Features, y: Targets, penalties: Sequence[float], sample_weight: Weights = None
    ) -> Iterator[MultinomialLogit]:
        """Iterate over the models of `fit_path`, each as soon as it is fitted."""
        self._validate_params()
        penalties = list(penalties)
        for value in penalties:
            check_number(value, "penalties", at_least=0)
        if not penalties:
            raise ValueError("penalties: expected at least one, got none")
        with self._unchanged_on_error():
            yield from self._path(X, y, penalties, sample_weight)

    def gap_bound(
        self, X: Features, y: Targets, sample_weight: Weights = None, *, steps: int = 10
    ) -> float:
        """Upper bound on the objective at the fitted weights minus its minimum, for given rows.

        Unlike `gap_`, it is not an estimate but the gap to a feasible point of the Fenchel dual,
        computed in float64 with a bound on rounding errors. It was 2 to 13 times the true excess on
        digits, iris and separable rows with more columns than rows, with the default penalty and
        with an l2 alone.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or ExpandedRows
            Rows that the weights were fitted to; with `early_stopping`, without the held-out rows.
        y : (n,) array-like
            Labels. Every class of the fit must occur.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the rows.
        steps : int >= 0, default=10
            Maximum number of conjugate gradient steps that tighten the bound if `penalty` is
            positive. Each needs four products with the rows.

        Returns
        -------
        float
            The bound; infinite if neither `l2` nor `penalty` with a `ridge` penalises every weight.

        Notes
        -----
        With a `penalty`, it uses the minimum of the tangent plus the quadratic penalties, bounded
        from below by Jensen's inequality. With an `l2` alone, the constant's weights are first
        moved to their optimum. The equations are in ``eigenfeat/linear/gap_bound.py``.
        """
        check_is_fitted(self, "coef_")
        steps = check_whole(steps, "steps", at_least=0)
        if given_blocks(X, y, sample_weight) is not None:
            raise ValueError("X: expected rows in memory, got blocks or a memory-mapped array")
        rows, labels = clone(self)._rows(X, reset=True, y=y)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X: expected {self.n_features_in_} features, got {rows.shape[1]}")
        rows, labels, weight = weighted_rows(rows, labels, sample_weight)
        classes, codes = np.unique(labels, return_inverse=True)
        if not np.array_equal(classes, self.classes_):
            raise ValueError(f"y: expected the {len(self.classes_)} classes of the fit")
        W = np.vstack([self.coef_.T, self.intercept_])
        W = np.hstack([-W, W]) / 2 if len(self.classes_) == 2 else W
        return gap_bound(
            *(rows, codes, weight, W, self._weights(W.shape[1], self.penalty)),
            constant=self.fit_intercept,
            steps=steps,
            n_threads=self.n_threads,
        )

    def _path(
        self, X: Any, y: Any, penalties: Sequence[float], sample_weight: Any
    ) -> Iterator[MultinomialLogit]:
        before = self._start_weights() if self.warm_start else None
        random = check_random_state(self.random_state)
        problem, held_out, centre = self._problems(X, y, sample_weight, random)
        started = time.perf_counter()
        metric = self._metric(problem, max(penalties), random)
        self._say(f"metric: {problem.shape[0]} features ({time.perf_counter() - started:.1f} s)")
        W = _start(problem, before, self.classes_, self.fit_intercept, centre)
        for i, penalty in enumerate(penalties):
            model = self if i == len(penalties) - 1 else clone(self)
            model.penalty = penalty
            model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_
            W = model._minimise(problem, metric, W, held_out, centre)
            yield model

    def _metric(self, problem: LogitProblem, energy: float, random: Any) -> Any:
        """From all rows it holds what the penalties add; from a sample it is damped."""
        count = self.gram_rows
        if isinstance(count, str):
            count = gram_rows(problem, energy, self.tol)
        sample = self._sample(problem.n_rows, count, random)
        damping = 0.0 if sample is None else self.ridge * np.sqrt(problem.total)
        tail = 12.0 if self.max_iter <= 10 else 1.0  # caution brings the first steps farther
        return problem.metric(
            self._weights(problem.shape[1], energy), float(damping), sample, half=True, tail=tail
        )

    def _weights(self, n_classes: int, energy: float) -> Penalty:
        # Two classes have weights (-w/2, w/2): plain squares as of the one vector w.
        l2 = self.l2 * (2.0 if n_classes == 2 else 1.0)
        return Penalty(energy, self.ridge, l2, self.ridge_scale == "common")

    def _minimise(
        self,
        problem: LogitProblem,
        metric: Any,
        W: Any,
        held_out: LogitProblem | None,
        centre: Any,
    ) -> NDArray[np.float64]:
        penalty = self._weights(problem.shape[1], self.penalty)
        watch = Watch(held_out, partial(uncentred, centre=centre), self._say, self._step_done)
        rough = problem.rough() if held_out is None else None
        found = minimise(
            lambda W: problem.objective(W, penalty),
            lambda G: metric.solve(G, problem.n_threads),
            W,
            tolerance=self.tol,
            max_iterations=self.max_iter,
            noise=float(np.finfo(problem.dtype).eps),
            callback=watch,
            rough=None if rough is None else lambda W: rough.objective(W, penalty),
        )
        self._record(found, watch)
        full = uncentred((watch.best or found).point, centre)
        self._keep(full if self.fit_intercept else np.vstack([full, np.zeros((1, full.shape[1]))]))
        if found.reason == "iterations":
            warn_caller(
                f"MultinomialLogit: {found.iterations} iterations left the objective an estimated "
                f"{found.gap / max(abs(found.objective), 1e-300):.1e} above its minimum; raise "
                "max_iter, gram_rows or the penalty",
                ConvergenceWarning,
            )
        return found.point

    def _record(self, found: Minimum, watch: Watch) -> None:
        self.n_iter_ = np.array([found.iterations], dtype=np.int32)
        kept = watch.best or found
        self.objective_, self.gap_ = kept.objective, kept.gap
        self.gradient_norm_ = kept.gradient_norm
        self.objective_history_ = found.history
        self.stop_reason_ = found.reason
        self.validation_history_ = watch.losses

    def _start_weights(self) -> tuple[NDArray[Any], NDArray[np.float64]] | None:
        if not hasattr(self, "coef_"):
            return None
        W = np.vstack([self.coef_.T, self.intercept_])
        return self.classes_, np.hstack([-W, W]) / 2 if len(self.classes_) == 2 else W


def _start(
    problem: LogitProblem, before: Any, classes: Any, intercept: bool, centre: Any
) -> NDArray[np.float64]:
    W = np.zeros(problem.shape)
    if before is None:
        return W
    old = before[1] if intercept else before[1][:-1]
    if old.shape != W.shape or not np.array_equal(before[0], classes):
        raise ValueError(
            f"X, y: expected the {len(before[0])} classes and {len(before[1]) - 1} features of the "
            f"earlier fit with warm_start, got {len(classes)} and {problem.varying}"
        )
    W[:] = old
    if centre is not None:
        W[-1] += centre @ W[:-1]
    return W
