"""Methods of fitted estimators on Dask collections, lazily and partition by partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eigenfeat._base import threads
from eigenfeat._base.validation import show
from eigenfeat.samples.dask_blocks import dask_module, is_dask_array, is_dask_frame
from eigenfeat.samples.estimator import without_names

__all__ = ["on_partitions"]


def on_partitions(estimator: Any, method: str, X: Any, *arguments: Any, **options: Any) -> Any:
    """Apply a method of a fitted estimator to each partition of a Dask array or data frame.

    Parameters
    ----------
    estimator : fitted estimator
        Estimator, which is sent to each worker once.
    method : str
        Name of a method that returns a result for each sample.
    X : dask array of shape (n, d), or dask data frame
        Chunks may be CSR matrices. The estimator gets the partitions of data frames as data frames.
    *arguments, **options
        Further arguments of the method.

    Returns
    -------
    dask array of shape (n, ...)
        Lazy result with the chunks of `X` along the rows.
    """
    dask, call = dask_module("dask"), getattr(estimator, method)
    if is_dask_frame(X):
        row = X._meta_nonempty
        encoder = getattr(estimator, "columns_", None)
        if encoder is not None:  # Dask's row has words in place of dates
            encoder.transform(X._meta)  # raises the error for columns that are missing
            row = np.zeros((1, len(encoder.feature_names_)))
            call = getattr(without_names(estimator), method)
        empty = np.asarray(call(row, *arguments, **options))[:0]
        model = dask.delayed(_Sent.of(estimator), pure=False, traverse=False)
        return X.map_partitions(_of_rows, model, method, empty, arguments, options, meta=empty)
    if not is_dask_array(X) or X.ndim != 2:
        raise ValueError(f"X: expected a dask array (n, d) or a dask data frame, got {show(X)}")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    row = np.zeros((1, X.shape[1]), dtype=X.dtype)
    sample = type(X._meta)(row) if hasattr(X._meta, "tocsr") else row
    empty = np.asarray(call(sample, *arguments, **options))[:0]
    model = dask.delayed(_Sent.of(estimator), pure=False, traverse=False)
    vector = empty.ndim == 1
    return X.map_blocks(
        _of_rows,
        model,
        method,
        empty,
        arguments,
        options,
        dtype=empty.dtype,
        meta=empty,
        drop_axis=1 if vector else [],
        new_axis=list(range(2, empty.ndim)),
        chunks=(X.chunks[0], *((size,) for size in empty.shape[1:])),
    )


@dataclass(frozen=True, eq=False)
class _Sent:
    """A fitted estimator for workers, with cached properties, which pickles omit.

    Workers then do not solve for its directions again.
    """

    kind: Any
    attributes: dict[str, Any]

    @classmethod
    def of(cls, estimator: Any) -> _Sent:
        return cls(type(estimator), vars(estimator).copy())

    def estimator(self) -> Any:
        """Rebuild the estimator on a worker."""
        result = self.kind.__new__(self.kind)
        vars(result).update(self.attributes)
        return result


def _of_rows(X: Any, sent: _Sent, method: str, empty: Any, arguments: Any, options: Any) -> Any:
    """Apply the method to a partition, which may be empty."""
    if X.shape[0] == 0:
        return empty
    with threads.default(1):
        result = getattr(sent.estimator(), method)(X, *arguments, **options)
        return np.asarray(result, dtype=empty.dtype)
