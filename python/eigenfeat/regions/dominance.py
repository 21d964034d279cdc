"""The class whose discriminant dominates over balls and boxes, for batches of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core

__all__ = ["SeparableClasses"]

_Float64s = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeparableClasses:
    """``f_c(x) = offset_c + slope_c . x - sum_i precision_ci (x_i - centre_ci)^2``.

    Attributes
    ----------
    offsets : (n or 1, G) array
    slopes : (G, d) array or None
    precisions, centres : (n or 1, G, d) arrays or None
    """

    offsets: _Float64s
    slopes: _Float64s | None = None
    precisions: _Float64s | None = None
    centres: _Float64s | None = None

    def dominating(
        self, points: _Float64s, widths: _Float64s, radii: _Float64s, shape: str, n_threads: int
    ) -> npt.NDArray[np.int32]:
        """The class (n,) that dominates over ``point + width * u``, or -1.

        u is in the ball or box of the radius.
        """
        given = _ready(points), _ready(widths), _ready(radii), _ready(self.offsets)
        return core.find_dominating(*given, *self._parts(), shape, n_threads)

    def radii(
        self, points: _Float64s, widths: _Float64s, limits: _Float64s, shape: str, n_threads: int
    ) -> _Float64s:
        """Largest radii (n,), up to the limits, at which the class of the point dominates."""
        given = _ready(points), _ready(widths), _ready(limits), _ready(self.offsets)
        return core.dominance_radii(*given, *self._parts(), shape, n_threads)

    def _parts(self) -> tuple[_Float64s | None, _Float64s | None, _Float64s | None]:
        return _optional(self.slopes), _optional(self.precisions), _optional(self.centres)


def _ready(array: Any) -> _Float64s:
    return np.ascontiguousarray(array, dtype=np.float64)


def _optional(array: _Float64s | None) -> _Float64s | None:
    return None if array is None else _ready(array)
