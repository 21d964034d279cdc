"""The beginning of every fit: check samples, and decide whether they are in memory or in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.validation import FLOATS, is_table
from eigenfeat.expansion.features import ExpandedFeatures
from eigenfeat.samples.blocks import Block, RowBlocks
from eigenfeat.samples.completion import ALLOW_NAN
from eigenfeat.samples.estimator import (
    encoded_names,
    given_blocks,
    keep_columns,
    keep_completion,
    keep_layout,
    validate_columns,
    validate_data,
)
from eigenfeat.samples.labelled import BlockSamples, LabelledSamples, MemorySamples, scan_blocks
from eigenfeat.samples.weights import class_weighted, weighted_rows

if TYPE_CHECKING:
    from eigenfeat._base.types import ClassWeight

__all__ = ["input_options", "keep_source", "prepare", "read_blocks"]


def prepare(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    allows_missing: bool = False,
    small: bool = False,
    moments: bool = True,
    class_weight: ClassWeight = None,
    mean_weight_1: bool = False,
) -> LabelledSamples:
    """Check the samples, labels and weights of a fit.

    Sets the estimator's attributes of the input: `n_features_in_`, the names and the encoder of the
    columns, and `completion_`. Samples without weight are left out.

    Parameters
    ----------
    estimator : estimator
        With `categorical_features` it accepts tables with categories.
    X : array-like, sparse matrix, ExpandedFeatures, RowBlocks, Dask collection, or prepared samples
        Blocks that fit into memory are read, as a data frame if their columns have names; see
        `RowBlocks.table` and `RowBlocks.in_memory`.
    y : array-like
        Labels; None with blocks, which contain labels and weights.
    sample_weight : array-like, optional
        Nonnegative weights.
    allows_missing : bool
        Whether NaN is a missing entry instead of an error.
    small : bool
        Whether integers of up to 16 bits become float32 instead of float64.
    moments : bool
        Whether the first pass over blocks accumulates the moments of the classes.
    class_weight : dict, "balanced" or None
        Class weights, multiplied into `sample_weight`.
    mean_weight_1 : bool
        Whether to scale the weights to a mean of 1, so that a constant factor changes nothing.

    Returns
    -------
    MemorySamples or BlockSamples
        Samples of at least two classes.
    """
    blocks, n_threads = None, getattr(estimator, "n_threads", None)
    if isinstance(X, MemorySamples | BlockSamples):
        keep_columns(estimator, None, X.n_features)
        check_two_labels(X.classes)
        return X
    whole = None
    if not isinstance(X, ExpandedFeatures):
        blocks, whole = read_blocks(estimator, X, y, sample_weight)
    samples: LabelledSamples
    if blocks is not None and (whole is None or whole.y is None or not len(whole)):
        samples = scan_blocks(
            blocks,
            small=small,
            moments=moments,
            allows_missing=allows_missing,
            class_weight=class_weight,
            mean_weight_1=mean_weight_1,
            n_threads=n_threads,
        )
        keep_columns(estimator, blocks, samples.n_features)
    else:
        if whole is not None:
            X, y, sample_weight = whole.X, whole.y, whole.weight
        X, y = _checked(estimator, X, y, sample_weight, input_options(X, allows_missing, small))
        if blocks is not None and whole is not None:
            keep_source(estimator, blocks, whole)
        check_classification_targets(y)
        X, y, weight = weighted_rows(X, y, sample_weight)
        weight = class_weighted(class_weight, y, weight)
        if mean_weight_1 and weight is not None:
            weight = weight / weight.mean()
        samples = MemorySamples.completed(X, y, weight, n_threads, encoded_names(estimator))
    check_two_labels(samples.classes)
    keep_completion(estimator, samples.completion)
    return samples


def read_blocks(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[RowBlocks | None, Block | None]:
    """Blocks of samples as an estimator reads them, and all samples as one block if they are small.

    Both are None for samples that are not in blocks.
    """
    if isinstance(X, RowBlocks) and y is None and sample_weight is None:
        encodes = getattr(estimator, "categorical_features", None) is not None
        whole = X.table() if encodes else None
        if whole is not None:
            return X, whole
    blocks = given_blocks(X, y, sample_weight, estimator=estimator)
    return blocks, None if blocks is None else blocks.in_memory()


def keep_source(estimator: Any, blocks: RowBlocks, whole: Block) -> None:
    """Set an estimator's attributes of the blocks whose samples it was fitted to as one block."""
    if is_table(whole.X):
        keep_layout(estimator, blocks)
    else:
        keep_columns(estimator, blocks, whole.X.shape[1])


def input_options(X: Any, allows_missing: bool = True, small: bool = True) -> dict[str, Any]:
    """Options of the check of samples in memory; see `prepare`."""
    options = ALLOW_NAN.copy()
    if not allows_missing:
        options["ensure_all_finite"] = True
    few_bits = (np.uint8, np.int8, np.uint16, np.int16, np.bool_)
    short = small and getattr(X, "dtype", None) in few_bits
    return options | {"dtype": np.float32 if short else FLOATS}


def _checked(
    estimator: Any, X: Any, y: Any, sample_weight: Any, options: dict[str, Any]
) -> tuple[Any, Any]:
    """Samples in memory as numbers, and labels."""
    if isinstance(X, ExpandedFeatures):
        keep_columns(estimator, None, X.shape[1])
        y = np.asarray(plain_labels(y))
        if y.shape != (len(X),):
            raise ValueError(f"y: expected {len(X)} labels, one per sample, got shape {y.shape}")
        return X, y
    if hasattr(estimator, "categorical_features"):
        checked: tuple[Any, Any] = validate_columns(
            estimator, X, y, sample_weight, reset=True, **options
        )
        return checked
    checked = validate_data(estimator, X, y, reset=True, **options)
    return checked
