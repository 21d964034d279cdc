"""Methods of fitted estimators on rows that are spread over workers, block by block and lazily."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eigenfeat._base import threads
from eigenfeat._base.validation import show
from eigenfeat.distributed._dask import is_array, is_frame, module

if TYPE_CHECKING:
    from dask.array import Array
    from dask.dataframe import DataFrame, Series
    from sklearn.base import BaseEstimator

__all__ = ["apply"]


def apply(
    estimator: BaseEstimator, method: str, X: Array | DataFrame
) -> Array | DataFrame | Series:
    """Apply a method of a fitted estimator to each partition of the rows.

    Parameters
    ----------
    estimator : fitted estimator
        Estimator of this or another package, with scikit-learn's conventions; sent to each worker
        once.
    method : str
        Name of a method such as "transform", "predict" or "predict_proba", which returns one result
        for each row.
    X : dask array of shape (n, d), or dask data frame
        Chunks may be CSR matrices. Data frames are passed to the estimator as data frames, which
        checks the names of the columns.

    Returns
    -------
    dask array of shape (n,) or (n, columns)
        Lazy result of the type that the method returns, with the same chunks along the rows as `X`.
    """
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise ValueError(f"estimator: expected a fitted estimator, got {show(estimator)}")
    call = getattr(estimator, method, None) if isinstance(method, str) else None
    if not callable(call):
        raise ValueError(
            f"method: expected the name of a method of {type(estimator).__name__}, "
            f"got {show(method)}"
        )
    dask = module("dask")
    rows: Any = X  # one of the two, as only what it has tells
    if is_frame(rows):
        empty = _result_of_no_rows(call, rows._meta_nonempty)
        model = dask.delayed(estimator, pure=False, traverse=False)
        return rows.map_partitions(_rows_of, model, method, empty, meta=empty)
    if not is_array(rows) or rows.ndim != 2:
        raise ValueError(f"X: expected a dask array (n, d) or a dask data frame, got {show(rows)}")
    if rows.numblocks[1] > 1:
        rows = rows.rechunk({1: -1})
    empty = _result_of_no_rows(call, _one_row(rows))
    model = dask.delayed(estimator, pure=False, traverse=False)
    vector = empty.ndim == 1
    return rows.map_blocks(
        _rows_of,
        model,
        method,
        empty,
        dtype=empty.dtype,
        meta=empty,
        drop_axis=1 if vector else [],
        chunks=rows.chunks[:1] if vector else (rows.chunks[0], empty.shape[1:]),
    )


def _rows_of(X: Any, estimator: Any, method: str, empty: Any) -> Any:
    """The method on one partition; scikit-learn's refuse one without rows."""
    if X.shape[0] == 0:
        return empty
    with threads.default(1):
        return np.asarray(getattr(estimator, method)(X), dtype=empty.dtype)


def _one_row(X: Any) -> Any:
    """A row of zeros of the kind that the chunks are."""
    meta = X._meta
    row = np.zeros((1, X.shape[1]), dtype=X.dtype)
    return type(meta)(row) if hasattr(meta, "tocsr") else row


def _result_of_no_rows(call: Any, rows: Any) -> Any:
    """What the method returns, in type and width, from a trial on rows that are here."""
    return np.asarray(call(rows))[:0]
