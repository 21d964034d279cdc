"""Multinomial logistic regression, and its penalty and temperature from held-out samples."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import by_class, fold_indices, thinned
from eigenfeat._base.threads import resolve
from eigenfeat._base.types import Codes, Floats, Labels, RandomState, Rows, Targets, Weights
from eigenfeat._base.validation import FLOATS, check_number, show, take_names, warn_caller
from eigenfeat.expansion.features import CoreRows, ExpandedFeatures, core_rows
from eigenfeat.linear.gaussian import GaussianClasses
from eigenfeat.linear.logit_problem import (
    FeaturePasses,
    LogitProblem,
    Logits,
    Minimum,
    Penalty,
    log_loss,
    minima,
    sample_problem,
    temperature,
)
from eigenfeat.samples.block_samples import LabelledSamples
from eigenfeat.samples.estimator import (
    LOGGER,
    BaseEstimator,
    Iterative,
    Verbose,
    prepare,
    unchanged_on_error,
    validate_data,
    with_steps,
)
from eigenfeat.samples.out_of_core import BlockScores, FromLogits, over_blocks

if TYPE_CHECKING:
    from typing import TypeAlias

    from eigenfeat.samples.blocks import RowBlocks

    Features: TypeAlias = Rows | RowBlocks | ExpandedFeatures | LabelledSamples
else:
    Features = Any

__all__ = [
    "PENALTIES",
    "Features",
    "LinearModel",
    "MultinomialLogit",
    "PenaltyChoice",
    "all_classes",
    "choose_penalty",
    "draw_folds",
]

_Array = NDArray[np.float64]

PENALTY = 0.03  # the default
PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # candidates of penalty="auto"
_MAX_LBFGS_CLASSES = 100  # above it, solver="auto" means "gaussian"
# `python bench/tables.py` shows the effect of these numbers.
_FOLDS = ((1_000, 3), (5_000, 2))  # maximum number of samples, folds; one fold above
_MAX_TRAINED, _MAX_HELD = 20_000, 10_000  # samples of a single fold
_MAX_LOGITS = 4_000_000  # held-out logits of a single fold
_MIN_CHOOSING = 60  # held-out samples; with fewer, each fold tries all penalties
_RISE = 0.02  # relative rise of the log loss after which no smaller penalty is tried
_TIE = 0.002  # relative difference of log losses that is noise; the larger penalty is taken
_TOLERANCE, _MAX_ITERATIONS = 1e-2, 30  # looser, for fits to folds


def all_classes(model: Any) -> tuple[_Array, _Array]:
    """Weights (k, p) and intercept (k,) of a linear classifier; the first of two classes has 0."""
    coef = np.asarray(model.coef_, dtype=np.float64)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(coef))
    if len(coef) == 1:
        return np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
    return coef, intercept


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
        """Compute logits without a check of the features.

        Parameters
        ----------
        rows : CoreRows
            Features of n samples in the form of the core, with a last feature of ones.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            As in `decision_function`.
        """
        if "coef_" not in self.__dict__:  # the check takes longer than the scores of few samples
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
        """Store the weights W (p, k), whose last row is the intercept."""
        if len(self.classes_) == 2:
            W = W[:, 1:] - W[:, :1]
        self.coef_ = np.ascontiguousarray(W[:-1].T)
        self.intercept_ = W[-1].copy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class MultinomialLogit(Iterative, Verbose, LinearModel, FromLogits):
    """Multinomial logistic regression for dense features, by preconditioned L-BFGS.

    Use it for hundreds of dense features or more, where it is several times as fast as
    scikit-learn's solvers, and for expanded projections that do not fit into memory. Tune
    `penalty`, or set it to 0 and `l2` to 1 / C. User guide: :doc:`/guide/classifier`; the
    objective and the solvers: :doc:`/guide/objectives`.

    Parameters
    ----------
    penalty : float >= 0 or "auto", default=0.03
        Weight of the energy of the logits. "auto" chooses among 1, 0.3, 0.1, 0.03, 0.01 and 0.003
        by the held-out log loss.
    l2 : float >= 0, default=0
        Weight of the L2 penalty; ``1 / C`` in scikit-learn.
    ridge : float >= 0, default=0.5
        Damping of the metric, also a part of `penalty`.
    ridge_scale : {"columns", "common"}, default="columns"
        Scale of the ridge: each feature's mean square, or one mean for features of one unit.
    fit_intercept : bool, default=True
        Whether to add a constant feature, which the ridge and `l2` do not penalise.
    tol : float > 0, default=1e-4
        Iterations stop when `gap_` is at most this fraction of the objective.
    max_iter : int >= 1, default=200
        Maximum number of iterations.
    temperature : float > 0 or "auto", default=1.0
        Divisor of the weights, which changes no label; "auto" minimises the held-out log loss.
    solver : {"lbfgs", "gaussian", "auto"}, default="lbfgs"
        "gaussian": Gaussian classes with a common covariance. "auto": "gaussian" for more than 100
        classes, unless other parameters need the objective.
    random_state : int, RandomState or None, default=0
        Seed for drawing folds.
    n_threads : int or None, default=None
        Number of threads; None means all. Results do not depend on it.
    verbose : int, default=0
        1 prints a line for each iteration on stderr.

    Attributes
    ----------
    coef_ : (k, p) array, or (1, p) with two classes
        Weights in the units of the features, divided by the temperature.
    intercept_ : (k,) array, or (1,) with two classes
        Intercepts, divided by the temperature.
    classes_ : (k,) array
        Labels, sorted.
    penalty_ : float
        The penalty in use; with Gaussian classes, the shrinkage of the covariance.
    temperature_ : float
        The temperature in use.
    n_iter_ : (1,) array of int
        Number of iterations.
    objective_ : float
        The objective at the end.
    objective_history_ : list of float
        The objective before and after each iteration.
    gap_ : float
        Estimate, not a bound, of the objective's excess over its minimum.
    gradient_norm_ : float
        Norm of the gradient.
    stop_reason_ : {"converged", "precision", "stopped", "iterations", "closed form"}
        Why the iterations ended; "precision" means rounding errors, "stopped" a callback.

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
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
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
        tol: float = 1e-4,
        max_iter: int = 200,
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
        self.tol = tol
        self.max_iter = max_iter
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
            Finite features. Blocks are read in every iteration; they take one to four bytes of
            memory per sample.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        MultinomialLogit
            The estimator itself.
        """
        (model,) = self.iterate_path(X, y, None, sample_weight)
        return model

    def iterate_path(
        self,
        X: Features,
        y: Targets,
        penalties: Sequence[float] | None,
        sample_weight: Weights = None,
    ) -> Iterator[MultinomialLogit]:
        """Fit one model for each of several penalties, with a common Gram matrix.

        Each fit starts from the weights of the previous penalty; decreasing penalties work best.

        Parameters
        ----------
        X : (n, p) array-like, sparse matrix, ExpandedFeatures or RowBlocks
            Finite features.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        penalties : sequence of float or None
            Values of `penalty`; None means the estimator's `penalty`, which may be "auto".
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Yields
        ------
        MultinomialLogit
            Fitted models; the last one is the estimator itself.
        """
        self._validate_params()
        if not isinstance(penalties, Iterable | None):
            raise ValueError(f"penalties: expected numbers, got {show(penalties)}")
        penalties = None if penalties is None else list(penalties)
        for value in penalties or ():
            check_number(value, "penalties", at_least=0)
        if penalties == []:
            raise ValueError("penalties: expected at least one, got none")
        with unchanged_on_error(self):
            random = check_random_state(self.random_state)
            problem = self._problem(self._prepared(X, y, sample_weight))
            if self._in_closed_form(penalties):
                self._solve_gaussian(problem, random)
                yield self
            else:
                yield from self._path(problem, penalties, random)

    def _problem(self, samples: LabelledSamples) -> LogitProblem:
        intercept, common = self.fit_intercept, self.ridge_scale == "common"
        problem = LogitProblem(samples, constant=intercept, common=common, centre=intercept)
        self.n_features_in_ = problem.varying
        return problem

    def _path(
        self,
        problem: LogitProblem,
        penalties: Sequence[float] | None,
        random: np.random.RandomState,
    ) -> Iterator[Any]:
        """Fit a model for each penalty; None means that of the estimator, which may be "auto"."""
        searched = sample_problem(problem, self._penalty(1.0), self.tol)
        energies: Any = [self.penalty] if penalties is None else penalties
        chooses = penalties is None and self.penalty == "auto"
        choice, folds = None, []
        if chooses or self.temperature == "auto":
            folds = draw_folds(problem.rows.codes, len(self.classes_), random)
        if chooses or (self.temperature == "auto" and len(energies) == 1):
            choice = self._choose(searched, folds, PENALTIES if chooses else energies)
            energies = [PENALTIES[choice.number]] if chooses else energies
        path = minima(
            searched,
            [self._penalty(energy) for energy in energies],
            tolerance=self.tol,
            max_iterations=self.max_iter,
            start=choice.weights if choice is not None and len(folds) == 1 else None,
            callback=self._watch if self._is_watched() else None,
        )
        for i, (energy, minimum) in enumerate(zip(energies, path, strict=True)):
            model: Any = self if i == len(energies) - 1 else clone(self)
            if penalties is not None:
                model.penalty = energy
            model.penalty_ = float(energy)
            model.classes_ = self.classes_
            take_names(model, self)
            model._record(minimum, problem.uncentred(searched.feature_weights(minimum.point)))
            chosen = choice
            if chosen is None and self.temperature == "auto":
                chosen = self._choose(searched, folds, [energy])
            model._apply_temperature(self.temperature if chosen is None else chosen.temperature)
            yield model

    def _choose(
        self,
        problem: LogitProblem,
        folds: Sequence[tuple[Codes, Codes]],
        energies: Sequence[float],
    ) -> PenaltyChoice:
        """Penalty and temperature with the smallest held-out log loss."""
        started = time.perf_counter()
        fixed = None if self.temperature == "auto" else float(self.temperature)
        problems = (problem.fold(train, held) for train, held in folds)
        choice = choose_penalty(problems, [self._penalty(one) for one in energies], fixed)
        if len(energies) > 1:
            losses = [f"{energies[i]:.3g}: {loss:.4g}" for i, loss in choice.losses.items()]
            text = f"penalty: {energies[choice.number]:.3g} (log losses {', '.join(losses)})"
            self._log(text, started)
        else:
            self._log(f"temperature: {choice.temperature:.3g}", started)
        return choice

    def _in_closed_form(self, penalties: Sequence[float] | None) -> bool:
        """Whether to compute the weights of Gaussian classes."""
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
        many = self.solver == "auto" and len(self.classes_) > _MAX_LBFGS_CLASSES
        return many and not asked and self.fit_intercept

    def _solve_gaussian(self, problem: LogitProblem, random: np.random.RandomState) -> None:
        started = time.perf_counter()
        gaussian = GaussianClasses(problem, self.ridge_scale == "common", random)
        result, tried = gaussian.chosen(self._step_done)
        how = f"shrinkage: {result.shrinkage:.3g}, temperature: {result.temperature:.3g}"
        self._log(how, started)
        self.penalty_, self.n_iter_ = result.shrinkage, np.array([tried], dtype=np.int32)
        self.objective_ = self.gap_ = self.gradient_norm_ = np.nan
        self.objective_history_: list[float] = []
        self.stop_reason_ = "closed form"
        self._keep(problem.uncentred(result.W))
        auto = self.temperature == "auto"
        self._apply_temperature(float(result.temperature if auto else self.temperature))

    def _apply_temperature(self, temperature: float) -> None:
        """Divide the weights by the temperature."""
        self.temperature_ = float(temperature)
        if self.temperature_ != 1.0:
            self.coef_ /= self.temperature_
            self.intercept_ /= self.temperature_

    def _penalty(self, energy: float) -> Penalty:
        # Two classes have the weights -w/2 and w/2, whose squares add up to half of |w|^2.
        return Penalty(energy, self.ridge, self.l2 * (2.0 if len(self.classes_) == 2 else 1.0))

    def _is_watched(self) -> bool:
        """Whether messages or callbacks ask for iterations."""
        asked = bool(self.verbose) or LOGGER.isEnabledFor(logging.INFO)
        return asked or "_callback_fit_ctx" in self.__dict__

    def _watch(self, progress: Minimum) -> bool:
        """Report an iteration; return whether to stop."""
        self._log(
            f"iteration {progress.iterations}: objective {progress.objective:.6g}, "
            f"estimated gap {progress.gap:.1e}"
        )
        return self._step_done()

    def _record(self, result: Minimum, W: _Array) -> None:
        """Set the fitted attributes; warn if the search has not converged."""
        self.n_iter_ = np.array([result.iterations], dtype=np.int32)
        self.objective_, self.gap_ = result.objective, result.gap
        self.gradient_norm_ = result.gradient_norm
        self.objective_history_ = result.history
        self.stop_reason_ = result.reason
        self._keep(W if self.fit_intercept else np.vstack([W, np.zeros((1, W.shape[1]))]))
        if result.reason == "iterations":
            warn_caller(
                f"MultinomialLogit: {result.iterations} iterations left the objective an estimated "
                f"{result.gap / max(abs(result.objective), 1e-300):.1e} above its minimum; raise "
                "max_iter or the penalty",
                ConvergenceWarning,
            )


# ---- penalty and temperature of held-out samples ------------------------------------------------
#
# Held-out logits come from folds. The weights of a fold are searched from zero, because weights of
# all samples would leak the labels. The penalty is the one whose held-out logits, divided by their
# temperature, have the smallest log loss. The first fold follows the path from the largest penalty
# until the log loss rises; later folds try only the best penalty and its neighbours.


def draw_folds(
    codes: Codes, n_classes: int, random: np.random.RandomState
) -> list[tuple[Codes, Codes]]:
    """Indices of the samples to train on and to hold out, drawn class by class.

    Three folds up to 1,000 samples, two up to 5,000; with more samples, one fold of at most 20,000
    samples to train on and 10,000 to hold out. The only sample of a class is never held out; there
    is no fold if all classes have one sample.
    """
    for most, count in _FOLDS:
        if len(codes) <= most:
            return fold_indices(codes, n_classes, count, random)
    most = int(np.clip(_MAX_LOGITS // n_classes, 1_000, _MAX_HELD))
    return [
        (thinned(by_class(train, codes), _MAX_TRAINED), thinned(by_class(held, codes), most))
        for train, held in fold_indices(codes, n_classes, 2, random)[:1]
    ]


@dataclass(frozen=True, eq=False)
class PenaltyChoice:
    """The penalty with the smallest held-out log loss."""

    number: int  # index in the path of penalties
    temperature: float
    losses: dict[int, float]  # of the penalties that all folds tried, by index
    logits: Logits  # held-out logits of the penalty, fold after fold
    weights: _Array | None  # (p, k) of the penalty in the last fold; None without folds


def choose_penalty(
    folds: Iterable[tuple[LogitProblem, LabelledSamples]],
    penalties: Sequence[Penalty],
    fixed: float | None = None,
    log_prior: Sequence[float] | None = None,
) -> PenaltyChoice:
    """Choose among penalties, from large to small, by the smallest held-out log loss.

    Each fold has the problem of its training samples, and its held-out samples. `fixed` is the
    temperature, by default that with the smallest log loss. `log_prior` has the logarithms of prior
    probabilities of the penalties, which are added to the log likelihood.
    """
    tried, n_held = range(len(penalties)), 0
    logits: dict[int, Logits] = {}
    weights: dict[int, _Array] = {}
    losses: dict[int, float] = {}
    temperatures: dict[int, float] = {}
    for problem, held in folds:
        queries = FeaturePasses(held, problem.constant)
        is_first, n_held = n_held == 0, n_held + queries.n_samples
        problem = sample_problem(problem, penalties[0], _TOLERANCE)
        path = minima(
            problem,
            penalties[tried.start : tried.stop],
            tolerance=_TOLERANCE,
            max_iterations=_MAX_ITERATIONS,
        )
        losses = {}
        for i, minimum in zip(tried, path, strict=True):
            weights[i] = W = np.ascontiguousarray(problem.feature_weights(minimum.point))
            logits[i] = logits.get(i, []) + queries.logits(W)
            temperatures[i] = fixed or temperature(logits[i])
            losses[i] = log_loss(logits[i], temperatures[i])
            rises = losses[i] > (1.0 + _RISE) * min(losses.values())
            if rises and is_first and n_held >= _MIN_CHOOSING:
                break
        tried = tried[: len(losses)]
        values = np.array([*losses.values()])
        if log_prior is not None:
            values -= np.array(log_prior)[tried] / n_held
        at = int(np.argmax(values <= (1.0 + _TIE) * values.min()))
        best = tried[at]
        if n_held >= _MIN_CHOOSING:
            tried = tried[max(at - 1, 0) : at + 2]
    if not losses:
        return PenaltyChoice(len(penalties) // 2, fixed or 1.0, {}, [], None)
    return PenaltyChoice(best, temperatures[best], losses, logits[best], weights[best])
