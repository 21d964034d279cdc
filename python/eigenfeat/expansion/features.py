"""Expansion of projections into features, and feature matrices that are never formed as a whole.

``psi(x) = max(0, s v^T x)^(a/2)`` (Karampatziakis and Mineiro, "Discriminative Features via
Generalized Eigenvectors", ICML 2014, Algorithm 1, lines 6-7): `expand` computes the features of
samples. `ExpandedFeatures`, which linear models accept, is the feature matrix given by its factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.types import Codes, DType, Floats, Labels, Rows
from eigenfeat._base.validation import (
    CsrRows,
    RealArray,
    check_rows,
    check_vector,
    real_array,
    show,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "EXPANSIONS",
    "CoreRows",
    "Directions",
    "ExpandedFeatures",
    "Layer",
    "as_layer",
    "check_powers",
    "column_suffixes",
    "core_rows",
    "expand",
    "few_features",
    "layer_features",
    "project_rows",
    "row_blocks",
    "take_rows",
]

CoreRows: TypeAlias = core.FeatureRows32 | core.FeatureRows64
"""Features in the core, and passes over them."""

EXPANSIONS = ("half_wave", "shifted", "polynomial", "none")
_CORE_ROWS: dict[DType, Any] = {
    np.dtype(np.float32): core.FeatureRows32,
    np.dtype(np.float64): core.FeatureRows64,
}
_Own = TypeVar("_Own", bound="Directions")
_MAX_UNBLOCKED = 512  # samples whose features are formed without blocks
_BLOCK_BYTES = 128e6  # of the features of a block of samples
_PIECE_BYTES = 4e6  # of a piece of projections that fits a cache


def check_powers(powers: object) -> list[int]:
    """Return `powers` as a list of distinct integers out of 1, 2, 3.

    Raises
    ------
    ValueError
        If `powers` is empty, has duplicates, or has other values.
    """
    try:
        values = list(powers)  # type: ignore[call-overload]
        as_integers = [int(a) for a in values]
    except (TypeError, ValueError):
        values, as_integers = [], [0]
    distinct = len(set(as_integers)) == len(as_integers) > 0
    if not distinct or as_integers != values or not set(as_integers) <= {1, 2, 3}:
        raise ValueError(f"powers: expected distinct numbers out of 1, 2, 3, got {powers!r}")
    return as_integers


def expand(
    X: Rows,
    directions: Floats,
    offset: Floats | None = None,
    *,
    expansion: str = "half_wave",
    powers: Sequence[int] = (1, 2, 3),
    include_input: bool = False,
    n_threads: int | None = None,
) -> RealArray:
    """Project samples and expand the projections, tile by tile.

    The columns are ``[X | for s in (+, -): for a in powers: F columns]``, with the parameters
    of `ExpandedFeatures`; "polynomial" has no signs. float32 samples stay float32, other types
    become float64. ValueError if shapes do not fit, or a parameter is out of range.
    """
    rows = _in_core_form(X)
    matrix = np.ascontiguousarray(directions, dtype=rows.dtype)
    shift = None if offset is None else np.ascontiguousarray(offset, dtype=rows.dtype)
    _check_expansion(expansion)
    if not isinstance(include_input, (bool, np.bool_)):
        raise ValueError(f"include_input: expected True or False, got {show(include_input)}")
    options = (expansion, check_powers(powers), bool(include_input), threads.resolve(n_threads))
    if isinstance(rows, CsrRows):
        parts = (rows.data, rows.indices, rows.indptr, rows.n_columns)
        return core.expand_csr(*parts, matrix, shift, *options)
    return core.expand_dense(rows, matrix, shift, *options)


def _in_core_form(X: Any) -> RealArray | CsrRows:
    """See `check_rows`; arrays in the form of the core need no checks."""
    is_array = type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype in _CORE_ROWS
    return X if is_array and X.flags.carray else check_rows(X)


def _check_expansion(name: object) -> None:
    if not (isinstance(name, str) and name in EXPANSIONS):
        raise ValueError(f"expansion: expected one of {', '.join(EXPANSIONS)}, got {show(name)}")


def column_suffixes(expansion: str, powers: Sequence[int]) -> list[str]:
    """Return the suffixes of feature names in an expansion, in the order of its columns."""
    if expansion == "none":
        return [""]
    if expansion == "polynomial":
        return [f"_pow{a}" for a in powers]
    return [f"_{sign}_pow{a}" for sign in ("pos", "neg") for a in powers]


@dataclass(frozen=True, eq=False)
class ExpandedFeatures:
    """Features ``expansion(X @ directions + offset)``, computed tile by tile when needed.

    Parameters
    ----------
    X : (n, d) array or sparse matrix, or None
        Finite samples; None if `projections` are given and `include_input` is not.
    directions : (d, F) array
        One direction per column.
    offset : (F,) array, optional
        Added to the projections.
    expansion : {"half_wave", "shifted", "polynomial", "none"}, default="half_wave"
        ``max(0, s p)^(a/2)``, ``(sqrt(1 + max(0, s p)) - 1)^a``, ``p^a``, or `p` itself.
    powers : distinct integers out of 1, 2, 3, default=(1, 2, 3)
        The exponents `a`.
    include_input : bool, default=False
        Whether the features are preceded by the columns of `X`.
    projections : (n, F) array, optional
        ``X @ directions + offset``, if already computed; see `stored`.

    Attributes
    ----------
    dtype : float32 or float64
        Type of the features.

    Raises
    ------
    ValueError
        If shapes do not match, or a parameter is out of range.
    """

    X: Any
    directions: Floats
    offset: NDArray[Any] | None = None
    expansion: str = "half_wave"
    powers: Sequence[int] = (1, 2, 3)
    include_input: bool = False
    projections: NDArray[Any] | None = None
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        _check_expansion(self.expansion)
        powers = tuple(check_powers(self.powers))
        directions = real_array(self.directions, "directions")
        if directions.ndim != 2:
            raise ValueError(f"directions: expected shape (d, F), got {directions.shape}")
        d, n_directions = directions.shape
        X, offset, stored = self.X, self.offset, self.projections
        if X is None and (stored is None or self.include_input):
            raise ValueError("X: expected samples, which the expansion needs, got None")
        if X is not None:
            rows = check_rows(X, n_columns=d)
            X = X.tocsr() if isinstance(rows, CsrRows) else rows
        if offset is not None:
            offset = check_vector(offset, n_directions, "offset", positive=False)
        if stored is not None:
            stored = np.ascontiguousarray(real_array(stored, "projections"))
            shape = len(stored) if X is None else X.shape[0], n_directions
            if stored.shape != shape:
                raise ValueError(f"projections: expected shape {shape}, got {stored.shape}")
        single = (X if stored is None else stored).dtype == np.float32
        vars(self).update(
            X=X,
            directions=directions,
            offset=offset,
            powers=powers,
            projections=stored,
            dtype=np.dtype(np.float32 if single else np.float64),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and features."""
        rows = self.projections if self.projections is not None else self.X
        d, n_directions = self.directions.shape
        width = n_directions * len(column_suffixes(self.expansion, self.powers))
        return rows.shape[0], width + (d if self.include_input else 0)

    def __len__(self) -> int:
        return self.shape[0]

    def stored(self, n_threads: int | None = None) -> ExpandedFeatures:
        """Return a copy with stored projections.

        Passes over the features then need no products with the directions. The projections take n F
        numbers in the dtype of the samples.

        Parameters
        ----------
        n_threads : int, optional
            Number of threads; by default all.

        Returns
        -------
        ExpandedFeatures
            The object itself if it has stored projections.
        """
        if self.projections is not None:
            return self
        projected = expand(
            self.X, self.directions, self.offset, expansion="none", n_threads=n_threads
        )
        return replace(self, X=self.X if self.include_input else None, projections=projected)

    def take(self, rows: Codes | NDArray[np.bool_] | slice) -> ExpandedFeatures:
        """Select samples.

        Parameters
        ----------
        rows : (m,) array of int, (n,) array of bool or slice
            Indices or mask of the samples.

        Returns
        -------
        ExpandedFeatures
        """
        X = None if self.X is None else self.X[rows]
        stored = None if self.projections is None else self.projections[rows]
        subset = copy(self)  # without the checks of `__post_init__`
        vars(subset).update(X=X, projections=stored)
        return subset

    def toarray(self) -> RealArray:
        """Compute all features.

        Returns
        -------
        (n, p) array
        """
        if self.projections is None:
            return expand(
                self.X,
                self.directions,
                self.offset,
                expansion=self.expansion,
                powers=self.powers,
                include_input=self.include_input,
            )
        unit = np.eye(self.directions.shape[1], dtype=self.dtype)
        expanded: RealArray = self.projections  # without directions nothing is expanded
        if len(unit):
            expanded = expand(self.projections, unit, expansion=self.expansion, powers=self.powers)
        if not self.include_input:
            return expanded
        X = self.X if isinstance(self.X, np.ndarray) else self.X.toarray()
        return np.hstack([X.astype(self.dtype, copy=False), expanded])

    def core(self, constant: bool) -> CoreRows:
        """Return the features in the form of the core.

        Parameters
        ----------
        constant : bool
            Whether to add a last feature of ones.

        Returns
        -------
        CoreRows
        """
        dtype = self.dtype
        arguments: dict[str, Any] = {}
        if self.X is not None:
            arguments |= _arguments(check_rows(self.X, dtype=dtype))
        if self.projections is not None:
            arguments["projections"] = self.projections
        else:
            arguments["directions"] = np.ascontiguousarray(self.directions, dtype=dtype)
            if self.offset is not None:
                arguments["offset"] = np.ascontiguousarray(self.offset, dtype=dtype)
        result: CoreRows = _CORE_ROWS[dtype](
            wave=self.expansion,
            powers=list(self.powers),
            include_input=self.include_input,
            constant=constant,
            **arguments,
        )
        return result


def core_rows(X: Rows | ExpandedFeatures, constant: bool) -> CoreRows:
    """Convert an array, a sparse matrix or `ExpandedFeatures` for the core's linear models."""
    if isinstance(X, ExpandedFeatures):
        return X.core(constant)
    rows = _in_core_form(X)
    result: CoreRows = _CORE_ROWS[rows.dtype](**_arguments(rows), constant=constant)
    return result


def _arguments(rows: RealArray | CsrRows) -> dict[str, Any]:
    """Samples as keyword arguments of the core's classes."""
    return vars(rows) if isinstance(rows, CsrRows) else {"X": rows}


def take_rows(
    X: Floats | csr_array | ExpandedFeatures, rows: Codes | NDArray[np.bool_] | slice
) -> Floats | csr_array | ExpandedFeatures:
    """Select samples of any input of `core_rows`, or of a data frame."""
    if isinstance(X, ExpandedFeatures):
        return X.take(rows)
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


# ---- directions, and layers: directions whose projections are expanded ---------------------------


@dataclass(frozen=True, eq=False)
class Directions:
    """F directions, with eigenvalues and pairs; projections are ``X @ directions + offset``."""

    directions: Any  # (d, F) in the units of the samples
    offset: NDArray[np.float64]  # (F,)
    eigenvalues: NDArray[np.float64]  # (F,)
    pairs: Labels  # (F, 2) labels of numerator and denominator class, or names of contrasts
    ranks: NDArray[np.intp]  # (F,) within the pairs

    def project(self, X: Floats | csr_array, n_threads: int | None) -> Floats:
        """Projections (n, F) of samples."""
        return expand(X, self.directions, self.offset, expansion="none", n_threads=n_threads)

    def subset(self: _Own, mask: NDArray[np.bool_]) -> _Own:
        """Select directions by a mask."""
        return replace(
            self,
            directions=np.ascontiguousarray(self.directions[:, mask]),
            offset=self.offset[mask],
            eigenvalues=self.eigenvalues[mask],
            pairs=self.pairs[mask],
            ranks=self.ranks[mask],
        )


@dataclass(frozen=True, eq=False)
class Layer(Directions):
    """Directions of one layer, and how their projections are expanded."""

    expansion: str  # one of `EXPANSIONS`, "compressed" or "with_input"
    powers: tuple[int, ...]
    # With "compressed", the index (F,) of each direction's denominator among G denominators, and
    # weights (F, G) of the means over the directions of a denominator.
    groups: NDArray[np.intp] | None = field(init=False, default=None)
    shares: NDArray[np.float64] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.expansion == "compressed" and len(self.pairs):
            below = self.pairs[:, 1]
            _, groups, counts = np.unique(below, return_inverse=True, return_counts=True)
            vars(self).update(groups=groups, shares=np.eye(len(counts))[groups] / counts)

    @property
    def wave(self) -> str:
        """Expansion of the projections as `project` returns them, one of `EXPANSIONS`."""
        return {"compressed": "half_wave", "with_input": "shifted"}.get(
            self.expansion, self.expansion
        )

    @property
    def include_input(self) -> bool:
        """Whether the samples precede the expanded projections."""
        return self.expansion == "with_input"

    def project(self, X: Floats | csr_array, n_threads: int | None) -> Floats:
        """Projections (n, F) of samples, compressed if the expansion is "compressed"."""
        projections = super().project(X, n_threads)
        if self.groups is None or self.shares is None:
            return projections
        return compressed(projections, self.groups, self.shares, n_threads)

    @property
    def width(self) -> int:
        """Number of expanded projections."""
        return len(self.offset) * len(column_suffixes(self.expansion, self.powers))

    def transform(self, X: Floats | csr_array, n_threads: int | None) -> Floats:
        """Features of samples, as one array."""
        if self.shares is not None:
            return self.features(self.project(X, n_threads)).toarray()
        return expand(
            X,
            self.directions,
            self.offset,
            expansion=self.wave,
            powers=self.powers,
            include_input=self.include_input,
            n_threads=n_threads,
        )

    def features(
        self, projections: Floats, inputs: Floats | csr_array | None = None
    ) -> ExpandedFeatures:
        """Expanded projections (n, F), preceded by the columns of `inputs` if given."""
        return ExpandedFeatures(
            inputs,
            self.directions,
            expansion=self.wave,
            powers=self.powers,
            include_input=inputs is not None,
            projections=projections,
        )


def compressed(projections: Floats, groups: Codes, shares: Floats, n_threads: int | None) -> Floats:
    """Divide projections (n, F) by the root of their mean absolute value for each denominator.

    `groups` and `shares` are those of `Layer`. A sample unlike the denominator's class has large
    projections on all its directions. Their common size is reduced to its root, and their ratios
    stay.
    """
    sizes = expand(np.abs(projections), shares, expansion="none", n_threads=n_threads)
    roots = np.sqrt(np.maximum(sizes, np.finfo(sizes.dtype).tiny))
    divisors = np.take(roots, groups, axis=1)
    return np.divide(projections, divisors, out=divisors)


def as_layer(gem: Any) -> Layer:
    """Convert a fitted extractor to a layer."""
    selected = {field.name: getattr(gem, f"{field.name}_") for field in fields(Directions)}
    expansion = "half_wave" if gem.expansion == "auto" else gem.expansion
    return Layer(**selected, expansion=expansion, powers=tuple(gem.powers))


def row_blocks(n: int, width: int, n_bytes: float = _BLOCK_BYTES) -> Iterator[slice]:
    """Yield slices of n samples, such that `width` float32 columns take about `n_bytes`."""
    size = int(np.clip(n_bytes / (4 * max(width, 1)) // 512 * 512, 512, 1 << 17))
    return (slice(begin, min(begin + size, n)) for begin in range(0, n, size))


def hidden_features(
    X: Floats | csr_array, layers: Sequence[Layer], n_threads: int | None
) -> Iterator[tuple[slice, Floats | csr_array]]:
    """Input of the layer after `layers`, block by block."""
    width = max([X.shape[1], *(2 * len(layer.offset) for layer in layers)])
    for rows in row_blocks(X.shape[0], width):
        block = X[rows]
        for layer in layers:
            # Projections of the first layer may cancel means: they need the samples' precision.
            block = layer.transform(block, n_threads).astype(np.float32, copy=False)
        yield rows, block


def project_rows(
    X: Floats | csr_array, layers: Sequence[Layer], n_threads: int | None
) -> NDArray[np.float32]:
    """Return float32 projections (n, F) on the last layer, from pieces that fit a cache."""
    last = layers[-1]
    out = np.empty((X.shape[0], len(last.offset)), dtype=np.float32)
    for rows, block in hidden_features(X, layers[:-1], n_threads):
        for piece in row_blocks(block.shape[0], out.shape[1], _PIECE_BYTES):
            out[rows][piece] = last.project(block[piece], n_threads)
    return out


def layer_features(
    X: Floats | csr_array, layers: Sequence[Layer], n_threads: int | None
) -> ExpandedFeatures:
    """Features of the last layer, from its projections."""
    inputs, last = None, layers[-1]
    if last.include_input and len(layers) > 1:
        inputs = np.empty((X.shape[0], layers[-2].width), dtype=np.float32)
        for rows, block in hidden_features(X, layers[:-1], n_threads):
            inputs[rows] = block
        X, layers = inputs, [last]
    elif last.include_input:
        inputs = X.astype(np.float32, copy=False)
    return last.features(project_rows(X, layers, n_threads), inputs)


def few_features(X: Any, layers: Sequence[Layer], n_threads: int | None) -> CoreRows | None:
    """Return features of up to 512 checked samples, with the constant, for the core.

    Like `layer_features`, but without checks and blocks, which take longer than the prediction of a
    sample. None for more samples, several layers, or features that include the input.
    """
    last = layers[-1]
    if len(layers) > 1 or last.include_input:
        return None
    if not (isinstance(X, np.ndarray) and len(X) <= _MAX_UNBLOCKED):
        return None
    projections = last.project(X, n_threads)
    rows: CoreRows = _CORE_ROWS[np.dtype(np.float32)](
        projections=projections.astype(np.float32, copy=False),
        wave=last.wave,
        powers=list(last.powers),
        constant=True,
    )
    return rows
