"""Discriminants of fitted classifiers: ``predict`` is the argmax of linear or quadratic functions.

Each kind of functions has a class, which evaluates scores at points. Functions with separable
differences have the form of the core's dominance kernels; quadratic ones give the forms and
gradients of differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.state import OmitsCaches
from eigenfeat._base.validation import show
from eigenfeat.expansion.features import expand

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat.early.local_qda import LocalQDA

__all__ = [
    "Affine",
    "ClassCodes",
    "Discriminants",
    "Linear",
    "Quadratic",
    "affine_of",
    "discriminants_of",
]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]
Separable = tuple[_Array, _Array | None, _Array | None, _Array | None]


@dataclass(frozen=True, eq=False)
class Affine(OmitsCaches):
    """``y = B^T x + b``, B (d, ell), b (ell,)."""

    B: _Array
    b: _Array

    @cached_property
    def key(self) -> bytes:
        """Hash of the map."""
        return blake2b(self.B.tobytes() + self.b.tobytes(), digest_size=16).digest()

    def __call__(self, X: _Array) -> _Array:
        """Images of samples (n, d)."""
        return np.asarray(np.einsum("ni,ij->nj", X, self.B, optimize=False) + self.b)

    def then(self, slopes: _Array, offsets: _Array) -> Affine:
        """The composition ``slopes @ y + offsets``; slopes (k, ell), offsets (k,)."""
        B = np.einsum("ij,kj->ik", self.B, slopes)
        return Affine(np.ascontiguousarray(B), np.einsum("kj,j->k", slopes, self.b) + offsets)


def affine_of(features: BaseEstimator | None, n_columns: int) -> Affine | None:
    """The map of a fitted transformer, from the images of 0 and of the unit vectors.

    None for None, ValueError if the transformer is not affine.
    """
    if features is None:
        return None
    if not hasattr(features, "transform"):
        raise ValueError(f"features: expected a fitted transformer or None, got {show(features)}")
    d = n_columns
    if (width := getattr(features, "n_features_in_", d)) != d:
        raise ValueError(f"features: expected a map of {d} columns, got {width}")
    origin = np.asarray(features.transform(np.zeros((1, d))), dtype=np.float64)
    images = np.asarray(features.transform(np.eye(d)), dtype=np.float64)
    affine = Affine(np.ascontiguousarray(images - origin), origin[0])
    points = np.sin(np.arange(3 * d, dtype=float).reshape(3, d) * 1.3 + 0.7)
    scale = np.abs(points) @ np.abs(affine.B) + np.abs(affine.b)
    error = np.abs(np.asarray(features.transform(points), dtype=np.float64) - affine(points))
    if not np.all(error <= 1e-5 * scale + 1e-300):
        raise ValueError(f"features: expected an affine map of samples, got {show(features)}")
    return affine


@dataclass(frozen=True, eq=False)
class ClassCodes:
    """Class indices of samples, by a classifier's `predict`."""

    classes: NDArray[Any]
    classifier: Any

    def __call__(self, inputs: _Array) -> NDArray[np.intp]:
        """Class indices of samples of features."""
        labels = np.asarray(self.classifier.predict(inputs))
        if labels.shape != (len(inputs),):
            raise ValueError(
                f"classifier: expected predict to return {len(inputs)} labels, got shape "
                f"{labels.shape}"
            )
        codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        strange = self.classes[codes] != labels
        if np.any(strange):
            known, got = show(self.classes.tolist()), show(labels[np.argmax(strange)])
            raise ValueError(f"classifier: expected predict to return labels in {known}, got {got}")
        return codes


@dataclass(frozen=True, eq=False)
class Discriminants:
    """f_1, ..., f_k, one for each class of the classifier."""

    def about(self, points: _Array) -> Discriminants:
        """The functions at each point if they are local, otherwise these functions."""
        return self

    def take(self, rows: _Codes) -> Discriminants:
        """The functions of the points `rows`, if each point has its own functions."""
        return self

    def scores(self, points: _Array) -> _Array:
        """Values (n, k) of the functions."""
        raise NotImplementedError

    @property
    def separable(self) -> Separable | None:
        """Discriminants in the form of the dominance kernels, if all differences are separable.

        Offsets (n or 1, k), slopes (k, d), precisions and centres (n or 1, k, d) of
        ``offset_c + slope_c . x - sum_i precision_ci (x_i - centre_ci)^2``.
        """
        return None


@dataclass(frozen=True, eq=False)
class Linear(Discriminants):
    """``f = slopes @ x + offsets``."""

    slopes: _Array
    offsets: _Array

    def scores(self, points: _Array) -> _Array:
        """As `Discriminants.scores`."""
        return np.asarray(np.einsum("ni,ki->nk", points, self.slopes) + self.offsets)

    @property
    def separable(self) -> Separable:
        """As `Discriminants.separable`."""
        return self.offsets[None], np.ascontiguousarray(self.slopes), None, None


@dataclass(frozen=True, eq=False)
class Quadratic(Discriminants):
    """``f_c = offset_c - 1/2 (x - mean_c)^T P_c (x - mean_c)``, for each point or for all."""

    offsets: _Array  # (n or 1, k)
    means: _Array  # (n or 1, k, d)
    precisions: _Array  # (n or 1, k, d) diagonals, or (1, k, d, d)

    @property
    def diagonal(self) -> bool:
        """Whether all precisions are diagonal."""
        return self.precisions.ndim == 3

    def take(self, rows: _Codes) -> Quadratic:
        """As `Discriminants.take`."""
        if len(self.means) == 1:
            return self
        return Quadratic(self.offsets[rows], self.means[rows], self.precisions[rows])

    def pull(self, points: _Array, c: int) -> tuple[_Array, _Array]:
        """Points less the mean of class c, and the negative gradients of f_c, both (n, d)."""
        apart = points - self.means[:, c]
        if self.diagonal:
            return apart, self.precisions[:, c] * apart
        return apart, _products(apart, self.precisions[0, c])

    def scores(self, points: _Array) -> _Array:
        """As `Discriminants.scores`."""
        pulls = (self.pull(points, c) for c in range(self.means.shape[1]))
        squares = [np.einsum("ni,ni->n", apart, pull) for apart, pull in pulls]
        return np.asarray(self.offsets - 0.5 * np.stack(squares, axis=1))

    @property
    def separable(self) -> Separable | None:
        """As `Discriminants.separable`."""
        if not self.diagonal:
            return None
        arrays = self.offsets, 0.5 * self.precisions, self.means
        offsets, precisions, centres = (np.ascontiguousarray(one) for one in arrays)
        return offsets, None, precisions, centres

    def forms(self, rows: _Codes, c: _Codes, h: _Codes) -> _Array:
        """Forms V (m, d, d) of ``f_c - f_h`` at the points `rows`."""
        rows = rows if len(self.precisions) > 1 else np.zeros_like(rows)
        V = 0.5 * (self.precisions[rows, h] - self.precisions[rows, c])
        return np.asarray(V[:, :, None] * np.eye(V.shape[1]) if self.diagonal else V)

    def sizes(self, points: _Array) -> tuple[_Array, _Array, _Array]:
        """Bounds (n, k) of the magnitudes of the terms of V, of the half gradient and of f_c."""
        axes = tuple(range(2, self.precisions.ndim))
        curved = np.sqrt((0.25 * self.precisions**2).sum(axis=axes))
        apart = np.stack(
            [np.linalg.norm(points - self.means[:, c], axis=1) for c in range(curved.shape[1])],
            axis=1,
        )
        curved = np.broadcast_to(curved, apart.shape)
        return curved, curved * apart, np.abs(self.offsets) + curved * apart**2


@dataclass(frozen=True, eq=False)
class Local(Discriminants):
    """Discriminants of the neighbours of each point."""

    model: LocalQDA

    def about(self, points: _Array) -> Quadratic:
        """As `Discriminants.about`."""
        means, variances = self.model.local_gaussians(points)
        return Quadratic(self.model.offsets(variances), means, 1.0 / variances)

    def scores(self, points: _Array) -> _Array:
        """As `Discriminants.scores`."""
        return self.about(points).scores(points)


def _products(apart: _Array, precision: _Array) -> _Array:
    """Products P x (n, d), whose rounding errors do not depend on the other points."""
    return np.asarray(expand(apart, np.ascontiguousarray(precision.T), None, expansion="none"))


def discriminants_of(classifier: BaseEstimator, X: _Array) -> Discriminants:
    """Discriminants of a fitted classifier."""
    functions = _read(classifier)
    if functions is None:
        raise ValueError(
            "classifier: expected one with linear or quadratic discriminants (coef_ and intercept_ "
            f"for each class, QDA, GaussianNB or LocalQDA), got {show(classifier)}"
        )
    scores = functions.scores(X)
    expected = np.searchsorted(classifier.classes_, classifier.predict(X))
    got = scores.argmax(axis=1)
    of_class = scores[np.arange(len(scores)), expected]
    close = scores.max(axis=1) - of_class <= 1e-6 * (1 + np.abs(scores).max(axis=1))
    if not np.all((got == expected) | close):
        row = int(np.argmin((got == expected) | close))
        raise ValueError(
            "classifier: expected predict to be the argmax of its discriminants, got "
            f"{show(classifier.classes_[expected[row]])} in place of "
            f"{show(classifier.classes_[got[row]])} in row {row} from {show(classifier)}"
        )
    return functions


def _read(classifier: Any) -> Discriminants | None:
    if hasattr(classifier, "local_gaussians"):  # LocalQDA
        return Local(classifier)
    if hasattr(classifier, "rotations_") and hasattr(classifier, "scalings_"):
        return _from_qda(classifier)
    if hasattr(classifier, "theta_") and hasattr(classifier, "var_"):
        return _from_naive_bayes(classifier)
    if hasattr(classifier, "coef_") and hasattr(classifier, "intercept_"):
        return _from_coefficients(classifier)
    return None


def _from_coefficients(classifier: Any) -> Discriminants | None:
    coef = classifier.coef_
    coef = np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef, dtype=np.float64)
    coef = np.atleast_2d(coef)  # RidgeClassifier has shape (d,) for two classes
    offsets = np.ravel(np.asarray(classifier.intercept_, dtype=np.float64))
    if coef.ndim != 2 or len(offsets) not in (1, len(coef)):
        return None
    offsets = np.broadcast_to(offsets, len(coef))
    k = len(classifier.classes_)
    if hasattr(classifier, "dual_coef_") and k > 2:  # one function for each pair of classes
        return None
    if len(coef) == 1 and k == 2:
        slopes = np.vstack([-coef, coef]) / 2
        return Linear(slopes, np.concatenate([-offsets, offsets]) / 2)
    if len(coef) != k:
        return None
    return Linear(np.ascontiguousarray(coef), offsets.copy())


def _from_qda(classifier: Any) -> Discriminants:
    offsets, precisions = [], []
    for prior, rotation, scaling in zip(
        classifier.priors_, classifier.rotations_, classifier.scalings_, strict=True
    ):
        scales = np.asarray(scaling, dtype=np.float64)
        offsets.append(_log_prior(prior) - 0.5 * np.log(scales).sum())
        root = rotation / np.sqrt(scales)
        precisions.append(np.einsum("ir,jr->ij", root, root))
    means = np.asarray(classifier.means_, dtype=np.float64)
    return Quadratic(np.array(offsets)[None], means[None], np.stack(precisions)[None])


def _from_naive_bayes(classifier: Any) -> Discriminants:
    means = np.asarray(classifier.theta_, dtype=np.float64)
    variances = np.asarray(classifier.var_, dtype=np.float64)
    offsets = _log_prior(classifier.class_prior_) - 0.5 * np.log(variances).sum(axis=1)
    return Quadratic(offsets[None], means[None], 1.0 / variances[None])


def _log_prior(prior: Any) -> Any:
    """Logarithm of a prior; finite if it is 0, so that no score is infinite."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(np.asarray(prior, dtype=np.float64)), -1e100)
