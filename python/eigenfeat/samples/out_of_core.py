"""Predictions, scores and moments of samples that need not fit into memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base import threads
from eigenfeat._base.labels import plain_labels
from eigenfeat._base.types import Floats, Labels, Rows, Targets, Weights
from eigenfeat._base.validation import check_some_weight, check_weights, show
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples.block_samples import first_scan
from eigenfeat.samples.blocks import (
    RowBlocks,
    RowTransform,
    add,
    as_blocks,
    check_finite,
    check_no_list,
    is_blocks,
    is_collection,
    stacked,
    stays_on_disk,
)
from eigenfeat.samples.dask_blocks import dask_module, is_dask_array, is_dask_frame
from eigenfeat.samples.estimator import given_blocks, without_names
from eigenfeat.samples.labelled import Block

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import DTypeLike

__all__ = [
    "BlockScores",
    "FromLogits",
    "all_targets",
    "class_moments",
    "completes",
    "grouped_moments",
    "one_group",
    "over_blocks",
]

_Method = TypeVar("_Method", bound=Callable[..., Any])


def grouped_moments(
    blocks: RowBlocks, groups: Callable[[Block], Labels], n_threads: int | None
) -> ClassMoments:
    """Moments of groups of samples; `groups` returns the groups (m,) of the samples of a block."""
    reading = RowTransform(groups=groups, n_threads=n_threads)
    moments = first_scan(blocks, reading, moments=True).moments
    assert moments is not None
    return moments


def one_group(block: Block, label: Hashable = 0) -> Labels:
    """Labels (m,) that put all samples of a block into one group."""
    return np.full(len(block), label)


def class_moments(
    X: Rows | RowBlocks,
    y: Targets = None,
    sample_weight: Weights = None,
    *,
    classes: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    n_threads: int | None = None,
) -> ClassMoments:
    """Compute the moments of each class in one pass over samples of any kind.

    Parameters
    ----------
    X : (n, d) array-like, sparse matrix, RowBlocks, Dask array or Dask data frame
        Finite samples. Dask collections are reduced on the workers, in a tree whose shape depends
        only on the partitions.
    y : (n,) array-like, Dask collection, or name of a column
        Labels; None with blocks, which contain labels and weights.
    sample_weight : (n,) array-like, Dask collection, or name of a column, optional
        Nonnegative weights of the samples.
    classes : array-like, optional
        As in :class:`eigenfeat.ClassMoments`.
    dtype : dtype, optional
        As in :class:`eigenfeat.ClassMoments`.
    n_threads : int, optional
        Number of threads, all by default.

    Returns
    -------
    ClassMoments
    """
    blocks = given_blocks(X, y, sample_weight, estimator=None)
    if blocks is None:
        moments, rows, labels = ClassMoments(classes, dtype), cast("Any", X), cast("Any", y)
        return moments.update(rows, labels, sample_weight, n_threads=n_threads)
    moments = blocks.reduce(_block_moments, ClassMoments.merge, classes, dtype, n_threads)
    return moments.merge(ClassMoments(feature_names=blocks.column_names))


def _block_moments(
    block: Block, classes: ArrayLike | None, dtype: DTypeLike | None, n_threads: int | None
) -> ClassMoments:
    result = ClassMoments(classes, dtype)
    try:
        return result.update(block.X, block.labels, block.weight, n_threads=n_threads)
    except ValueError:
        # The error has the row in the block; these checks raise it with the row among all samples.
        check_finite(RowTransform().checked(block).X, block.start)
        raise


def all_targets(blocks: RowBlocks) -> tuple[Labels, NDArray[np.float64] | None]:
    """Targets (n,) of all samples with positive weight, and the weights (n,), if any."""
    parts = blocks.reduce(_targets, operator.add)
    y = np.concatenate([y for _, y, _ in parts])
    weights = [weight for _, _, weight in parts if weight is not None]
    if 0 < len(weights) < len(parts):
        start = next(start for start, _, weight in parts if weight is None)
        raise ValueError(
            "sample_weight: expected weights in all blocks or in no block, got none in the block "
            f"from row {start} on"
        )
    return y, np.concatenate(weights) if weights else None


def _targets(block: Block) -> list[tuple[int, Labels, NDArray[np.float64] | None]]:
    """One tuple in a list: start of a block, and targets and weights of its weighted samples."""
    y, weight = np.asarray(block.labels), check_weights(block.weight, len(block), block.start)
    if weight is None:
        return [(block.start, y, None)]
    return [(block.start, y[weight > 0], weight[weight > 0])]


def over_blocks(method: _Method) -> _Method:
    """Extend a method of samples to blocks, and to memory-mapped arrays that exceed memory.

    For blocks, the method returns an iterator over the results of the blocks; for a Dask
    collection, a lazy Dask array; for a memory-mapped array, one result, as for any array.
    """

    @wraps(method)
    def wrapped(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        if type(X) is np.ndarray:
            return method(self, X, *arguments, **options)
        check_no_list(X)
        if not (is_collection(X) or is_blocks(X) or stays_on_disk(X)):
            return method(self, X, *arguments, **options)
        check_is_fitted(self)
        container = _get_output_config("transform", self)["dense"]
        if method.__name__ == "transform" and container != "default" and not stays_on_disk(X):
            raise ValueError(
                f"set_output: expected transform='default' for samples in blocks, got {container!r}"
            )
        if is_collection(X):
            return _on_partitions(self, method.__name__, X, *arguments, **options)

        def with_arguments(estimator: Any, rows: Any) -> Any:
            return method(estimator, rows, *arguments, **options)

        if is_blocks(X):
            blocks = as_blocks(X).prepared_for(self, fitted=True)
            plain = without_names(self)
            return (_of_block(with_arguments, plain, rows) for rows in _checked(plain, blocks))
        if X.shape[1] != self.n_features_in_:
            return with_arguments(self, np.asarray(X[:1]))  # raises the error for arrays
        return stacked([with_arguments(self, rows) for rows in _checked(self, as_blocks(X))])

    return cast("_Method", wrapped)


class BlockScores:
    """Accuracy of a classifier, also for samples in blocks; must precede `ClassifierMixin`."""

    n_features_in_: int

    def predict(self, X: Rows) -> Labels:
        """Predict the labels.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples. For blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n,) array
        """
        raise NotImplementedError

    def score(
        self,
        X: Rows | RowBlocks,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Accuracy: fraction of samples with a correct prediction, by weight.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples. Blocks are read once.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        float
        """
        blocks = None if stays_on_disk(X) else given_blocks(X, y, sample_weight, estimator=None)
        if blocks is None:
            if y is None:
                raise ValueError("y: expected the labels of the samples, got None")
            return float(ClassifierMixin.score(self, X, plain_labels(y), sample_weight))
        check_is_fitted(self)
        blocks = blocks.prepared_for(self, fitted=True)
        right, total = blocks.reduce(correct_weight, add, without_names(self))
        check_some_weight(total > 0)
        return float(right / total)


class FromLogits(BlockScores):
    """Probabilities and labels of a classifier from its `decision_function`."""

    classes_: Labels

    def decision_function(self, X: Rows) -> Floats:
        """Compute the logits of the classes.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples. For blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the logit of the second class over the first.
        """
        raise NotImplementedError

    @over_blocks
    def predict_log_proba(self, X: Rows | RowBlocks) -> Floats:
        """Compute the logarithms of the classes' probabilities.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, as in `decision_function`.

        Returns
        -------
        (n, k) array
            For blocks, an iterator over such arrays.
        """
        return np.asarray(log_softmax(self._all_scores(X), axis=1))

    @over_blocks
    def predict_proba(self, X: Rows | RowBlocks) -> Floats:
        """Compute the classes' probabilities.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, as in `decision_function`.

        Returns
        -------
        (n, k) array
            For blocks, an iterator over such arrays.
        """
        return np.asarray(softmax(self._all_scores(X), axis=1))

    @over_blocks
    def predict(self, X: Rows | RowBlocks) -> Labels:
        """Predict the most probable labels.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, as in `decision_function`.

        Returns
        -------
        (n,) array
            For blocks, an iterator over such arrays.
        """
        scores = self._all_scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def _all_scores(self, X: Any) -> Floats:
        scores = self.decision_function(X)
        return scores if scores.ndim == 2 else np.column_stack([np.zeros_like(scores), scores])


def correct_weight(block: Block, classifier: ClassifierMixin) -> tuple[float, float]:
    """Weight of the correctly predicted samples of a block, and of all samples; merged by `add`."""
    labels = block.labels
    if len(block) == 0:
        return 0.0, 0.0
    _check(classifier, block)
    predicted = classifier.predict(block.X)
    if predicted.ndim == 2:  # indicators, which may be sparse
        right = np.asarray((predicted != labels).sum(axis=1)).ravel() == 0
    else:
        right = np.asarray(predicted == labels)
    weight = check_weights(block.weight, len(block), block.start)
    if weight is None:
        return float(right.sum()), float(len(block))
    return float(weight @ right), float(weight.sum())


def _checked(estimator: Any, blocks: RowBlocks) -> Iterator[Any]:
    """Checked samples of each block."""
    for block in blocks:
        _check(estimator, block)
        yield block.X


def _check(estimator: Any, block: Block) -> None:
    """ValueError for invalid samples; the message has the row among all samples of all blocks."""
    reading = RowTransform(n_features=estimator.n_features_in_, small=True)
    checked = reading.checked(Block(block.X, start=block.start))
    check_finite(checked.X, block.start, missing=completes(estimator))


def completes(estimator: Any) -> bool:
    """Whether an estimator, its best estimator or one of its members completes missing entries."""
    parts = [estimator, getattr(estimator, "best_estimator_", None)]
    parts += getattr(estimator, "members_", [])
    return any(hasattr(part, "completion_") for part in parts)


def _of_block(method: Callable[..., Any], estimator: Any, X: Any) -> Any:
    """Result of a method for a block, which may be empty."""
    if X.shape[0]:
        return method(estimator, X)
    return method(estimator, np.zeros((1, X.shape[1]), dtype=getattr(X, "dtype", float)))[:0]


def _on_partitions(estimator: Any, method: str, X: Any, *arguments: Any, **options: Any) -> Any:
    """Apply a method of an estimator to each partition of a Dask array or data frame, lazily.

    The estimator is sent to each worker once, with the cached properties that pickles omit, so that
    workers do not solve for directions again. The result is a Dask array with the chunks of X along
    the rows.
    """
    call, of_frame = getattr(estimator, method), is_dask_frame(X)
    if of_frame:
        row = X._meta_nonempty
        encoder = getattr(estimator, "columns_", None)
        if encoder is not None:  # not `_meta_nonempty`, which has text in place of dates
            encoder.transform(X._meta)  # raises the error for missing columns
            row = np.zeros((1, len(encoder.feature_names_)))
            call = getattr(without_names(estimator), method)
    else:
        if not is_dask_array(X) or X.ndim != 2:
            raise ValueError(f"X: expected a dask array (n, d) or a data frame, got {show(X)}")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        row = np.zeros((1, X.shape[1]), dtype=X.dtype)
        row = type(X._meta)(row) if hasattr(X._meta, "tocsr") else row
    empty = np.asarray(call(row, *arguments, **options))[:0]
    sent = type(estimator), vars(estimator).copy()  # after the call, which may cache
    model = dask_module("dask").delayed(sent, pure=False, traverse=False)
    shared = model, method, empty, arguments, options
    if of_frame:
        return X.map_partitions(_of_rows, *shared, meta=empty)
    return X.map_blocks(
        _of_rows,
        *shared,
        dtype=empty.dtype,
        meta=empty,
        drop_axis=1 if empty.ndim == 1 else [],
        new_axis=list(range(2, empty.ndim)),
        chunks=(X.chunks[0], *((size,) for size in empty.shape[1:])),
    )


def _of_rows(X: Any, sent: Any, method: str, empty: Any, arguments: Any, options: Any) -> Any:
    """Apply the method to a partition, which may be empty."""
    if X.shape[0] == 0:
        return empty
    kind, attributes = sent
    estimator = kind.__new__(kind)
    vars(estimator).update(attributes)
    with threads.default(1):
        result = getattr(estimator, method)(X, *arguments, **options)
        return np.asarray(result, dtype=empty.dtype)
