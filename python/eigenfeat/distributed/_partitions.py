"""The partitions of a Dask collection: what each is read from, and how many rows it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.validation import naming_text, show
from eigenfeat.distributed._dask import (
    computed,
    is_array,
    is_collection,
    is_frame,
    is_series,
    module,
)
from eigenfeat.distributed._persisted import PersistedPartitions
from eigenfeat.samples.blocks import Block

if TYPE_CHECKING:
    from dask.array import Array
    from dask.dataframe import DataFrame, Series

    from eigenfeat.samples.columns import TableColumns

__all__ = ["Partitions", "encoded_frame", "encoder_of", "partitions"]


@dataclass(frozen=True, eq=False)
class Partitions:
    """Partitions that have rows."""

    read: Callable[..., Block]  # ``read(*source)`` on a worker: the rows of one partition
    sources: list[tuple[Any, ...]]  # of Delayed, one a partition
    lengths: list[int]
    n_features: int
    names: list[str] | None
    persisted: PersistedPartitions | None  # the sources, where all are persisted
    origin: Any  # the collections: what of them is persisted is lost when nobody holds it


def partitions(
    X: Array | DataFrame, y: Array | Series | str | None, sample_weight: Array | Series | str | None
) -> Partitions:
    """Partitions of rows, with the labels and weights that belong to them."""
    if is_frame(X):
        columns: tuple[Any, ...] = (y, sample_weight)
        if all(column is None or isinstance(column, str) for column in columns):
            return _of_frame(X, *columns)
        labels, weights = (_column_of(X, column) for column in columns)
        features = _features(X, *columns)
        numbers = X[features].map_partitions(_numbers, meta=_numbers(X._meta[features]))
        return _of_arrays(numbers, labels, weights, _names(features))
    if not is_array(X) or X.ndim != 2:
        raise ValueError(f"X: expected a dask array (n, d) or a dask data frame, got {show(X)}")
    return _of_arrays(X, y, sample_weight, None)


# ---- data frames with categories -----------------------------------------------------------------


def encoder_of(frame: DataFrame, *others: Any) -> TableColumns | None:
    """The encoder of a frame's columns but `others`; None if all are numbers."""
    # Workers that read arrays start without scikit-learn.
    from eigenfeat.samples.columns import TableColumns, column_counts, has_categories

    features = _features(frame, *others)
    if not has_categories(frame._meta_nonempty[features]):
        return None
    count = module("dask").delayed(column_counts, pure=False)
    parts = computed([count(part) for part in frame[features].to_delayed()])
    return TableColumns().fit_parts(features, parts)


def encoded_frame(frame: DataFrame, encoder: TableColumns, *others: Any) -> DataFrame:
    """The frame with encoded columns in place of the encoder's, and those named in `others`."""
    apart = [name for name in others if isinstance(name, str)]
    _features(frame, *apart)
    meta = _encoded_part(frame._meta_nonempty, encoder, apart)[:0]
    return frame.map_partitions(  # type: ignore[no-untyped-call, unused-ignore]
        _encoded_part, encoder, apart, meta=meta
    )


def _encoded_part(part: Any, encoder: TableColumns, apart: list[str]) -> Any:
    encoded = encoder.transform(part)
    frame = type(part)(encoded, index=part.index).add_prefix("encoded column ")
    return frame.assign(**{name: part[name] for name in apart})


# ---- data frames with the labels among their columns ---------------------------------------------


def _of_frame(frame: Any, target: str | None, weight: str | None) -> Partitions:
    features = _features(frame, target, weight)
    read = partial(_read_frame, features, target, weight)
    sources = [(part,) for part in frame.to_delayed()]
    measured = _computed_lengths([part for (part,) in sources])
    nonempty = [i for i, length in enumerate(measured) if length]
    sources = [sources[i] for i in nonempty]
    return Partitions(
        read,
        sources,
        [measured[i] for i in nonempty],
        len(features),
        _names(features),
        PersistedPartitions.of(sources),
        frame,
    )


def _features(frame: Any, *others: Any) -> list[Any]:
    """Names of the columns, without those that hold labels or weights."""
    names = list(frame.columns)
    apart = [name for name in others if isinstance(name, str)]
    for name in apart:
        if name not in names:
            raise ValueError(f"y, sample_weight: expected a name of a column, got {show(name)}")
    return [name for name in names if name not in apart]


def _column_of(frame: Any, column: Any) -> Any:
    return frame[column] if isinstance(column, str) else column


def _read_frame(features: list[Any], target: str | None, weight: str | None, frame: Any) -> Block:
    return Block(
        _numbers(frame[features]),
        None if target is None else frame[target],
        None if weight is None else np.asarray(frame[weight]),
    )


def _numbers(frame: Any) -> np.ndarray[Any, Any]:
    """The columns of a partition as an array; missing values of nullable columns are NaN."""
    if all(isinstance(dtype, np.dtype) and dtype.kind != "O" for dtype in frame.dtypes):
        plain: np.ndarray[Any, Any] = frame.to_numpy()
        return plain
    with naming_text(frame):
        numbers: np.ndarray[Any, Any] = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def _names(columns: list[Any]) -> list[str] | None:
    return columns if all(isinstance(name, str) for name in columns) else None


# ---- arrays --------------------------------------------------------------------------------------


def _of_arrays(X: Any, y: Any, sample_weight: Any, names: list[str] | None) -> Partitions:
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    columns = [_column(y, "y"), _column(sample_weight, "sample_weight")]
    X, *columns = _measured([X, *columns])
    n = X.shape[0]
    for position, name in enumerate(("y", "sample_weight")):
        columns[position] = _aligned(columns[position], X, name)
    origin, X, columns = _made_once(X, columns)
    parts = [X.to_delayed(optimize_graph=False).ravel().tolist()]
    for column in columns:
        whole = column is not None
        parts.append(column.to_delayed(optimize_graph=False).tolist() if whole else [None] * _n(X))
    lengths = list(X.chunks[0]) if n else []
    nonempty = [i for i, length in enumerate(lengths) if length]
    sources = [tuple(part[i] for part in parts) for i in nonempty]
    return Partitions(
        _read_arrays,
        sources,
        [lengths[i] for i in nonempty],
        int(X.shape[1]),
        names,
        PersistedPartitions.of(sources),
        origin,
    )


def _made_once(X: Any, columns: list[Any]) -> tuple[Any, Any, list[Any]]:
    """What to hold, and arrays whose chunks have no tasks in common.

    Labels and weights of rows that are persisted are persisted, too.
    """
    dask = module("dask")
    if (
        PersistedPartitions.of((part,) for part in X.to_delayed(optimize_graph=False).ravel())
        is None
    ):
        optimized = dask.optimize(X, *columns)
        return (X, *columns), optimized[0], list(optimized[1:])
    columns = list(dask.persist(*columns))
    return (X, *columns), X, columns


def _n(X: Any) -> int:
    return int(X.numblocks[0])


def _column(values: Any, name: str) -> Any:
    """Labels or weights as a Dask array with one axis, or an array that is here."""
    if values is None:
        return None
    if is_series(values):
        plain = np.dtype(object) if not isinstance(values.dtype, np.dtype) else values.dtype
        values = values.map_partitions(_plain, plain, meta=np.empty(0, dtype=plain))
    if not is_collection(values):
        here = np.asarray(plain_labels(values) if name == "y" else values)
        # Dask cannot say how large objects are, such as labels of text of a data frame.
        chunks = -1 if here.dtype == object else "auto"
        values = module("dask.array").from_array(here, chunks=chunks)
    if not is_array(values) or values.ndim != 1:
        raise ValueError(f"{name}: expected one value a row, got {show(values)}")
    return values


def _plain(series: Any, dtype: np.dtype[Any]) -> Any:
    """A partition's labels as an array, nullable ones as objects."""
    return series.to_numpy(dtype=dtype)


def _aligned(column: Any, X: Any, name: str) -> Any:
    if column is None:
        return None
    if column.shape != X.shape[:1]:
        raise ValueError(
            f"{name}: expected {X.shape[0]} values, one per sample, got shape {column.shape}"
        )
    return column if column.chunks[0] == X.chunks[0] else column.rechunk(X.chunks[:1])


def _measured(arrays: list[Any]) -> list[Any]:
    """The arrays with the lengths of all their chunks known, by one pass for all of them."""
    unknown = [a for a in arrays if a is not None and np.isnan(a.chunks[0]).any()]
    parts = [part for a in unknown for part in a.to_delayed().ravel()]
    lengths = iter(_computed_lengths(parts))
    make = module("dask.array").Array
    out = []
    for a in arrays:
        if any(a is other for other in unknown):
            rows = tuple(next(lengths) for _ in a.chunks[0])
            a = make(a.__dask_graph__(), a.name, (rows, *a.chunks[1:]), meta=a._meta)
        out.append(a)
    return out


def _computed_lengths(parts: list[Any]) -> list[int]:
    if not parts:
        return []
    length = module("dask").delayed(_length, pure=False)
    return computed([length(part) for part in parts])


def _length(part: Any) -> int:
    return int(part.shape[0])


def _read_arrays(X: Any, y: Any, weight: Any) -> Block:
    return Block(
        X,
        None if y is None else np.asarray(y),
        None if weight is None else np.asarray(weight),
    )
