"""The subject of a report: a fitted model, labelled samples, and predictions for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from sklearn.neighbors import NearestNeighbors

from eigenfeat._base.validation import show
from eigenfeat.plotting.directions import check_image_shape

__all__ = [
    *("N_NEIGHBORS", "Evidence", "evidence_of", "features_of", "neighbour_labels", "quietly"),
    "standard_error",
]

N_NEIGHBORS = 3


@dataclass(frozen=True, eq=False)
class Evidence:
    """A model, samples with labels known to the model, and its predictions."""

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

    @property
    def right(self) -> NDArray[np.bool_]:
        """(n,) array: whether predictions are correct."""
        return np.asarray(self.predicted == self.true)

    @property
    def labels(self) -> list[str]:
        """Names of the classes."""
        return [str(label) for label in self.classes.tolist()]

    @property
    def confusion(self) -> NDArray[np.int64]:
        """(k, k) array: true classes in rows, predicted ones in columns."""
        return np.asarray(
            confusion_matrix(self.true, self.predicted, labels=np.arange(len(self.classes)))
        )

    def drawn(self, n: int) -> Evidence:
        """Return the evidence of at most n samples, drawn at random."""
        if len(self.true) <= n:
            return self
        rows = np.sort(np.random.default_rng(0).permutation(len(self.true))[:n])
        parts: dict[str, Any] = {
            name: None if (part := getattr(self, name)) is None else _take(part, rows)
            for name in ("X", "y", "true", "predicted", "proba", "features")
        }
        return replace(self, **parts)


def _take(part: Any, rows: NDArray[np.intp]) -> Any:
    return part.iloc[rows] if hasattr(part, "iloc") else part[rows]


def evidence_of(model: Any, X: Any, y: NDArray[Any], image_shape: Any) -> Evidence:
    """Predict samples with a fitted classifier or transformer.

    For a transformer, the three nearest neighbours of each sample, by its features, predict.
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
    predicts = callable(getattr(model, "predict", None)) and hasattr(model, "classes_")
    classes = np.asarray(model.classes_) if predicts else np.unique(y)
    number = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([number.get(label, -1) for label in y.tolist()], dtype=np.intp)
    known = codes >= 0
    if not known.any():
        raise ValueError(
            f"y: expected labels among those of the model, {classes.tolist()[:20]}, got "
            f"{sorted(set(y.tolist()), key=str)[:20]}"
        )
    if not known.all():
        X, y, codes = X[known], y[known], codes[known]
    evidence = Evidence(
        model, X, y, names, shape, classes, codes, codes, None,
        unknown=int((~known).sum()),
    )  # fmt: skip
    with quietly():
        if not predicts:
            features = features_of(model, X)
            predicted = neighbour_labels(features, codes, len(classes))
            by = f"{N_NEIGHBORS} nearest neighbours in the features of the other samples"
            return replace(evidence, predicted=predicted, features=features, by=by)
        labels = np.asarray(model.predict(X)).tolist()
        proba = None
        if callable(getattr(model, "predict_proba", None)):
            proba = np.asarray(model.predict_proba(X), dtype=np.float64)
    predicted = np.array([number[label] for label in labels], dtype=np.intp)
    return replace(evidence, predicted=predicted, proba=proba)


def features_of(model: Any, X: Any) -> NDArray[np.float64]:
    """Features of samples as a dense array."""
    with quietly():
        features = model.transform(X)
    dense = features.toarray() if hasattr(features, "toarray") else features
    return np.asarray(dense, dtype=np.float64)


def neighbour_labels(features: Any, codes: NDArray[np.intp], k: int) -> NDArray[np.intp]:
    """Return the most common class among the nearest neighbours of each sample."""
    wanted = min(N_NEIGHBORS, len(codes) - 1)
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
