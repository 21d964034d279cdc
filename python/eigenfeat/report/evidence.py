"""The subject of a report: a fitted model, labelled samples, and predictions for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.neighbors import NearestNeighbors

from eigenfeat._base.validation import show
from eigenfeat.expansion.features import take_rows
from eigenfeat.plotting.directions import check_image_shape
from eigenfeat.report.held_out import Part, cross_predict, held_out_parts, target_numbers
from eigenfeat.report.measures import ClassificationMeasures, RegressionMeasures, measures_of

__all__ = [
    *("Evidence", "class_predictions", "codes_of", "evidence_of", "quietly", "standard_error")
]

_N_NEIGHBORS = 3


@dataclass(frozen=True, eq=False)
class Evidence:
    """A model, samples with labels known to the model, and predictions of them.

    Of a regression, `true` and `predicted` are numbers, and there are no classes.
    """

    model: Any
    X: Any  # array, sparse matrix or data frame
    y: NDArray[Any]
    names: list[str]  # names of the columns
    shape: tuple[int, int] | None  # shape of images, if columns are pixels
    classes: NDArray[Any]
    true: NDArray[Any]  # class indices
    predicted: NDArray[Any]
    proba: NDArray[np.float64] | None
    by: str = "the model"  # what predicts: the model, or neighbours of a transformer's features
    features: NDArray[np.float64] | None = None  # features of a transformer
    unknown: int = 0  # number of samples left out, whose labels the model does not know
    weight: NDArray[np.float64] | None = None  # weights of the samples in the measures
    regression: bool = False
    part: Part | None = None  # one of the new fits, if any, with the samples that it predicts

    @cached_property
    def measures(self) -> ClassificationMeasures | RegressionMeasures:
        """Measures of the predictions."""
        classes = self.classes.tolist()
        return measures_of(classes, self.true, self.predicted, self.proba, self.weight)

    @property
    def probe(self) -> tuple[Any, Any, NDArray[Any]]:
        """A model, with samples and labels that it predicts here, for questions about columns."""
        if self.part is None:
            return self.model, self.X, self.y
        return self.part.model, take_rows(self.X, self.part.rows), self.y[self.part.rows]

    @property
    def right(self) -> NDArray[np.bool_]:
        """(n,) array: whether predictions are correct."""
        return np.asarray(self.predicted == self.true)

    @property
    def labels(self) -> list[str]:
        """Names of the classes."""
        return [str(label) for label in self.classes.tolist()]

    def drawn(self, n: int) -> Evidence:
        """Return the evidence of at most n samples of the model's own, drawn at random."""
        if len(self.true) <= n:
            return self
        rows = np.sort(np.random.default_rng(0).permutation(len(self.true))[:n])
        parts: dict[str, Any] = {
            name: None if (part := getattr(self, name)) is None else take_rows(part, rows)
            for name in ("X", "y", "true", "predicted", "proba", "features", "weight")
        }
        return replace(self, **parts, part=None)


def evidence_of(
    model: Any,
    X: Any,
    y: NDArray[Any],
    image_shape: Any,
    held_out: dict[str, Any] | None = None,
    weight: NDArray[np.float64] | None = None,
) -> Evidence:
    """Predict samples with a fitted model, or with new fits of it.

    For a transformer, the three nearest neighbours of each sample, by its features, predict.
    `held_out` are arguments of `held_out_parts`.
    """
    known_names = getattr(model, "feature_names_in_", None)
    if hasattr(X, "iloc"):
        if known_names is not None and set(known_names) <= set(X.columns):
            X = X[list(known_names)]
        names = [str(name) for name in X.columns]
    else:
        X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
        names = [] if known_names is None else [str(name) for name in known_names]
    if np.ndim(X) < 2 and not hasattr(X, "tocsr"):
        raise ValueError(f"X: expected at least two dimensions, got shape {np.shape(X)}")
    d = int(X.shape[1])
    if X.shape[0] != len(y):
        raise ValueError(f"y: expected {X.shape[0]} labels, one per sample, got {show(y)}")
    names = names if len(names) == d else [f"column {j}" for j in range(d)]
    shape = None if image_shape is None else check_image_shape(d, image_shape)
    predicts = callable(getattr(model, "predict", None))
    regression = is_regressor(model)
    if held_out is not None and not predicts:
        raise ValueError(
            "model: expected a classifier or a regressor with holdout or cv, got "
            f"{type(model).__name__}, which predicts nothing"
        )
    if regression:
        y = target_numbers(y)
    evidence = Evidence(
        model, X, y, names, shape, np.empty(0), y, y, None, weight=weight, regression=regression
    )
    if held_out is not None:
        return _of_new_fits(evidence, held_out)
    if regression:
        with quietly():
            return replace(evidence, predicted=np.asarray(model.predict(X)))
    if not predicts:
        classes, codes = np.unique(y, return_inverse=True)
        features = _features_of(model, X)
        predicted = _neighbour_labels(features, codes, len(classes))
        by = f"{_N_NEIGHBORS} nearest neighbours in the features of the other samples"
        return replace(
            evidence, classes=classes, true=codes, predicted=predicted, features=features, by=by
        )
    classes, codes = np.asarray(model.classes_), codes_of(model, y)
    known = codes >= 0
    if not known.any():
        raise ValueError(
            f"y: expected labels among those of the model, {classes.tolist()[:20]}, got "
            f"{sorted(set(y.tolist()), key=str)[:20]}"
        )
    if not known.all():
        X, y, codes = X[known], y[known], codes[known]
        weight = None if weight is None else weight[known]
    predicted, proba = class_predictions(model, X)
    return replace(
        evidence, X=X, y=y, classes=classes, true=codes, unknown=int((~known).sum()),
        weight=weight, predicted=predicted, proba=proba,
    )  # fmt: skip


def _of_new_fits(evidence: Evidence, held_out: dict[str, Any]) -> Evidence:
    """The evidence of held-out samples, predicted by new fits of the model."""
    y = evidence.y
    parts = held_out_parts(y, **held_out, continuous=evidence.regression)
    with quietly():
        found = cross_predict(evidence.model, evidence.X, y, parts, evidence.weight)
    first, held = found.parts[0], found.rows
    evidence = replace(
        evidence,
        X=take_rows(evidence.X, held),
        y=y[held],
        weight=None if evidence.weight is None else evidence.weight[held],
        true=y[held],
        predicted=found.predicted,
        proba=found.proba,
        part=Part(first.model, np.searchsorted(held, first.rows)),
    )
    if evidence.regression:
        return evidence
    classes = np.unique(y)
    return replace(
        evidence,
        classes=classes,
        true=np.searchsorted(classes, evidence.true),
        predicted=np.searchsorted(classes, evidence.predicted),
    )


def codes_of(model: Any, y: NDArray[Any]) -> NDArray[np.intp]:
    """Indices of labels among the classes of a classifier; -1 for labels that it does not know."""
    code_of = {label: code for code, label in enumerate(np.asarray(model.classes_).tolist())}
    return np.array([code_of.get(label, -1) for label in y.tolist()], dtype=np.intp)


def class_predictions(model: Any, X: Any) -> tuple[NDArray[np.intp], NDArray[np.float64] | None]:
    """Indices of the predicted classes, and probabilities; None for a classifier without them."""
    with quietly():
        predicted = codes_of(model, np.asarray(model.predict(X)))
        if not callable(getattr(model, "predict_proba", None)):
            return predicted, None
        return predicted, np.asarray(model.predict_proba(X), dtype=np.float64)


def _features_of(model: Any, X: Any) -> NDArray[np.float64]:
    """Features of samples as a dense array."""
    with quietly():
        features = model.transform(X)
    dense = features.toarray() if hasattr(features, "toarray") else features
    return np.asarray(dense, dtype=np.float64)


def _neighbour_labels(features: Any, codes: NDArray[np.intp], k: int) -> NDArray[np.intp]:
    """Return the most common class among the nearest neighbours of each sample."""
    wanted = min(_N_NEIGHBORS, len(codes) - 1)
    if wanted < 1:
        return codes.copy()
    near = codes[NearestNeighbors(n_neighbors=wanted).fit(features).kneighbors(
        return_distance=False)]  # fmt: skip
    votes = np.zeros((len(codes), k))
    for place in range(wanted):  # ties go to the nearest sample's class
        np.add.at(votes, (np.arange(len(codes)), near[:, place]), 1 - 0.01 * place)
    return np.asarray(votes.argmax(axis=1))


def standard_error(share: float, n: int) -> float:
    """Standard error of a share of n independent samples."""
    return float(np.sqrt(share * (1 - share) / n))


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings, such as those about missing feature names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
