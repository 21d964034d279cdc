"""Multinomial logistic regression with second-order steps, on rows or on implicit features."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from eigenfeat._base.types import RandomState, Targets, Weights
from eigenfeat._base.validation import check_number, show, warn_caller
from eigenfeat.linear.gaussian import GaussianClasses
from eigenfeat.linear.held_out import HeldOutFolds, Logits, temperature
from eigenfeat.linear.lbfgs import NEARBY, RECENT, Minimum, Progress, Solve, Trial, minimise
from eigenfeat.linear.linear import Features, LinearClassifier
from eigenfeat.linear.logit_problem import LogitProblem, Penalty, gram_rows, uncentred
from eigenfeat.linear.span import Span, SpanMetric, SpanSearch
from eigenfeat.rows.estimator import Iterative, unchanged_on_error, with_steps
from eigenfeat.rows.memory import KeptBlock, MemoryRows
from eigenfeat.rows.reading import RowTransform

if TYPE_CHECKING:
    from eigenfeat._base.core import core
    from eigenfeat.rows.labelled import LabelledRows

__all__ = [
    "PENALTIES",
    "PENALTY",
    "MultinomialLogit",
    "Start",
    "TriedMetric",
    "Watch",
    "damping",
    "fit_near",
    "held_out_logits_of",
]

_Array = NDArray[np.float64]

_LEAST_PASSES = 10  # that a Gram matrix costs in operations, to be worth a trial
_MOST_COLUMNS = 0.25  # of the rows: with more even independent columns are ill conditioned
_TOLERATED = 1.3  # times what independent columns would show; they show up to 1.12 times
_STEPS = 2.0  # for each pass that a Gram matrix costs, whose operations run three times as fast
PENALTY = 0.03  # the default
PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # that "auto" chooses from
_MOST_BYTES = 64e6  # of a fold's rows that are brought here
_FIRST = 2  # of them, with more than 1,000 rows
_LEAST_GRAM_ROWS = 2_000
_CHEAP_GRAM = 1e11  # operations for a fold's, half a second
_ENOUGH = 4  # times as many rows as features, for a metric of all
_MOST_BY_LBFGS = 100  # classes, of which "auto" minimises the objective


class Watch:
    """Reports progress, and stops when the loss of the held-out rows no longer decreases."""

    PATIENCE = 3

    def __init__(
        self,
        held_out: LogitProblem | None,
        uncentred: Callable[[_Array], _Array],
        say: Callable[[str], None],
        stops: Callable[[], bool] = lambda: False,
    ) -> None:
        self.held_out, self.uncentred, self.say = held_out, uncentred, say
        self.stops = stops
        self.losses: list[float] = []
        self.best: Progress | None = None

    def __call__(self, progress: Progress) -> bool:
        """Say how far the solver is; return whether the held-out loss has stopped falling."""
        text = f"iteration {progress.iteration}: objective {progress.objective:.6g}"
        text += f", estimated gap {progress.gap:.1e}"
        stop = self.stops()
        if self.held_out is None:
            self.say(text)
            return stop
        self.losses.append(self.held_out.loss(self.uncentred(progress.point)))
        self.say(f"{text}, held-out loss {self.losses[-1]:.5g}")
        least = int(np.argmin(self.losses))
        if least == len(self.losses) - 1:
            self.best = progress
        return stop or len(self.losses) - 1 - least >= self.PATIENCE


# Of n rows of p independent columns the correlation matrix has the spectrum of Marchenko and Pastur
# (1967), and steps in its diagonal are hardly more than those in all of it: the Gram matrix, which
# costs as much as p / (4 k) passes over the rows, then gains nothing. The first step shows it. At
# W = 0 the loss has the Hessian (1/k) Phi^T Phi for weights whose sums over classes are zero, so
# that the change y of the gradient in a step s has, in the metric D = diag(1/2 Phi^T Phi), a
# quotient y^T D^-1 y / y^T s of 2/k times a mean of the correlations' eigenvalues. With gradients
# of random signs it is the third moment of the spectrum over its second, for independent columns
# (1 + 3 c + c^2) / (1 + c), c = p / n. Correlated columns show several times as much: 2.9 times on
# redundant columns of scikit-learn's make_classification, 11 times on neighbours correlated at .9.
# No step shows directions of little variance: a search that is still going after as many steps as
# two Gram matrices cost takes the Gram matrix, too.
class TriedMetric:
    """Metric of a search or of several; the one with the Gram matrix is made when it is needed.

    Parameters
    ----------
    problem : LogitProblem
    build : callable
        Makes the metric of samples.
    """

    def __init__(
        self, problem: LogitProblem, build: Callable[[], core.Metric | _ScaledMetric]
    ) -> None:
        self._problem, self._build = problem, build
        self._made: core.Metric | _ScaledMetric | None = None
        self._kept = False  # an earlier search has ended in the diagonal

    def solve(self, gradient: _Array) -> _Array:
        """H^-1 times a gradient, H with the Gram matrix."""
        if self._made is None:
            self._made = self._build()
        solved: _Array = self._made.solve(gradient, self._problem.n_threads)
        return solved

    def trial(self, penalty: Penalty, start: _Array) -> Trial | None:
        """The diagonal, if it may do for a search from this start."""
        if self._made is not None or not self._worth():
            return None
        if not self._kept and start.any():
            return None  # what the first step shows is known at zero alone
        problem = self._problem
        curvature, plain = 0.5 * problem.total * problem.mean_squares, problem.quadratic(penalty)
        diagonal = curvature + plain
        inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=~problem.flat)
        diagonal[diagonal == 0] = 1.0  # columns without spread
        share = float(np.mean(curvature / diagonal))
        p, k = problem.shape
        columns = p / problem.n_rows
        independent = (1 + 3 * columns + columns**2) / (1 + columns)
        most = _TOLERATED * (2.0 / k + penalty.energy) * share * independent + (1 - share)
        return Trial(
            lambda gradient: gradient * inverse[:, None],
            np.inf if self._kept else most,
            int(_STEPS * p / (4.0 * k)),
        )

    def done(self) -> None:
        """Let later searches start in the diagonal, if this one has ended in it."""
        self._kept = self._made is None

    def _worth(self) -> bool:
        rows, (p, k) = self._problem.rows, self._problem.shape
        return (
            rows.in_memory
            and rows.dense
            and p >= 4 * _LEAST_PASSES * k
            and p <= _MOST_COLUMNS * self._problem.n_rows
        )


@dataclass(frozen=True, eq=False)
class _ScaledMetric:
    """The metric of more samples than those that it is from."""

    metric: core.Metric
    share: float  # of the weight of all samples

    def solve(self, gradient: _Array, n_threads: int) -> _Array:
        solved: _Array = self.metric.solve(gradient, n_threads)
        return self.share * solved


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
    early_stopping, validation_fraction : bool, float, default=False, 0.1
        Whether to stop by the loss of this fraction of the samples, which are held out.
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
        Estimated gap, rounding errors, held-out loss, `max_iter`, or Gaussian classes.
    validation_history_ : list of float
        With `early_stopping`, the held-out loss at the start and after every iteration.

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
        problem, held_out, centre = self._problems(X, y, sample_weight, random)
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
        span = self._span(problem, some) if before is None and held_out is None else None
        held_out_folds = self._held_out_folds(problem, held_out, span, random) if asked else None
        # Of dense rows a search starts at 0, which may need no Gram matrix.
        anywhere = before is None and not problem.rows.dense
        single = energies is None or (given_temperature == "auto" and len(energies) == 1)
        if held_out_folds is not None and anywhere and single and held_out_folds.is_one_fold:
            energies, given_temperature, near, metric = self._of_one_fold(
                held_out_folds, energies, random
            )
        else:
            if energies is None:
                assert held_out_folds is not None
                energies, given_temperature, near = self._chosen(held_out_folds, None)
            build = partial(self._metric, problem, max(energies), random, None)
            metric, near = TriedMetric(problem, build), near if anywhere else None
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
            W = model._minimise(problem, metric, search, W, held_out, centre, recent)
            model._apply_temperature(
                model._temperature(held_out_folds)
                if given_temperature == "auto"
                else given_temperature
            )
            yield model

    def fit_from(
        self, rows: LabelledRows, penalty: float, W: _Array, metric: core.Metric, total: float
    ) -> None:
        """Fit from weights (p + 1, k) of samples of weight `total`, in the metric of these."""
        random = check_random_state(self.random_state)
        problem, _, centre = self._problems(rows, None, None, random)
        self.penalty, self.penalty_ = penalty, float(penalty)

        def build() -> core.Metric | _ScaledMetric:
            if centre is None:
                return _ScaledMetric(metric, total / problem.total)
            return self._metric(problem, penalty, random, None)  # the one given is not centred

        start = problem.start((rows.classes, W), centre)
        self._minimise(problem, TriedMetric(problem, build), None, start, None, centre, RECENT)

    def _span(self, problem: LogitProblem, energy: float) -> Span | None:
        """The span of the samples, if steps in it are to replace those over the features."""
        if self._gram_rows(problem, energy) < problem.n_rows:
            return None
        return Span.of(problem, self._weights(problem.shape[1], energy), self.tol)

    def _held_out_folds(
        self,
        problem: LogitProblem,
        held_out: LogitProblem | None,
        span: Span | None,
        random: np.random.RandomState,
    ) -> HeldOutFolds:
        """Rows for penalty and temperature, with draws that leave those of the fit as they are."""
        return HeldOutFolds(
            problem,
            partial(_fold_problem, constant=self.fit_intercept),
            partial(self._fold_metric, random=deepcopy(random)),
            held_out,
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
        asked = asked or self.warm_start or self.early_stopping
        many = self.solver == "auto" and n_classes > _MOST_BY_LBFGS
        return many and not asked and self.fit_intercept

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
        self.validation_history_: list[float] = []
        self.stop_reason_ = "closed form"
        self._keep(uncentred(result.W, centre))
        started = time.perf_counter()
        auto = self.temperature == "auto"
        self._apply_temperature(gaussian.temperature(result) if auto else float(self.temperature))
        self._log(f"temperature: {self.temperature_:.3g} ({time.perf_counter() - started:.1f} s)")

    def _chosen(
        self, held_out_folds: HeldOutFolds, solve: Solve | None
    ) -> tuple[list[float], float | str, _Array | None]:
        """The penalty of the least held-out log loss, its temperature, and weights near its own."""
        started, k = time.perf_counter(), held_out_folds.problem.shape[1]
        fixed = None if self.temperature == "auto" else float(self.temperature)
        penalties = [self._weights(k, one) for one in PENALTIES]
        result = held_out_folds.choose(penalties, _FIRST, fixed, solve)
        follow = ", ".join(f"{PENALTIES[i]:.3g}: {x:.4g}" for i, x in sorted(result.losses.items()))
        seconds = time.perf_counter() - started
        self._log(f"penalty: {PENALTIES[result.number]:.3g} (log losses {follow}; {seconds:.1f} s)")
        early = self.temperature == "auto" and self.early_stopping
        return [PENALTIES[result.number]], "auto" if early else result.temperature, result.start

    def _fold_metric(
        self,
        problem: LogitProblem,
        energy: float,
        tolerance: float,
        *,
        random: np.random.RandomState,
    ) -> core.Metric:
        """Of few rows where those of all cost more than the steps that they save."""
        n, p = problem.n_rows, problem.shape[0]
        count = gram_rows(problem, energy, tolerance)
        if n > p:
            count = min(count, max(_LEAST_GRAM_ROWS, p // 2, int(_CHEAP_GRAM / p**2)))
        sample = self._sample(n, count, random)
        damping = 0.0 if sample is None else float(self.ridge * np.sqrt(problem.total))
        penalty = self._weights(problem.shape[1], energy)
        return problem.metric(penalty, damping, sample, half=True, tail=1.0)

    def _temperature(self, held_out_folds: HeldOutFolds) -> float:
        started = time.perf_counter()
        W = self._all_weights()
        logits = held_out_folds.logits_by(W, self._weights(W.shape[1], self.penalty_))
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
    ) -> tuple[Sequence[float], float | str, _Array | None, TriedMetric]:
        """Penalty, temperature, weights near those of all rows, and their metric.

        It is one of the fold's rows if they are enough for all, and then the fold's metric, too.
        """
        started, problem = time.perf_counter(), fold.problem
        energy = PENALTIES[_FIRST] if energies is None else energies[0]
        train = np.asarray(fold.parts[0][0], dtype=np.intp)
        enough = self._gram_rows(problem, energy) <= len(train)
        enough = enough or (self.gram_rows == "auto" and len(train) >= _ENOUGH * problem.shape[0])
        build = partial(self._metric, problem, energy, random, train if enough else None)
        metric = TriedMetric(problem, build)
        solve = metric.solve if enough else None
        if energies is None:
            return *self._chosen(fold, solve), metric
        W, logits = fold.of_one_fold(self._weights(problem.shape[1], energy), solve)
        return energies, self._temperature_of(logits, started), W, metric

    def _gram_rows(self, problem: LogitProblem, energy: float) -> int:
        count = self.gram_rows
        if isinstance(count, str):
            count = gram_rows(problem, energy, self.tol)
        return problem.n_rows if count is None else min(count, problem.n_rows)

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
        sample = self._sample(problem.n_rows if among is None else len(among), count, random)
        if among is not None:
            sample = among if sample is None else among[sample]
        damping = 0.0 if sample is None else float(self.ridge * np.sqrt(problem.total))
        tail = 12.0 if self.max_iter <= 10 else 1.0  # caution brings the first steps farther
        weights = self._weights(problem.shape[1], energy)
        metric = problem.metric(weights, damping, sample, half=True, tail=tail)
        self._log(f"metric: {problem.shape[0]} features ({time.perf_counter() - started:.1f} s)")
        return metric

    def _weights(self, n_classes: int, energy: float) -> Penalty:
        # Two classes have weights (-w/2, w/2): plain squares as of the one vector w.
        l2 = self.l2 * (2.0 if n_classes == 2 else 1.0)
        return Penalty(energy, self.ridge, l2, self.ridge_scale == "common")

    def _minimise(
        self,
        problem: LogitProblem,
        metric: TriedMetric,
        search: SpanSearch | None,
        W: _Array,
        held_out: LogitProblem | None,
        centre: _Array | None,
        recent: int,
    ) -> NDArray[np.float64]:
        penalty = self._weights(problem.shape[1], self.penalty_)
        watch = Watch(held_out, partial(uncentred, centre=centre), self._log, self._step_done)
        result, done = None, False
        if search is not None:
            options: dict[str, Any] = {"tolerance": self.tol, "max_iterations": self.max_iter}
            result, done = search.minimise(penalty, **options, callback=watch)
            W = result.point
        if result is None or not done:
            result = self._over_features(problem, metric, penalty, W, watch, recent)
        self._record(result, watch)
        full = uncentred((watch.best or result).point, centre)
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
        metric: TriedMetric,
        penalty: Penalty,
        W: _Array,
        watch: Watch,
        recent: int,
    ) -> Minimum:
        float32 = problem.float32_problem() if watch.held_out is None else None
        result = minimise(
            problem.objective_of(penalty),
            metric.solve,
            W,
            tolerance=self.tol,
            max_iterations=self.max_iter,
            noise=float(np.finfo(problem.dtype).eps),
            callback=watch,
            float32=None if float32 is None else float32.objective_of(penalty),
            trial=metric.trial(penalty, W),
            recent=recent,
        )
        metric.done()
        return result

    def _record(self, result: Minimum, watch: Watch) -> None:
        self.n_iter_ = np.array([result.iterations], dtype=np.int32)
        kept = watch.best or result
        self.objective_, self.gap_ = kept.objective, kept.gap
        self.gradient_norm_ = kept.gradient_norm
        self.objective_history_ = result.history
        self.stop_reason_ = result.reason
        self.validation_history_ = watch.losses

    def _all_weights(self) -> NDArray[np.float64]:
        """The weights (p + 1, k) that were fitted, before the temperature; the constant's last."""
        W = np.vstack([self.coef_.T, self.intercept_]) * getattr(self, "temperature_", 1.0)
        return np.hstack([-W, W]) / 2 if len(self.classes_) == 2 else W


def _fold_problem(rows: LabelledRows, constant: bool) -> LogitProblem:
    return LogitProblem(_brought(rows), constant=constant)


def _brought(rows: LabelledRows) -> LabelledRows:
    """Rows in memory, where they are few enough: one pass instead of one for each evaluation."""
    if rows.in_memory or rows.n_rows * rows.n_features * 8 > _MOST_BYTES:
        return rows
    block = rows.together()
    kept = KeptBlock(block.X, block.y, block.weight)
    return MemoryRows(kept, rows.classes, RowTransform(n_threads=rows.n_threads))


# ---- fits for a pool of logits: out of fold, and near the weights of a fold ----------------------


_POOL_TOLERANCE = (
    1e-3  # of a fold's minimum: with 1e-2, searches may end at the weights they start from
)
_POOL_STEPS = 30


def held_out_logits_of(
    logit: MultinomialLogit,
    train: LabelledRows,
    held: LabelledRows,
    penalties: Sequence[float],
    enough: Callable[[_Array], bool] = lambda logits: False,
) -> tuple[list[_Array], list[Start | None]]:
    """Logits (m, k) of `held`, and what a fit may start from, for each penalty.

    Penalties are divided by `damping`. They go from large to small, and end after the first one
    whose logits are `enough`.
    """
    penalties = [one / damping(logit) for one in penalties]
    problem = LogitProblem(train, constant=True)
    ways = [logit._weights(problem.shape[1], energy) for energy in penalties]
    metric_of = logit._weights(problem.shape[1], min(max(penalties), 0.1))
    span = Span.of(problem, metric_of, _POOL_TOLERANCE)
    metric = None if span is None else SpanMetric.of(span, metric_of)
    minima: Iterator[tuple[_Array, Start | None]]
    if span is None or metric is None:
        minima = _minima_over_features(logit, problem, ways, metric_of)
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
) -> Iterator[tuple[_Array, Start]]:
    """Weights (p, k) for each penalty, and what a fit may start from."""
    random = np.random.RandomState(0)
    factor = logit._fold_metric(problem, metric_of.energy, _POOL_TOLERANCE, random=random)
    float32 = problem.float32_problem()
    W = np.zeros(problem.shape)
    for penalty in penalties:
        W = minimise(
            problem.objective_of(penalty),
            partial(factor.solve, n_threads=problem.n_threads),
            W,
            tolerance=_POOL_TOLERANCE,
            max_iterations=_POOL_STEPS,
            noise=float(np.finfo(problem.dtype).eps),
            float32=None if float32 is None else float32.objective_of(penalty),
        ).point
        W = np.ascontiguousarray(W)
        yield W, Start(W, factor, problem.total)


def damping(logit: MultinomialLogit) -> float:
    """What penalties are divided by where the ridge is more than the energy of the logits."""
    return max(2.0 * logit.ridge, 1.0)


@dataclass(frozen=True, eq=False)
class Start:
    """Weights (p, k) that minimise the objective of some samples, and its metric.

    `total` is the weight of these samples.
    """

    weights: _Array
    metric: core.Metric
    total: float


def fit_near(
    logit: MultinomialLogit, rows: LabelledRows, penalty: float, start: Start | None
) -> MultinomialLogit:
    """Fit a logit, from weights of some of its samples, in their metric, if they are given."""
    with warnings.catch_warnings():
        # Out of fold, the searches end after some tens of steps as well.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if start is None:
            logit.fit_path(rows, None, [penalty])
        else:
            logit.fit_from(rows, penalty, start.weights, start.metric, start.total)
    return logit
