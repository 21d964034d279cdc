"""Multinomial logistic regression with second-order steps, on rows or on implicit features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import RandomState, Targets, Weights
from eigenfeat._base.validation import check_number, check_whole
from eigenfeat.linear.gap_bound import gap_bound
from eigenfeat.linear.linear import Features, LinearClassifier
from eigenfeat.linear.logit_steps import PENALTY, LogitSteps
from eigenfeat.rows.estimator import with_steps
from eigenfeat.rows.out_of_core import given_blocks
from eigenfeat.rows.row_weights import weighted_rows

__all__ = ["MultinomialLogit"]


class MultinomialLogit(LogitSteps, LinearClassifier):
    r"""Multinomial logistic regression by L-BFGS, preconditioned with a bound on the curvature.

    Use it for dense features of hundreds of columns or more, where it is several times as fast as
    scikit-learn's solvers, and for expanded projections that do not fit into memory. Tune
    `penalty`, or set it to 0 and `l2` to 1 / C. User guide: :doc:`/guide/classifier`.

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
    penalty : float >= 0 or "auto", default=0.03
        Weight of the energy of the logits, mu. "auto" takes that of 1, 0.3, 0.1, 0.03, 0.01 and
        0.003 with the least log loss on rows that had no part in the weights, see Notes.
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
    temperature : float > 0 or "auto", default=1.0
        Number that the fitted weights are divided by, which changes probabilities and no labels.
        "auto" minimises the log loss of rows that had no part in the weights, see Notes.
    solver : {"lbfgs", "gaussian", "auto"}, default="lbfgs"
        "lbfgs" minimises the objective. "gaussian" takes the logits of Gaussian classes that share
        a covariance, in closed form; see Notes. "auto" is "gaussian" with more than 100 classes
        unless another `penalty` than the default, `l2`, `warm_start`, `early_stopping` or
        ``fit_intercept=False`` ask for the objective.
    random_state : int, RandomState or None, default=0
        Seed for drawing the rows of the Gram matrix, the held-out rows and the folds.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. Results do not depend on it.
    verbose : int, default=0
        1 prints a line for each iteration on stderr.

    Attributes
    ----------
    coef_ : (k, p) array, or (1, p) with two classes
        Weights in the units of the features, divided by the temperature.
    intercept_ : (k,) array, or (1,)
    classes_ : (k,) array
        Labels, sorted.
    penalty_ : float
        The penalty that was chosen or given; with Gaussian classes, the shrinkage rho.
    temperature_ : float
        Number that the weights were divided by.
    n_iter_ : (1,) array of int
        Number of iterations; with Gaussian classes, of shrinkages that were tried.
    objective_ : float
        The objective at the weights before the temperature.
    objective_history_ : list of float
        Objective at the start and after every iteration.
    gradient_norm_ : float
        Norm of the gradient in the metric (see Notes), ``sqrt(tr G^T H^-1 G)``.
    gap_ : float
        Estimate, not a bound, of the objective's excess over its minimum: the larger of the
        decrease predicted by the quadratic model and the decrease in the last steps. See Notes.
    stop_reason_ : {"converged", "precision", "stopped", "iterations", "closed form"}
        Reason for stopping: estimated gap, rounding errors, held-out rows, or `max_iter`. "closed
        form" with Gaussian classes, where objective, gap and norm are NaN.
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

    See Also
    --------
    GEMClassifier : With features.
    CalibratedLeastSquares : Least squares with the same metric.
    sklearn.linear_model.LogisticRegression : Sparse features, L1 penalties.

    Notes
    -----
    `X` may be an array, a sparse matrix, or :class:`ExpandedRows`, whose features are computed by
    tiles and never stored. float32 features are multiplied in float32, with sums in float64. One
    Cholesky factor of a (p, p) float32 matrix is kept during `fit`: 2 p^2 bytes, and twice that
    while it is summed; with m = `gram_rows` below p, one of (m, m). An array of 40 columns or more
    for each class has no such matrix where its columns are nearly uncorrelated.

    `gap_` was at most 5 times too small in some 450 fits with a penalty of 0.001 or more or an l2
    of 1 or more, and up to 200 times on separable samples with more columns than samples and a
    small l2. `gap_bound` computes a bound.

    "auto" of `temperature` and `penalty` refits the weights to the samples outside each of three
    folds (up to 1,000 samples) or two, or to a half of at most 20,000 beyond 5,000.

    ``solver="gaussian"`` has the weights ``H^-1 m_c`` and constants ``log pi_c - m_c^T H^-1 m_c /
    2``, with class means m_c, shares pi_c and ``H = S + rho D^2``: S is the covariance within
    classes, and D^2 has its diagonal or, with ``ridge_scale="common"``, the mean of that. rho is
    the best of 0.0001, 0.0003, ..., 100 by the leave-one-out log loss of at most 10,000 samples.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors", ICML
    2014, Algorithm 1, line 8. D. Boehning, "Multinomial logistic regression algorithm", Annals of
    the Institute of Statistical Mathematics 44, 1992: bound on the curvature. C. Guo, G. Pleiss, Y.
    Sun and K. Weinberger, "On calibration of modern neural networks", ICML 2017: temperature.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat import MultinomialLogit
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultinomialLogit(penalty=0.01).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.stop_reason_
    'converged'
    """

    _saved: ClassVar[dict[str, str]] = LinearClassifier._saved | {
        "penalty_": "number",
        "temperature_": "number",
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [Interval(Real, 0, np.inf, closed="left"), StrOptions({"auto"})],
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
        "temperature": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "solver": [StrOptions({"lbfgs", "gaussian", "auto"})],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        penalty: float | str = PENALTY,
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
        temperature: float | str = 1.0,
        solver: str = "lbfgs",
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
        self.temperature = temperature
        self.solver = solver
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
        self.fit_path(X, y, None, sample_weight)
        return self

    def fit_path(
        self,
        X: Features,
        y: Targets,
        penalties: Sequence[float] | None,
        sample_weight: Weights = None,
    ) -> list[MultinomialLogit]:
        """Fit one model for each of several penalties, with a common Gram matrix.

        Each fit starts from the weights of the previous penalty; decreasing penalties work best.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        penalties : sequence of float or None
            Values of `penalty`; None means that of the estimator, also if it is "auto".

        Returns
        -------
        list of MultinomialLogit
            Fitted models; the estimator itself is fitted with the last penalty.
        """
        return list(self.iterate_path(X, y, penalties, sample_weight))

    def iterate_path(
        self,
        X: Features,
        y: Targets,
        penalties: Sequence[float] | None,
        sample_weight: Weights = None,
    ) -> Iterator[MultinomialLogit]:
        """Iterate over the models of `fit_path`, each as soon as it is fitted."""
        self._validate_params()
        penalties = None if penalties is None else list(penalties)
        for value in penalties or ():
            check_number(value, "penalties", at_least=0)
        if penalties == []:
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
            Maximum number of conjugate gradient steps (four products with the rows each) to tighten
            the bound if `penalty` is positive.

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
        if self.stop_reason_ == "closed form":
            raise ValueError("solver: expected weights by 'lbfgs', got those of Gaussian classes")
        steps = check_whole(steps, "steps", at_least=0)
        if given_blocks(X, y, sample_weight, estimator=self) is not None:
            raise ValueError("X: expected rows in memory, got blocks or a memory-mapped array")
        rows, labels = clone(self)._rows(X, reset=True, y=y)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X: expected {self.n_features_in_} features, got {rows.shape[1]}")
        rows, labels, weight = weighted_rows(rows, labels, sample_weight)
        classes, codes = np.unique(labels, return_inverse=True)
        if not np.array_equal(classes, self.classes_):
            raise ValueError(f"y: expected the {len(self.classes_)} classes of the fit")
        W = self._all_weights()
        return gap_bound(
            *(rows, codes, weight, W, self._weights(W.shape[1], self.penalty_)),
            constant=self.fit_intercept,
            steps=steps,
            n_threads=self.n_threads,
        )
