"""From blocks of raw rows to checked feature rows, identically in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base.labels import LabelTable
from eigenfeat._base.types import DType, Floats, Labels
from eigenfeat._base.validation import check_rows, check_weights, show, weights_in
from eigenfeat.expansion.features import Layer, hidden_features, layer_features, row_blocks
from eigenfeat.rows.blocks import Block

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from eigenfeat.expansion.features import ExpandedRows
    from eigenfeat.rows.completion import GaussianRows

__all__ = ["Checksum", "RowTransform", "check_finite", "check_known", "merge_read", "read"]

_Result = TypeVar("_Result")
_WORDS = 2**64
_SMALL = ("uint8", "int8", "uint16", "int16", "bool")


@dataclass(frozen=True, eq=False)
class RowTransform:
    """Options for reading blocks; sent with every pass.

    Attributes
    ----------
    n_features : int or None
        Columns that every block must have; None in the first pass.
    small : bool
        Whether integers of up to 16 bits become float32, which holds them, instead of float64.
    classes : (k,) array or None
        Labels, sorted: those of the blocks become their indices. None leaves them as they are.
    layers : tuple of Layer
        What rows are projected on; none leaves them as they are.
    hidden : bool
        Whether the last of the layers is formed, too, as for the layer that comes after it;
        otherwise its features are `ExpandedRows`.
    include_input : bool
        Whether those contain the columns of what the last layer projects.
    centre : (d,) array or None
        What is subtracted from dense rows.
    mask : array of uint8, or None
        One bit a row, as ``numpy.packbits`` makes them: which rows are read.
    n_threads : int or None
    allows_missing : bool
        Whether NaN in dense rows is a missing entry.
    completion : GaussianRows or None
        What missing entries are completed by.
    weight_unit : float
        The power of two that weights are divided by.
    """

    n_features: int | None = None
    small: bool = False
    classes: Labels | None = None
    layers: tuple[Layer, ...] = ()
    hidden: bool = False
    include_input: bool = False
    centre: npt.NDArray[np.float64] | None = None
    mask: npt.NDArray[np.uint8] | None = None
    n_threads: int | None = None
    allows_missing: bool = False
    completion: GaussianRows | None = None
    weight_unit: float = 1.0

    def checked(self, block: Block) -> Block:
        """The block with rows in floating point, and weights that are finite and nonnegative."""
        X = self._rows(block)
        n, d = X.shape
        if self.n_features not in (None, d):
            raise ValueError(
                f"X: expected {self.n_features} columns, got {d} in the block from row "
                f"{block.start} on"
            )
        weight = check_weights(block.weight, n, block.start)
        if weight is not None:
            weight = weights_in(weight, self.weight_unit)
        return Block(X, block.y, weight, block.start)

    def weighted(self, block: Block) -> Block:
        """The rows of a checked block that have weight and are not masked."""
        keep = np.ones(len(block), dtype=bool)
        if block.weight is not None:
            keep &= block.weight > 0
        if self.mask is not None:
            first, skip = block.start // 8, block.start % 8
            bits = np.unpackbits(self.mask[first : (block.start + len(block) + 7) // 8])
            keep &= bits[skip : skip + len(block)].astype(bool)
        return block if keep.all() else block.take(keep)

    def completed(self, block: Block) -> Block:
        """The block with missing entries filled in, if there is what completes them."""
        if self.completion is None or not isinstance(block.X, np.ndarray):
            return block
        missing = np.isnan(block.X)
        if not missing.any():
            return block
        X = self.completion.filled(block.X, self.n_threads)
        return Block(X, block.y, block.weight, block.start, missing)

    def features(self, block: Block) -> Iterator[Block]:
        """Feature rows of kept rows, piece by piece, so that projections stay small."""
        if len(block) == 0:
            return
        block = self.completed(block)
        if self.classes is not None:
            y = LabelTable.of(self.classes).encode(block.y, len(block), block.start)[0]
            block = replace(block, y=y)
        if not self.layers:
            yield replace(block, X=self.whole(block.X))
        elif self.hidden:
            for rows, X in hidden_features(block.X, self.layers, self.n_threads):
                yield _part(block, rows, X)
        else:
            width = 4 * max([block.X.shape[1], *(len(layer.offset) for layer in self.layers)])
            for rows in row_blocks(len(block), width):
                yield _part(block, rows, self.whole(block.X[rows]))

    def whole(self, X: Floats | csr_array) -> Floats | csr_array | ExpandedRows:
        """Features of checked rows, all at once."""
        if self.layers:
            return layer_features(X, self.layers, self.include_input, self.n_threads)
        if self.centre is None:
            return X
        return np.subtract(X, self.centre, out=np.empty_like(X), casting="same_kind")

    def dtype(self, rows: DType) -> DType:
        """Type of the features of rows of this type."""
        return np.dtype(np.float32) if self.layers else rows

    def _rows(self, block: Block) -> Any:
        dtype = getattr(block.X, "dtype", None)
        wanted = np.dtype(np.float32) if self.small and dtype in _SMALL else None
        try:
            rows = check_rows(block.X, dtype=wanted)
        except ValueError as error:
            raise ValueError(f"{error} (in the block from row {block.start} on)") from None
        if isinstance(rows, np.ndarray):
            return rows
        csr = block.X.tocsr()
        return csr if csr.dtype == rows.dtype else csr.astype(rows.dtype)


@dataclass(frozen=True)
class Checksum:
    """What shows that a pass has read the same rows as another: their number, and their bits.

    The sum of the rows' words does not depend on how rows are cut into blocks, nor on their order.
    """

    n_rows: int
    words: int

    @classmethod
    def of(cls, X: Floats | csr_array) -> Checksum:
        """Of checked rows."""
        parts = [X] if isinstance(X, np.ndarray) else [X.data, X.indices]
        return cls(X.shape[0], sum(map(_words, parts)) % _WORDS)

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(self.n_rows + other.n_rows, (self.words + other.words) % _WORDS)


def read(
    block: Block,
    reading: RowTransform,
    function: Callable[..., _Result],
    merge: Callable[[_Result, _Result], _Result],
    *arguments: object,
) -> tuple[Checksum, _Result | None]:
    """What a function gives for the feature rows of one block, and a checksum.

    ``function(piece, *arguments)`` gets pieces of feature rows, and their results are merged; None
    where no row of the block is kept.
    """
    checked = reading.checked(block)
    total: _Result | None = None
    for piece in reading.features(reading.weighted(checked)):
        total = _either(merge, total, function(piece, *arguments))
        del piece  # or two would be there while the next is made
    return Checksum.of(checked.X), total


def merge_read(
    merge: Callable[[_Result, _Result], _Result],
    a: tuple[Checksum, _Result | None],
    b: tuple[Checksum, _Result | None],
) -> tuple[Checksum, _Result | None]:
    """Both; `merge` merges the results."""
    return a[0] + b[0], _either(merge, a[1], b[1])


def check_finite(X: Floats | csr_array, start: int) -> None:
    """ValueError that names row and column of what is not finite; rows are counted from `start`."""
    values: Floats = X if isinstance(X, np.ndarray) else X.data
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if np.isfinite(total) or np.isfinite(values).all():
        return
    if isinstance(X, np.ndarray):
        row, column = np.argwhere(~np.isfinite(X))[0].tolist()
        value = X[row, column]
    else:
        at = int(np.argmin(np.isfinite(values)))
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
        value = values[at]
    raise ValueError(
        f"X: expected finite numbers, got {show(value)} in row {start + row}, column {column}"
    )


def check_known(X: Floats, start: int = 0) -> None:
    """ValueError that names row and column of the first entry that is infinite."""
    at = np.argwhere(np.isinf(X))
    if len(at):
        row, column = at[0].tolist()
        raise ValueError(
            f"X: expected finite numbers, or NaN for missing entries, got {show(X[row, column])} "
            f"in row {start + row}, column {column}"
        )


def _either(merge: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return merge(a, b)


def _part(block: Block, rows: slice, X: Any) -> Block:
    weight = None if block.weight is None else block.weight[rows]
    return Block(X, None if block.y is None else block.y[rows], weight, block.start + rows.start)


def _words(array: npt.NDArray[Any]) -> int:
    size = array.dtype.itemsize
    words = np.ascontiguousarray(array).view(f"u{size}")
    # The sum wraps in its own type; shifted to the top, so do sums of such sums.
    return int(words.sum(dtype=words.dtype)) << (64 - 8 * size)
