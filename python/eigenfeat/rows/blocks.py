"""Rows that need not fit into memory, in blocks that can be read repeatedly."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base import threads
from eigenfeat._base.labels import plain_labels
from eigenfeat._base.types import Codes, Floats, Rows, Targets, Weights
from eigenfeat._base.validation import check_unmasked, plain_rows, show
from eigenfeat.expansion.features import CoreRows, core_rows, take_rows

if TYPE_CHECKING:
    from typing import TypeAlias

    from scipy.sparse import csr_array

    from eigenfeat.rows.columns import TableColumns

    _Blocks: TypeAlias = "RowBlocks | Iterator[Any] | Callable[[], Iterable[Any]]"

__all__ = [
    "ArrayBlocks",
    "Block",
    "GeneratedBlocks",
    "RowBlocks",
    "as_blocks",
    "check_no_list",
    "is_blocks",
    "is_mapped",
]

_BLOCK_BYTES = 64e6
_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class Block:
    """A block of consecutive rows.

    Attributes
    ----------
    X : (m, d) array or sparse matrix
    y : (m,) array, or None
        Labels, if known.
    weight : (m,) array, or None
        Weights of the rows; None means 1.
    start : int
        Index of the first row among all rows.
    missing : (m, d) array of bool, or None
        Which entries of `X` were missing and have been completed; None if none was.
    """

    X: Any
    y: Any = None
    weight: npt.NDArray[np.float64] | None = None
    start: int = 0
    missing: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def take(self, rows: Codes | slice) -> Block:
        """Select rows by their indices within the block."""
        y = None if self.y is None else np.asarray(self.y)[rows]
        weight = None if self.weight is None else np.asarray(self.weight)[rows]
        missing = None if self.missing is None else self.missing[rows]
        return Block(take_rows(self.X, rows), y, weight, self.start, missing)

    def core(self, constant: bool) -> CoreRows:
        """Rows for the core's linear model, optionally with a last feature of ones."""
        return core_rows(self.X, constant)

    def scores(self, W: npt.NDArray[np.float64], constant: bool, n_threads: int | None) -> Floats:
        """Logits (m, k) for the weights W (p, k), in the type of the rows."""
        weights = np.ascontiguousarray(W, dtype=_floating(self.X))
        return self.core(constant).scores(weights, threads.resolve(n_threads))

    def products(
        self, residuals: Floats, constant: bool, n_threads: int | None
    ) -> npt.NDArray[np.float64]:
        """``Phi^T residuals``, (p, k)."""
        residuals = np.ascontiguousarray(residuals, dtype=_floating(self.X))
        return self.core(constant).products(residuals, threads.resolve(n_threads))


class RowBlocks(ABC):
    """Rows in fixed blocks, which estimators accept in `fit` instead of arrays.

    Subclasses define how to iterate over blocks; distributed ones also define `reduce`. At most one
    block of rows is held in memory, except for the rows selected by `take`.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[Block]:
        """Go through all blocks, in order; again from the first one at every call."""

    @property
    def n_rows(self) -> int:
        """Number of rows; needs a pass over the blocks if it is not known."""
        return self.reduce(len, operator.add)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(next(iter(self)).X.shape[1])

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns; None if they have none."""
        return None

    @property
    def layout(self) -> dict[str, Any] | None:
        """What a fitted model remembers of rows without names, to find its columns in others."""
        return None

    @property
    def encoder(self) -> TableColumns | None:
        """What has made the columns of those of a table with categories, if they are encoded."""
        return None

    def in_memory(self) -> Block | None:
        """All rows as one block, where they are few; None where they stay in blocks."""
        return None

    def prepared_for(self, estimator: Any, *, fitted: bool) -> RowBlocks:
        """The same rows as an estimator reads them, before or after its fit.

        Rows of files have their columns in the order of the fit, and missing values where the
        estimator takes these.
        """
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
            ``merge(a, b)`` of two results; it may change and return `a`. The order of merging
            depends only on the blocks.
        *arguments
            Arguments sent to the processes that hold the blocks.

        Raises
        ------
        ValueError
            If there are no blocks.
        """
        total: _Result | None = None
        solution = False
        for block in self:
            result = function(block, *arguments)
            del block  # or two would be there while the next is made
            total = merge(total, result) if solution else result  # type: ignore[arg-type]
            solution = True
        if not solution:
            raise ValueError("X: expected at least one block of rows, got none")
        return total  # type: ignore[return-value]

    def take(self, rows: npt.NDArray[np.intp]) -> Block:
        """Select rows by ascending indices among all rows, as one block."""
        wanted = np.asarray(rows, dtype=np.int64)
        parts = []
        for block in self:
            first, last = np.searchsorted(wanted, [block.start, block.start + len(block)])
            if last > first:
                parts.append(block.take(wanted[first:last] - block.start))
        return joined(parts)


class ArrayBlocks(RowBlocks):
    """Blocks of rows of an array, a memory-mapped file or a CSR matrix.

    Parameters
    ----------
    X : (n, d) array-like, memmap or sparse matrix
    y, sample_weight : (n,) array-like, optional
    block_rows : int, optional
        Number of rows in a block. The default makes blocks of about 64 MB.
    """

    def __init__(
        self,
        X: Floats | csr_array,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        block_rows: int | None = None,
    ) -> None:
        X = plain_rows(X, missing=True)
        self.X = X.tocsr() if hasattr(X, "tocsr") else X
        if not hasattr(self.X, "dtype"):  # a list, a data frame
            self.X = np.asarray(X)
        if len(self.X.shape) != 2:
            raise ValueError(f"X: expected a matrix of rows, got {show(X)}")
        n = int(self.X.shape[0])
        self.y = _labels(y, n, "y")
        self.sample_weight = _column(sample_weight, n, "sample_weight")
        self.block_rows = _block_rows(self.X) if block_rows is None else _whole(block_rows)
        if self.block_rows < 1:
            raise ValueError(f"block_rows: expected an integer from 1, got {show(block_rows)}")

    def relabelled(self, y: ArrayLike, name: str) -> ArrayBlocks:
        """The same rows and weights with other labels; error messages call them `name`."""
        labels = _labels(y, self.n_rows, name)
        return ArrayBlocks(self.X, labels, self.sample_weight, self.block_rows)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            part = slice(start, start + self.block_rows)
            yield Block(
                self.X[part],
                None if self.y is None else self.y[part],
                None if self.sample_weight is None else self.sample_weight[part],
                start,
            )


class GeneratedBlocks(RowBlocks):
    """Blocks from a list, another iterable, or a function that generates them.

    Parameters
    ----------
    source : iterable, or callable that returns one
        Items are rows `X`, or tuples ``(X, y)`` or ``(X, y, sample_weight)``. An iterator, such as
        a called generator, allows one pass. That is enough for moments; methods that need another
        pass raise an error.
    """

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self.source = source
        self._started = False

    def __iter__(self) -> Iterator[Block]:
        once = isinstance(self.source, Iterator)
        if once and self._started:
            raise ValueError(
                "X: expected blocks that can be gone through again (GeneratedBlocks of a list, "
                "or a function that returns an iterator of them), got an iterator, which has ended"
            )
        self._started = True
        start = 0
        for item in self.source() if callable(self.source) else self.source:
            block = _block_of(item, start)
            del item
            start += len(block)
            yield block
            del block


def is_blocks(X: object) -> TypeGuard[_Blocks]:
    """Whether `X` is rows in blocks: `RowBlocks`, an iterator, or a function that returns one."""
    return isinstance(X, (RowBlocks, Iterator)) or (callable(X) and not hasattr(X, "shape"))


def check_no_list(X: object) -> None:
    """Raise ValueError for a list of blocks, with a hint to the right class."""
    if not isinstance(X, (list, tuple)) or not X:
        return
    first = X[0][0] if isinstance(X[0], tuple) and 2 <= len(X[0]) <= 3 else X[0]
    if len(getattr(first, "shape", ())) == 2:
        raise ValueError(
            f"X: expected rows or RowBlocks, got a {type(X).__name__} of {len(X)} blocks: "
            "eigenfeat.rows.GeneratedBlocks(X) goes through them (of a function that makes them "
            "anew, too); for anything else write a RowBlocks of your own"
        )


def as_blocks(X: Rows | _Blocks, y: Targets = None, sample_weight: Weights = None) -> RowBlocks:
    """Rows of any kind as `RowBlocks`: those as they are, others in the wrapper that fits."""
    if isinstance(X, RowBlocks):
        return X
    return GeneratedBlocks(X) if is_blocks(X) else ArrayBlocks(X, y, sample_weight)


def is_mapped(X: object) -> TypeGuard[npt.NDArray[Any]]:
    """Whether rows are a memory-mapped array of real numbers, to be read block by block."""
    return (
        isinstance(X, np.memmap)
        and getattr(X, "_mmap", None) is not None
        and X.ndim == 2
        and X.dtype.kind in "biuf"
        and X.size > 0
    )


def joined(parts: list[Block]) -> Block:
    """Several blocks as one."""
    if not parts:
        raise ValueError("rows: expected at least one sample, got none")
    y, weight = (_concatenated([getattr(part, name) for part in parts]) for name in ("y", "weight"))
    return Block(_stacked([part.X for part in parts]), y, weight, parts[0].start)


def _concatenated(columns: list[Any]) -> Any:
    if any(column is None for column in columns):
        return None
    return np.concatenate([np.asarray(column) for column in columns])


def _stacked(parts: list[Any]) -> Any:
    if not hasattr(parts[0], "tocsr"):
        return np.concatenate([np.asarray(part) for part in parts])
    kind = type(parts[0])  # a sparse class of SciPy's, which this folder does not import
    counts = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)])
    data = np.concatenate([part.data for part in parts])
    indices = np.concatenate([part.indices for part in parts])
    shape = (sum(part.shape[0] for part in parts), parts[0].shape[1])
    return kind((data, indices, np.cumsum(counts)), shape=shape)


def _block_of(item: Any, start: int) -> Block:
    parts = item if isinstance(item, tuple) else (item,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"X: expected blocks (X, y) or (X, y, weight), got {show(item)}")
    rows = plain_rows(parts[0], missing=True)
    rows = rows if hasattr(rows, "shape") else np.asarray(rows)
    if len(rows.shape) != 2:
        raise ValueError(f"X: expected blocks that are matrices, got shape {rows.shape}")
    y, weight = [*parts[1:], None, None][:2]
    n = int(rows.shape[0])
    return Block(rows, _labels(y, n, "y", start), _column(weight, n, "sample_weight"), start)


def _floating(X: Any) -> Any:
    return np.float32 if X.dtype == np.float32 else np.float64


def _labels(y: Any, n: int, name: str, start: int = 0) -> Any:
    return _column(plain_labels(y, name, start), n, name)


def _column(values: Any, n: int, name: str) -> Any:
    if values is None:
        return None
    values = check_unmasked(values, name)
    column = values if hasattr(values, "shape") else np.asarray(values)
    if column.shape != (n,):
        raise ValueError(f"{name}: expected {n} values, one per sample, got shape {column.shape}")
    return column


def _whole(value: Any) -> int:
    """The integer that a number stands for; 0, which is refused, for anything else."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def _block_rows(X: Any) -> int:
    width = X.nnz / max(X.shape[0], 1) * 3 if hasattr(X, "nnz") else X.shape[1]
    itemsize = 4 if X.dtype == np.float32 else 8  # once they are floating point
    row_bytes = max(float(width) * itemsize, 1.0)
    return int(np.clip(_BLOCK_BYTES / row_bytes // 512 * 512, 512, 1 << 20))
