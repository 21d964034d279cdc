"""Samples of Dask arrays and data frames as blocks, which are reduced on Dask's workers."""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads
from eigenfeat._base.labels import plain_labels
from eigenfeat._base.validation import show
from eigenfeat.samples.blocks import (
    ArrayBlocks,
    RowBlocks,
    frame_numbers,
    is_collection,
    joined,
)
from eigenfeat.samples.columns import refuse_lacking
from eigenfeat.samples.labelled import Block

if TYPE_CHECKING:
    from dask.array import Array
    from dask.dataframe import DataFrame, Series

    from eigenfeat.samples.columns import TableColumns

__all__ = ["DaskBlocks", "dask_module", "is_dask_array", "is_dask_frame"]

_NAMES = "y", "sample_weight"  # arguments beside X
_RESULTS_PER_MERGE = 4  # results that one task merges
_Result = TypeVar("_Result")


class DaskBlocks(RowBlocks):
    """Blocks of samples of a Dask array or data frame.

    Estimators that accept blocks also accept Dask collections. A partition is one block, or several
    if it is large. Results of partitions are merged in a tree of Dask tasks whose shape depends
    only on the partitions, so that results are bit-for-bit identical for any number of workers. A
    task runs on one thread; a worker runs as many tasks at a time as it has threads.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask data frame
        Chunks may be arrays or CSR matrices. Columns are merged into one chunk.
    y : dask array or series, array-like of shape (n,), or name of a column, optional
        Labels of any type that can be ordered. A named column is not used as a feature.
    sample_weight : dask array or series, array-like of shape (n,), or name of a column, optional
        Nonnegative weights.

    Raises
    ------
    ValueError
        If labels or weights do not have one entry for each sample, or `X` is not a matrix.
    ImportError
        If Dask is not installed.

    Notes
    -----
    A first pass counts the samples of partitions of unknown length (data frames, filtered arrays).
    Each pass computes the partitions from their source: persist samples that fit into the workers'
    memory first, ``X = X.persist()``.
    """

    encoder: TableColumns | None = None

    def __init__(
        self,
        X: Array | DataFrame,
        y: Array | Series | str | None = None,
        sample_weight: Array | Series | str | None = None,
    ) -> None:
        self._given: tuple[Any, Any, Any] = X, y, sample_weight
        self._names: list[Any] | None = None  # of the columns of a data frame
        if is_dask_frame(X):
            self._names = _features(X, y, sample_weight)
        elif not is_dask_array(X) or X.ndim != 2:
            raise ValueError(f"X: expected a dask array (n, d) or a dask data frame, got {show(X)}")

    # ---- columns -----------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return sum(part.length for part in self._partitions)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        if self.encoder is not None:
            return len(self.encoder.feature_names_)
        return int(self._given[0].shape[1]) if self._names is None else len(self._names)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns of a data frame, if all are strings."""
        names = self._names
        if names is None or not all(isinstance(name, str) for name in names):
            return None
        return tuple(names)

    def prepared_for(self, estimator: Any, *, fitted: bool) -> DaskBlocks:
        """Return the samples with the columns that an estimator reads.

        A fitted estimator gets the columns of its fit, by name. If the estimator accepts
        categories, categories of data frames become numbers by its encoder, or before a fit by a
        new encoder, for which a first pass counts the categories.

        Parameters
        ----------
        estimator : estimator
            Estimator that reads the samples.
        fitted : bool
            Whether the samples are for a fitted estimator; otherwise, for its fit.

        Returns
        -------
        DaskBlocks

        Raises
        ------
        ValueError
            If columns of the fitted estimator are missing.
        """
        names = self._names
        encoder = getattr(estimator, "columns_", None) if fitted else None
        if encoder is not None and names is None:
            encoder.refuse("a dask array")
        if names is None:
            return self
        if fitted:
            fit_names = [*getattr(estimator, "feature_names_in_", names)]
            refuse_lacking(fit_names, names)
            names = fit_names
        elif getattr(estimator, "categorical_features", None) is not None:
            encoder = self._fitted_encoder()
        result = copy.copy(self)
        result._names, result.encoder = names, encoder
        return result

    def _fitted_encoder(self) -> TableColumns | None:
        """The encoder of a data frame's columns; None if all are numbers."""
        from eigenfeat.samples.columns import TableColumns, has_categories, merge_counts

        names: Any = self._names
        if not has_categories(self._given[0]._meta_nonempty[names]):
            return None
        count = _delayed(_counted)
        counts = _computed([count(names, part.start, *part.sources) for part in self._partitions])
        return TableColumns().fit_counts(names, reduce(merge_counts, counts))

    # ---- passes ------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Block]:
        """Compute the partitions one after the other in this process."""
        for part in self._partitions:
            (sources,) = dask_module("dask").compute(part.sources)
            yield from _Pieces(self._numbers, part.start, *sources)

    def reduce(
        self,
        function: Callable[..., _Result],
        merge: Callable[[_Result, _Result], _Result],
        *arguments: object,
    ) -> _Result:
        """Apply a function to every block on the workers, and merge the results.

        Parameters
        ----------
        function : callable
            As in `RowBlocks.reduce`.
        merge : callable
            As in `RowBlocks.reduce`. It receives copies of results, which it may change: Dask may
            use a result twice.
        *arguments
            Arguments sent to the workers.

        Returns
        -------
        object
            The merged result.

        Raises
        ------
        ValueError
            If there are no blocks.
        """
        if not self._partitions:
            raise ValueError("X: expected at least one block of rows, got none")
        shared = _delayed(_Pass(self._numbers, function, merge, arguments))  # sent once
        leaf, node = _delayed(_reduced_partition), _delayed(_merged_results)
        results = [leaf(shared, part.start, *part.sources) for part in self._partitions]
        while len(results) > 1:
            starts = range(0, len(results), _RESULTS_PER_MERGE)
            groups = [results[i : i + _RESULTS_PER_MERGE] for i in starts]
            results = [node(shared, *group) if len(group) > 1 else group[0] for group in groups]
        # Arrays from other processes may begin at any byte; copies are aligned.
        return cast("_Result", copy.deepcopy(_computed(results)[0]))

    def take(self, rows: npt.NDArray[np.intp]) -> Block:
        """Select samples; no other samples are sent to this process.

        Parameters
        ----------
        rows : (m,) array of int
            Ascending indices among all samples.

        Returns
        -------
        Block
        """
        indices = np.asarray(rows, dtype=np.int64)
        shared, take, taken = _delayed(self._numbers), _delayed(_taken), []
        for part in self._partitions:
            first, last = np.searchsorted(indices, [part.start, part.start + part.length])
            if last > first:
                in_part = _delayed(indices[first:last])
                taken.append(take(shared, part.start, in_part, *part.sources))
        return joined(_computed(taken))

    @property
    def _numbers(self) -> Callable[[Any, int], Any]:
        """Function that converts a partition, with the index of its first row, to numbers."""
        return partial(_part_numbers, self._names, self.encoder)

    @cached_property
    def _partitions(self) -> list[_Partition]:
        """The partitions that have samples; the first use may count samples in a pass."""
        X, *columns = self._given
        is_frame, optimize = self._names is not None, dask_module("dask").optimize
        arrays = [
            None if is_frame and isinstance(values, str) else _column(values, name)
            for values, name in zip(columns, _NAMES, strict=True)
        ]
        if is_frame:
            parts = X.to_delayed()
            length = _delayed(len)
            lengths = _computed([length(part) for part in parts])
            arrays = optimize(*_aligned(map(_measured, arrays), lengths))
        else:
            X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
            X, *arrays = map(_measured, [X, *arrays])
            lengths = X.chunks[0]
            # Optimised together, so that a common source is read once.
            X, *arrays = optimize(X, *_aligned(arrays, lengths))
            parts = X.to_delayed(optimize_graph=False).ravel().tolist()
        sources = [parts]
        for column, array in zip(columns, arrays, strict=True):
            if array is None:  # the name of a column, or None
                sources.append([column] * len(parts))
            else:
                sources.append(array.to_delayed(optimize_graph=False).tolist())
        starts = np.cumsum([0, *lengths])[:-1].tolist()
        partitions = map(_Partition, starts, lengths, zip(*sources, strict=True))
        return [part for part in partitions if part.length]


# ---- tasks ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Pass:
    """Arguments that all tasks of a pass share."""

    numbers: Callable[[Any, int], Any]
    function: Callable[..., Any]
    merge: Callable[[Any, Any], Any]
    arguments: tuple[Any, ...]


class _Pieces(RowBlocks):
    """Blocks of one partition, numbered among all samples.

    `numbers` converts the partition X; labels and weights may be names of its columns.
    """

    def __init__(
        self, numbers: Callable[[Any, int], Any], start: int, X: Any, y: Any, weight: Any
    ) -> None:
        y, weight = (X[name] if isinstance(name, str) else name for name in (y, weight))
        weight = None if weight is None else np.asarray(weight)
        self._blocks = ArrayBlocks(numbers(X, start), plain_labels(y, start=start), weight)
        self._start = start

    def __iter__(self) -> Iterator[Block]:
        return (replace(block, start=self._start + block.start) for block in self._blocks)


def _part_numbers(names: list[Any] | None, encoder: TableColumns | None, X: Any, start: int) -> Any:
    """The numbers of a data frame's columns; arrays and sparse matrices are unchanged."""
    if not hasattr(X, "columns"):
        return X
    return frame_numbers(X[names], start) if encoder is None else encoder.transform(X, start)


def _reduced_partition(pass_: _Pass, start: int, *sources: Any) -> Any:
    """The reduction of one partition."""
    with threads.default(1):
        blocks = _Pieces(pass_.numbers, start, *sources)
        arguments = [
            np.require(value, requirements="A") if isinstance(value, np.ndarray) else value
            for value in pass_.arguments
        ]
        return blocks.reduce(pass_.function, pass_.merge, *arguments)


def _merged_results(pass_: _Pass, *results: Any) -> Any:
    """Merge copies of results."""
    with threads.default(1):
        total = copy.deepcopy(results[0])
        for result in results[1:]:
            total = pass_.merge(total, copy.deepcopy(result))
        return total


def _taken(
    numbers: Callable[[Any, int], Any], start: int, rows: npt.NDArray[np.int64], *sources: Any
) -> Block:
    return _Pieces(numbers, start, *sources).take(rows)


# ---- partitions ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Partition:
    """A partition that has samples."""

    start: int  # index of its first sample
    length: int
    sources: tuple[Any, ...]  # samples, labels and weights, as `_Pieces` takes them; delayed


def _features(frame: Any, *others: Any) -> list[Any]:
    """Names of the columns, without columns of labels and weights."""
    names = list(frame.columns)
    excluded = [name for name in others if isinstance(name, str)]
    for name in excluded:
        if name not in names:
            raise ValueError(f"y, sample_weight: expected the name of a column, got {show(name)}")
    return [name for name in names if name not in excluded]


def _counted(names: list[Any], start: int, X: Any, y: Any, weight: Any) -> Any:
    """Kinds of columns, and counts of the categories of a partition's samples with weight."""
    from eigenfeat.samples.columns import column_counts

    weight = X[weight] if isinstance(weight, str) else weight
    kept = np.arange(len(X)) if weight is None else np.flatnonzero(np.asarray(weight) > 0)
    return column_counts(X[names].iloc[kept], start + kept)


def _column(values: Any, name: str) -> Any:
    """Labels or weights as a Dask array with one axis."""
    if values is None:
        return None
    if is_dask_frame(values) and values.ndim == 2 and len(values.columns) == 1:
        values = values[values.columns[0]]
    if is_collection(values) and values.ndim == 1 and hasattr(values, "to_dask_array"):  # a series
        plain = values.dtype if isinstance(values.dtype, np.dtype) else np.dtype(object)
        values = values.map_partitions(_series_values, plain, meta=np.empty(0, dtype=plain))
    if not is_collection(values):
        array = np.asarray(plain_labels(values) if name == "y" else values)
        # Dask cannot determine the size of objects, such as text labels of a data frame.
        chunks = -1 if array.dtype == object else "auto"
        values = dask_module("dask.array").from_array(array, chunks=chunks)
    if not is_dask_array(values) or values.ndim != 1:
        raise ValueError(f"{name}: expected one value per sample, got {show(values)}")
    return values


def _series_values(series: Any, dtype: np.dtype[Any]) -> Any:
    """A partition's values as an array; nullable values become objects."""
    return series.to_numpy(dtype=dtype)


def _aligned(arrays: Iterable[Any], lengths: Sequence[int]) -> list[Any]:
    """Labels and weights in chunks of `lengths`."""
    n, aligned = sum(lengths), []
    for array, name in zip(arrays, _NAMES, strict=True):
        if array is not None and array.shape != (n,):
            raise ValueError(
                f"{name}: expected {n} values, one per sample, got shape {array.shape}"
            )
        aligned.append(None if array is None else array.rechunk((tuple(lengths),)))
    return aligned


def _measured(array: Any) -> Any:
    """The array with known lengths of chunks; None stays None."""
    if array is None or not np.isnan(array.chunks[0]).any():
        return array
    return copy.copy(array).compute_chunk_sizes()


# ---- Dask ----------------------------------------------------------------------------------------


def dask_module(name: str) -> Any:
    """Import ``dask`` or a part of it; the error names the extra that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"eigenfeat needs {name}: pip install 'eigenfeat[dask]'") from error


def _delayed(value: Any) -> Any:
    """A value or a function as a node of a graph, which holds it once."""
    return dask_module("dask").delayed(value, pure=False, traverse=False)


def is_dask_array(X: object) -> bool:
    """Whether `X` is a Dask array."""
    return is_collection(X) and hasattr(X, "chunks")


def is_dask_frame(X: object) -> bool:
    """Whether `X` is a Dask data frame."""
    return is_collection(X) and hasattr(X, "columns") and hasattr(X, "map_partitions")


def _computed(tasks: list[Any]) -> list[Any]:
    """Results of tasks by the current scheduler."""
    if not tasks:
        return []
    dask = dask_module("dask")
    if "distributed" not in sys.modules:
        return list(dask.compute(*tasks))
    # The graph of a pass contains its arguments, which are thus not lost with a worker. Dask would
    # warn of graphs above 10 MB.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        return list(dask.compute(*tasks))
