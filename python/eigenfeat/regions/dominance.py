"""Which class dominates over balls and boxes: the core's batches, with arrays made ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core

__all__ = ["Dominance", "SeparableClasses", "box_minimum"]

_Float64s = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dominance:
    """For each of n rows: the class that dominates or -1, the guess, checks, and open ones."""

    winners: npt.NDArray[np.int32]
    guesses: npt.NDArray[np.int32]
    checks: npt.NDArray[np.int32]
    open: npt.NDArray[np.int32]


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
        self,
        points: _Float64s,
        widths: _Float64s,
        radii: _Float64s,
        shape: str,
        process: str,
        n_threads: int,
    ) -> Dominance:
        """Decide over ``point + width * u``, u in the ball or box of the radius."""
        return Dominance(
            *core.find_dominating(
                _ready(points),
                _ready(widths),
                _ready(radii),
                _ready(self.offsets),
                *self._parts(),
                shape,
                process,
                n_threads,
            )
        )

    def radii(
        self,
        points: _Float64s,
        widths: _Float64s,
        limits: _Float64s,
        shape: str,
        classes: npt.NDArray[np.int32],
        n_threads: int,
    ) -> tuple[_Float64s, npt.NDArray[np.int32]]:
        """Largest radii, up to the limits, at which a class (-1: the guess) dominates; guesses."""
        return core.dominance_radii(
            _ready(points),
            _ready(widths),
            _ready(limits),
            _ready(self.offsets),
            *self._parts(),
            shape,
            np.ascontiguousarray(classes, dtype=np.int32),
            n_threads,
        )

    def _parts(self) -> tuple[_Float64s | None, _Float64s | None, _Float64s | None]:
        return _optional(self.slopes), _optional(self.precisions), _optional(self.centres)


def box_minimum(
    curvatures: _Float64s, slopes: _Float64s, half_widths: _Float64s, n_threads: int
) -> _Float64s:
    """(n,) minima of ``sum a x^2 + 2 g x`` over boxes; curvatures and widths may be one for all."""
    arrays = (_ready(curvatures), _ready(slopes), _ready(half_widths))
    return core.minimise_over_box(*arrays, n_threads)[0]


def _ready(array: Any) -> _Float64s:
    return np.ascontiguousarray(array, dtype=np.float64)


def _optional(array: _Float64s | None) -> _Float64s | None:
    return None if array is None else _ready(array)
