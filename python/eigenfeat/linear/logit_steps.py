"""The steps of a multinomial logit: metric, search, and temperature."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from eigenfeat._base.speaking import warn_caller
from eigenfeat.linear.lbfgs import Minimum, minimise
from eigenfeat.linear.logit_problem import LogitProblem, Penalty, gram_rows, uncentred
from eigenfeat.linear.logit_watch import Watch
from eigenfeat.linear.temperature import (
    Logits,
    folds,
    held_out_logits,
    temperature,
)
from eigenfeat.rows.callbacks import Iterative
from eigenfeat.rows.memory import KeptBlock, MemoryRows
from eigenfeat.rows.reading import Reading

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes
    from eigenfeat.rows.labelled import LabelledRows

__all__ = ["LogitSteps"]

_Array = NDArray[np.float64]


_COARSE = 1e-2  # of a fold's minimum: with 1e-3, T is the same to 2%
_LEAST_GRAM_ROWS = 2_000
_MOST_STEPS = 30
_MOST_BYTES = 64e6  # of a fold's rows that are brought here


def _cross_fitted(
    rows: LabelledRows,
    metric: Callable[[LogitProblem], Any],
    penalty: Penalty,
    parts: list[tuple[Codes, Codes]],
    constant: bool,
) -> Logits:
    """Logits of held-out rows, from weights of the others.

    Parameters
    ----------
    rows : LabelledRows
    metric : callable
        The factor of a fold's metric.
    penalty : Penalty
    parts : list of (train, held)
        See `folds`.
    constant : bool
        Whether there is an intercept.

    Returns
    -------
    list of (logits (m, k), codes (m,), weights (m,) or None)
    """
    found: Logits = []
    for train, held in parts:
        problem = LogitProblem(_brought(rows.subset(train)), constant=constant)
        rough, factor = problem.rough(), metric(problem)
        minimum = minimise(
            _objective(problem, penalty),
            partial(_solved, factor, problem.n_threads),
            np.zeros(problem.shape),
            tolerance=_COARSE,
            max_iterations=_MOST_STEPS,
            noise=float(np.finfo(problem.dtype).eps),
            rough=None if rough is None else _objective(rough, penalty),
        )
        how = np.ascontiguousarray(minimum.point), constant, rows.n_threads
        found += rows.subset(held).reduce(held_out_logits, operator.add, *how)
    return found


def _solved(factor: Any, n_threads: int, gradient: _Array) -> _Array:
    found: _Array = factor.solve(gradient, n_threads)
    return found


def _objective(problem: LogitProblem, penalty: Penalty) -> Callable[[_Array], tuple[float, _Array]]:
    return lambda W: problem.objective(W, penalty)


def _brought(rows: LabelledRows) -> LabelledRows:
    """Rows in memory, where they are few enough: one pass instead of one for each evaluation."""
    if rows.in_memory or rows.n_rows * rows.n_features * 8 > _MOST_BYTES:
        return rows
    block = rows.together()
    kept = KeptBlock(block.X, block.y, block.weight)
    return MemoryRows(kept, rows.classes, Reading(n_threads=rows.n_threads))


@dataclass
class _Unseen:
    """Rows for the temperature: those that early stopping holds out, or folds of all rows."""

    problem: LogitProblem
    metric: Callable[[LogitProblem], Any]
    held_out: LogitProblem | None
    constant: bool
    random: Any

    def __post_init__(self) -> None:
        rows, k = self.problem.rows, self.problem.shape[1]
        self.parts = [] if self.held_out else folds(rows.codes, k, self.random)

    def logits(self, W: NDArray[np.float64], penalty: Penalty) -> Logits:
        """Logits of those held out, by W (p, k), or of the folds."""
        if self.held_out is None:
            rows = self.problem.rows
            return _cross_fitted(rows, self.metric, penalty, self.parts, self.constant)
        how = np.ascontiguousarray(W[: self.problem.shape[0]]), self.constant
        rows = self.held_out.rows
        return rows.reduce(held_out_logits, operator.add, *how, rows.n_threads)


class LogitSteps(Iterative):
    """Single steps of :class:`MultinomialLogit`, which documents its parameters."""

    classes_: NDArray[Any]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    penalty: float
    l2: float
    ridge: float
    ridge_scale: str
    gram_rows: int | str | None
    tol: float
    max_iter: int
    warm_start: bool
    temperature: float | str
    fit_intercept: bool
    random_state: Any
    verbose: int

    # Of `LinearClassifier`.
    _problems: Callable[..., Any]
    _sample: Callable[..., Any]
    _keep: Callable[..., None]
    _say: Callable[..., None]

    def _path(
        self, X: Any, y: Any, penalties: Sequence[float], sample_weight: Any
    ) -> Iterator[Any]:
        again = self.warm_start and hasattr(self, "coef_")
        before = (self.classes_, self._all_weights()) if again else None
        random = check_random_state(self.random_state)
        problem, held_out, centre = self._problems(X, y, sample_weight, random)
        started = time.perf_counter()
        metric = self._metric(problem, max(penalties), random)
        self._say(f"metric: {problem.shape[0]} features ({time.perf_counter() - started:.1f} s)")
        unseen = None
        if self.temperature == "auto":
            of_fold = partial(self._fold_metric, energy=max(penalties), random=random)
            unseen = _Unseen(problem, of_fold, held_out, self.fit_intercept, random)
        W = problem.start(before, centre)
        for i, penalty in enumerate(penalties):
            model: Any = self if i == len(penalties) - 1 else clone(self)
            model.penalty = penalty
            model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_
            W = model._minimise(problem, metric, W, held_out, centre)
            model._cool(model.temperature if unseen is None else model._temperature(unseen))
            yield model

    def _fold_metric(self, problem: LogitProblem, *, energy: float, random: Any) -> Any:
        """Of a sample where there are more rows than features: some steps more cost less."""
        n, p = problem.n_rows, problem.shape[0]
        sample = self._sample(n, max(_LEAST_GRAM_ROWS, p // 2) if n > p else n, random)
        damping = 0.0 if sample is None else float(self.ridge * np.sqrt(problem.total))
        penalty = self._weights(problem.shape[1], energy)
        return problem.metric(penalty, damping, sample, half=True, tail=1.0)

    def _temperature(self, unseen: _Unseen) -> float:
        started = time.perf_counter()
        W = self._all_weights()
        found = temperature(unseen.logits(W, self._weights(W.shape[1], self.penalty)))
        self._say(f"temperature: {found:.3g} ({time.perf_counter() - started:.1f} s)")
        return found

    def _cool(self, temperature: float) -> None:
        """Divide the weights by the temperature."""
        self.temperature_ = float(temperature)
        if self.temperature_ != 1.0:
            self.coef_ /= self.temperature_
            self.intercept_ /= self.temperature_

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
