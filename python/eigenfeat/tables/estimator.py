"""Fit of a pool of views, and its predictions, for classes and for numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.core import core
from eigenfeat._base.labels import fold_indices
from eigenfeat._base.threads import resolve
from eigenfeat._base.types import RandomState
from eigenfeat._base.validation import warn_caller
from eigenfeat.linear.pools import PooledView, asked_views
from eigenfeat.samples.estimator import (
    BaseEstimator,
    Iterative,
    Verbose,
    complete,
    input_options,
    is_valid,
    validate_columns,
)
from eigenfeat.tables.representations import Table, TableStatistics
from eigenfeat.tables.views import EstimatorView, Folds, Samples, View

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes
    from eigenfeat.samples.labelled import MemorySamples

__all__ = ["PooledView", "TableEstimator", "checked", "prior_weights", "summand_of", "table_of"]

_Array = NDArray[np.float64]

_SHARE_OF_TRIALS = 0.6  # no view is tried after this share of the time limit
_SAMPLES_AT_ONCE = 4_096  # samples that are predicted at a time
_MAX_WORKERS = 8  # threads that predict, each with its own arrays
_COLUMNS_PRIOR = 1.5  # prior weight of "columns", over the sum of the other views


class TableEstimator(Iterative, Verbose, BaseEstimator):
    """Base class of pools of views.

    A subclass defines its views, their folds, the score of a view, the weights of the pool, and the
    functions of the views' outputs that the pool adds.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "categorical_features": [StrOptions({"from_dtype"}), None],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }
    # Functions that make the views, by name, in the order in which they are tried.
    _views: ClassVar[Mapping[str, Callable[[], View]]]
    _own_view: ClassVar[type[EstimatorView]]  # view of the user's estimators
    _kind: ClassVar[str]  # description, in messages, of the estimators that may be views
    _measure: ClassVar[str]  # name of the score
    # Pairs of a number of samples and the number of folds for up to as many samples, ascending.
    _folds: ClassVar[Sequence[tuple[int, int]]]

    statistics_: TableStatistics
    gaps_: NDArray[np.intp]
    views_: list[PooledView]

    def __init__(
        self,
        views: str | Sequence[Any] = "auto",
        *,
        categorical_features: str | None = "from_dtype",
        time_limit: float | None = None,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.categorical_features = categorical_features
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    # ---- methods of subclasses -------------------------------------------------------------------

    def _reach(self, n: int) -> float:
        """`TableStatistics.reach` of n samples."""
        return 0.0

    def _takes(self, estimator: Any) -> bool:
        """Whether an estimator can be a view."""
        raise NotImplementedError

    def _reason_against(self, name: str, names: Sequence[str], samples: Samples) -> str:
        """Why a view, one of `names`, is not used for these samples; empty if it is used."""
        raise NotImplementedError

    def _one_fold(self, codes: Codes, random: np.random.RandomState) -> tuple[Codes, Codes]:
        """Indices of the samples to train on and to hold out, of many samples."""
        raise NotImplementedError

    def _summand(self, outputs: _Array) -> _Array:
        """The function of a view's outputs (n, k) that the pool adds."""
        raise NotImplementedError

    def _score(self, outputs: _Array, samples: Samples, held: Codes) -> float:
        """Score of outputs of the samples `held`; higher is better."""
        raise NotImplementedError

    def _weights(self, held_out: dict[str, _Array], samples: Samples, held: Codes) -> _Array:
        """Weights of the views from their outputs of the samples `held`."""
        raise NotImplementedError

    # ---- fit -------------------------------------------------------------------------------------

    def _asked(self) -> tuple[list[str], dict[str, Any]]:
        """Names of the views to try, and the user's estimators by name."""
        return asked_views(self.views, [*self._views], self._kind, self._takes)

    def _most_steps(self) -> int:
        return sum(map(len, self._asked()))

    def _samples(self, rows: MemorySamples, targets: NDArray[Any]) -> Samples:
        """Completed samples as views read them; sets `gaps_` and `statistics_`."""
        encoder, X, missing = getattr(self, "columns_", None), rows.block.X, rows.block.missing
        groups = np.arange(X.shape[1]) if encoder is None else encoder.indicator_groups
        self.gaps_ = np.arange(0) if missing is None else np.flatnonzero(missing.any(axis=0))
        columns = _with_gaps(X, missing, self.gaps_)
        groups = np.append(groups, groups[self.gaps_])
        n_gaps = len(self.gaps_)
        if missing is not None and X.dtype == columns.dtype:  # frees the other copy
            rows = replace(rows, block=replace(rows.block, X=columns[:, : X.shape[1]]))
        weight, reach = rows.block.weight, self._reach(len(targets))
        self.statistics_ = TableStatistics.fit(columns, weight, groups, n_gaps, reach)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        table = self.statistics_.table(columns, self.n_threads)
        return Samples(rows, table, targets, seed, len(targets))

    def _fit_pool(self, samples: Samples) -> tuple[dict[str, _Array], Folds]:
        """Fit the views and their weights; return held-out outputs by view, and their folds."""
        started = time.perf_counter()
        views, found = self._candidates(samples)
        folds = self._draw_folds(samples)
        held_out = self._cross_fit(views, found, samples, folds)
        self._fit_weighted(views, found, held_out, samples, folds)
        self.views_ = [found[name] for names in self._asked() for name in names]
        self._log(f"pool of {sum(view.weight > 0 for view in self.views_)} views", started)
        return held_out, folds

    def _candidates(self, samples: Samples) -> tuple[dict[str, View], dict[str, PooledView]]:
        """Views to try on these samples, by name, and records of the others."""
        names, estimators = self._asked()
        reasons = {name: self._reason_against(name, names, samples) for name in names}
        views = {name: self._views[name]() for name in names if not reasons[name]}
        views |= {name: self._own_view(one) for name, one in estimators.items()}
        return views, {name: PooledView(name, 0.0, note=why) for name, why in reasons.items()}

    def _draw_folds(self, samples: Samples) -> Folds:
        """Draw folds; their number depends on the number of samples."""
        n, codes, random = len(samples), samples.rows.codes, np.random.RandomState(samples.seed)
        count = next((folds for most, folds in self._folds if n <= most), 1)
        if count == 1:
            return Folds([self._one_fold(codes, random)], n)
        return Folds(fold_indices(codes, len(samples.rows.classes), count, random), n)

    def _cross_fit(
        self,
        views: dict[str, View],
        found: dict[str, PooledView],
        samples: Samples,
        folds: Folds,
    ) -> dict[str, _Array]:
        """Try views one after the other, and add their records to `found`.

        Returns the held-out outputs of the views that could be fitted. A view that raises an error
        is left out with a warning; if there is no other view, the error is raised. ValueError if no
        view can be fitted.
        """
        held_out: dict[str, _Array] = {}
        begun, ended = time.perf_counter(), ""
        limit = np.inf if self.time_limit is None else _SHARE_OF_TRIALS * self.time_limit
        for name, view in views.items():
            started = time.perf_counter()
            if held_out and started - begun > limit:
                ended = f"time limit of {self.time_limit:g} s"
            if ended:
                found[name] = PooledView(name, 0.0, note=ended)
                continue
            try:
                held_out[name] = view.cross_fit(samples.without_cache(), folds)
            except Exception as error:  # whatever an estimator of another package raises
                if len(views) == 1:
                    raise
                found[name] = _left_out(name, error)
                continue
            score = self._score(held_out[name], samples, folds.held)
            seconds = time.perf_counter() - started
            found[name] = PooledView(name, 0.0, score, seconds, note="adds nothing to the others")
            self._log(f"view {name}: out-of-fold {self._measure} {score:.4g}", started)
            if self._step_done():
                ended = "a callback ended the search"
        if not held_out:
            can = "can be fitted" if views else "these samples allow"
            given = "; ".join(f"{view.name}: {view.note}" for view in found.values())
            raise ValueError(f"views: expected a view that {can}, got {given}")
        return held_out

    def _fit_weighted(
        self,
        views: dict[str, View],
        found: dict[str, PooledView],
        held_out: dict[str, _Array],
        samples: Samples,
        folds: Folds,
    ) -> None:
        """Fit the views of positive weight to all samples, and add them to `found`.

        A view that raises an error is removed from `held_out` with a warning, and the weights of
        the others are computed again. If there is no other view, the error is raised.
        """
        while True:
            given = self._weights(held_out, samples, folds.held).tolist()
            weights = dict(zip(held_out, given, strict=True))
            try:
                for name, weight in weights.items():
                    if weight > 0 and found[name].model is None:
                        found[name] = self._fitted(found[name], views[name], samples)
                break
            except Exception as error:  # whatever an estimator of another package raises
                if len(held_out) == 1:
                    raise
                found[name] = _left_out(name, error)
                del held_out[name]
        for name, weight in weights.items():
            if weight > 0:
                found[name] = replace(found[name], weight=weight, note="")
                self._log(f"view {name}: weight {weight:.2f}")
            else:  # the view may be fitted, if its weight was positive before another one failed
                found[name] = replace(found[name], model=None)

    def _fitted(self, tried: PooledView, view: View, samples: Samples) -> PooledView:
        """A view fitted to all samples."""
        started = time.perf_counter()
        view.fit(samples.without_cache())
        return replace(
            tried,
            seconds=tried.seconds + time.perf_counter() - started,
            n_features=view.n_features,
            penalty=view.penalty,
            model=view,
        )

    def _out_of_fold(self, held_out: dict[str, _Array], samples: Samples, folds: Folds) -> _Array:
        """Sums (n, k) of the pool, with weights from the other folds, or from the only fold.

        Samples that no fold holds out have NaN.
        """
        fold = np.repeat(np.arange(len(folds.parts)), [len(part[1]) for part in folds.parts])
        summands = [self._summand(outputs) for outputs in held_out.values()]
        parts = []
        for i in range(len(folds.parts)):
            others = fold != i if len(folds.parts) > 1 else fold == i
            outside = {name: outputs[others] for name, outputs in held_out.items()}
            weights = self._weights(outside, samples, folds.held[others])
            pairs = zip(weights, summands, strict=True)
            parts.append(np.asarray(sum(weight * one[fold == i] for weight, one in pairs)))
        out = np.full((len(samples), parts[0].shape[1]), np.nan)
        out[folds.held] = np.concatenate(parts)
        return out

    # ---- predictions -----------------------------------------------------------------------------

    def _pooled(self, table: Table) -> _Array:
        """Weighted sums (n, k) of functions of the views' outputs."""
        if len(table) <= _SAMPLES_AT_ONCE:
            return self._summed(table)

        def of_part(begin: int) -> _Array:
            part = slice(begin, begin + _SAMPLES_AT_ONCE)
            return self._summed(replace(table.subset(part), n_threads=1))

        starts = range(0, len(table), _SAMPLES_AT_ONCE)
        workers = min(resolve(self.n_threads) or core.default_threads(), len(starts), _MAX_WORKERS)
        with ThreadPoolExecutor(workers) as executor:
            return np.concatenate(list(executor.map(of_part, starts)))

    def _summed(self, table: Table) -> _Array:
        fitted = (view for view in self.views_ if view.model is not None)
        return np.asarray(sum(summand_of(self, view, table) for view in fitted))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def checked(model: Any, X: Any) -> Any:
    """Samples to predict, as numbers; entries may be missing."""
    check_is_fitted(model, "views_")
    if is_valid(model, X):
        return X
    options = input_options(X)
    if not is_classifier(model):
        options["accept_sparse"] = False
    return validate_columns(model, X, reset=False, **options)


def summand_of(model: TableEstimator, view: PooledView, table: Table) -> _Array:
    """The weighted summand (n, k) of a fitted view in its pool."""
    return view.weight * model._summand(view.model.outputs(table))


def table_of(model: Any, X: Any) -> Table:
    """Samples to predict as views read them: completed, and clipped to the columns' limits."""
    X = checked(model, X)
    if hasattr(X, "toarray"):
        X = X.toarray()
    missing = np.isnan(X) if len(model.gaps_) else None
    columns = _with_gaps(complete(model, X), missing, model.gaps_)
    statistics: TableStatistics = model.statistics_
    return statistics.table(np.clip(columns, *statistics.limits), model.n_threads)


def prior_weights(names: Collection[str]) -> _Array:
    """Prior weights (V,) of views: 60% for "columns", equal shares for the others."""
    others = len(names) - 1
    prior = np.array([_COLUMNS_PRIOR * others if name == "columns" else 1.0 for name in names])
    return prior / prior.sum() if others > 0 else np.ones(1)


def _left_out(name: str, error: Exception) -> PooledView:
    """The record of a view that raised an error, after a warning."""
    reason = f"{type(error).__name__}: {error}"
    warn_caller(f"views: {name} is left out, its fit raised {reason}", UserWarning)
    return PooledView(name, 0.0, note=reason)


def _with_gaps(filled: Any, missing: NDArray[np.bool_] | None, gaps: NDArray[np.intp]) -> _Array:
    """Completed columns, followed by indicators of the missing entries of the columns `gaps`."""
    columns = filled if missing is None else np.hstack([filled, missing[:, gaps]])
    return np.asarray(columns, dtype=np.float64)
