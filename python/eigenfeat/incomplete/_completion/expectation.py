"""Gaussians of the classes from incomplete rows, by expectation and maximisation."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from eigenfeat._base import threads as _threads
from eigenfeat._base.validation import show
from eigenfeat.incomplete._completion.covariance import class_gaussians
from eigenfeat.incomplete._completion.patterns import patterns_of
from eigenfeat.regions.prefix_gaussian import PrefixGaussian
from eigenfeat.rows.completion import known_entries

__all__ = ["Expectation", "fit_incomplete"]

_Array = NDArray[np.float64]


class Expectation(NamedTuple):
    """Means (G, d), covariances (G, d, d), shrinkages (G,), and a log-likelihood an iteration."""

    means: _Array
    covariances: _Array
    shrinkages: _Array
    log_likelihoods: _Array


def fit_incomplete(
    X: _Array,
    codes: NDArray[np.int32],
    shrinkage: float | str,
    ridge: float,
    max_iter: int,
    tol: float,
    n_threads: int | None,
    weight: _Array | None = None,
    classes: NDArray[Any] | None = None,
) -> Expectation:
    """Estimate as `class_gaussians` does, from rows with NaN.

    Each iteration fills rows with their conditional means, and adds the conditional covariances of
    what was missing to those of the filled rows; one factor serves all rows of a class and pattern.
    Shrinkage and ridge are applied anew each time. A row of weight w counts as w rows. Errors name
    the labels in `classes`.

    Raises
    ------
    ValueError
        If a class, or a column, has no known entry, or a covariance is not positive definite.
    """
    kept = _something_known(X, codes, classes)
    rows, codes = X[kept], codes[kept]
    weight = None if weight is None else weight[kept]
    how = shrinkage, ridge, n_threads
    current = class_gaussians(_first_guess(rows, codes, weight), codes, *how, weight=weight)
    likelihoods: list[float] = []
    for _ in range(max_iter):
        filled, spread, likelihood = _expected(rows, codes, current, n_threads, weight, classes)
        likelihoods.append(likelihood)
        fresh = class_gaussians(filled, codes, *how, spread, weight)
        moved = _moved(current, fresh)
        current = fresh
        if moved <= tol:
            break
    else:
        warnings.warn(
            f"no convergence after max_iter={max_iter} iterations: the last one moved means or "
            f"covariances by {moved:.2g} of their size, tol={tol:g}",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Expectation(*current, np.array(likelihoods))


def _something_known(
    X: _Array, codes: NDArray[np.int32], classes: NDArray[Any] | None
) -> NDArray[np.bool_]:
    """Which rows have a known entry: others say nothing, and would only slow the way."""
    known = known_entries(X)
    kept = known.any(axis=1)
    counts = np.bincount(codes[kept], minlength=int(codes.max()) + 1)
    if not counts.all():
        empty = int(counts.argmin())
        raise ValueError(
            "X: expected a row with a known entry in every class, got NaN only in class "
            f"{empty if classes is None else show(classes[empty])}"
        )
    return np.asarray(kept)


def _first_guess(X: _Array, codes: NDArray[np.int32], weight: _Array | None) -> _Array:
    """Rows filled with the means of their classes' known entries, or of all where there is none."""
    filled = X.copy()
    w = np.ones(len(X)) if weight is None else weight
    some = ~np.isnan(X)
    overall = (w @ np.where(some, X, 0.0)) / (w @ some)
    for g in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == g)
        part = X[rows]
        known = ~np.isnan(part)
        counts = w[rows] @ known
        sums = w[rows] @ np.where(known, part, 0.0)
        mean = np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), overall)
        filled[rows] = np.where(known, part, mean)
    return filled


def _expected(
    X: _Array,
    codes: NDArray[np.int32],
    current: tuple[_Array, _Array, _Array],
    n_threads: int | None,
    weight: _Array | None,
    classes: NDArray[Any] | None,
) -> tuple[_Array, _Array, float]:
    """Filled rows, mean conditional covariances (G, d, d), and the mean log density of a row."""
    w = np.ones(len(X)) if weight is None else weight
    means, covariances, _ = current
    threads = _threads.resolve(n_threads)
    filled, spread, likelihood = X.copy(), np.zeros_like(covariances), 0.0
    for g in range(len(means)):
        rows = np.flatnonzero(codes == g)
        for pattern, members in patterns_of(~np.isnan(X[rows])):
            some, t = rows[members], pattern.known
            model = PrefixGaussian.of(means[g], covariances[g], None, pattern.permutation, threads)
            if model is None:
                whose = "" if classes is None else f" of class {show(classes[g])}"
                raise ValueError(
                    f"ridge: expected one that makes the covariance{whose} of incomplete rows "
                    "positive definite, got a smaller one"
                )
            e = model.innovations(X[np.ix_(some, pattern.order[:t])], t)
            likelihood += float(w[some] @ model.log_densities(e, t).ravel())
            if pattern.missing:
                missing = pattern.order[t:]
                filled[np.ix_(some, missing)] = model.means(e, t)[:, 0][:, missing]
                spread[g] += float(w[some].sum()) * model.covariances(t)[0]
        spread[g] /= w[rows].sum()
    return filled, spread, likelihood / float(w.sum())


def _moved(before: tuple[_Array, ...], after: tuple[_Array, ...]) -> float:
    """The largest step of a covariance, and of a mean in standard deviations, of their sizes."""
    steps = []
    for mean, R, other, S in zip(*before[:2], *after[:2], strict=True):
        size = np.trace(S)  # first, so that no square is out of range
        steps.append(np.linalg.norm((S - R) / size) / np.linalg.norm(S / size))
        steps.append(np.linalg.norm((other - mean) / np.sqrt(size)))
    return float(max(steps))
