"""One layer of GEM features as a classifier keeps it: directions and how they are expanded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.files.stored import Stored, fits
from eigenfeat.expansion.features import ExpandedRows
from eigenfeat.expansion.waves import WAVES, check_powers, expand

__all__ = ["LAYER", "Layer", "as_layer", "layer_features", "project_rows", "row_blocks"]

_BLOCK_BYTES = 128e6  # features of a block of rows


@dataclass(frozen=True, eq=False)
class Layer:
    """Directions of one layer, their pairs of classes, and their expansion.

    Attributes
    ----------
    directions : (d, F) array
        In the units of the rows: projections are ``X @ directions + offset``. For sparse rows of
        huge dimension, an object with a method ``project`` that can be converted to an array.
    offset : (F,) array
    eigenvalues : (F,) array
    pairs : (F, 2) array
        Labels of numerator and denominator class, or names of contrasts.
    ranks : (F,) array of int
    wave : {"half_wave", "shifted", "polynomial", "none"}
    powers : tuple of int
    """

    directions: NDArray[np.float64]
    offset: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    pairs: NDArray[Any]
    ranks: NDArray[np.intp]
    wave: str
    powers: tuple[int, ...]

    @property
    def width(self) -> int:
        """Number of expanded features."""
        signs = {"none": 1, "polynomial": len(self.powers)}
        return len(self.offset) * signs.get(self.wave, 2 * len(self.powers))

    def transform(self, X: Any, n_threads: int | None) -> NDArray[Any]:
        """Expanded features of rows, as one array."""
        waves = {"wave": self.wave, "powers": self.powers}
        if hasattr(self.directions, "project"):
            wide = self.project(X, n_threads)
            return ExpandedRows(None, self.directions, projections=wide, **waves).toarray()  # type: ignore[arg-type]
        return expand(X, self.directions, self.offset, n_threads=n_threads, **waves)  # type: ignore[arg-type]

    def project(self, X: Any, n_threads: int | None) -> NDArray[Any]:
        """Projections (n, F) of rows."""
        if hasattr(self.directions, "project"):  # combinations of rows of a huge dimension
            return self.directions.project(X, self.offset, n_threads)
        return expand(X, self.directions, self.offset, wave="none", n_threads=n_threads)

    def kept(self, mask: NDArray[np.bool_]) -> Layer:
        """The layer restricted to the directions for which the mask is true."""
        wide = hasattr(self.directions, "project")
        some = self.directions[:, mask]
        return Layer(
            some if wide else np.ascontiguousarray(some),
            self.offset[mask],
            self.eigenvalues[mask],
            self.pairs[mask],
            self.ranks[mask],
            self.wave,
            self.powers,
        )


def as_layer(gem: Any) -> Layer:
    """Convert a fitted extractor to a layer."""
    return Layer(
        gem.directions_,
        gem.offset_,
        gem.eigenvalues_,
        gem.pairs_,
        gem.ranks_,
        gem.expansion,
        tuple(gem.powers),
    )


def row_blocks(n: int, width: int) -> Iterator[slice]:
    """Slices of n rows; a block with `width` float32 columns has about a hundred MB."""
    size = int(np.clip(_BLOCK_BYTES / (4 * max(width, 1)) // 512 * 512, 512, 1 << 17))
    return (slice(begin, min(begin + size, n)) for begin in range(0, n, size))


def hidden_features(
    X: Any, layers: Sequence[Layer], n_threads: int | None
) -> Iterator[tuple[slice, Any]]:
    """Input of the layer after `layers`, block by block."""
    width = max([X.shape[1], *(2 * len(layer.offset) for layer in layers)])
    for rows in row_blocks(X.shape[0], width):
        block = X[rows]
        for layer in layers:
            # The first layer's projections may cancel means: in the rows' own precision.
            block = layer.transform(block, n_threads).astype(np.float32, copy=False)
        yield rows, block


def project_rows(X: Any, layers: Sequence[Layer], n_threads: int | None) -> NDArray[np.float32]:
    """Projections (n, F) on the last layer, float32; wider arrays are formed only for blocks."""
    n, last = X.shape[0], layers[-1]
    out: NDArray[np.float32] | None = None
    for rows, block in hidden_features(X, layers[:-1], n_threads):
        found = last.project(block, n_threads)
        if len(found) == n:
            return found.astype(np.float32, copy=False)
        if out is None:
            out = np.empty((n, len(last.offset)), dtype=np.float32)
        out[rows] = found
    return np.empty((0, len(last.offset)), dtype=np.float32) if out is None else out


def _last_input(X: Any, layers: Sequence[Layer], n_threads: int | None) -> Any:
    """What the last layer projects, float32: the rows, or the features of the layer before it."""
    if len(layers) == 1:
        return X.astype(np.float32, copy=False)
    out = np.empty((X.shape[0], layers[-2].width), dtype=np.float32)
    for rows, block in hidden_features(X, layers[:-1], n_threads):
        out[rows] = block
    return out


def layer_features(
    X: Any, layers: Sequence[Layer], include_input: bool, n_threads: int | None
) -> ExpandedRows:
    """Features of the last layer from projections, preceded by the columns of its input."""
    last = layers[-1]
    inputs = _last_input(X, layers, n_threads) if include_input else None
    if inputs is not None and len(layers) > 1:
        projections = project_rows(inputs, layers[-1:], n_threads)
    else:
        projections = project_rows(X, layers, n_threads)
    return ExpandedRows(
        inputs,
        last.directions,
        wave=last.wave,
        powers=last.powers,
        include_input=include_input,
        projections=projections,
    )


# ---- files ---------------------------------------------------------------------------------------


def _check(layer: Layer) -> None:
    found, what = layer.directions, "Layer.directions"
    if not hasattr(found, "project"):
        fits(isinstance(found, np.ndarray) and found.ndim == 2 and found.dtype.kind == "f", what)
        fits(np.isfinite(found).all(), what)
    fits(found.shape[1] == len(layer.offset), what)
    fits(layer.wave in WAVES and type(layer.powers) is tuple, "Layer.wave")
    check_powers(layer.powers)


_LAYER = {
    "directions": "value",
    "offset": "numbers F",
    "eigenvalues": "floats F",
    "pairs": "labels F 2",
    "ranks": "whole F",
    "wave": "text",
    "powers": "value",
}

LAYER = Stored("Layer", Layer, _LAYER, _check)
