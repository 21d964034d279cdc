"""Explain predictions: logits as sums over views and pairs of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import show
from eigenfeat.expansion.features import Layer, layer_features
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.tables.classifier import TableClassifier, with_gaps

if TYPE_CHECKING:
    from eigenfeat._base.types import Labels, Rows

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
    prediction rests on. The split is exact, since the logits are linear in the features of all
    views. User guide: :doc:`/guide/explain`.

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
    check_is_fitted(model, "logit_")
    k = len(model.classes_)
    parts = _parts(model, X)
    given = parts if background is None else _parts(model, background)
    zeros = [scores.mean(axis=0) for _, _, scores in given]
    centred = [scores - zero for (_, _, scores), zero in zip(parts, zeros, strict=True)]
    baseline = np.asarray(model.logit_.intercept_, dtype=np.float64) + sum(zeros)
    if k == 2:  # one logit, of the second class over the first
        both = np.array([-0.5, 0.5])
        centred = [one * both for one in centred]
        baseline = baseline * both
    baseline = baseline - baseline.mean()
    centred = [one - one.mean(axis=-1, keepdims=True) for one in centred]

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


_Part: TypeAlias = "tuple[str, tuple[Any, Any] | None, _Array]"  # view, pair, scores (n, k or 1)


def _parts(model: GEMClassifier | TableClassifier, X: Any) -> list[_Part]:
    """Scores of each view, those of GEM views pair by pair."""
    coef = np.asarray(model.logit_.coef_, dtype=np.float64)
    if isinstance(model, GEMClassifier):
        X = filled = model.validated(X)
    else:
        X, filled = model.validated(X)
    if isinstance(model, GEMClassifier) or model.statistics_ is None:
        features = layer_features(filled, model.layers_, False, model.n_threads)
        return _by_pair("gem", features.toarray(), model.layers_[-1], coef)
    table = model.statistics_.table(with_gaps(filled, X, model.gaps_), model.n_threads)
    out: list[_Part] = []
    start = 0
    for view in model.views_:
        if view.weight > 0:
            features = view.features(table, filled, model.n_threads)
            dense = features.toarray() if hasattr(features, "toarray") else features
            weights = coef[:, start : start + view.n_features]
            if view.name in ("gem", "gem_ranks"):
                out += _by_pair(view.name, dense, view.learned[-1], weights)
            else:
                out.append((view.name, None, dense.astype(np.float64) @ weights.T))
            start += view.n_features
    return out


def _by_pair(name: str, features: Any, layer: Layer, coef: _Array) -> list[_Part]:
    """Scores of the directions of each pair; columns of the input before them have none."""
    extra = features.shape[1] - layer.width
    pairs = [(a, b) for a, b in layer.pairs.tolist()]
    of_feature = [None] * extra + pairs * (layer.width // max(len(pairs), 1))
    out: list[_Part] = []
    for pair in dict.fromkeys(of_feature):
        some = np.flatnonzero([one == pair for one in of_feature])
        out.append((name, pair, features[:, some].astype(np.float64) @ coef[:, some].T))
    return out
