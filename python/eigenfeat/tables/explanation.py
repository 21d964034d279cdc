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
from eigenfeat.samples.estimator import complete
from eigenfeat.tables.classification_views import GemView
from eigenfeat.tables.classifier import TableClassifier
from eigenfeat.tables.estimator import checked, summand_of, table_of
from eigenfeat.tables.regression_views import RidgeView
from eigenfeat.tables.regressor import TableRegressor

if TYPE_CHECKING:
    from eigenfeat._base.types import Labels, Rows
    from eigenfeat.linear.logistic import MultinomialLogit
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
        Names of the V views with weight.
    by_view : (n, V, k) array
        Contributions of the views: ``baseline + by_view.sum(axis=1)`` are the logits or the
        predictions. Logits count up to a constant for each sample; those of a sample here sum to 0
        over the classes.
    pairs : (P, 2) array
        Numerator and denominator class of the pairs of a classifier's views "gem" and "gem_ranks".
    by_pair : (n, P, k) array
        Contributions of the directions of each pair, parts of those of these views.
    columns : (D,) array
        Names of the columns of X, or their indices.
    by_column : (n, D, k) array
        Contributions of the columns to the views "columns" and "splines", parts of those of these
        views. A column's contribution depends on its value alone.
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
    sums over views. So is that by pairs, since the logits of GEM views are linear in their
    features, and that by columns of the views "columns" and "splines", except where a view's
    prediction is clipped to the range of the target, or its probability to exp(-30). User guide:
    :doc:`/guide/explain`.

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
    classes = None if isinstance(model, TableRegressor) else model.classes_
    parts, baseline = _parts(model, X)
    given = parts if background is None else _parts(model, background)[0]
    centred = []
    for one, other in zip(parts, given, strict=True):
        zero, scores = other.scores.mean(axis=0), one.scores - other.scores.mean(axis=0)
        if classes is not None:
            scores -= scores.mean(axis=-1, keepdims=True)
        centred.append(scores)
        if one.column is None:
            baseline = baseline + zero
    if classes is not None:
        baseline = baseline - baseline.mean()

    n, k = len(centred[0]), len(baseline)
    views = list(dict.fromkeys(one.view for one in parts))
    contrasts = list(dict.fromkeys(one.pair for one in parts if one.pair is not None))
    columns = getattr(model, "feature_names_in_", np.arange(model.n_features_in_))
    by_view, by_pair = np.zeros((n, len(views), k)), np.zeros((n, len(contrasts), k))
    by_column = np.zeros((n, len(columns), k))
    for one, scores in zip(parts, centred, strict=True):
        if one.column is not None:
            by_column[:, one.column] += scores
            continue
        by_view[:, views.index(one.view)] += scores
        if one.pair is not None:
            by_pair[:, contrasts.index(one.pair)] += scores
    pairs = np.array(contrasts, dtype=object).reshape(-1, 2)
    return Contributions(classes, baseline, views, by_view, pairs, by_pair, columns, by_column)


class _Part(NamedTuple):
    """Weighted scores (n, k) of a view, or of one of its pairs or columns.

    The parts of the pairs add up to the view; those of the columns stand beside it.
    """

    view: str
    scores: _Array
    pair: tuple[Any, Any] | None = None
    column: int | None = None


def _parts(model: Any, X: Any) -> tuple[list[_Part], _Array]:
    """Parts of the scores, and the constant (k,) that all views add up to with them."""
    if isinstance(model, GEMClassifier) or hasattr(model, "alone_"):
        own = isinstance(model, GEMClassifier)
        alone = model if own else model.alone_
        given = model.validated(X) if own else complete(model, checked(model, X))
        features = alone.features(given).toarray()
        return _by_pair("gem", features, alone.layers_[-1], alone.logit_, 1.0)
    return _of_pool(model, table_of(model, X))


def _of_pool(model: TableClassifier | TableRegressor, table: Table) -> tuple[list[_Part], _Array]:
    out: list[_Part] = []
    scale: Any = getattr(model, "target_scale_", 1.0)
    constant: Any = getattr(model, "target_mean_", 0.0)
    for view in model.views_:
        one = view.model
        if isinstance(one, GemView):
            features = one.features(table).toarray()
            parts, intercept = _by_pair(view.name, features, one.learned, one.logit, view.weight)
            out += parts
            constant = constant + intercept
        elif one is not None:
            out.append(_Part(view.name, scale * summand_of(model, view, table)))
            if view.name in ("columns", "splines"):
                linear = isinstance(one, RidgeView)
                coef = one.ridge.coef if linear else _all_classes(one.logit)[0].T
                out += _by_column(model, table, view.name, view.weight * scale * coef)
    return out, constant


def _by_column(model: Any, table: Table, features: str, coef: _Array) -> list[_Part]:
    """Parts of a view that is linear in functions of single columns, for each column of X."""
    groups = (
        model.columns_.groups_ if hasattr(model, "columns_") else np.arange(model.n_features_in_)
    )
    owner = np.append(groups, groups[model.gaps_])[table.statistics.owners(features)]
    values = getattr(table, features).astype(np.float64)
    return [
        _Part(features, values[:, owner == j] @ coef[owner == j], column=j)
        for j in np.unique(owner).tolist()
    ]


def _all_classes(logit: MultinomialLogit) -> tuple[_Array, _Array]:
    """Weights (k, p) and intercept (k,)."""
    coef = np.asarray(logit.coef_, dtype=np.float64)
    intercept = np.asarray(logit.intercept_, dtype=np.float64)
    if len(coef) == 1:  # one logit, of the second class over the first
        return np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
    return coef, intercept


def _by_pair(
    name: str, features: Any, layer: Layer, logit: MultinomialLogit, weight: float
) -> tuple[list[_Part], _Array]:
    """Weighted scores of the directions of each pair, and the weighted intercept."""
    coef, intercept = (weight * one for one in _all_classes(logit))
    pairs = [(a, b) for a, b in layer.pairs.tolist()]
    n_inputs = features.shape[1] - layer.width  # columns of the input have no pair
    of_feature = [None] * n_inputs + pairs * (layer.width // max(len(pairs), 1))
    out: list[_Part] = []
    for pair in dict.fromkeys(of_feature):
        some = np.flatnonzero([one == pair for one in of_feature])
        out.append(_Part(name, features[:, some].astype(np.float64) @ coef[:, some].T, pair))
    return out, intercept
