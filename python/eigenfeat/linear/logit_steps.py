"""The steps of a multinomial logit: penalty, metric, search, and temperature."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from eigenfeat._base.speaking import warn_caller
from eigenfeat._base.validation import show
from eigenfeat.linear.gaussian import GaussianClasses
from eigenfeat.linear.lbfgs import NEARBY, RECENT, Minimum, Solve, minimise
from eigenfeat.linear.logit_problem import LogitProblem, Penalty, gram_rows, uncentred
from eigenfeat.linear.logit_watch import Watch
from eigenfeat.linear.temperature import Logits, temperature
from eigenfeat.linear.tried_metric import TriedMetric
from eigenfeat.linear.unseen import Unseen
from eigenfeat.rows.estimator import Iterative
from eigenfeat.rows.memory import KeptBlock, MemoryRows
from eigenfeat.rows.reading import Reading

if TYPE_CHECKING:
    from eigenfeat._base.core import core
    from eigenfeat._base.types import Labels, RandomState, Targets, Weights
    from eigenfeat.rows.memory import LabelledRows

__all__ = ["PENALTY", "LogitSteps"]

_Array = NDArray[np.float64]

PENALTY = 0.03  # the default
PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # that "auto" chooses from
_MOST_BYTES = 64e6  # of a fold's rows that are brought here
_FIRST = 2  # of them, with more than 1,000 rows
_LEAST_GRAM_ROWS = 2_000
_CHEAP_GRAM = 1e11  # operations for a fold's, half a second
_ENOUGH = 4  # times as many rows as features, for a metric of all
_MOST_BY_LBFGS = 100  # classes, of which "auto" minimises the objective


class LogitSteps(Iterative):
    """Single steps of :class:`MultinomialLogit`, which documents its parameters."""

    classes_: Labels
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    penalty: float | str
    penalty_: float
    l2: float
    ridge: float
    ridge_scale: str
    gram_rows: int | str | None
    tol: float
    max_iter: int
    warm_start: bool
    temperature: float | str
    solver: str
    early_stopping: bool
    fit_intercept: bool
    random_state: RandomState
    verbose: int

    # Of `LinearClassifier`.
    _problems: Callable[..., tuple[LogitProblem, LogitProblem | None, _Array | None]]
    _sample: Callable[..., NDArray[np.intp] | None]
    _keep: Callable[..., None]
    _say: Callable[..., None]

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
        cooled, near = self.temperature, None
        asked = energies is None or cooled == "auto"
        unseen = self._unseen(problem, held_out, random) if asked else None
        # Of dense rows a search starts at 0, which may need no Gram matrix.
        anywhere = before is None and not problem.rows.dense
        single = energies is None or (cooled == "auto" and len(energies) == 1)
        if unseen is not None and anywhere and single and unseen.is_one_fold:
            energies, cooled, near, metric = self._of_one_fold(unseen, energies, random)
        else:
            if energies is None:
                assert unseen is not None
                energies, cooled, near = self._chosen(unseen, None)
            build = partial(self._metric, problem, max(energies), random, None)
            metric, near = TriedMetric(problem, build), near if anywhere else None
        W, recent = (problem.start(before, centre), RECENT) if near is None else (near, NEARBY)
        for i, penalty in enumerate(energies):
            model: Any = self if i == len(energies) - 1 else clone(self)
            if penalties is not None:
                model.penalty = penalty
            model.penalty_ = float(penalty)
            model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_
            W = model._minimise(problem, metric, W, held_out, centre, recent)
            model._cool(model._temperature(unseen) if cooled == "auto" else cooled)
            yield model

    def _unseen(
        self, problem: LogitProblem, held_out: LogitProblem | None, random: np.random.RandomState
    ) -> Unseen:
        """Rows for penalty and temperature, with draws that leave those of the fit as they are."""
        return Unseen(
            problem,
            partial(_fold_problem, constant=self.fit_intercept),
            partial(self._fold_metric, random=deepcopy(random)),
            held_out,
            self.fit_intercept,
            deepcopy(random),
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
        found, tried = gaussian.chosen(self._step_done)
        self._say(f"shrinkage: {found.shrinkage:.3g} ({time.perf_counter() - started:.1f} s)")
        self.penalty_, self.n_iter_ = found.shrinkage, np.array([tried], dtype=np.int32)
        self.objective_ = self.gap_ = self.gradient_norm_ = np.nan
        self.objective_history_: list[float] = []
        self.validation_history_: list[float] = []
        self.stop_reason_ = "closed form"
        self._keep(uncentred(found.W, centre))
        started = time.perf_counter()
        auto = self.temperature == "auto"
        self._cool(gaussian.temperature(found) if auto else float(self.temperature))
        self._say(f"temperature: {self.temperature_:.3g} ({time.perf_counter() - started:.1f} s)")

    def _chosen(
        self, unseen: Unseen, solve: Solve | None
    ) -> tuple[list[float], float | str, _Array | None]:
        """The penalty of the least held-out log loss, its temperature, and weights near its own."""
        started, k = time.perf_counter(), unseen.problem.shape[1]
        fixed = None if self.temperature == "auto" else float(self.temperature)
        penalties = [self._weights(k, one) for one in PENALTIES]
        found = unseen.choose(penalties, _FIRST, fixed, solve)
        told = ", ".join(f"{PENALTIES[i]:.3g}: {x:.4g}" for i, x in sorted(found.losses.items()))
        seconds = time.perf_counter() - started
        self._say(f"penalty: {PENALTIES[found.number]:.3g} (log losses {told}; {seconds:.1f} s)")
        early = self.temperature == "auto" and self.early_stopping
        return [PENALTIES[found.number]], "auto" if early else found.temperature, found.start

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

    def _temperature(self, unseen: Unseen) -> float:
        started = time.perf_counter()
        W = self._all_weights()
        logits = unseen.logits_by(W, self._weights(W.shape[1], self.penalty_))
        return self._temperature_of(logits, started)

    def _temperature_of(self, logits: Logits, started: float) -> float:
        found = temperature(logits)
        self._say(f"temperature: {found:.3g} ({time.perf_counter() - started:.1f} s)")
        return found

    def _cool(self, temperature: float) -> None:
        """Divide the weights by the temperature."""
        self.temperature_ = float(temperature)
        if self.temperature_ != 1.0:
            self.coef_ /= self.temperature_
            self.intercept_ /= self.temperature_

    def _of_one_fold(
        self, fold: Unseen, energies: Sequence[float] | None, random: np.random.RandomState
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
        self._say(f"metric: {problem.shape[0]} features ({time.perf_counter() - started:.1f} s)")
        return metric

    def _weights(self, n_classes: int, energy: float) -> Penalty:
        # Two classes have weights (-w/2, w/2): plain squares as of the one vector w.
        l2 = self.l2 * (2.0 if n_classes == 2 else 1.0)
        return Penalty(energy, self.ridge, l2, self.ridge_scale == "common")

    def _minimise(
        self,
        problem: LogitProblem,
        metric: TriedMetric,
        W: _Array,
        held_out: LogitProblem | None,
        centre: _Array | None,
        recent: int,
    ) -> NDArray[np.float64]:
        penalty = self._weights(problem.shape[1], self.penalty_)
        watch = Watch(held_out, partial(uncentred, centre=centre), self._say, self._step_done)
        rough = problem.rough() if held_out is None else None
        found = minimise(
            lambda W: problem.objective(W, penalty),
            metric.solve,
            W,
            tolerance=self.tol,
            max_iterations=self.max_iter,
            noise=float(np.finfo(problem.dtype).eps),
            callback=watch,
            rough=None if rough is None else lambda W: rough.objective(W, penalty),
            trial=metric.trial(penalty, W),
            recent=recent,
        )
        metric.done()
        self._record(found, watch)
        full = uncentred((watch.best or found).point, centre)
        self._keep(full if self.fit_intercept else np.vstack([full, np.zeros((1, full.shape[1]))]))
        self.temperature_ = 1.0
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
    return MemoryRows(kept, rows.classes, Reading(n_threads=rows.n_threads))
