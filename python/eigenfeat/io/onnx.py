"""Fitted classifiers, regressors and features as ONNX models, for runtimes without Python.

The models use operators of opset 17, and those of the domain ai.onnx.ml for trees and categories,
so that common runtimes can run them. Needs the extra ``onnx``: ``pip install "eigenfeat[onnx]"``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.saved_files import replacing
from eigenfeat._base.validation import check_path, show
from eigenfeat.expansion.features import as_layer
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.gem.ensemble import GEMEnsemble
from eigenfeat.gem.gem import GEM
from eigenfeat.gem.search import GEMClassifierCV
from eigenfeat.io.onnx_graph import Graph, layer_features
from eigenfeat.io.onnx_input import completed, input_rows
from eigenfeat.io.onnx_pool import pool, regression_pool
from eigenfeat.ldg.direct import DirectLDA
from eigenfeat.ldg.fisher import PCAFisher, RegularizedFisher
from eigenfeat.ldg.gsvd import GSVDDiscriminant
from eigenfeat.ldg.linear import LDG
from eigenfeat.ldg.local_fisher import LocalFisher
from eigenfeat.ldg.margin_criterion import MaximumMarginCriterion
from eigenfeat.ldg.metric_learning import ITML
from eigenfeat.ldg.transfer import TransferLDG
from eigenfeat.linear.logistic import MultinomialLogit, all_classes
from eigenfeat.tables.classifier import TableClassifier
from eigenfeat.tables.regressor import TableRegressor
from eigenfeat.tables.views import EstimatorView

if TYPE_CHECKING:
    from onnx import ModelProto
    from sklearn.base import BaseEstimator


__all__ = ["to_onnx"]


def to_onnx(
    model: BaseEstimator, path: str | os.PathLike[str] | None = None, *, dtype: str = "float32"
) -> ModelProto:
    """Translate a fitted model to ONNX.

    Parameters
    ----------
    model : estimator
        `TableClassifier` and `TableRegressor` with built-in views, `GEMClassifier`,
        `GEMClassifierCV`, `GEMEnsemble`, `MultinomialLogit`, `GEM`, `LDG` and the other linear
        reductions of `eigenfeat.ldg`. Also a scikit-learn pipeline whose last step is one of these
        models, LogisticRegression or LinearDiscriminantAnalysis, and whose other steps are `GEM`,
        linear reductions, `StandardScaler` and `RBFSampler`. `to_c` exports early classifiers.
    path : str or path-like, optional
        File to which the model is also written; an existing file is replaced once the new one is
        complete.
    dtype : {"float32", "float64"}, default="float32"
        Type of the samples and of all numbers. `GEMClassifier` itself stores its features in
        float32: with float64 the probabilities differ slightly, but are not more accurate.

    Returns
    -------
    onnx.ModelProto
        One input ``X`` (n, d), with NaN for missing entries if `fit` had missing entries. A model
        that was fitted to a data frame with categories has an input (n, 1) for each column that it
        uses, named like the column: numbers, or strings for categories, "" for a missing category.
        A classifier has the outputs ``label`` (n,), integers, booleans or strings, and
        ``probabilities`` (n, k); a regressor ``prediction``, (n,) or (n, q); a transformer
        ``features`` (n, columns).

    Raises
    ------
    ImportError
        If onnx is not installed.
    ValueError
        If the model is of another kind, reads dates, or has labels that are neither whole numbers,
        booleans nor strings. The message names what to leave out.
    NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat import TableClassifier
    >>> from eigenfeat.io.onnx import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> to_onnx(TableClassifier().fit(X, y)).graph.output[1].name  # doctest: +SKIP
    'probabilities'
    """
    if not isinstance(dtype, str) or dtype not in ("float32", "float64"):
        raise ValueError(f"dtype: expected 'float32' or 'float64', got {show(dtype)}")
    if path is not None:
        check_path(path)
    if not hasattr(model, "fit") or isinstance(model, type):
        raise ValueError(f"model: expected a fitted estimator, got {show(model)}")
    graph = Graph(dtype)
    check_is_fitted(model)
    _check_parts(model)
    _translate(graph, model)
    onnx_model = graph.model(model)
    if path is not None:
        with replacing(path) as file:
            file.write(onnx_model.SerializeToString(deterministic=True))
    return onnx_model


def _check_parts(model: Any, *, alone: bool = True) -> None:
    """ValueError if the encoder or completion of a model or of its parts is not translated.

    `alone` is False for a part of another model.
    """
    if hasattr(model, "predict_early"):
        raise ValueError(
            "model: expected a model of complete samples, got an early classifier; use to_c"
        )
    translated = isinstance(model, _WITH_PREPROCESSING)
    for attribute, what in (("columns_", "encodes categories"), ("completion_", "completes gaps")):
        if hasattr(model, attribute) and not (translated and (alone or attribute == "completion_")):
            kinds = ", ".join(kind.__name__ for kind in _WITH_PREPROCESSING)
            raise ValueError(
                f"model: expected one of {kinds} alone, or models of complete numeric samples, "
                f"got {type(model).__name__}, which {what}; encode and complete the samples first"
            )
    parts = [getattr(model, "best_estimator_", None), *getattr(model, "members_", ())]
    parts += [step for _, step in getattr(model, "steps", ())]
    for part in parts:
        if part is not None:
            _check_parts(part, alone=False)


# ---- models --------------------------------------------------------------------------------------


def _translate(graph: Graph, model: Any) -> None:
    """Fill the graph, from the samples to the outputs."""
    rows, last = _to_last(graph, model, input_rows(graph, model))
    classify = _translation(last, _CLASSIFIERS)
    if classify is not None:
        _add_labels(graph, last, classify(graph, last, rows))
        return
    if isinstance(last, TableRegressor):
        _refuse_estimators(last)
        outputs = last.out_of_fold_prediction_.shape[1:]
        graph.node(
            "Reshape",
            regression_pool(graph, last, rows),
            graph.constant(np.array([-1, *outputs])),
            output="prediction",
        )
        graph.output("prediction", graph.type_code, ["n", *outputs])
        return
    features = _features(graph, last, rows)
    graph.node("Identity", features, output="features")
    graph.output("features", graph.type_code, ["n", None])


def _to_last(graph: Graph, model: Any, rows: str) -> tuple[str, Any]:
    """Input of the last step of a pipeline, and this step; other models are their own last step."""
    if not isinstance(model, Pipeline):
        return rows, model
    *steps, last = [step for _, step in model.steps if step not in (None, "passthrough")]
    for step in steps:
        rows = _features(graph, step, rows)
    return rows, last


def _translation(model: Any, table: dict[type, _Translation]) -> _Translation | None:
    return next((entry for kind, entry in table.items() if isinstance(model, kind)), None)


def _features(graph: Graph, step: Any, rows: str) -> str:
    translate = _translation(step, _TRANSFORMERS)
    if translate is None:
        known = [kind.__name__ for kind in (*_TRANSFORMERS, *_CLASSIFIERS, TableRegressor)]
        raise ValueError(f"model: expected one of {', '.join(known)}, got {show(step)}")
    return translate(graph, step, rows)


def _add_labels(graph: Graph, model: Any, scores: str) -> None:
    """Outputs of a classifier, from its logits."""
    classes, kind = _labels(graph, model.classes_)
    graph.node("Softmax", scores, output="probabilities", axis=1)
    best = graph.node("ArgMax", scores, axis=1, keepdims=0)
    graph.node("Gather", classes, best, output="label", axis=0)
    graph.output("label", kind, ["n"])
    graph.output("probabilities", graph.type_code, ["n", len(model.classes_)])


def _labels(graph: Graph, classes: NDArray[Any]) -> tuple[str, int]:
    """The classes as a constant, and their type."""
    proto = graph.onnx.TensorProto
    if classes.dtype.kind == "f" and (np.abs(classes) < 2**53).all() and not (classes % 1).any():
        return graph.constant(classes.astype(np.int64)), proto.INT64
    if classes.dtype.kind in "iu" and int(classes.max()) < 2**63:
        return graph.constant(classes.astype(np.int64)), proto.INT64
    if classes.dtype.kind == "b":
        return graph.constant(classes), proto.BOOL
    if all(isinstance(label, str) for label in classes.tolist()):
        return graph.constant(classes.astype(object)), proto.STRING
    raise ValueError(
        f"classes: expected whole numbers, booleans or strings, got {show(classes.tolist())}"
    )


def _gem(graph: Graph, model: GEM, rows: str) -> str:
    return layer_features(graph, as_layer(model), completed(graph, model, rows))


def _reduced(graph: Graph, model: Any, rows: str) -> str:
    """``((samples - mean) / scale) @ components^T``."""
    centred = graph.node("Sub", rows, graph.constant(np.asarray(model.mean_, dtype=float)))
    components = model.components_ / getattr(model, "scale_", 1.0)
    return graph.affine(centred, np.asarray(components, dtype=float).T, None)


def _standardised(graph: Graph, model: StandardScaler, rows: str) -> str:
    if model.mean_ is not None and model.with_mean:
        rows = graph.node("Sub", rows, graph.constant(model.mean_))
    if model.scale_ is not None and model.with_std:
        rows = graph.node("Div", rows, graph.constant(model.scale_))
    return rows


def _fourier(graph: Graph, model: RBFSampler, rows: str) -> str:
    """``sqrt(2 / D) cos(samples W + b)``, as a sine: onnxruntime 1.23 has no cosine in float64."""
    angles = graph.affine(rows, model.random_weights_, model.random_offset_ + math.pi / 2)
    amplitude = graph.scalar(math.sqrt(2.0 / len(model.random_offset_)))
    return graph.node("Mul", graph.node("Sin", angles), amplitude)


def _logit(graph: Graph, model: Any, rows: str) -> str:
    if len(model.classes_) > 2 and getattr(model, "solver", None) == "liblinear":
        raise ValueError(
            "solver: expected a multinomial solver for three classes or more, got 'liblinear'"
        )
    coef, intercept = all_classes(model)
    return graph.affine(rows, coef.T, intercept)


def _gem_classifier(graph: Graph, model: GEMClassifier, rows: str) -> str:
    features = completed(graph, model, rows)
    for layer in model.layers_:
        features = layer_features(graph, layer, features)
    return _logit(graph, model.logit_, features)


def _table_classifier(graph: Graph, model: TableClassifier, rows: str) -> str:
    if hasattr(model, "alone_"):
        return _gem_classifier(graph, model.alone_, completed(graph, model, rows))
    _refuse_estimators(model)
    return pool(graph, model, rows)


def _refuse_estimators(model: TableClassifier | TableRegressor) -> None:
    for view in model.views_:
        if isinstance(view.model, EstimatorView):
            raise ValueError(
                f"model: expected built-in views, got {view.name}; leave it out of views"
            )


def _gem_ensemble(graph: Graph, model: GEMEnsemble, rows: str) -> str:
    """The mean of the members' logits."""
    steps = [_to_last(graph, member, rows) for member in model.members_]
    logits = [_gem_classifier(graph, last, features) for features, last in steps]
    total = graph.node("Sum", *logits)
    return graph.node("Div", total, graph.scalar(float(len(model.members_))))


def _best(graph: Graph, model: GEMClassifierCV, rows: str) -> str:
    check_is_fitted(model, "best_estimator_")
    return _gem_classifier(graph, model.best_estimator_, rows)


_Translation = Callable[[Graph, Any, str], str]
_REDUCTIONS = (
    *(LDG, RegularizedFisher, PCAFisher, DirectLDA, GSVDDiscriminant, MaximumMarginCriterion),
    *(LocalFisher, ITML, TransferLDG),
)
_TRANSFORMERS: dict[type, _Translation] = {
    GEM: _gem,
    **dict.fromkeys(_REDUCTIONS, _reduced),
    StandardScaler: _standardised,
    RBFSampler: _fourier,
}
# Models whose encoder or completion is translated.
_WITH_PREPROCESSING = (TableClassifier, TableRegressor, GEMClassifier, GEM)
_CLASSIFIERS: dict[type, _Translation] = {
    GEMClassifier: _gem_classifier,
    TableClassifier: _table_classifier,
    GEMEnsemble: _gem_ensemble,
    GEMClassifierCV: _best,
    MultinomialLogit: _logit,
    LogisticRegression: _logit,
    LinearDiscriminantAnalysis: _logit,
}
