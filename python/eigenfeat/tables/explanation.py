"""Explain predictions as sums over views, pairs of classes and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import show
from eigenfeat.expansion.features import Layer
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.linear.logistic import MultinomialLogit, all_classes
from eigenfeat.samples.estimator import complete
from eigenfeat.tables.classification_views import GemView
from eigenfeat.tables.classifier import TableClassifier
from eigenfeat.tables.estimator import checked, summand_of, table_of
from eigenfeat.tables.regression_views import RidgeView
from eigenfeat.tables.regressor import TableRegressor

if TYPE_CHECKING:
    from eigenfeat._base.types import Labels, Rows
    from eigenfeat.tables.representations import Table

__all__ = ["Contributions", "contributions"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Contributions:
    """Parts of the logits of n samples and k classes, or of the predictions of k outputs.

    Attributes
    ----------
    classes : (k,) array or None
        Labels; None for a regressor.
    baseline : (k,) array
        Mean logits or predictions of the background samples.
    views : list of str
        Names of the V views of positive weight.
    by_view : (n, V, k) array
        Contributions of the views: ``baseline + by_view.sum(axis=1)`` are the logits or the
        predictions. The logits of a sample, which are defined up to a constant, sum to 0 over the
        classes.
    pairs : (P, 2) array
        Numerator and denominator class of the pairs of a classifier's views "gem" and "gem_ranks".
    by_pair : (n, P, k) array
        Contributions of the directions of each pair, which are parts of `by_view`.
    columns : (D,) array
        Names of the columns of X, or their indices.
    by_column : (n, D, k) array
        Contributions of the columns to the views "columns" and "splines", which are parts of
        `by_view`. A column's contribution depends on its value alone.
    """

    classes: Labels | None
    baseline: _Array
    views: list[str]
    by_view: _Array
    pairs: Labels
    by_pair: _Array
    columns: Labels
    by_column: _Array


def contributions(
    model: GEMClassifier | TableClassifier | TableRegressor, X: Rows, background: Rows | None = None
) -> Contributions:
    """Split logits or predictions into contributions of views, pairs of classes and columns.

    Use it to see which representation of the columns, which contrast of two classes, and which
    columns a prediction rests on. The split by views is exact: a pool's logits and predictions are
    sums over views. The split by pairs is exact, too, because the logits of GEM views are linear in
    their features. The split by columns of the views "columns" and "splines" is exact unless a
    view's prediction is clipped near the range of the target, or its probability to exp(-30). User
    guide: :doc:`/guide/explain`.

    Parameters
    ----------
    model : TableClassifier, TableRegressor or GEMClassifier
        A fitted model.
    X : (n, d) array-like or data frame
        Samples to explain.
    background : (m, d) array-like or data frame, optional
        Samples whose mean contributions are the zero of each part, such as the training samples;
        X itself by default.

    Returns
    -------
    Contributions

    Raises
    ------
    ValueError
        If the model is of another kind, or samples are invalid.

    See Also
    --------
    sklearn.inspection.permutation_importance : Columns that the accuracy rests on.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat import TableClassifier
    >>> from eigenfeat.tables import contributions
    >>> X, y = load_wine(return_X_y=True)
    >>> found = contributions(TableClassifier(views=["columns", "gem"]).fit(X, y), X)
    >>> found.views
    ['columns', 'gem']
    >>> found.by_view[0].sum(axis=0).argmax()  # the class of the first sample
    np.int64(0)
    """
    if not isinstance(model, GEMClassifier | TableClassifier | TableRegressor):
        raise ValueError(
            "model: expected a fitted TableClassifier, TableRegressor or GEMClassifier, got "
            f"{show(model)}"
        )
    check_is_fitted(model)
    parts, baseline = _parts(model, X)
    given = parts if background is None else _parts(model, background)[0]
    zero = {part: scores.mean(axis=0) for part, scores in given.items()}
    parts = {part: scores - zero[part] for part, scores in parts.items()}
    sums = {part: scores for part, scores in parts.items() if part.column is None}
    baseline = sum((zero[part] for part in sums), start=baseline)
    classes = None if isinstance(model, TableRegressor) else model.classes_
    if classes is not None:
        baseline = baseline - baseline.mean()
        for scores in parts.values():
            scores -= scores.mean(axis=1, keepdims=True)
    views = list(dict.fromkeys(part.view for part in sums))
    pairs = list(dict.fromkeys(part.pair for part in sums if part.pair is not None))
    columns = getattr(model, "feature_names_in_", np.arange(model.n_features_in_))
    return Contributions(
        classes,
        baseline,
        views,
        _summed(sums, "view", views),
        np.array(pairs, dtype=object).reshape(-1, 2),
        _summed(sums, "pair", pairs),
        columns,
        _summed(parts, "column", list(range(len(columns)))),
    )


class _Part(NamedTuple):
    """A view, one of its pairs, or one of its columns.

    Parts of pairs add up to the view; parts of columns are not added to it.
    """

    view: str
    pair: tuple[Any, Any] | None = None
    column: int | None = None


_Scores = dict[_Part, _Array]  # weighted scores (n, k)


def _summed(parts: _Scores, field: str, values: list[Any]) -> _Array:
    """Sums (n, len(values), k) of scores by a field of their parts."""
    n, k = next(iter(parts.values())).shape
    out = np.zeros((n, len(values), k))
    for part, scores in parts.items():
        value = getattr(part, field)
        if value is not None:
            out[:, values.index(value)] += scores
    return out


def _parts(model: Any, X: Any) -> tuple[_Scores, _Array]:
    """Scores of all parts, and the constant (k,) to add to the scores of all views."""
    if isinstance(model, GEMClassifier) or hasattr(model, "alone_"):
        own = isinstance(model, GEMClassifier)
        alone = model if own else model.alone_
        given = model.validated(X) if own else complete(model, checked(model, X))
        features = alone.features(given).toarray()
        return _by_pair("gem", features, alone.layers_[-1], alone.logit_, 1.0)
    table = table_of(model, X)
    out: _Scores = {}
    scale: Any = getattr(model, "target_scale_", 1.0)
    constant: Any = getattr(model, "target_mean_", 0.0)
    for view in model.views_:
        one = view.model
        if isinstance(one, GemView):
            features = one.features(table).toarray()
            parts, intercept = _by_pair(view.name, features, one.learned, one.logit, view.weight)
            out |= parts
            constant = constant + intercept
        elif one is not None:
            out[_Part(view.name)] = scale * summand_of(model, view, table)
            if view.name in ("columns", "splines"):
                linear = isinstance(one, RidgeView)
                coef = one.ridge.coef if linear else all_classes(one.logit)[0].T
                out |= _by_column(model, table, view.name, view.weight * scale * coef)
    return out, constant


def _by_column(model: Any, table: Table, features: str, coef: _Array) -> _Scores:
    """Scores of a view that is linear in functions of single columns, for each column of X."""
    groups = (
        model.columns_.groups_ if hasattr(model, "columns_") else np.arange(model.n_features_in_)
    )
    owner = np.append(groups, groups[model.gaps_])[table.statistics.owners(features)]
    values = getattr(table, features).astype(np.float64)
    return {
        _Part(features, column=j): values[:, owner == j] @ coef[owner == j]
        for j in np.unique(owner).tolist()
    }


def _by_pair(
    name: str, features: Any, layer: Layer, logit: MultinomialLogit, weight: float
) -> tuple[_Scores, _Array]:
    """Weighted scores of the directions of each pair, and the weighted intercept."""
    coef, intercept = (weight * one for one in all_classes(logit))
    pairs = [(a, b) for a, b in layer.pairs.tolist()]
    n_inputs = features.shape[1] - layer.width  # columns of the input have no pair
    of_feature = [None] * n_inputs + pairs * (layer.width // max(len(pairs), 1))
    out: _Scores = {}
    for pair in dict.fromkeys(of_feature):
        own = np.flatnonzero([other == pair for other in of_feature])
        out[_Part(name, pair)] = features[:, own].astype(np.float64) @ coef[:, own].T
    return out, intercept
