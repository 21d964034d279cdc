"""Discriminants of fitted classifiers: ``predict`` is the argmax of linear or quadratic functions.

Each kind of functions has a class. All classes evaluate scores at points. Functions with separable
differences have the form of the core's dominance kernels; others give forms and gradients of
differences.
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
from eigenfeat.regions.dominance import SeparableClasses

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat.early.local_qda import LocalQDA

__all__ = [
    "Affine",
    "ClassCodes",
    "Discriminants",
    "Linear",
    "Opaque",
    "Quadratic",
    "affine_of",
    "discriminants_of",
]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]


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
    """The map of a fitted transformer; None for None, ValueError if it is not affine.

    Linear reductions are read from ``components_``, ``mean_`` and ``scale_``, or from
    ``directions_`` and ``offset_``; other maps from the images of 0 and of the unit vectors.
    """
    if features is None:
        return None
    if not hasattr(features, "transform"):
        raise ValueError(f"features: expected a fitted transformer or None, got {show(features)}")
    if hasattr(features, "components_") and not getattr(features, "whiten", False):
        components = np.asarray(features.components_, dtype=np.float64)
        mean = getattr(features, "mean_", None)
        mean = np.zeros(n_columns) if mean is None else np.asarray(mean, dtype=np.float64)
        scale = getattr(features, "scale_", None)
        components = components if scale is None else components / scale
        affine = _of(components.T, -np.einsum("ji,i->j", components, mean))
    elif hasattr(features, "directions_") and hasattr(features, "offset_"):
        affine = _of(features.directions_, features.offset_)
    else:
        affine = _probed(features, n_columns)
    if affine.B.shape[0] != n_columns:
        raise ValueError(
            f"features: expected a map of {n_columns} columns, got {affine.B.shape[0]}"
        )
    return _checked(features, affine)


def _of(B: Any, b: Any) -> Affine:
    return Affine(np.ascontiguousarray(B, dtype=np.float64), np.asarray(b, dtype=np.float64))


def _probed(features: Any, n_columns: int) -> Affine:
    origin = np.asarray(features.transform(np.zeros((1, n_columns))), dtype=np.float64)
    images = np.asarray(features.transform(np.eye(n_columns)), dtype=np.float64)
    return _of(images - origin, origin[0])


def _checked(features: Any, affine: Affine) -> Affine:
    """Compare the map with the transformer at random points."""
    d = len(affine.B)
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

    @property
    def count(self) -> int:
        """Number of functions, k."""
        raise NotImplementedError

    @property
    def width(self) -> int | None:
        """Number of columns, if it is known."""
        return None

    def about(self, points: _Array) -> Discriminants:
        """The functions at each point if they are local, otherwise these functions."""
        return self

    def take(self, rows: _Codes) -> Discriminants:
        """The functions of the points `rows`, if each point has its own functions."""
        return self

    def scores(self, points: _Array) -> _Array:
        """Values (n, k) of the functions."""
        raise NotImplementedError

    def magnitudes(self, points: _Array) -> _Array:
        """Sums (n, k) of the magnitudes of the terms of each score."""
        raise NotImplementedError

    def separable(self) -> SeparableClasses | None:
        """Discriminants in the form of the dominance kernels, if all differences are separable."""
        return None

    def difference(
        self, points: _Array, rows: _Codes, c: _Codes, h: _Codes
    ) -> tuple[_Array, _Array]:
        """Forms V (m, d, d) and half gradients (m, d) of ``f_c - f_h`` at the points `rows`."""
        raise NotImplementedError

    def difference_sizes(
        self, points: _Array, rows: _Codes, c: _Codes, h: _Codes
    ) -> tuple[_Array, _Array]:
        """Norms (m,) of the magnitudes of the terms of V, and of the half gradients."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Opaque(Discriminants):
    """No discriminants: only the labels of the classifier are used."""

    classes: int

    @property
    def count(self) -> int:
        """As `Discriminants.count`."""
        return self.classes


@dataclass(frozen=True, eq=False)
class Linear(Discriminants):
    """``f = slopes @ x + offsets``."""

    slopes: _Array
    offsets: _Array

    @property
    def count(self) -> int:
        """As `Discriminants.count`."""
        return int(self.slopes.shape[0])

    @property
    def width(self) -> int:
        """As `Discriminants.width`."""
        return int(self.slopes.shape[1])

    def scores(self, points: _Array) -> _Array:
        """As `Discriminants.scores`."""
        return np.asarray(np.einsum("ni,ki->nk", points, self.slopes) + self.offsets)

    def separable(self) -> SeparableClasses:
        """As `Discriminants.separable`."""
        return SeparableClasses(self.offsets[None], self.slopes)


@dataclass(frozen=True, eq=False)
class Gaussians(Discriminants):
    """``f_c = offset_c - 1/2 sum_i (x_i - mean_ci)^2 / variance_ci``, for each point or for all."""

    offsets: _Array  # (n or 1, k)
    means: _Array  # (n or 1, k, d)
    variances: _Array  # (n or 1, k, d)

    @property
    def count(self) -> int:
        """As `Discriminants.count`."""
        return int(self.means.shape[1])

    @property
    def width(self) -> int:
        """As `Discriminants.width`."""
        return int(self.means.shape[2])

    def take(self, rows: _Codes) -> Gaussians:
        """As `Discriminants.take`."""
        if len(self.means) == 1:
            return self
        return Gaussians(self.offsets[rows], self.means[rows], self.variances[rows])

    def scores(self, points: _Array) -> _Array:
        """As `Discriminants.scores`."""
        apart = points[:, None] - self.means
        return np.asarray(self.offsets - 0.5 * (apart**2 / self.variances).sum(axis=2))

    def magnitudes(self, points: _Array) -> _Array:
        """As `Discriminants.magnitudes`."""
        apart = points[:, None] - self.means
        return np.asarray(np.abs(self.offsets) + 0.5 * (apart**2 / self.variances).sum(axis=2))

    def separable(self) -> SeparableClasses:
        """As `Discriminants.separable`."""
        precisions = 0.5 / self.variances
        return SeparableClasses(self.offsets, None, precisions, self.means)

    def difference(
        self, points: _Array, rows: _Codes, c: _Codes, h: _Codes
    ) -> tuple[_Array, _Array]:
        """As `Discriminants.difference`."""
        at = rows if len(self.means) > 1 else np.zeros(len(rows), dtype=np.intp)
        pc, ph = 0.5 / self.variances[at, c], 0.5 / self.variances[at, h]
        x, every = points[rows], np.arange(points.shape[1])
        V = np.zeros((len(rows), len(every), len(every)))
        V[:, every, every] = ph - pc
        return V, ph * (x - self.means[at, h]) - pc * (x - self.means[at, c])

    def difference_sizes(
        self, points: _Array, rows: _Codes, c: _Codes, h: _Codes
    ) -> tuple[_Array, _Array]:
        """As `Discriminants.difference_sizes`."""
        at = rows if len(self.means) > 1 else np.zeros(len(rows), dtype=np.intp)
        curved, sloped = np.zeros(len(rows)), np.zeros(len(rows))
        for i in (c, h):
            precisions = 0.5 / self.variances[at, i]
            curved += np.linalg.norm(precisions, axis=1)
            sloped += np.linalg.norm(precisions * (points[rows] - self.means[at, i]), axis=1)
        return curved, sloped


@dataclass(frozen=True, eq=False)
class Local(Discriminants):
    """`Gaussians` of the neighbours of each point."""

    model: LocalQDA

    @property
    def count(self) -> int:
        """As `Discriminants.count`."""
        return len(self.model.classes_)

    @property
    def width(self) -> int:
        """As `Discriminants.width`."""
        return int(self.model.n_features_in_)

    def about(self, points: _Array) -> Gaussians:
        """As `Discriminants.about`."""
        means, variances = self.model.local_gaussians(points)
        return Gaussians(self.model.offsets(variances), means, variances)

    def scores(self, points: _Array) -> _Array:
        """As `Discriminants.scores`."""
        return self.about(points).scores(points)


@dataclass(frozen=True, eq=False)
class Quadratic(Discriminants):
    """``f_c = offset_c - 1/2 (x - mean_c)^T P_c (x - mean_c)``."""

    offsets: _Array
    means: _Array
    precisions: _Array

    @property
    def count(self) -> int:
        """As `Discriminants.count`."""
        return int(self.means.shape[0])

    @property
    def width(self) -> int:
        """As `Discriminants.width`."""
        return int(self.means.shape[1])

    def scores(self, points: _Array) -> _Array:
        """As `Discriminants.scores`."""
        out = np.empty((len(points), len(self.means)))
        for c, (mean, precision) in enumerate(zip(self.means, self.precisions, strict=True)):
            apart = points - mean
            out[:, c] = np.einsum("ni,ni->n", _products(apart, precision), apart)
        return np.asarray(self.offsets - 0.5 * out)

    def magnitudes(self, points: _Array) -> _Array:
        """As `Discriminants.magnitudes`."""
        out = np.empty((len(points), len(self.means)))
        for c, (mean, precision) in enumerate(zip(self.means, self.precisions, strict=True)):
            apart = np.abs(points - mean)
            out[:, c] = np.einsum("ni,ni->n", _products(apart, np.abs(precision)), apart)
        return np.asarray(np.abs(self.offsets) + 0.5 * out)

    def pulls(self, points: _Array) -> _Array:
        """Negative gradients (n, k, d) of the scores, ``P_c (x - mean_c)``."""
        pairs = zip(self.means, self.precisions, strict=True)
        return np.stack([_products(points - mean, precision) for mean, precision in pairs], axis=1)

    def forms(self, c: _Codes, h: _Codes) -> _Array:
        """Forms V (m, d, d) of ``f_c - f_h`` for m pairs."""
        return np.asarray(0.5 * (self.precisions[h] - self.precisions[c]))

    def difference(
        self, points: _Array, rows: _Codes, c: _Codes, h: _Codes
    ) -> tuple[_Array, _Array]:
        """As `Discriminants.difference`."""
        x, pc, ph = points[rows], self.precisions[c], self.precisions[h]
        gradient = np.einsum("nij,nj->ni", ph, x - self.means[h])
        gradient -= np.einsum("nij,nj->ni", pc, x - self.means[c])
        return 0.5 * (ph - pc), 0.5 * gradient

    def difference_sizes(
        self, points: _Array, rows: _Codes, c: _Codes, h: _Codes
    ) -> tuple[_Array, _Array]:
        """As `Discriminants.difference_sizes`."""
        lengths = 0.5 * np.linalg.norm(self.precisions, axis=(1, 2))
        sloped = np.zeros(len(rows))
        for i in (c, h):
            sloped += lengths[i] * np.linalg.norm(points[rows] - self.means[i], axis=1)
        return lengths[c] + lengths[h], sloped


def _products(apart: _Array, precision: _Array) -> _Array:
    """Products P x (n, d), whose rounding errors do not depend on the other points."""
    return np.asarray(expand(apart, np.ascontiguousarray(precision.T), None, expansion="none"))


def discriminants_of(classifier: BaseEstimator, X: _Array) -> Discriminants:
    """Discriminants of a fitted classifier.

    Raises
    ------
    ValueError
        If the classifier has no known discriminants, or `predict` is not their argmax on X.
    """
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
        with np.errstate(divide="ignore"):
            offsets.append(np.log(prior) - 0.5 * np.log(scaling).sum())
        root = rotation / np.sqrt(scaling)
        precisions.append(np.einsum("ir,jr->ij", root, root))
    means = np.asarray(classifier.means_, dtype=np.float64)
    return Quadratic(np.array(offsets), means, np.stack(precisions))


def _from_naive_bayes(classifier: Any) -> Discriminants:
    means = np.asarray(classifier.theta_, dtype=np.float64)
    variances = np.asarray(classifier.var_, dtype=np.float64)
    with np.errstate(divide="ignore"):
        offsets = np.log(classifier.class_prior_) - 0.5 * np.log(variances).sum(axis=1)
    return Gaussians(offsets[None], means[None], variances[None])
