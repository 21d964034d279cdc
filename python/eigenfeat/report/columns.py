"""Importances of columns, and the effect of a column on predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.inspection import permutation_importance
from sklearn.metrics import log_loss

from eigenfeat._base.types import Codes
from eigenfeat.expansion.features import take_rows

__all__ = ["Effect", "Importance", "column_effect", "column_importances"]

_MAX_SAMPLES = 400  # samples that are predicted
_REPEATS = 5  # permutations of a column, fewer if there are many columns
_PREDICTIONS = 200  # of all samples
_MAX_POINTS = 15  # values at which an effect is shown

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Importance:
    """Importance of a column: mean over permutations of what is lost, and standard deviation."""

    name: str
    value: float
    deviation: float


@dataclass(frozen=True, eq=False)
class Effect:
    """Mean prediction as a function of the value of one column."""

    name: str
    values: list[Any]  # quantiles of numbers, or the most frequent categories
    means: _Array  # (values, classes): mean probabilities; (values, 1) of a regression

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers."""
        return all(isinstance(value, (int, float)) for value in self.values)


def column_importances(
    model: Any, X: Any, y: NDArray[Any], names: Sequence[str]
) -> tuple[list[Importance], str]:
    """Permutation importances of columns, the largest first, and what they measure.

    A column gets its values from other samples. Its importance is what this costs: the rise in log
    loss, or in the root mean squared error of a regression, or the accuracy lost by a classifier
    without probabilities. At most 400 samples, drawn at random, are used.
    """
    X, y = _some(X, y)
    unit = "accuracy lost"
    scoring: Any = "accuracy"
    if is_regressor(model):
        unit, scoring = "rise in root mean squared error", "neg_root_mean_squared_error"
    elif callable(getattr(model, "predict_proba", None)):
        unit, scoring = "rise in log loss", _log_score
    repeats = int(np.clip(_PREDICTIONS // len(names), 1, _REPEATS))
    found = permutation_importance(model, X, y, scoring=scoring, n_repeats=repeats, random_state=0)
    means, deviations = found.importances_mean.tolist(), found.importances_std.tolist()
    order = np.argsort(-found.importances_mean, kind="stable")
    return [Importance(names[j], means[j], deviations[j]) for j in order], unit


def _log_score(model: Any, X: Any, y: NDArray[Any]) -> float:
    return -float(log_loss(y, _proba(model, X), labels=model.classes_))


def column_effect(model: Any, X: Any, column: int, name: str) -> Effect | None:
    """Mean predictions after all samples got one value of a column; None for a constant one.

    This is the partial dependence of scikit-learn, also for categories and missing values. At most
    400 samples, drawn at random, are used.
    """
    X, _ = _some(X, np.arange(X.shape[0]))
    rows, values = _points(_column(X, column))
    if len(rows) < 2:
        return None
    n, regression = X.shape[0], is_regressor(model)
    means = []
    for row in rows:
        samples = _with_column(X, column, np.full(n, row))
        found = model.predict(samples) if regression else _proba(model, samples)
        means.append(np.asarray(found, dtype=np.float64).reshape(n, -1).mean(axis=0))
    return Effect(name, values, np.stack(means))


def _some(X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """At most `_MAX_SAMPLES` samples, dense."""
    if len(y) > _MAX_SAMPLES:
        rows = np.sort(np.random.default_rng(0).choice(len(y), _MAX_SAMPLES, replace=False))
        X, y = take_rows(X, rows), y[rows]
    return (X.toarray() if hasattr(X, "toarray") else X), y


def _proba(model: Any, X: Any) -> _Array:
    proba = np.asarray(model.predict_proba(X), dtype=np.float64)
    normalised: _Array = proba / proba.sum(axis=1, keepdims=True)
    return normalised


def _column(X: Any, j: int) -> Any:
    return X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]


def _with_column(X: Any, j: int, rows: Codes) -> Any:
    """Samples with column j of the samples `rows`."""
    changed = X.copy()
    if hasattr(X, "iloc"):
        changed[X.columns[j]] = X.iloc[rows, j].set_axis(X.index)
    else:
        changed[:, j] = X[rows, j]
    return changed


def _points(column: Any) -> tuple[list[int], list[Any]]:
    """Samples with the values of a column at which its effect is shown, and these values."""
    given = column.to_numpy() if hasattr(column, "to_numpy") else column
    if given.dtype.kind in "biuf":
        known = np.flatnonzero(~np.isnan(given.astype(float)))
        order = known[np.argsort(given[known], kind="stable")]
        at = np.linspace(0.02, 0.98, _MAX_POINTS) * max(len(order) - 1, 0)
        rows = order[np.unique(np.rint(at).astype(int))] if len(order) else order
        different = {float(given[row]): int(row) for row in rows}
        return list(different.values()), list(different)
    texts = ["missing" if v is None or v != v else str(v) for v in given.tolist()]
    first: dict[str, int] = {}
    counts: dict[str, int] = {}
    for row, text in enumerate(texts):
        first.setdefault(text, row)
        counts[text] = counts.get(text, 0) + 1
    kept = sorted(counts, key=lambda text: (-counts[text], text))[: _MAX_POINTS - 3]
    return [first[text] for text in kept], kept
