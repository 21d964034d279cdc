"""Affine maps of rows, read from fitted transformers."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.lazy import cached_property
from eigenfeat._base.saved import Saved
from eigenfeat._base.validation import show

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["Affine", "affine_of"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Affine(Saved):
    """``y = B^T x + b``, B (d, ell), b (ell,)."""

    _saved: ClassVar[dict[str, str]] = {"B": "numbers d w", "b": "numbers w"}

    B: _Array
    b: _Array

    @cached_property
    def key(self) -> bytes:
        """The same for the same map."""
        return blake2b(self.B.tobytes() + self.b.tobytes(), digest_size=16).digest()

    @property
    def pair(self) -> tuple[_Array, _Array]:
        """Both arrays."""
        return self.B, self.b

    def __call__(self, X: _Array) -> _Array:
        return np.asarray(np.einsum("ni,ij->nj", X, self.B, optimize=False) + self.b)

    def then(self, slopes: _Array, offsets: _Array) -> Affine:
        """``slopes @ y + offsets`` as a map of x; slopes (k, ell), offsets (k,)."""
        B = np.einsum("ij,kj->ik", self.B, slopes)
        return Affine(np.ascontiguousarray(B), np.einsum("kj,j->k", slopes, self.b) + offsets)


def affine_of(features: BaseEstimator | None, n_columns: int) -> Affine | None:
    """The map of a fitted transformer; None stays None.

    Linear reductions are read from ``components_``, ``mean_`` and ``scale_``, or from
    ``directions_`` and ``offset_``; anything else is asked for the images of 0 and of the unit
    vectors, and is refused if it is not affine.
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
        found = _of(components.T, -np.einsum("ji,i->j", components, mean))
    elif hasattr(features, "directions_") and hasattr(features, "offset_"):
        found = _of(features.directions_, features.offset_)
    else:
        found = _probed(features, n_columns)
    if found.B.shape[0] != n_columns:
        raise ValueError(f"features: expected a map of {n_columns} columns, got {found.B.shape[0]}")
    return _checked(features, found)


def _of(B: Any, b: Any) -> Affine:
    return Affine(np.ascontiguousarray(B, dtype=np.float64), np.asarray(b, dtype=np.float64))


def _probed(features: Any, n_columns: int) -> Affine:
    origin = np.asarray(features.transform(np.zeros((1, n_columns))), dtype=np.float64)
    images = np.asarray(features.transform(np.eye(n_columns)), dtype=np.float64)
    return _of(images - origin, origin[0])


def _checked(features: Any, found: Affine) -> Affine:
    """Compare the map with the transformer at points that are nothing special."""
    d = len(found.B)
    points = np.sin(np.arange(3 * d, dtype=float).reshape(3, d) * 1.3 + 0.7)
    scale = np.abs(points) @ np.abs(found.B) + np.abs(found.b)
    error = np.abs(np.asarray(features.transform(points), dtype=np.float64) - found(points))
    if not np.all(error <= 1e-5 * scale + 1e-300):
        raise ValueError(f"features: expected an affine map of the rows, got {show(features)}")
    return found
