"""The pool of views of a classification: out-of-fold logits of each view, and weights.

The pool is ``p(y | x) ~ exp(sum_v w_v log p_v(y | x))`` (Genest and Zidek 1986) with weights that
minimise the out-of-fold log loss; see `pool_weights`. Up to 10,000 samples every view predicts each
sample out of fold. Beyond, one fold of at most 5,000 samples decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.core import core
from eigenfeat._base.labels import fold_indices
from eigenfeat._base.subsamples import draw_subsample
from eigenfeat._base.threads import resolve
from eigenfeat._base.types import Codes
from eigenfeat.linear.pools import log_probabilities, pool_probabilities, pool_weights
from eigenfeat.tables.classification_views import MANY_SAMPLES, Folds, Samples, View
from eigenfeat.tables.search import PooledView, try_views
from eigenfeat.tables.views import Table

__all__ = ["fit_pool", "pooled_logits"]

_Array = NDArray[np.float64]

# bench/tables.py shows the effect of the following numbers.
# Largest number of samples, and its number of folds.
_FOLDS = ((300, 10), (MANY_SAMPLES, 5), (10_000, 3))
_FOLDS_OF_MANY = 4  # with more samples, of which the first fold alone is held out
_MAX_HELD, _MAX_TRAINED = 5_000, 20_000  # samples of this fold that are held out, and trained on
_PRIOR_OF_COLUMNS = 0.5  # prior weight of the view "columns"
_SHARE_OF_TRIALS = 0.6  # of the time limit, after which no further view is tried
_SAMPLES_AT_ONCE = 4_096  # of a prediction
_MAX_WORKERS = 8


def fit_pool(
    views: dict[str, View],
    samples: Samples,
    say: Callable[[str, float], None],
    stop: Callable[[], bool],
    time_limit: float | None = None,
) -> tuple[list[PooledView], _Array | None]:
    """Fit a pool of views.

    Parameters
    ----------
    views : dict of str to View
        Views to try, in the order in which they are tried.
    samples : Samples
    say : callable
        Receives a line about each view, and the time when its fit began.
    stop : callable
        Called after each view; True ends the search with the views so far.
    time_limit : float, optional
        Seconds after which no further view is tried, less what the fits to all samples need.

    Returns
    -------
    views : list of PooledView
    out_of_fold : (n, k) array or None
        Probabilities of the samples by pools fitted without their fold; None for one fold.
    """
    folds = _draw_folds(samples)
    trials, seconds, reasons = try_views(
        views,
        lambda view: view.cross_fit(samples, folds),
        lambda trial: f"out-of-fold log loss {trial.log_loss:.4g}",
        say,
        stop,
        time_limit,
        _SHARE_OF_TRIALS,
    )
    held = folds.held
    logits = [trial.logits for trial in trials.values()]
    weight = None if samples.weight is None else samples.weight[held]
    prior = _prior(list(trials))
    weights = pool_weights(logits, samples.codes[held], weight, prior)
    out = []
    for (name, trial), w in zip(trials.items(), weights, strict=True):
        one = PooledView(
            name, float(w), -trial.log_loss, seconds[name], note="adds nothing to the others"
        )
        if w > 0:
            started, view = time.perf_counter(), views[name]
            view.fit(samples, trial)
            one = replace(
                one,
                seconds=one.seconds + time.perf_counter() - started,
                n_features=view.n_features,
                penalty=trial.penalty,
                note="",
                model=view,
            )
            say(f"view {name}: weight {w:.2f}", started)
        out.append(one)
    out += [PooledView(name, 0.0, note=why) for name, why in reasons.items()]
    if len(folds.parts) == 1:
        return out, None
    return out, _out_of_fold(logits, prior, folds, samples)


def pooled_logits(views: Sequence[PooledView], table: Table, n_threads: int | None) -> _Array:
    """Logits (n, k) of a pool: weighted sums of the views' log probabilities."""
    if len(table) <= _SAMPLES_AT_ONCE:
        return _logits(views, table, n_threads)

    def logits_of(begin: int) -> _Array:
        part = slice(begin, begin + _SAMPLES_AT_ONCE)
        return _logits(views, replace(table, X=table.X[part], n_threads=1), 1)

    starts = range(0, len(table), _SAMPLES_AT_ONCE)
    workers = min(resolve(n_threads) or core.default_threads(), len(starts), _MAX_WORKERS)
    with ThreadPoolExecutor(workers) as executor:
        return np.concatenate(list(executor.map(logits_of, starts)))


def _logits(views: Sequence[PooledView], table: Table, n_threads: int | None) -> _Array:
    total: _Array | float = 0.0
    for view in views:
        if view.model is not None:
            part = view.weight * log_probabilities(view.model.logits(table, n_threads))
            total = total + part
    assert not isinstance(total, float)
    return total


def _draw_folds(samples: Samples) -> Folds:
    """Stratified folds by the number of samples; one fold where they are many."""
    n, k = samples.rows.n_samples, len(samples.classes)
    random = np.random.RandomState(samples.seed)
    count = next((folds for most, folds in _FOLDS if n <= most), 1)
    if count > 1:
        return Folds(fold_indices(samples.codes, k, count, random), n)
    train, held = fold_indices(samples.codes, k, _FOLDS_OF_MANY, random)[0]
    drawn = [
        part[draw_subsample(len(part), most, samples.codes[part])]
        for part, most in ((train, _MAX_TRAINED), (held, _MAX_HELD))
    ]
    return Folds([(drawn[0], drawn[1])], n)


def _prior(names: Sequence[str]) -> _Array:
    """Prior weights of the pool: a half for the view "columns", equal shares for the others."""
    is_simple = np.array(names) == "columns"
    if is_simple.all() or not is_simple.any():
        return np.full(len(names), 1.0 / len(names))
    return np.where(is_simple, _PRIOR_OF_COLUMNS, (1.0 - _PRIOR_OF_COLUMNS) / (len(names) - 1))


def _out_of_fold(logits: Sequence[_Array], prior: _Array, folds: Folds, samples: Samples) -> _Array:
    """Probabilities (n, k) by weights of the other folds; NaN for samples that are in no fold."""
    out = np.full((samples.rows.n_samples, len(samples.classes)), np.nan)
    held = folds.held
    fold = np.repeat(np.arange(len(folds.parts)), [len(part[1]) for part in folds.parts])
    codes: Codes = samples.codes[held]
    weight = None if samples.weight is None else samples.weight[held]
    for i, (_, some) in enumerate(folds.parts):
        inside, rest = fold == i, fold != i
        if not rest.any():
            return out
        others = [one[rest] for one in logits]
        w = pool_weights(others, codes[rest], None if weight is None else weight[rest], prior)
        out[some] = pool_probabilities([one[inside] for one in logits], w)
    return out
