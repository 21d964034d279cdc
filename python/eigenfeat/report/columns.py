"""Importances of columns, and the effect of a column on predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.inspection import permutation_importance
from sklearn.metrics import log_loss

from eigenfeat._base.subsamples import draw_subsample
from eigenfeat.expansion.features import take_rows
from eigenfeat.samples.columns import days_of

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = ["column_effect", "column_importances"]

_MAX_SAMPLES = 400  # samples that are predicted
_REPEATS = 5  # permutations of a column, fewer if there are many columns
_MAX_PASSES = 200  # predictions of all samples, or one per column if there are more columns
_MAX_POINTS = 15  # quantiles at which the effect of a column of numbers is shown
_MAX_CATEGORIES = 12  # categories at which the effect of a column is shown

_Array = NDArray[np.float64]


def column_importances(
    model: Any, X: Any, y: NDArray[Any], names: Sequence[str]
) -> tuple[DataFrame, str]:
    """Permutation importances of columns, the largest first, and the name of their unit.

    The values of a column are permuted among the samples. The importance of the column is the rise
    in log loss, or in the root mean squared error of a regression, or the accuracy lost by a
    classifier without probabilities. At most 400 samples, drawn at random, are used. The frame has
    a row for each column: "importance", the mean over permutations, and its "deviation".
    """
    import pandas as pd

    X, y = _subsample(X, y)
    unit = "accuracy lost"
    scoring: Any = "accuracy"
    if is_regressor(model):
        unit, scoring = "rise in root mean squared error", "neg_root_mean_squared_error"
    elif callable(getattr(model, "predict_proba", None)):
        unit, scoring = "rise in log loss", _log_score
    repeats = int(np.clip(_MAX_PASSES // len(names), 1, _REPEATS))
    result = permutation_importance(model, X, y, scoring=scoring, n_repeats=repeats, random_state=0)
    columns = {"importance": result.importances_mean, "deviation": result.importances_std}
    frame = pd.DataFrame(columns, index=list(names))
    return frame.sort_values("importance", ascending=False, kind="stable"), unit


def _log_score(model: Any, X: Any, y: NDArray[Any]) -> float:
    return -float(log_loss(y, _proba(model, X), labels=model.classes_))


def column_effect(model: Any, X: Any, column: int, name: str) -> DataFrame | None:
    """Mean predictions if all samples have one value of a column; None for a constant column.

    This is the partial dependence of scikit-learn, also for categories and missing values. At most
    400 samples, drawn at random, are used. The frame has a row for each value (quantiles of numbers
    or dates, or the most frequent categories as text) and a column for each class.
    """
    import pandas as pd

    X, _ = _subsample(X, np.arange(X.shape[0]))
    values = pd.Series(X.iloc[:, column] if hasattr(X, "iloc") else X[:, column])
    values = values.reset_index(drop=True)
    ordered = _ordered(values)
    shown = _categories(values) if ordered is None else _quantiles(ordered)
    if len(shown) < 2:
        return None
    means = []
    for row in shown.index:
        samples, repeated = X.copy(), np.full(len(values), row)
        if hasattr(X, "iloc"):
            samples[X.columns[column]] = X.iloc[repeated, column].set_axis(X.index)
        else:
            samples[:, column] = X[repeated, column]
        predicted = model.predict(samples) if is_regressor(model) else _proba(model, samples)
        predicted = np.asarray(predicted, dtype=np.float64).reshape(len(values), -1)
        means.append(predicted.mean(axis=0))
    return pd.DataFrame(means, index=pd.Index(shown, name=name))


def _subsample(X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """At most `_MAX_SAMPLES` samples, dense."""
    rows = draw_subsample(len(y), _MAX_SAMPLES)
    X = take_rows(X, rows)
    return (X.toarray() if hasattr(X, "toarray") else X), y[rows]


def _proba(model: Any, X: Any) -> _Array:
    proba = np.asarray(model.predict_proba(X), dtype=np.float64)
    normalised: _Array = proba / proba.sum(axis=1, keepdims=True)
    return normalised


def _ordered(values: Series[Any]) -> Series[Any] | None:
    """A column as numbers or times; None for categories, booleans, and text other than dates."""
    import pandas as pd

    types = pd.api.types
    if types.is_numeric_dtype(values) and not types.is_bool_dtype(values):
        return values.dropna().astype(float)
    if isinstance(values.dtype, pd.CategoricalDtype) or types.is_bool_dtype(values):
        return None
    days = days_of(values)
    if np.isinf(days).any() or np.isnan(days).all():
        return None
    return pd.Series(pd.to_datetime(days, unit="D", origin="unix"))


def _quantiles(numbers: Series[Any]) -> Series[Any]:
    """Distinct quantiles of a column, indexed by the samples that have these values."""
    known = numbers.dropna().sort_values(kind="stable")
    at = np.linspace(0.02, 0.98, _MAX_POINTS) * max(len(known) - 1, 0)
    return known.iloc[np.unique(np.rint(at).astype(int)) if len(known) else []].drop_duplicates()


def _categories(values: Series[Any]) -> Series[str]:
    """The most frequent categories, indexed by the first sample of each category."""
    texts = values.astype(object).where(values.notna(), "missing").astype(str)
    first = texts.drop_duplicates()
    counts = texts.map(texts.value_counts())[first.index]
    order = np.lexsort((first.to_numpy(str), -counts))
    return first.iloc[order[:_MAX_CATEGORIES]]
