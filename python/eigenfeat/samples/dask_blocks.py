"""Samples of Dask arrays and data frames as blocks, which are reduced on Dask's workers."""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads
from eigenfeat._base.labels import plain_labels
from eigenfeat._base.validation import aligned, show
from eigenfeat.samples.blocks import (
    ArrayBlocks,
    RowBlocks,
    frame_numbers,
    is_collection,
    joined,
)
from eigenfeat.samples.labelled import Block

if TYPE_CHECKING:
    from dask.array import Array
    from dask.dataframe import DataFrame, Series

    from eigenfeat.samples.columns import TableColumns

__all__ = ["DaskBlocks", "dask_module", "is_dask_array", "is_dask_frame"]

_MERGED = 4  # results that a task merges
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
    Unknown numbers of samples (data frames, filtered arrays) take a first pass. Each pass computes
    the partitions from their source: persist samples that fit into the workers' memory first,
    ``X = X.persist()``.
    """

    def __init__(
        self,
        X: Array | DataFrame,
        y: Array | Series | str | None = None,
        sample_weight: Array | Series | str | None = None,
    ) -> None:
        self._given: tuple[Any, Any, Any] = X, y, sample_weight
        self._encoder: TableColumns | None = None
        if not is_dask_frame(X) and (not is_dask_array(X) or X.ndim != 2):
            raise ValueError(f"X: expected a dask array (n, d) or a dask data frame, got {show(X)}")

    # ---- columns -----------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return sum(self._partitions.lengths)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._partitions.n_features

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns of a data frame, if all are strings."""
        names = self._encoder.names_ if self._encoder is not None else self._feature_names()
        known = names is not None and all(isinstance(name, str) for name in names)
        return tuple(names) if known and names is not None else None

    @property
    def encoder(self) -> TableColumns | None:
        """The encoder of a data frame with categories, if they are encoded."""
        return self._encoder

    def prepared_for(self, estimator: Any, *, fitted: bool) -> DaskBlocks:
        """The samples as an estimator reads them.

        Categories of data frames become numbers if the estimator accepts them: by its encoder, or
        by a new one, from a first pass that counts the categories.

        Raises
        ------
        ValueError
            If columns of the fitted estimator are missing.
        """
        X, names = self._given[0], self._feature_names()
        if fitted:
            encoder = getattr(estimator, "columns_", None)
            wanted = getattr(estimator, "feature_names_in_", None)
            if encoder is not None and names is None:
                raise ValueError(
                    "X: expected a data frame with the columns of the fit, some of which are "
                    "categories, got a dask array"
                )
            missing = [] if wanted is None or names is None else [*({*wanted} - {*names})]
            if missing:
                raise ValueError(f"X: expected the columns of the fit, got none named {missing[0]}")
            return self._encoded(encoder) if encoder is not None else self
        if names is None or getattr(estimator, "categorical_features", None) is None:
            return self
        encoder = _fitted_encoder(X, names, self._given[2])
        return self if encoder is None else self._encoded(encoder)

    def _feature_names(self) -> list[Any] | None:
        X, *others = self._given
        return _features(X, *others) if is_dask_frame(X) else None

    def _encoded(self, encoder: TableColumns) -> DaskBlocks:
        X, *columns = self._given
        apart = [name for name in columns if isinstance(name, str)]
        meta = _encoded_part(X._meta, encoder, apart)
        frame = X.map_partitions(_encoded_part, encoder, apart, meta=meta)
        result = DaskBlocks(frame, *columns)
        result._encoder = encoder
        return result

    # ---- passes ------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Block]:
        """Compute the partitions one after the other in this process."""
        for sources, start in self._sources():
            (part,) = dask_module("dask").compute(sources)
            yield from _Pieces(self._partitions.read(*part), start)

    def reduce(
        self,
        function: Callable[..., _Result],
        merge: Callable[[_Result, _Result], _Result],
        *arguments: object,
    ) -> _Result:
        """As `RowBlocks.reduce`, on the workers.

        `merge` receives copies of results, which it may change: Dask may use a result twice.
        """
        if not self._partitions.sources:
            raise ValueError("X: expected at least one block of rows, got none")
        dask = dask_module("dask")
        pass_ = _Pass(self._partitions.read, function, merge, arguments)
        shared = dask.delayed(pass_, pure=False, traverse=False)  # sent once
        leaf = dask.delayed(_reduced_partition, pure=False, traverse=False)
        node = dask.delayed(_merged_results, pure=False, traverse=False)
        results = [leaf(shared, start, *sources) for sources, start in self._sources()]
        while len(results) > 1:
            groups = [results[i : i + _MERGED] for i in range(0, len(results), _MERGED)]
            results = [node(shared, *group) if len(group) > 1 else group[0] for group in groups]
        # Arrays from other processes may begin at any byte; copies are aligned.
        return cast("_Result", copy.deepcopy(_computed(results)[0]))

    def take(self, rows: npt.NDArray[np.intp]) -> Block:
        """Collect samples by their ascending indices; no other samples are sent."""
        wanted = np.asarray(rows, dtype=np.int64)
        dask = dask_module("dask")
        pick = dask.delayed(_taken, pure=False, traverse=False)
        lengths, parts = self._partitions.lengths, []
        for (sources, start), length in zip(self._sources(), lengths, strict=True):
            first, last = np.searchsorted(wanted, [start, start + length])
            if last > first:
                own = dask.delayed(wanted[first:last], pure=False, traverse=False)
                parts.append(pick(self._partitions.read, start, own, *sources))
        return joined(_computed(parts))

    @cached_property
    def _partitions(self) -> _Partitions:
        """The partitions, measured when they are first needed."""
        return _partitions_of(*self._given)

    def _sources(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Arguments of `read` for each partition, and the index of its first sample."""
        starts = np.cumsum([0, *self._partitions.lengths])[:-1].tolist()
        return zip(self._partitions.sources, starts, strict=True)


# ---- tasks ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Pass:
    """Arguments that all tasks of a pass share."""

    read: Callable[..., Block]
    function: Callable[..., Any]
    merge: Callable[[Any, Any], Any]
    arguments: tuple[Any, ...]


class _Pieces(RowBlocks):
    """Blocks of one partition, numbered among all samples."""

    def __init__(self, block: Block, start: int) -> None:
        y = plain_labels(block.y, start=start)
        self._blocks = ArrayBlocks(block.X, y, block.weight)
        self._start = start

    def __iter__(self) -> Iterator[Block]:
        return (replace(block, start=self._start + block.start) for block in self._blocks)


def _reduced_partition(pass_: _Pass, start: int, *sources: Any) -> Any:
    """The reduction of one partition."""
    with threads.default(1):
        blocks = _Pieces(pass_.read(*sources), start)
        return blocks.reduce(pass_.function, pass_.merge, *map(aligned, pass_.arguments))


def _merged_results(pass_: _Pass, *results: Any) -> Any:
    """Merge copies of results."""
    with threads.default(1):
        total = copy.deepcopy(results[0])
        for result in results[1:]:
            total = pass_.merge(total, copy.deepcopy(result))
        return total


def _taken(read: Callable[..., Block], start: int, rows: Any, *sources: Any) -> Block:
    return _Pieces(read(*sources), start).take(rows)


# ---- partitions ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Partitions:
    """Partitions that have samples."""

    read: Callable[..., Block]  # ``read(*source)`` on a worker
    sources: list[tuple[Any, ...]]  # of Delayed, one tuple per partition
    lengths: list[int]
    n_features: int

    @classmethod
    def nonempty(
        cls, read: Any, sources: list[tuple[Any, ...]], lengths: list[int], n_features: int
    ) -> _Partitions:
        filled = [i for i, length in enumerate(lengths) if length]
        return cls(read, [sources[i] for i in filled], [lengths[i] for i in filled], n_features)


def _partitions_of(X: Any, y: Any, sample_weight: Any) -> _Partitions:
    """Partitions of samples with their labels and weights."""
    if not is_dask_frame(X):
        return _of_arrays(X, y, sample_weight)
    features, others = _features(X, y, sample_weight), (y, sample_weight)
    if all(column is None or isinstance(column, str) for column in others):
        read = partial(_read_frame, features, y, sample_weight)
        parts = X.to_delayed()
        return _Partitions.nonempty(
            read, [(part,) for part in parts], _lengths(parts), len(features)
        )
    y, sample_weight = (X[column] if isinstance(column, str) else column for column in others)
    numbers = X[features].map_partitions(frame_numbers, meta=frame_numbers(X._meta[features]))
    return _of_arrays(numbers, y, sample_weight)


def _features(frame: Any, *others: Any) -> list[Any]:
    """Names of the columns, without columns of labels and weights."""
    names = list(frame.columns)
    apart = [name for name in others if isinstance(name, str)]
    for name in apart:
        if name not in names:
            raise ValueError(f"y, sample_weight: expected a name of a column, got {show(name)}")
    return [name for name in names if name not in apart]


def _fitted_encoder(frame: Any, features: list[Any], sample_weight: Any) -> TableColumns | None:
    """The encoder of a frame's columns; None if all are numbers."""
    from eigenfeat.samples.columns import TableColumns, has_categories, merge_counts

    if not has_categories(frame._meta_nonempty[features]):
        return None
    parts = frame[features].to_delayed()
    weights: list[Any] = [None] * len(parts)
    if isinstance(sample_weight, str):
        sample_weight = frame[sample_weight]
    if sample_weight is not None:
        lengths = _lengths(parts)
        (column,) = _measured([_column(sample_weight, "sample_weight")])
        if column.shape == (sum(lengths),):  # the first pass raises the error for others
            weights = column.rechunk((tuple(lengths),)).to_delayed().tolist()
    count = dask_module("dask").delayed(_counted, pure=False)
    counts = _computed([count(*pair) for pair in zip(parts, weights, strict=True)])
    return TableColumns().fit_counts(features, reduce(merge_counts, counts))


def _counted(part: Any, weight: Any) -> Any:
    """Kinds of columns, and counts of the categories of a partition's samples with weight."""
    from eigenfeat.samples.columns import column_counts

    return column_counts(part if weight is None else part[np.asarray(weight) > 0])


def _encoded_part(part: Any, encoder: TableColumns, apart: list[str]) -> Any:
    encoded = encoder.transform(part)
    frame = type(part)(encoded, index=part.index).add_prefix("encoded column ")
    return frame.assign(**{name: part[name] for name in apart})


def _read_frame(features: list[Any], target: str | None, weight: str | None, frame: Any) -> Block:
    return Block(
        frame_numbers(frame[features]),
        None if target is None else frame[target],
        None if weight is None else np.asarray(frame[weight]),
    )


def _of_arrays(X: Any, y: Any, sample_weight: Any) -> _Partitions:
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    columns = [_column(y, "y"), _column(sample_weight, "sample_weight")]
    X, *columns = _measured([X, *columns])
    for position, name in enumerate(("y", "sample_weight")):
        columns[position] = _aligned(columns[position], X, name)
    X, *columns = dask_module("dask").optimize(X, *columns)
    parts = [X.to_delayed(optimize_graph=False).ravel().tolist()]
    for column in columns:
        delayed = None if column is None else column.to_delayed(optimize_graph=False).tolist()
        parts.append(delayed or [None] * len(parts[0]))
    lengths = list(X.chunks[0])
    return _Partitions.nonempty(
        _read_arrays, list(zip(*parts, strict=True)), lengths, int(X.shape[1])
    )


def _read_arrays(X: Any, y: Any, weight: Any) -> Block:
    return Block(
        X,
        None if y is None else np.asarray(y),
        None if weight is None else np.asarray(weight),
    )


def _column(values: Any, name: str) -> Any:
    """Labels or weights as a Dask array with one axis."""
    if values is None:
        return None
    if is_collection(values) and hasattr(values, "to_dask_array"):  # a series
        plain = values.dtype if isinstance(values.dtype, np.dtype) else np.dtype(object)
        values = values.map_partitions(_series_values, plain, meta=np.empty(0, dtype=plain))
    if not is_collection(values):
        here = np.asarray(plain_labels(values) if name == "y" else values)
        # Dask cannot determine the size of objects, such as text labels of a data frame.
        chunks = -1 if here.dtype == object else "auto"
        values = dask_module("dask.array").from_array(here, chunks=chunks)
    if not is_dask_array(values) or values.ndim != 1:
        raise ValueError(f"{name}: expected one value per sample, got {show(values)}")
    return values


def _series_values(series: Any, dtype: np.dtype[Any]) -> Any:
    """A partition's values as an array; nullable values become objects."""
    return series.to_numpy(dtype=dtype)


def _aligned(column: Any, X: Any, name: str) -> Any:
    """A column in the chunks of the samples."""
    if column is None:
        return None
    if column.shape != X.shape[:1]:
        raise ValueError(
            f"{name}: expected {X.shape[0]} values, one per sample, got shape {column.shape}"
        )
    return column if column.chunks[0] == X.chunks[0] else column.rechunk(X.chunks[:1])


def _measured(arrays: list[Any]) -> list[Any]:
    """The arrays with known lengths of chunks, from one pass over arrays of unknown lengths."""
    unknown = [a for a in arrays if a is not None and np.isnan(a.chunks[0]).any()]
    lengths = iter(_lengths([part for a in unknown for part in a.to_delayed().ravel()]))
    make = dask_module("dask.array").Array
    out = []
    for a in arrays:
        if any(a is other for other in unknown):
            rows = tuple(next(lengths) for _ in a.chunks[0])
            a = make(a.__dask_graph__(), a.name, (rows, *a.chunks[1:]), meta=a._meta)
        out.append(a)
    return out


def _lengths(parts: list[Any]) -> list[int]:
    length = dask_module("dask").delayed(_length, pure=False)
    return _computed([length(part) for part in parts])


def _length(part: Any) -> int:
    return int(part.shape[0])


# ---- Dask ----------------------------------------------------------------------------------------


def dask_module(name: str) -> Any:
    """Import ``dask`` or a part of it; the error names the extra that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"eigenfeat needs {name}: pip install 'eigenfeat[dask]'") from error


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
    # The arguments of a pass are in its graph, so that a lost worker does not lose them. Dask would
    # warn of graphs above 10 MB.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        return list(dask.compute(*tasks))
