"""Samples in blocks, which need not fit into memory, and their transform in each pass."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base.labels import LabelTable, plain_labels
from eigenfeat._base.types import Codes, Floats, Labels, Rows
from eigenfeat._base.validation import (
    check_rows,
    check_same_names,
    check_unmasked,
    check_weights,
    check_whole,
    names_of,
    naming_text,
    physical_memory,
    plain_rows,
    refuse_infinity,
    show,
    weights_in,
)
from eigenfeat.expansion.features import (
    Layer,
    hidden_features,
    layer_features,
    row_blocks,
)
from eigenfeat.samples.labelled import Block

if TYPE_CHECKING:
    from typing import TypeAlias

    from scipy.sparse import csr_array

    from eigenfeat.expansion.features import ExpandedFeatures
    from eigenfeat.samples.columns import TableColumns
    from eigenfeat.samples.completion import GaussianImputer

    _Weights: TypeAlias = "npt.NDArray[np.float64] | None"
    _Blocks: TypeAlias = "RowBlocks | Iterator[Any] | Callable[[], Iterable[Any]]"

__all__ = [
    "SMALL_TYPES",
    "ArrayBlocks",
    "GeneratedBlocks",
    "RowBlocks",
    "RowTransform",
    "add",
    "as_blocks",
    "check_finite",
    "check_no_list",
    "frame_numbers",
    "is_blocks",
    "is_collection",
    "joined",
    "merge_read",
    "merged",
    "read",
    "stacked",
    "stays_on_disk",
    "sum_of_bits",
]

_BLOCK_BYTES = 64e6  # default size of a block
_MEMORY_SHARE = 0.5  # share of the machine's memory above which memory maps are read in blocks
_Result = TypeVar("_Result")


class RowBlocks(ABC):
    """Samples in fixed blocks, which estimators accept in `fit` instead of arrays.

    Subclasses define how to iterate over blocks; subclasses for samples on several machines also
    define `reduce`. At most one block is held in memory, apart from the samples selected by `take`.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[Block]:
        """Iterate over all blocks in order. Each call starts from the first block."""

    @property
    def n_rows(self) -> int:
        """Number of samples; needs a pass over the blocks if it is not known."""
        return self.reduce(len, operator.add)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(next(iter(self)).X.shape[1])

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns; None for columns without names."""
        return None

    @property
    def layout(self) -> dict[str, Any] | None:
        """Layout by which a fitted model finds its columns in files without names."""
        return None

    @property
    def encoder(self) -> TableColumns | None:
        """Encoder that has converted a table with categories to numbers, or None."""
        return None

    def in_memory(self, *, sparse: bool = False) -> Block | None:
        """Return all samples as one block if they fit into memory.

        Parameters
        ----------
        sparse : bool, default=False
            Whether to return sparse samples, too.

        Returns
        -------
        Block or None
        """
        return None

    def table(self) -> Block | None:
        """Return all samples as one block with a data frame, if they fit into memory.

        Returns
        -------
        Block or None
            None also for columns without names.
        """
        return None

    def prepared_for(self, estimator: Any, *, fitted: bool) -> RowBlocks:
        """Return the samples with the columns that an estimator reads.

        Samples of files have their columns in the order of the fit, and NaN for missing values if
        the estimator accepts missing values.

        Parameters
        ----------
        estimator : estimator
            Estimator that reads the samples.
        fitted : bool
            Whether the samples are for a fitted estimator; otherwise, for its fit.

        Returns
        -------
        RowBlocks

        Raises
        ------
        ValueError
            If a fitted estimator has columns of other names.
        """
        check_same_names(_fitted_names(estimator, fitted), self.column_names, "X")
        return self

    def reduce(
        self,
        function: Callable[..., _Result],
        merge: Callable[[_Result, _Result], _Result],
        *arguments: object,
    ) -> _Result:
        """Apply a function to every block and merge the results.

        Parameters
        ----------
        function : callable
            ``function(block, *arguments)``. It must be importable, so that another process can call
            it, and without side effects, so that a lost result can be computed again.
        merge : callable
            ``merge(a, b)`` of two results, `a` of the earlier blocks; it may change and return `a`.
            The order of merging depends only on the blocks.
        *arguments
            Arguments sent to the processes that hold the blocks.

        Returns
        -------
        object
            The merged result.

        Raises
        ------
        ValueError
            If there are no blocks.
        """
        total: Any = None
        first = True
        for block in self:
            result = function(block, *arguments)
            del block  # free it before the next block is read
            total, first = result if first else merge(total, result), False
        if first:
            raise ValueError("X: expected at least one block of rows, got none")
        return cast("_Result", total)

    def take(self, rows: npt.NDArray[np.intp]) -> Block:
        """Select samples.

        Parameters
        ----------
        rows : (m,) array of int
            Ascending indices among all samples.

        Returns
        -------
        Block
        """
        indices = np.asarray(rows, dtype=np.int64)
        taken = []
        for block in self:
            first, last = np.searchsorted(indices, [block.start, block.start + len(block)])
            if last > first:
                taken.append(block.take(indices[first:last] - block.start))
        return joined(taken)


class ArrayBlocks(RowBlocks):
    """Blocks of samples of an array, a memory-mapped file or a CSR matrix.

    Parameters
    ----------
    X : (n, d) array-like, memmap or sparse matrix
        Samples.
    y : (n,) array-like, optional
        Labels.
    sample_weight : (n,) array-like, optional
        Weights of the samples.
    block_rows : int, optional
        Number of samples in a block. The default makes blocks of about 64 MB.
    """

    def __init__(
        self,
        X: Floats | csr_array,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        block_rows: int | None = None,
    ) -> None:
        block = _block_of((X, y, sample_weight), 0)
        matrix = block.X.tocsr() if hasattr(block.X, "tocsr") else np.asarray(block.X)
        self._samples, self._names = replace(block, X=matrix), names_of(X)
        rows = _block_rows(matrix) if block_rows is None else block_rows
        self.block_rows = check_whole(rows, "block_rows", at_least=1)

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return len(self._samples)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self._samples.X.shape[1])

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns of a data frame."""
        return self._names

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            block = self._samples.take(slice(start, start + self.block_rows))
            yield replace(block, start=start)


class GeneratedBlocks(RowBlocks):
    """Blocks from a list, another iterable, or a function that generates them.

    Parameters
    ----------
    source : iterable, or callable that returns one
        Items are samples `X`, or tuples ``(X, y)`` or ``(X, y, sample_weight)``. Data frames have
        the same columns in all items. An iterator, such as a generator, allows one pass, which
        suffices for moments; methods that need another pass raise an error.
    """

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self.source = source
        self._started = False
        self._names: tuple[str, ...] | None = None  # of the data frames that have been read

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns of data frames; None until the first data frame is read."""
        return self._names

    def prepared_for(self, estimator: Any, *, fitted: bool) -> GeneratedBlocks:
        """Return these samples, whose later data frames must have the columns of the fit.

        Parameters
        ----------
        estimator : estimator
            Estimator that reads the samples.
        fitted : bool
            Whether the samples are for a fitted estimator; otherwise, for its fit.

        Returns
        -------
        GeneratedBlocks
            The object itself.
        """
        self._names = _fitted_names(estimator, fitted)
        return self

    def __iter__(self) -> Iterator[Block]:
        once = isinstance(self.source, Iterator)
        if once and self._started:
            raise ValueError(
                "X: expected blocks that can be read again (GeneratedBlocks of a list or of a "
                "function that returns an iterator), got an iterator, which has ended"
            )
        self._started = True
        start = 0
        for item in self.source() if callable(self.source) else self.source:
            block = _block_of(item, start)
            names = names_of(item[0] if isinstance(item, tuple) else item)
            self._names = check_same_names(self._names, names, "X")
            del item
            start += len(block)
            yield block
            del block


def _fitted_names(estimator: Any, fitted: bool) -> tuple[str, ...] | None:
    """Names of the columns of a fitted estimator; None without names."""
    names = getattr(estimator, "feature_names_in_", None) if fitted else None
    return None if names is None else tuple(str(name) for name in names)


def is_blocks(X: object) -> TypeGuard[_Blocks]:
    """Whether `X` is `RowBlocks`, an iterator, or a function that returns an iterator."""
    return isinstance(X, (RowBlocks, Iterator)) or (callable(X) and not hasattr(X, "shape"))


def is_collection(X: object) -> bool:
    """Whether `X` is a Dask array, data frame, series or another collection."""
    return hasattr(X, "__dask_graph__")


def check_no_list(X: object) -> None:
    """Raise ValueError for a list of blocks, with a hint to the right class."""
    if not isinstance(X, (list, tuple)) or not X:
        return
    first = X[0][0] if isinstance(X[0], tuple) and 2 <= len(X[0]) <= 3 else X[0]
    if len(getattr(first, "shape", ())) == 2:
        raise ValueError(
            f"X: expected samples or RowBlocks, got a {type(X).__name__} of {len(X)} blocks; "
            "eigenfeat.samples.GeneratedBlocks reads a list of blocks, or a function that "
            "generates blocks; for other sources write a subclass of RowBlocks"
        )


def as_blocks(X: Rows | _Blocks) -> RowBlocks:
    """Wrap samples of any kind in `RowBlocks`."""
    if isinstance(X, RowBlocks):
        return X
    return GeneratedBlocks(X) if is_blocks(X) else ArrayBlocks(X)


def stays_on_disk(X: object) -> TypeGuard[npt.NDArray[Any]]:
    """Whether X is a memory map of more than half of the machine's memory, to be read in blocks."""
    return (
        isinstance(X, np.memmap)
        and X.ndim == 2
        and X.dtype.kind in "biuf"
        and X.size * _itemsize(X) > _MEMORY_SHARE * physical_memory()
    )


def joined(parts: list[Block]) -> Block:
    """Join consecutive blocks."""
    if not parts:
        raise ValueError("rows: expected at least one sample, got none")
    fields = ([getattr(part, name) for part in parts] for name in ("X", "y", "weight"))
    X, y, weight = (
        None if any(v is None for v in arrays) else stacked(arrays) for arrays in fields
    )
    return Block(X, y, weight, parts[0].start)


def stacked(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of arrays, CSR matrices or data frames."""
    if hasattr(parts[0], "columns"):
        import pandas

        frame = pandas.concat(parts, ignore_index=True)
        for name in parts[0].select_dtypes("category"):  # categories differ between parts
            frame[name] = frame[name].astype("category")
        return frame
    if not hasattr(parts[0], "tocsr"):
        return np.concatenate([np.asarray(part) for part in parts])
    from scipy import sparse  # imported for sparse samples only

    return sparse.vstack(parts, format="csr")


def _block_of(item: Any, start: int) -> Block:
    parts = item if isinstance(item, tuple) else (item,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"X: expected blocks (X, y) or (X, y, weight), got {show(item)}")
    # Checks would copy an unaligned memory map; the blocks of a map are checked when they are read.
    is_map = isinstance(parts[0], np.memmap)
    rows = parts[0] if is_map else plain_rows(parts[0], missing=True)
    if hasattr(rows, "iloc") and hasattr(rows, "columns"):
        rows = frame_numbers(rows, start)
    elif not hasattr(rows, "dtype"):
        rows = np.asarray(rows)
    if len(rows.shape) != 2:
        raise ValueError(f"X: expected a matrix of samples, got {show(parts[0])}")
    y, weight = [*parts[1:], None, None][:2]
    n = int(rows.shape[0])
    return Block(rows, _labels(y, n, start), _column(weight, n, "sample_weight"), start)


def frame_numbers(frame: Any, start: int = 0) -> npt.NDArray[Any]:
    """The columns of a pandas data frame as an array; missing values are NaN.

    `start` is the index of the first row in messages.
    """
    plain_rows(frame)  # raises an error for dates
    refuse_infinity(frame, start)
    if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in frame.dtypes):
        return np.asarray(frame.to_numpy())
    with naming_text(frame, start):
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))


def _labels(y: Any, n: int, start: int) -> Any:
    if len(getattr(y, "shape", ())) == 2 and y.shape[0] == n:  # several targets per sample
        return y.tocsr() if hasattr(y, "tocsr") else np.asarray(y)
    return _column(plain_labels(y, "y", start), n, "y")


def _column(values: Any, n: int, name: str) -> Any:
    if values is None:
        return None
    values = check_unmasked(values, name)
    column = values if hasattr(values, "shape") else np.asarray(values)
    if column.shape != (n,):
        raise ValueError(f"{name}: expected {n} values, one per sample, got shape {column.shape}")
    return column


def _itemsize(X: Any) -> int:
    """Bytes of an entry after conversion to floating point."""
    return 4 if X.dtype == np.float32 else 8


def _block_rows(X: Any) -> int:
    width = X.nnz / max(X.shape[0], 1) * 3 if hasattr(X, "nnz") else X.shape[1]
    row_bytes = max(float(width) * _itemsize(X), 1.0)
    return int(np.clip(_BLOCK_BYTES / row_bytes // 512 * 512, 512, 1 << 20))


# ---- from raw samples to features ----------------------------------------------------------------


SMALL_TYPES = ("uint8", "int8", "uint16", "int16", "bool")  # types that become float32 on request


@dataclass(frozen=True, eq=False)
class RowTransform:
    """Transform of blocks in each pass: checks, labels, weights, completion and layers."""

    n_features: int | None = None  # columns that every block must have; None in the first pass
    small: bool = False  # integers of up to 16 bits become float32 instead of float64
    groups: Callable[[Block], Labels] | None = None  # labels in the first pass; None: of the block
    classes: Labels | None = None  # (k,) sorted; labels of blocks become their indices
    layers: tuple[Layer, ...] = ()  # applied to the samples
    # Whether the features of the last layer are an array, the input of another layer, instead of
    # `ExpandedFeatures`.
    hidden: bool = False
    centre: npt.NDArray[np.float64] | None = None  # (d,) subtracted from dense samples
    mask: npt.NDArray[np.uint8] | None = None  # bits of the samples that are read; None: all
    n_threads: int | None = None
    allows_missing: bool = False  # whether NaN in dense samples is a missing entry
    completion: GaussianImputer | None = None  # completes missing entries
    # Replaces codes of categories by statistics in samples with given indices among all samples.
    statistics: Callable[[Floats, Codes | slice], Floats] | None = None
    weight_unit: float = 1.0  # power of two by which weights are divided
    class_factors: npt.NDArray[np.float64] | None = None  # (k,) weights of the classes

    def checked(self, block: Block) -> Block:
        """The block in floating point, with finite and nonnegative weights."""
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

    def encoded(self, block: Block, rows: Codes | slice | None = None) -> Block:
        """Replace codes by statistics; `rows` are the block's indices among all samples."""
        if self.statistics is None:
            return block
        rows = slice(block.start, block.start + len(block)) if rows is None else rows
        return replace(block, X=self.statistics(block.X, rows))

    def weighted(self, block: Block) -> Block:
        """The samples of a checked block that have positive weight and are in the mask."""
        keep = np.ones(len(block), dtype=bool)
        if block.weight is not None:
            keep &= block.weight > 0
        if self.mask is not None:
            first, skip = block.start // 8, block.start % 8
            bits = np.unpackbits(self.mask[first : (block.start + len(block) + 7) // 8])
            keep &= bits[skip : skip + len(block)].astype(bool)
        return block if keep.all() else block.take(keep)

    def class_weighted(self, codes: Codes, weight: _Weights) -> _Weights:
        """Weights times class weights; unchanged without class weights."""
        if self.class_factors is None:
            return weight
        factors = self.class_factors[codes]
        return factors if weight is None else factors * weight

    def completed(self, block: Block) -> Block:
        """The block with completed entries, if there is a completion."""
        if self.completion is None or not isinstance(block.X, np.ndarray):
            return block
        empty = self.completion.empty
        missing = np.isnan(block.X) & ~empty
        if not missing.any() and not empty.any():
            return block
        X = self.completion.filled(block.X, self.n_threads)
        return Block(X, block.y, block.weight, block.start, missing)

    def features(self, block: Block) -> Iterator[Block]:
        """Features of checked samples, in pieces that keep projections small."""
        if len(block) == 0:
            return
        block = self.completed(block)
        if self.classes is not None:
            y = LabelTable.of(self.classes).encode(block.y, len(block), block.start)[0]
            block = replace(block, y=y, weight=self.class_weighted(y, block.weight))
        if not self.layers:
            yield replace(block, X=self.features_of(block.X))
        elif self.hidden:
            for rows, X in hidden_features(block.X, self.layers, self.n_threads):
                yield _part(block, rows, X)
        else:
            width = 4 * max([block.X.shape[1], *(len(layer.offset) for layer in self.layers)])
            for rows in row_blocks(len(block), width):
                yield _part(block, rows, self.features_of(block.X[rows]))

    def features_of(self, X: Floats | csr_array) -> Floats | csr_array | ExpandedFeatures:
        """Features of a matrix of checked samples, in one piece."""
        if self.layers:
            return layer_features(X, self.layers, self.n_threads)
        if self.centre is None:
            return X
        return np.subtract(X, self.centre, out=np.empty_like(X), casting="same_kind")

    def _rows(self, block: Block) -> Any:
        dtype = getattr(block.X, "dtype", None)
        target = np.dtype(np.float32) if self.small and dtype in SMALL_TYPES else None
        try:
            rows = check_rows(block.X, dtype=target)
        except ValueError as error:
            raise ValueError(f"{error} (in the block from row {block.start} on)") from None
        if isinstance(rows, np.ndarray):
            return rows
        csr = block.X.tocsr()
        return csr if csr.dtype == rows.dtype else csr.astype(rows.dtype)


def read(
    block: Block,
    reading: RowTransform,
    function: Callable[..., _Result],
    merge: Callable[[_Result, _Result], _Result],
    *arguments: object,
) -> tuple[int, int, _Result | None]:
    """Number of samples of a block, sum of their bits, and result of a function of the features.

    Results of ``function(piece, *arguments)`` are merged; None if no sample of the block is used.
    """
    checked = reading.checked(block)
    total: _Result | None = None
    for piece in reading.features(reading.weighted(reading.encoded(checked))):
        total = merged(merge, total, function(piece, *arguments))
        del piece  # free it before the next piece is made
    return len(checked), sum_of_bits(checked.X), total


def merge_read(
    merge: Callable[[_Result, _Result], _Result],
    a: tuple[int, int, _Result | None],
    b: tuple[int, int, _Result | None],
) -> tuple[int, int, _Result | None]:
    """Merge two results of `read`; `merge` merges the results of the function of the features."""
    return a[0] + b[0], a[1] + b[1], merged(merge, a[2], b[2])


def sum_of_bits(X: Any) -> int:
    """Checksum of the values of samples; checksums of blocks add up modulo 2^64."""
    total = 0
    for part in [X] if isinstance(X, np.ndarray) else [X.data, X.indices]:
        size = part.dtype.itemsize
        words = np.ascontiguousarray(part).view(f"u{size}")
        # The sum is modulo 2^(8 size). Sums that are shifted to the top bits add up modulo 2^64.
        total += int(words.sum(dtype=words.dtype)) << (64 - 8 * size)
    return total


def check_finite(X: Any, start: int, *, missing: bool = False) -> None:
    """Raise ValueError with the row (`start` is the first) and column of an infinite or NaN entry.

    With `missing`, NaN is allowed in dense samples.
    """
    dense = isinstance(X, np.ndarray)
    values: Floats = X if dense else X.data
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if np.isfinite(total):
        return
    allowed = missing and dense
    wrong = np.argwhere(np.isinf(values) if allowed else ~np.isfinite(values))
    if not len(wrong):
        return
    place = tuple(wrong[0].tolist())
    if dense:
        row, column = place
    else:
        row, column = np.searchsorted(X.indptr, place[0], side="right") - 1, X.indices[place]
    raise ValueError(
        f"X: expected finite numbers{', or NaN for missing entries' * allowed}, got "
        f"{show(values[place])} in row {start + row}, column {column}"
    )


def add(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add tuples of numbers and arrays, as results of `reduce`; changes the arrays of `a`."""
    result = list(a)
    for i, other in enumerate(b):
        result[i] += other
    return tuple(result)


def merged(merge: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """``merge(a, b)``, or the other result if one is None."""
    if a is None or b is None:
        return b if a is None else a
    return merge(a, b)


def _part(block: Block, rows: slice, X: Any) -> Block:
    weight = None if block.weight is None else block.weight[rows]
    return Block(X, None if block.y is None else block.y[rows], weight, block.start + rows.start)
