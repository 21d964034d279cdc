"""Multinomial logistic regression with second-order steps, on rows or on implicit features."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.threads import resolve
from eigenfeat._base.types import Floats, Labels, RandomState, Rows, Targets, Weights
from eigenfeat._base.validation import FLOATS, check_number, show, warn_caller
from eigenfeat.expansion.features import CoreRows, ExpandedFeatures, core_rows
from eigenfeat.linear.gaussian import GaussianClasses
from eigenfeat.linear.held_out import HeldOutFolds, Logits, temperature
from eigenfeat.linear.logit_problem import (
    NEARBY,
    RECENT,
    LogitProblem,
    Minimum,
    Penalty,
    Progress,
    ScaledMetric,
    Solve,
    far_means,
    gram_rows,
    minimise,
    solve_when_needed,
    uncentred,
)
from eigenfeat.linear.span import Span, SpanMetric, SpanSearch
from eigenfeat.samples.blocks import RowTransform
from eigenfeat.samples.estimator import (
    BaseEstimator,
    Iterative,
    Verbose,
    unchanged_on_error,
    validate_data,
    with_steps,
)
from eigenfeat.samples.labelled import CachedBlock, LabelledSamples, MemorySamples
from eigenfeat.samples.out_of_core import BlockScores, FromLogits, over_blocks
from eigenfeat.samples.prepare import prepare

if TYPE_CHECKING:
    from typing import TypeAlias

    from eigenfeat._base.core import core
    from eigenfeat.samples.blocks import RowBlocks

    Features: TypeAlias = Rows | RowBlocks | ExpandedFeatures | LabelledSamples
else:
    Features = Any

__all__ = [
    "PENALTIES",
    "PENALTY",
    "Features",
    "LinearClassifier",
    "LinearModel",
    "MultinomialLogit",
    "Start",
    "damping",
    "fit_near",
    "held_out_logits_of",
]

_Array = NDArray[np.float64]

PENALTY = 0.03  # the default
PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # that "auto" chooses from
_MOST_BYTES = 64e6  # of a fold's rows that are brought here
_FIRST = 2  # of them, with more than 1,000 rows
_LEAST_GRAM_ROWS = 2_000
_CHEAP_GRAM = 1e11  # operations for a fold's, half a second
_ENOUGH = 4  # times as many rows as features, for a metric of all
_MOST_PERMUTED = 1 << 25  # rows: beyond, a permutation takes more memory than all else
_MOST_BY_LBFGS = 100  # classes, of which "auto" minimises the objective


class LinearModel(BlockScores, ClassifierMixin, BaseEstimator):
    """Base class of linear classifiers, with scores ``X @ coef_.T + intercept_``."""

    classes_: Labels
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    n_threads: int | None

    @over_blocks
    def decision_function(self, X: Features) -> Floats:
        """Logits of the classes.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix, ExpandedFeatures or RowBlocks
            Finite samples. For blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the logit of the second class over the first.

        Raises
        ------
        ValueError
            If features, or logits in the type of the features, are not finite.
        """
        check_is_fitted(self, "coef_")
        return self.scores_of(core_rows(self._checked(X), True))

    def scores_of(self, rows: CoreRows) -> Floats:
        """Logits of features with the constant, as `decision_function` returns them."""
        if "coef_" not in self.__dict__:  # the check itself takes longer than a few samples
            check_is_fitted(self, "coef_")
        weights = np.ascontiguousarray(self.coef_, dtype=np.float64)
        constants = np.ascontiguousarray(self.intercept_, dtype=np.float64)
        scores = rows.class_scores(weights, constants, resolve(self.n_threads))
        if not (math.isfinite(np.vdot(scores, scores)) or np.isfinite(scores).all()):
            finite = np.isfinite(scores).all(axis=1)
            row = int(np.argmin(finite))
            value = scores[row][~np.isfinite(scores[row])][0]
            raise ValueError(f"X: expected features of finite logits, got {value} in row {row}")
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _checked(self, X: Any) -> Any:
        """Features to predict, checked."""
        if isinstance(X, ExpandedFeatures):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X: expected {self.n_features_in_} features, got {X.shape[1]}")
            return X
        options = {"accept_sparse": "csr", "dtype": FLOATS, "order": "C", "reset": False}
        return validate_data(self, X, **options)

    def _prepared(self, X: Any, y: Targets, sample_weight: Weights) -> LabelledSamples:
        """Samples of a fit, checked."""
        samples = prepare(self, X, y, sample_weight, moments=False)
        self.classes_ = samples.classes
        return samples

    def _keep(self, W: NDArray[np.float64]) -> None:
        """Store the weights W (p, k), the constant's last."""
        if len(self.classes_) == 2:
            W = W[:, 1:] - W[:, :1]
        self.coef_ = np.ascontiguousarray(W[:-1].T)
        self.intercept_ = W[-1].copy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearClassifier(Verbose, LinearModel, FromLogits):
    """Base class of the fits: problems of all samples and of some."""

    fit_intercept: bool

    def _problem(self, rows: LabelledSamples) -> tuple[LogitProblem, NDArray[np.float64] | None]:
        """The problem of these samples, and what columns are moved by."""
        centre = far_means(rows) if self.fit_intercept else None
        if centre is not None:
            rows = rows.read_as(replace(rows.reading, centre=centre))
        problem = LogitProblem(rows, constant=self.fit_intercept)
        self.n_features_in_ = problem.varying
        return problem, centre

    def _sample(
        self, n: int, count: int | None, random: np.random.RandomState
    ) -> NDArray[np.intp] | None:
        """Row numbers for the Gram matrix, or None for all."""
        if count is None or count >= n:
            return None
        if n <= _MOST_PERMUTED:
            return np.sort(random.permutation(n)[:count])
        few = np.random.default_rng(random.randint(2**31 - 1))
        return np.sort(few.choice(n, count, replace=False, shuffle=False))


class MultinomialLogit(Iterative, LinearClassifier):
    """Multinomial logistic regression for dense features, by L-BFGS in a metric that fits them.

    Use it for hundreds of dense features or more, where it is several times as fast as
    scikit-learn's solvers, and for expanded projections that do not fit into memory. Tune
    `penalty`, or set it to 0 and `l2` to 1 / C. User guide: :doc:`/guide/classifier`; the
    objective and the solvers: :doc:`/guide/objectives`.

    Parameters
    ----------
    penalty : float >= 0 or "auto", default=0.03
        Weight of the penalty on the energy of the logits, which does not depend on the features'
        units. "auto": the one of 1, 0.3, 0.1, ..., 0.003 with the least held-out log loss.
    l2 : float >= 0, default=0
        Weight of the L2 penalty; ``1 / C`` in scikit-learn.
    ridge : float >= 0, default=0.5
        Damping of the metric, also a part of `penalty`.
    ridge_scale : {"columns", "common"}, default="columns"
        Scale of the ridge: each feature's mean square, or one mean for features of one unit.
    fit_intercept : bool, default=True
        Whether to add a constant feature, which the ridge and `l2` leave out.
    gram_rows : int, "auto" or None, default="auto"
        Samples for the metric's Gram matrix; None means all, "auto" at most 20,000.
    tol : float > 0, default=1e-4
        Iterations stop when `gap_` is at most this fraction of the objective.
    max_iter : int >= 1, default=200
        Maximum number of iterations.
    warm_start : bool, default=False
        Whether `fit` starts from the existing weights.
    temperature : float > 0 or "auto", default=1.0
        Divisor of the weights, which changes no label; "auto" minimises the held-out log loss.
    solver : {"lbfgs", "gaussian", "auto"}, default="lbfgs"
        "gaussian": classes are Gaussian with a common covariance, in closed form. "auto": that for
        more than 100 classes, unless other parameters need the objective.
    random_state : int, RandomState or None, default=0
        Seed for drawing samples of the Gram matrix, held-out samples and folds.
    n_threads, verbose : int or None, int, default=None, 0
        Number of threads, all by default; 1 prints a line for each iteration on stderr.

    Attributes
    ----------
    coef_, intercept_ : (k, p) and (k,) arrays, or (1, p) and (1,) with two classes
        Weights in the units of the features, divided by the temperature.
    classes_, n_features_in_ : (k,) array, int
        Labels, sorted; number of features.
    penalty_, temperature_ : float
        Given or chosen; with Gaussian classes, `penalty_` is the shrinkage of the covariance.
    n_iter_, objective_, objective_history_ : (1,) array of int, float, list of float
        Iterations; the objective at the end, and at the start and after each of them.
    gap_, gradient_norm_ : float
        Estimate, not a bound, of the objective's excess over its minimum; norm of the gradient.
    stop_reason_ : {"converged", "precision", "stopped", "iterations", "closed form"}
        Estimated gap, rounding errors, a callback, `max_iter`, or Gaussian classes.

    See Also
    --------
    GEMClassifier : Learns features too.
    CalibratedLeastSquares : Least squares in the same metric.
    sklearn.linear_model.LogisticRegression : Sparse features, L1 penalties.

    References
    ----------
    N. Karampatziakis and P. Mineiro, ICML 2014, Algorithm 1, line 8.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import MultinomialLogit
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MultinomialLogit().fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 2), model.stop_reason_
    (0.91, 'converged')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [Interval(Real, 0, np.inf, closed="left"), StrOptions({"auto"})],
        "l2": [Interval(Real, 0, np.inf, closed="left")],
        "ridge": [Interval(Real, 0, np.inf, closed="left")],
        "ridge_scale": [StrOptions({"columns", "common"})],
        "fit_intercept": ["boolean"],
        "gram_rows": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
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
        X : (n, p) array-like, sparse matrix, ExpandedFeatures or RowBlocks
            Finite features. Blocks are read in every iteration; memory
            grows with the number of samples by only one to four bytes per sample.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

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
        with unchanged_on_error(self):
            yield from self._path(X, y, penalties, sample_weight)

    def _path(
        self, X: Any, y: Targets, penalties: Sequence[float] | None, sample_weight: Weights
    ) -> Iterator[Any]:
        """Models for each penalty; None is the estimator's own, which may be "auto"."""
        again = self.warm_start and hasattr(self, "coef_")
        before = (self.classes_, self._all_weights()) if again else None
        random = check_random_state(self.random_state)
        problem, centre = self._problem(self._prepared(X, y, sample_weight))
        if self._in_closed_form(penalties, problem.shape[1]):
            self._solve_gaussian(problem, centre, random)
            yield self
            return
        energies = penalties
        if energies is None and not isinstance(self.penalty, str):
            energies = (self.penalty,)
        given_temperature, near = self.temperature, None
        asked = energies is None or given_temperature == "auto"
        some = min(PENALTIES) if energies is None else min(energies)
        span = self._span(problem, some) if before is None else None
        held_out_folds = self._held_out_folds(problem, span, random) if asked else None
        # Sparse samples start near the minimum of the folds, since a pass over them is slow.
        anywhere = before is None and not problem.rows.dense
        single = energies is None or (given_temperature == "auto" and len(energies) == 1)
        if held_out_folds is not None and anywhere and single and held_out_folds.is_one_fold:
            energies, given_temperature, near, solve = self._of_one_fold(
                held_out_folds, energies, random
            )
        else:
            if energies is None:
                assert held_out_folds is not None
                energies, given_temperature, near = self._chosen(held_out_folds, None)
            build = partial(self._metric, problem, max(energies), random, None)
            solve = solve_when_needed(build, problem.n_threads)
            near = near if anywhere else None
        W, recent = (problem.start(before, centre), RECENT) if near is None else (near, NEARBY)
        weights = self._weights(problem.shape[1], max(energies))
        search = None if near is not None else SpanSearch.of(problem, span, weights, self.tol)
        for i, penalty in enumerate(energies):
            model: Any = self if i == len(energies) - 1 else clone(self)
            if penalties is not None:
                model.penalty = penalty
            model.penalty_ = float(penalty)
            model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_
            W = model._minimise(problem, solve, search, W, centre, recent)
            model._apply_temperature(
                model._temperature(held_out_folds)
                if given_temperature == "auto"
                else given_temperature
            )
            yield model

    def fit_from(self, rows: LabelledSamples, penalty: float, near: Start) -> None:
        """Fit from weights of some of the samples, in the metric of these if it does for all."""
        random = check_random_state(self.random_state)
        problem, centre = self._problem(self._prepared(rows, None, None))
        self.penalty, self.penalty_ = penalty, float(penalty)

        def build() -> core.Metric | ScaledMetric:
            if centre is None and near.has_all_of(problem):  # its metric is not centred
                return ScaledMetric(near.metric, near.total / problem.total)
            return self._metric(problem, penalty, random, None)

        start = problem.start((rows.classes, near.weights), centre)
        solve = solve_when_needed(build, problem.n_threads)
        self._minimise(problem, solve, None, start, centre, NEARBY)

    def _span(self, problem: LogitProblem, energy: float) -> Span | None:
        """The span of the samples, if steps in it are to replace those over the features."""
        if self._gram_rows(problem, energy) < problem.n_samples:
            return None
        return Span.of(problem, self._weights(problem.shape[1], energy), self.tol)

    def _held_out_folds(
        self,
        problem: LogitProblem,
        span: Span | None,
        random: np.random.RandomState,
    ) -> HeldOutFolds:
        """Folds for penalty and temperature, with draws that leave those of the fit as they are."""
        return HeldOutFolds(
            problem,
            partial(_fold_problem, constant=self.fit_intercept),
            partial(self._fold_metric, random=deepcopy(random)),
            self.fit_intercept,
            deepcopy(random),
            span,
        )

    def _in_closed_form(self, penalties: Sequence[float] | None, n_classes: int) -> bool:
        """Whether the weights are those of Gaussian classes."""
        if self.solver == "gaussian":
            if penalties is not None:
                raise ValueError(
                    "penalties: expected None with solver='gaussian', got "
                    f"{show([float(value) for value in penalties])}"
                )
            if not self.fit_intercept:
                raise ValueError("fit_intercept: expected True with solver='gaussian', got False")
            return True
        asked = penalties is not None or self.penalty != PENALTY or self.l2 > 0
        many = self.solver == "auto" and n_classes > _MOST_BY_LBFGS
        return many and not (asked or self.warm_start) and self.fit_intercept

    def _solve_gaussian(
        self, problem: LogitProblem, centre: _Array | None, random: np.random.RandomState
    ) -> None:
        started = time.perf_counter()
        gaussian = GaussianClasses(problem, self.ridge_scale == "common", random)
        result, tried = gaussian.chosen(self._step_done)
        self._log(f"shrinkage: {result.shrinkage:.3g} ({time.perf_counter() - started:.1f} s)")
        self.penalty_, self.n_iter_ = result.shrinkage, np.array([tried], dtype=np.int32)
        self.objective_ = self.gap_ = self.gradient_norm_ = np.nan
        self.objective_history_: list[float] = []
        self.stop_reason_ = "closed form"
        self._keep(uncentred(result.W, centre))
        started = time.perf_counter()
        auto = self.temperature == "auto"
        self._apply_temperature(gaussian.temperature(result) if auto else float(self.temperature))
        self._log(f"temperature: {self.temperature_:.3g} ({time.perf_counter() - started:.1f} s)")

    def _chosen(
        self, held_out_folds: HeldOutFolds, solve: Solve | None
    ) -> tuple[list[float], float, _Array | None]:
        """The penalty of the least held-out log loss, its temperature, and weights near its own."""
        started, k = time.perf_counter(), held_out_folds.problem.shape[1]
        fixed = None if self.temperature == "auto" else float(self.temperature)
        penalties = [self._weights(k, one) for one in PENALTIES]
        result = held_out_folds.choose(penalties, _FIRST, fixed, solve)
        follow = ", ".join(f"{PENALTIES[i]:.3g}: {x:.4g}" for i, x in sorted(result.losses.items()))
        seconds = time.perf_counter() - started
        self._log(f"penalty: {PENALTIES[result.number]:.3g} (log losses {follow}; {seconds:.1f} s)")
        return [PENALTIES[result.number]], result.temperature, result.start

    def _fold_metric(
        self,
        problem: LogitProblem,
        energy: float,
        tolerance: float,
        *,
        random: np.random.RandomState,
    ) -> core.Metric:
        """Of few rows where those of all cost more than the steps that they save."""
        n, p = problem.n_samples, problem.shape[0]
        count = gram_rows(problem, energy, tolerance)
        if n > p:
            count = min(count, max(_LEAST_GRAM_ROWS, p // 2, int(_CHEAP_GRAM / p**2)))
        sample = self._sample(n, count, random)
        damping = 0.0 if sample is None else float(self.ridge * np.sqrt(problem.total))
        penalty = self._weights(problem.shape[1], energy)
        return problem.metric(penalty, damping, sample, coarse=True, tail=1.0)

    def _temperature(self, held_out_folds: HeldOutFolds) -> float:
        started, k = time.perf_counter(), held_out_folds.problem.shape[1]
        logits = held_out_folds.logits(self._weights(k, self.penalty_))
        return self._temperature_of(logits, started)

    def _temperature_of(self, logits: Logits, started: float) -> float:
        result = temperature(logits)
        self._log(f"temperature: {result:.3g} ({time.perf_counter() - started:.1f} s)")
        return result

    def _apply_temperature(self, temperature: float) -> None:
        """Divide the weights by the temperature."""
        self.temperature_ = float(temperature)
        if self.temperature_ != 1.0:
            self.coef_ /= self.temperature_
            self.intercept_ /= self.temperature_

    def _of_one_fold(
        self, fold: HeldOutFolds, energies: Sequence[float] | None, random: np.random.RandomState
    ) -> tuple[Sequence[float], float | str, _Array | None, Solve]:
        """Penalty, temperature, weights near those of all rows, and their metric.

        It is one of the fold's rows if they are enough for all, and then the fold's metric, too.
        """
        started, problem = time.perf_counter(), fold.problem
        energy = PENALTIES[_FIRST] if energies is None else energies[0]
        train = np.asarray(fold.parts[0][0], dtype=np.intp)
        enough = self._gram_rows(problem, energy) <= len(train)
        enough = enough or (self.gram_rows == "auto" and len(train) >= _ENOUGH * problem.shape[0])
        build = partial(self._metric, problem, energy, random, train if enough else None)
        solve = solve_when_needed(build, problem.n_threads)
        of_fold = solve if enough else None
        if energies is None:
            return *self._chosen(fold, of_fold), solve
        W, logits = fold.of_one_fold(self._weights(problem.shape[1], energy), of_fold)
        return energies, self._temperature_of(logits, started), W, solve

    def _gram_rows(self, problem: LogitProblem, energy: float) -> int:
        count = self.gram_rows
        if isinstance(count, str):
            count = gram_rows(problem, energy, self.tol)
        return problem.n_samples if count is None else min(count, problem.n_samples)

    def _metric(
        self,
        problem: LogitProblem,
        energy: float,
        random: np.random.RandomState,
        among: NDArray[np.intp] | None,
    ) -> core.Metric:
        """From all rows it holds what the penalties add; from a sample it is damped.

        `among` are numbers of rows that the sample is drawn from.
        """
        count, started = self._gram_rows(problem, energy), time.perf_counter()
        sample = self._sample(problem.n_samples if among is None else len(among), count, random)
        if among is not None:
            sample = among if sample is None else among[sample]
        damping = 0.0 if sample is None else float(self.ridge * np.sqrt(problem.total))
        tail = 12.0 if self.max_iter <= 10 else 1.0  # caution brings the first steps farther
        weights = self._weights(problem.shape[1], energy)
        metric = problem.metric(weights, damping, sample, coarse=True, tail=tail)
        self._log(f"metric: {problem.shape[0]} features ({time.perf_counter() - started:.1f} s)")
        return metric

    def _weights(self, n_classes: int, energy: float) -> Penalty:
        # Two classes have weights (-w/2, w/2): plain squares as of the one vector w.
        l2 = self.l2 * (2.0 if n_classes == 2 else 1.0)
        return Penalty(energy, self.ridge, l2, self.ridge_scale == "common")

    def _minimise(
        self,
        problem: LogitProblem,
        solve: Solve,
        search: SpanSearch | None,
        W: _Array,
        centre: _Array | None,
        recent: int,
    ) -> NDArray[np.float64]:
        penalty = self._weights(problem.shape[1], self.penalty_)
        result, done = None, False
        if search is not None:
            options: dict[str, Any] = {"tolerance": self.tol, "max_iterations": self.max_iter}
            result, done = search.minimise(penalty, **options, callback=self._watch)
            W = result.point
        if result is None or not done:
            result = self._over_features(problem, solve, penalty, W, recent)
        self._record(result)
        full = uncentred(result.point, centre)
        self._keep(full if self.fit_intercept else np.vstack([full, np.zeros((1, full.shape[1]))]))
        self.temperature_ = 1.0
        if result.reason == "iterations":
            warn_caller(
                f"MultinomialLogit: {result.iterations} iterations left the objective an estimated "
                f"{result.gap / max(abs(result.objective), 1e-300):.1e} above its minimum; raise "
                "max_iter, gram_rows or the penalty",
                ConvergenceWarning,
            )
        return result.point

    def _over_features(
        self,
        problem: LogitProblem,
        solve: Solve,
        penalty: Penalty,
        W: _Array,
        recent: int,
    ) -> Minimum:
        float32 = problem.float32_problem()
        return minimise(
            problem.objective_of(penalty),
            solve,
            W,
            tolerance=self.tol,
            max_iterations=self.max_iter,
            noise=float(np.finfo(problem.dtype).eps),
            callback=self._watch,
            float32=None if float32 is None else float32.objective_of(penalty),
            recent=recent,
        )

    def _watch(self, progress: Progress) -> bool:
        """Report an iteration; return whether to stop."""
        self._log(
            f"iteration {progress.iteration}: objective {progress.objective:.6g}, "
            f"estimated gap {progress.gap:.1e}"
        )
        return self._step_done()

    def _record(self, result: Minimum) -> None:
        self.n_iter_ = np.array([result.iterations], dtype=np.int32)
        self.objective_, self.gap_ = result.objective, result.gap
        self.gradient_norm_ = result.gradient_norm
        self.objective_history_ = result.history
        self.stop_reason_ = result.reason

    def _all_weights(self) -> NDArray[np.float64]:
        """The weights (p + 1, k) that were fitted, before the temperature; the constant's last."""
        W = np.vstack([self.coef_.T, self.intercept_]) * getattr(self, "temperature_", 1.0)
        return np.hstack([-W, W]) / 2 if len(self.classes_) == 2 else W


def _fold_problem(rows: LabelledSamples, constant: bool) -> LogitProblem:
    return LogitProblem(_brought(rows), constant=constant)


def _brought(rows: LabelledSamples) -> LabelledSamples:
    """Rows in memory, where they are few enough: one pass instead of one for each evaluation."""
    if rows.in_memory or rows.n_samples * rows.n_features * 8 > _MOST_BYTES:
        return rows
    block = rows.together()
    kept = CachedBlock(block.X, block.y, block.weight)
    return MemorySamples(kept, rows.classes, RowTransform(n_threads=rows.n_threads))


# ---- fits for a pool of logits: out of fold, and near the weights of a fold ----------------------


_POOL_TOLERANCE = (
    1e-3  # of a fold's minimum: with 1e-2, searches may end at the weights they start from
)
_POOL_STEPS = 30
_FAR = 4.0  # times a mean square of some samples


def held_out_logits_of(
    logit: MultinomialLogit,
    train: LabelledSamples,
    held: LabelledSamples,
    penalties: Sequence[float],
    enough: Callable[[_Array], bool] = lambda logits: False,
    whole: LabelledSamples | None = None,
) -> tuple[list[_Array], list[Start | None]]:
    """Logits (m, k) of `held`, and what a fit to all samples may start from, for each penalty.

    Penalties are divided by `damping`. They go from large to small, and end after the first one
    whose logits are `enough`. With all samples, `whole`, the metric is theirs.
    """
    penalties = [one / damping(logit) for one in penalties]
    problem = LogitProblem(train, constant=True)
    ways = [logit._weights(problem.shape[1], energy) for energy in penalties]
    metric_of = logit._weights(problem.shape[1], min(max(penalties), 0.1))
    span = Span.of(problem, metric_of, _POOL_TOLERANCE)
    metric = None if span is None else SpanMetric.of(span, metric_of)
    minima: Iterator[tuple[_Array, Start | None]]
    if span is None or metric is None:
        minima = _minima_over_features(logit, problem, ways, metric_of, whole)
    else:
        minima = _minima_in_span(span, metric, problem, ways)
    out: list[_Array] = []
    starts: list[Start | None] = []
    block = held.together()
    for W, start in minima:
        out.append(np.asarray(block.scores(W, True, held.n_threads), dtype=np.float64))
        starts.append(start)
        if enough(out[-1]):
            break
    return out, starts


def _minima_in_span(
    span: Span, metric: SpanMetric, problem: LogitProblem, penalties: Sequence[Penalty]
) -> Iterator[tuple[_Array, None]]:
    """Weights (p, k) for each penalty, of fewer samples than features."""
    for point in span.path(
        penalties, metric, tolerance=_POOL_TOLERANCE, max_iterations=_POOL_STEPS
    ):
        yield span.weights(problem, [point])[0], None


def _minima_over_features(
    logit: MultinomialLogit,
    problem: LogitProblem,
    penalties: Sequence[Penalty],
    metric_of: Penalty,
    whole: LabelledSamples | None,
) -> Iterator[tuple[_Array, Start]]:
    """Weights (p, k) for each penalty, and what a fit may start from.

    The metric does not depend on labels: with `whole` it is of as many of all samples as are fitted
    here.
    """
    random = np.random.RandomState(0)
    if whole is None:
        measured = problem
        factor = logit._fold_metric(problem, metric_of.energy, _POOL_TOLERANCE, random=random)
    else:
        measured = LogitProblem(whole, constant=True)
        some = np.sort(random.permutation(measured.n_samples)[: problem.n_samples])
        factor = logit._metric(measured, metric_of.energy, random, some)
    metric = ScaledMetric(factor, measured.total / problem.total)
    float32 = problem.float32_problem()
    W = np.zeros(problem.shape)
    for penalty in penalties:
        W = minimise(
            problem.objective_of(penalty),
            partial(metric.solve, n_threads=problem.n_threads),
            W,
            tolerance=_POOL_TOLERANCE,
            max_iterations=_POOL_STEPS,
            noise=float(np.finfo(problem.dtype).eps),
            float32=None if float32 is None else float32.objective_of(penalty),
        ).point
        W = np.ascontiguousarray(W)
        yield W, Start(W, factor, measured.total, measured.mean_squares)


def damping(logit: MultinomialLogit) -> float:
    """What penalties are divided by where the ridge is more than the energy of the logits."""
    return max(2.0 * logit.ridge, 1.0)


@dataclass(frozen=True, eq=False)
class Start:
    """Weights (p, k) that minimise the objective of some samples, and a metric for a fit to all.

    `total` is the weight of the samples that the metric is of, `mean_squares` (p,) are those of
    their features.
    """

    weights: _Array
    metric: core.Metric
    total: float
    mean_squares: _Array

    def has_all_of(self, problem: LogitProblem) -> bool:
        """Whether no feature is far larger in all samples, where the metric misses its curvature.

        Steps are then as short as that feature asks, in all directions, and seem to gain nothing.
        """
        return bool((problem.mean_squares <= _FAR * self.mean_squares).all())


def fit_near(
    logit: MultinomialLogit, rows: LabelledSamples, penalty: float, start: Start | None
) -> MultinomialLogit:
    """Fit a logit, from weights of some of its samples, in their metric, if they are given."""
    with warnings.catch_warnings():
        # Out of fold, the searches end after some tens of steps as well.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if start is None:
            logit.fit_path(rows, None, [penalty])
        else:
            logit.fit_from(rows, penalty, start)
    return logit
