"""Shared by pools of classifiers and of regressors: new samples, and the search for views."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import warn_caller
from eigenfeat.linear.pools import PooledView
from eigenfeat.samples.estimator import complete, input_options, is_valid, validate_columns
from eigenfeat.tables.views import Table, TableStatistics

__all__ = ["PooledView", "fitted_table", "table_of", "try_views"]

_View = TypeVar("_View")
_Trial = TypeVar("_Trial")


def fitted_table(
    estimator: Any,
    X: Any,
    missing: NDArray[np.bool_] | None,
    weight: NDArray[np.float64] | None,
) -> Table:
    """Completed samples of a fit as views read them; sets `gaps_` and `statistics_`."""
    encoder = getattr(estimator, "columns_", None)
    groups = np.arange(X.shape[1]) if encoder is None else encoder.indicator_groups
    gaps = np.arange(0) if missing is None else np.flatnonzero(missing.any(axis=0))
    columns = _with_gaps(X, missing, gaps)
    groups = np.append(groups, groups[gaps])
    estimator.gaps_ = gaps
    estimator.statistics_ = TableStatistics.fit(columns, weight, groups, len(gaps))
    return estimator.statistics_.table(columns, estimator.n_threads)


def checked(model: Any, X: Any) -> Any:
    """Samples to predict as numbers, with their missing entries."""
    check_is_fitted(model, "views_")
    if is_valid(model, X):
        return X
    options = input_options(X)
    if not is_classifier(model):
        options["accept_sparse"] = False
    return validate_columns(model, X, reset=False, **options)


def table_of(model: Any, X: Any) -> Table:
    """Samples to predict as views read them: completed, and clipped to their ranges in `fit`."""
    X = checked(model, X)
    if hasattr(X, "toarray"):
        X = X.toarray()
    missing = np.isnan(X) if len(model.gaps_) else None
    columns = _with_gaps(complete(model, X), missing, model.gaps_)
    statistics: TableStatistics = model.statistics_
    low, high = statistics.quantiles[[0, -1]]
    return statistics.table(np.clip(columns, low, high), model.n_threads)


def _with_gaps(
    filled: Any, missing: NDArray[np.bool_] | None, gaps: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Completed columns, followed by indicators of the missing entries of the columns `gaps`."""
    columns = filled if missing is None else np.hstack([filled, missing[:, gaps]])
    return np.asarray(columns, dtype=np.float64)


def try_views(
    views: dict[str, _View],
    cross_fit: Callable[[_View], _Trial],
    describe: Callable[[_Trial], str],
    say: Callable[[str, float], None],
    stop: Callable[[], bool],
    time_limit: float | None = None,
    share: float = 1.0,
) -> tuple[dict[str, _Trial], dict[str, float], dict[str, str]]:
    """Cross-fit views one after the other.

    A view that raises an error is left out with a warning, unless it is the only one.

    Parameters
    ----------
    views : dict of str to View
        In the order in which they are tried; the first one always is.
    cross_fit : callable
        Returns the out-of-fold results of a view.
    describe : callable
        Returns a text about these results.
    say : callable
        Receives a line about each view, and the time when its fit began.
    stop : callable
        Called after each view; True ends the search with the views so far.
    time_limit : float, optional
        Seconds of the whole fit, after a `share` of which no further view is tried.

    Returns
    -------
    trials : dict of str to results
    seconds : dict of str to float
        Time that each trial took.
    reasons : dict of str to str
        Why views have no trial.

    Raises
    ------
    ValueError
        If no view could be fitted.

    Warns
    -----
    UserWarning
        If a view is left out because of an error. The message names it.
    """
    begun = time.perf_counter()
    trials: dict[str, _Trial] = {}
    seconds: dict[str, float] = {}
    reasons: dict[str, str] = {}
    ended = ""
    for name, view in views.items():
        started = time.perf_counter()
        if trials and time_limit is not None and started - begun > share * time_limit:
            ended = f"time limit of {time_limit:g} s"
        if ended:
            reasons[name] = ended
            continue
        try:
            trials[name] = cross_fit(view)
        except Exception as error:  # whatever an estimator of another package raises
            if len(views) == 1:
                raise
            reasons[name] = f"{type(error).__name__}: {error}"
            warn_caller(f"views: {name} is left out, its fit raised {reasons[name]}", UserWarning)
            continue
        seconds[name] = time.perf_counter() - started
        say(f"view {name}: {describe(trials[name])}", started)
        if stop():
            ended = "a callback ended the search"
    if not trials:
        given = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        raise ValueError(f"views: expected one that can be fitted, got {given}")
    return trials, seconds, reasons
