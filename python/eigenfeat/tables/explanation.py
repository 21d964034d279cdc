"""Explain predictions: logits as sums over views and pairs of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import show
from eigenfeat.expansion.features import Layer
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.tables.classification_views import GemView, log_probabilities
from eigenfeat.tables.classifier import TableClassifier

if TYPE_CHECKING:
    from eigenfeat._base.types import Labels, Rows
    from eigenfeat.linear.logistic import MultinomialLogit

__all__ = ["Contributions", "contributions"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Contributions:
    """Parts of the logits of n samples and k classes.

    Attributes
    ----------
    classes : (k,) array
        Labels.
    baseline : (k,) array
        Mean logits of the background samples.
    views : list of str
        Names of the V views with weight.
    by_view : (n, V, k) array
        Contributions of the views: ``baseline + by_view.sum(axis=1)`` are the logits. Logits count
        up to a constant for each sample; those of a sample here sum to 0 over the classes.
    pairs : (P, 2) array
        Numerator and denominator class of the pairs of the views "gem" and "gem_ranks".
    by_pair : (n, P, k) array
        Contributions of the directions of each pair, parts of those of these views.
    """

    classes: Labels
    baseline: _Array
    views: list[str]
    by_view: _Array
    pairs: Labels
    by_pair: _Array


def contributions(
    model: GEMClassifier | TableClassifier, X: Rows, background: Rows | None = None
) -> Contributions:
    """Split the logits of samples into the contributions of views and of pairs of classes.

    Use it to see which representation of the columns, and which contrast of two classes, a
    prediction rests on. The split is exact: a pool's logits are sums over views, and the logits of
    GEM views are linear in their features. User guide: :doc:`/guide/explain`.

    Parameters
    ----------
    model : TableClassifier or GEMClassifier
        A fitted classifier.
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
        If the model is neither classifier, or samples are invalid.

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
    if not isinstance(model, GEMClassifier | TableClassifier):
        raise ValueError(
            f"model: expected a fitted TableClassifier or GEMClassifier, got {show(model)}"
        )
    check_is_fitted(model)
    k = len(model.classes_)
    parts, intercept = _parts(model, X)
    given = parts if background is None else _parts(model, background)[0]
    zeros = [scores.mean(axis=0) for _, _, scores in given]
    centred = [scores - zero for (_, _, scores), zero in zip(parts, zeros, strict=True)]
    centred = [one - one.mean(axis=-1, keepdims=True) for one in centred]
    baseline = intercept + sum(zeros)
    baseline = baseline - baseline.mean()

    views = list(dict.fromkeys(name for name, _, _ in parts))
    by_view = np.zeros((len(centred[0]), len(views), k))
    contrasts = list(dict.fromkeys(pair for _, pair, _ in parts if pair is not None))
    by_pair = np.zeros((len(centred[0]), len(contrasts), k))
    for (name, pair, _), one in zip(parts, centred, strict=True):
        by_view[:, views.index(name)] += one
        if pair is not None:
            by_pair[:, contrasts.index(pair)] += one
    pairs = np.array(contrasts, dtype=object).reshape(-1, 2)
    return Contributions(model.classes_, baseline, views, by_view, pairs, by_pair)


_Part: TypeAlias = "tuple[str, tuple[Any, Any] | None, _Array]"  # view, pair, scores (n, k)


def _parts(model: GEMClassifier | TableClassifier, X: Any) -> tuple[list[_Part], _Array]:
    """Scores of each view, of GEM views for each pair, and the intercept (k,) of the latter."""
    if isinstance(model, TableClassifier) and not hasattr(model, "alone_"):
        return _parts_of_pool(model, X)
    alone = model if isinstance(model, GEMClassifier) else model.alone_
    rows = model.validated(X)
    features = alone.features(rows).toarray()
    return _by_pair("gem", features, alone.layers_[-1], alone.logit_, 1.0)


def _parts_of_pool(model: TableClassifier, X: Any) -> tuple[list[_Part], _Array]:
    table = model.table(model.checked(X))
    out: list[_Part] = []
    intercept = np.zeros(len(model.classes_))
    for view in model.views_:
        if isinstance(view.model, GemView):
            one = view.model
            features = one.features(table, model.n_threads).toarray()
            parts, own = _by_pair(view.name, features, one.learned, one.logit, view.weight)
            out += parts
            intercept = intercept + own
        elif view.model is not None:
            scores = log_probabilities(view.model.logits(table, model.n_threads))
            out.append((view.name, None, view.weight * scores))
    return out, intercept


def _by_pair(
    name: str, features: Any, layer: Layer, logit: MultinomialLogit, weight: float
) -> tuple[list[_Part], _Array]:
    """Weighted scores of the directions of each pair, and the weighted intercept."""
    coef = weight * np.asarray(logit.coef_, dtype=np.float64)
    intercept = weight * np.asarray(logit.intercept_, dtype=np.float64)
    if len(coef) == 1:  # one logit, of the second class over the first
        coef = np.vstack([np.zeros_like(coef), coef])
        intercept = np.append(0.0, intercept)
    pairs = [(a, b) for a, b in layer.pairs.tolist()]
    n_inputs = features.shape[1] - layer.width  # columns of the input have no pair
    of_feature = [None] * n_inputs + pairs * (layer.width // max(len(pairs), 1))
    out: list[_Part] = []
    for pair in dict.fromkeys(of_feature):
        some = np.flatnonzero([one == pair for one in of_feature])
        out.append((name, pair, features[:, some].astype(np.float64) @ coef[:, some].T))
    return out, intercept
