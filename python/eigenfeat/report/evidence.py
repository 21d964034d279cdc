"""What a model makes of rows with labels: predictions, probabilities and what is confused.

A transformer predicts nothing. What its features are worth is measured by a classifier on the
features of these rows, each row by a model that has not seen it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors

from eigenfeat._base.types import Floats, Labels, Rows
from eigenfeat.linear.logistic import MultinomialLogit

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.base import BaseEstimator

__all__ = [
    "N_NEIGHBORS",
    "Evidence",
    "features_of",
    "gathered",
    "neighbour_labels",
    "quietly",
    "standard_error",
]

N_NEIGHBORS, N_FOLDS = 3, 5
LEAST_CHANCE = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows with labels that the model knows, and its predictions.

    Attributes
    ----------
    X, y : rows and labels
    classes : (k,) array
    predicted : (n,) array of int
        Classes by number.
    true : (n,) array of int
    chances : (n, k) array or None
        Probabilities.
    by : str
        What predicted: "the model", or the classifier on its features.
    unknown : int
        Rows that were left out, since the model does not know their labels.
    """

    X: Any
    y: NDArray[Any]
    classes: NDArray[Any]
    predicted: NDArray[np.intp]
    true: NDArray[np.intp]
    chances: NDArray[np.float64] | None
    by: str
    unknown: int

    @property
    def right(self) -> NDArray[np.bool_]:
        """(n,) array: whether a row is predicted as what it is."""
        return np.asarray(self.predicted == self.true)

    @property
    def accuracy(self) -> float:
        """Share of rows that are right."""
        return float(self.right.mean())

    @property
    def confusion(self) -> NDArray[np.int64]:
        """(k, k) array: a row a true class, a column a predicted one."""
        k = len(self.classes)
        counts = np.zeros((k, k), dtype=np.int64)
        np.add.at(counts, (self.true, self.predicted), 1)
        return counts

    @property
    def losses(self) -> NDArray[np.float64] | None:
        """(n,) array: negative logarithms of the true class's probability."""
        if self.chances is None:
            return None
        return _losses(self.chances, self.true)

    def __len__(self) -> int:
        return len(self.true)


def gathered(
    model: BaseEstimator, X: Floats | csr_array, y: Labels, random_state: int
) -> Evidence | None:
    """The evidence about a classifier or a transformer; None of a regressor."""
    if is_regressor(model):
        return None
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
    X, y, codes = X[known], y[known], codes[known]
    rest = (int((~known).sum()),)
    with quietly():
        if not predicts:
            found = _of_features(model, X, codes, len(classes), random_state)
            return Evidence(X, y, classes, found[0], codes, found[1], found[2], *rest)
        if callable(getattr(model, "predict_proba", None)):
            chances = np.asarray(model.predict_proba(X), dtype=float)
            of = chances.argmax(axis=1)
            return Evidence(X, y, classes, of, codes, chances, "the model", *rest)
        labels = np.asarray(model.predict(X)).tolist()
    of = np.array([number[label] for label in labels], dtype=np.intp)
    return Evidence(X, y, classes, of, codes, None, "the model", *rest)


def features_of(model: BaseEstimator, X: Rows) -> NDArray[np.float64]:
    """Features of rows as a dense array."""
    with quietly():
        found = model.transform(X)
    dense = found.toarray() if hasattr(found, "toarray") else found
    return np.asarray(dense, dtype=np.float64)


def neighbour_labels(
    features: NDArray[np.float64], codes: NDArray[np.intp], k: int
) -> NDArray[np.intp]:
    """For each row the commonest class of its nearest neighbours among the others."""
    wanted = min(N_NEIGHBORS, len(codes) - 1)
    if wanted < 1:
        return codes.copy()
    search = NearestNeighbors(n_neighbors=wanted).fit(features)
    near = codes[search.kneighbors(return_distance=False)]
    votes = np.zeros((len(codes), k))
    for place in range(wanted):  # of equally many, the class of the nearest
        np.add.at(votes, (np.arange(len(codes)), near[:, place]), 1 - 0.01 * place)
    return np.asarray(votes.argmax(axis=1))


def standard_error(share: float, n: int) -> float:
    """Standard error of a share of n independent rows."""
    return float(np.sqrt(share * (1 - share) / n))


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warning that rows have no names of columns, and without those of loose fits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _of_features(
    model: Any, X: Any, codes: NDArray[np.intp], k: int, random_state: int
) -> tuple[NDArray[np.intp], NDArray[np.float64] | None, str]:
    features = features_of(model, X)
    least = int(np.bincount(codes, minlength=k).min())
    folds = min(N_FOLDS, least)
    if not hasattr(model, "expansion") or folds < 2 or k < 2:
        nearest = f"{N_NEIGHBORS} nearest neighbours among the features of the other rows"
        return neighbour_labels(features, codes, k), None, nearest
    splitter = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    chances = cross_val_predict(
        MultinomialLogit(), features, codes, cv=splitter, method="predict_proba"
    )
    linear = f"logistic regression on the features of the other rows, in {folds} folds"
    return chances.argmax(axis=1), np.asarray(chances, dtype=float), linear


def _losses(chances: NDArray[np.float64], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    true = chances[np.arange(len(codes)), codes]
    return np.asarray(-np.log(np.maximum(true, LEAST_CHANCE)))
