"""Directions, and layers of GEM features as a classifier keeps them: directions expanded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.core import core
from eigenfeat._base.saved import Saved, fits
from eigenfeat._base.threads import resolve
from eigenfeat._base.types import Floats, Labels
from eigenfeat.expansion.features import (
    EXPANSIONS,
    CoreRows,
    ExpandedRows,
    check_powers,
    core_class,
    expand,
    is_wide_columns,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "DIRECTIONS",
    "Directions",
    "Layer",
    "as_layer",
    "few_features",
    "layer_features",
    "project_rows",
    "row_blocks",
]

_Own = TypeVar("_Own", bound="Directions")

_FEW = 512  # samples, whose features need no blocks
_BLOCK_BYTES = 128e6  # features of a block of rows
_PIECE_BYTES = 4e6  # as float32, of projections in float64 that fit a cache


DIRECTIONS = {
    "directions": "value",
    "offset": "numbers F",
    "eigenvalues": "floats F",
    "pairs": "labels F 2",
    "ranks": "whole F",
}  # of model files; see `saved`


@dataclass(frozen=True, eq=False)
class Directions(Saved):
    """F directions, and where each came from.

    Attributes
    ----------
    directions : (d, F) array or WideColumns
        In the units of the samples: projections are ``X @ directions + offset``.
    offset : (F,) array
    eigenvalues : (F,) array
    pairs : (F, 2) array
        Labels of numerator and denominator class, or names of contrasts.
    ranks : (F,) array of int
        Ranks within the pairs.
    """

    _saved: ClassVar[dict[str, str]] = DIRECTIONS

    directions: Any
    offset: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    pairs: Labels
    ranks: NDArray[np.intp]

    def project(self, X: Floats | csr_array, n_threads: int | None) -> Floats:
        """Projections (n, F) of samples."""
        if is_wide_columns(self.directions):
            return self.directions.project(X, self.offset, n_threads)
        return expand(X, self.directions, self.offset, expansion="none", n_threads=n_threads)

    def subset(self: _Own, mask: NDArray[np.bool_]) -> _Own:
        """Those for which the mask is true."""
        some = self.directions[:, mask]
        return replace(
            self,
            directions=some if is_wide_columns(some) else np.ascontiguousarray(some),
            offset=self.offset[mask],
            eigenvalues=self.eigenvalues[mask],
            pairs=self.pairs[mask],
            ranks=self.ranks[mask],
        )


@dataclass(frozen=True, eq=False)
class Layer(Directions):
    """Directions of one layer, and how their projections are expanded.

    Attributes
    ----------
    expansion : {"half_wave", "shifted", "polynomial", "none"}
    powers : tuple of int
    """

    _saved: ClassVar[dict[str, str]] = DIRECTIONS | {"expansion": "text", "powers": "value"}

    expansion: str
    powers: tuple[int, ...]

    @property
    def width(self) -> int:
        """Number of expanded features."""
        signs = {"none": 1, "polynomial": len(self.powers)}
        return len(self.offset) * signs.get(self.expansion, 2 * len(self.powers))

    def transform(self, X: Floats | csr_array, n_threads: int | None) -> Floats:
        """Expanded features of samples, as one array."""
        if is_wide_columns(self.directions):
            return self.features(self.project(X, n_threads)).toarray()
        return expand(
            X,
            self.directions,
            self.offset,
            expansion=self.expansion,
            powers=self.powers,
            n_threads=n_threads,
        )

    def features(
        self, projections: Floats, inputs: Floats | csr_array | None = None
    ) -> ExpandedRows:
        """Expanded features of projections (n, F), preceded by the columns of `inputs` if given."""
        return ExpandedRows(
            inputs,
            self.directions,
            expansion=self.expansion,
            powers=self.powers,
            include_input=inputs is not None,
            projections=projections,
        )

    def _check_loaded(self) -> None:
        result, what = self.directions, "Layer.directions"
        if not is_wide_columns(result):
            fits(
                isinstance(result, np.ndarray) and result.ndim == 2 and result.dtype.kind == "f",
                what,
            )
            fits(np.isfinite(result).all(), what)
        fits(result.shape[1] == len(self.offset), what)
        fits(self.expansion in EXPANSIONS and type(self.powers) is tuple, "Layer.expansion")
        check_powers(self.powers)


class _Extractor(Protocol):
    expansion: str
    powers: Sequence[int]


def as_layer(gem: _Extractor) -> Layer:
    """Convert a fitted extractor to a layer."""
    selected = {field.name: getattr(gem, f"{field.name}_") for field in fields(Directions)}
    expansion = "half_wave" if gem.expansion == "auto" else gem.expansion
    return Layer(**selected, expansion=expansion, powers=tuple(gem.powers))


def row_blocks(n: int, width: int, most: float = _BLOCK_BYTES) -> Iterator[slice]:
    """Slices of n samples; a block with `width` float32 columns has at most about so many bytes."""
    size = int(np.clip(most / (4 * max(width, 1)) // 512 * 512, 512, 1 << 17))
    return (slice(begin, min(begin + size, n)) for begin in range(0, n, size))


def hidden_features(
    X: Floats | csr_array, layers: Sequence[Layer], n_threads: int | None
) -> Iterator[tuple[slice, Floats | csr_array]]:
    """Input of the layer after `layers`, block by block."""
    width = max([X.shape[1], *(2 * len(layer.offset) for layer in layers)])
    for rows in row_blocks(X.shape[0], width):
        block = X[rows]
        for layer in layers:
            # The first layer's projections may cancel means: in the rows' own precision.
            block = layer.transform(block, n_threads).astype(np.float32, copy=False)
        yield rows, block


def project_rows(
    X: Floats | csr_array, layers: Sequence[Layer], n_threads: int | None
) -> NDArray[np.float32]:
    """Projections (n, F) on the last layer, float32; wider arrays are formed only for blocks."""
    n, last = X.shape[0], layers[-1]
    out: NDArray[np.float32] | None = None
    for rows, block in hidden_features(X, layers[:-1], n_threads):
        result = _projected(block, last, n_threads)
        if len(result) == n:
            return result
        if out is None:
            out = np.empty((n, len(last.offset)), dtype=np.float32)
        out[rows] = result
    return np.empty((0, len(last.offset)), dtype=np.float32) if out is None else out


def _projected(X: Floats | csr_array, layer: Layer, n_threads: int | None) -> NDArray[np.float32]:
    """Projections (n, F), float32; those in float64 are formed in pieces that fit a cache."""
    if X.dtype == np.float32 or not isinstance(X, np.ndarray):
        return layer.project(X, n_threads).astype(np.float32, copy=False)
    out = np.empty((len(X), len(layer.offset)), dtype=np.float32)
    for rows in row_blocks(len(X), out.shape[1], _PIECE_BYTES):
        out[rows] = layer.project(X[rows], n_threads)
    return out


def _last_input(X: Any, layers: Sequence[Layer], n_threads: int | None) -> Any:
    """What the last layer projects, float32: the rows, or the features of the layer before it."""
    if len(layers) == 1:
        return X.astype(np.float32, copy=False)
    out = np.empty((X.shape[0], layers[-2].width), dtype=np.float32)
    for rows, block in hidden_features(X, layers[:-1], n_threads):
        out[rows] = block
    return out


def layer_features(
    X: Floats | csr_array, layers: Sequence[Layer], include_input: bool, n_threads: int | None
) -> ExpandedRows:
    """Features of the last layer from projections, preceded by the columns of its input."""
    last = layers[-1]
    inputs = _last_input(X, layers, n_threads) if include_input else None
    if inputs is not None and len(layers) > 1:
        projections = project_rows(inputs, layers[-1:], n_threads)
    else:
        projections = project_rows(X, layers, n_threads)
    return last.features(projections, inputs)


def few_features(X: Any, layers: Sequence[Layer], n_threads: int | None) -> CoreRows | None:
    """Features of few checked samples, with the constant, as the core reads them.

    They are those of `layer_features`, without its checks and blocks, which take longer than the
    prediction of a sample; None where there are many samples or several layers.
    """
    last = layers[-1]
    directions = last.directions
    if not (isinstance(X, np.ndarray) and len(X) <= _FEW and len(layers) == 1):
        return None
    if not isinstance(directions, np.ndarray) or not X.flags.c_contiguous:
        return None
    V = np.ascontiguousarray(directions, dtype=X.dtype)
    offset = np.ascontiguousarray(last.offset, dtype=X.dtype)
    projections = core.expand_dense(X, V, offset, "none", [1], False, resolve(n_threads))
    rows: CoreRows = core_class(np.dtype(np.float32))(
        projections=projections.astype(np.float32, copy=False),
        wave=last.expansion,
        powers=list(last.powers),
        constant=True,
    )
    return rows
