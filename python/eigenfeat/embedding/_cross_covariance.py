r"""Leading singular vectors of a cross-covariance of samples and targets, by few passes.

For centred samples X (n, d) and targets Y (n, c), and weights W whose sum is 1, the matrix is

.. math:: M = (X^T W X + r I)^{-1/2} X^T W Y B^{-1/2},

where B is the identity (label embeddings) or :math:`Y^T W Y + r I` (canonical correlations). Each
pass multiplies :math:`X^T W Y` by a basis R of targets and its transpose by a basis P of samples;
both products, orthonormalised, are the next bases (Mineiro and Karampatziakis 2014, Algorithm 1).
With at most 2,048 columns, products are first multiplied by the inverse metric, which makes P and R
power iterations for M itself. The error of p passes is that of randomized subspace iteration with
exponent p - 1 (Halko, Martinsson and Tropp, SIAM Review 53, 2011, corollary 10.10).
No array has more than ``max(d, c) * (n_components + n_oversamples)`` entries, apart from metrics of
at most 2,048 columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base import threads
from eigenfeat._base.types import Floats, Rows
from eigenfeat._base.validation import FLOATS
from eigenfeat.expansion.features import core_rows, row_blocks
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.moments.columns import column_signs
from eigenfeat.samples.blocks import (
    ArrayBlocks,
    RowBlocks,
    RowTransform,
    add,
    check_finite,
    is_blocks,
    merge_read,
    read,
)
from eigenfeat.samples.estimator import (
    BaseEstimator,
    check_array,
    given_blocks,
    keep_columns,
    validate_data,
)
from eigenfeat.samples.labelled import Block, row_weights
from eigenfeat.samples.out_of_core import over_blocks

_Array = NDArray[np.float64]
_MAX_METRIC_COLUMNS = 2048  # with more columns, their covariance is not formed
_MIN_EIGENVALUE = 1e-12  # relative to the largest


@dataclass(frozen=True, eq=False)
class PairedSamples:
    """Samples with rows of targets: ``y`` of each block is a matrix (m, c)."""

    blocks: RowBlocks
    reading: RowTransform  # checks of each block
    n_features: int  # d
    n_targets: int  # c

    @classmethod
    def of(cls, estimator: Any, X: Any, Y: Any, sample_weight: Any) -> PairedSamples:
        """Check the samples of a fit; sets the estimator's attributes of the columns."""
        if is_blocks(X):
            blocks = given_blocks(X, Y, sample_weight, estimator=estimator)
            assert blocks is not None
        else:
            if Y is None:
                raise ValueError("requires y to be passed, but the target y is None")
            X = validate_data(estimator, X, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=2)
            try:
                if not hasattr(Y, "shape") and hasattr(Y, "__array__"):
                    Y = np.asarray(Y)
                Y = np.reshape(Y, (-1, 1)) if np.ndim(Y) == 1 else Y
            except ValueError:
                text = "y: expected rows of one length, got lists of several lengths"
                raise ValueError(text) from None
            Y = check_array(Y, accept_sparse="csr", dtype=FLOATS, input_name="y")
            if Y.shape[0] != X.shape[0] or not Y.shape[1]:
                raise ValueError(f"y: expected {X.shape[0]} rows, got shape {Y.shape}")
            weight = None if sample_weight is None else row_weights(sample_weight, X.shape[0])
            blocks = ArrayBlocks(X, Y, weight)
        first = next(iter(blocks))
        if len(getattr(first.y, "shape", ())) != 2:
            raise ValueError(f"y: expected matrices of targets in blocks, got {first.y!r}")
        d, c = int(first.X.shape[1]), int(first.y.shape[1])
        if is_blocks(X):
            keep_columns(estimator, blocks, d)
        return cls(blocks, RowTransform(n_features=d, n_threads=estimator.n_threads), d, c)

    def reduce(self, function: Any, merge: Any, *arguments: object) -> Any:
        """Merge ``function(block, *arguments)`` over checked blocks."""
        return self.blocks.reduce(
            read, partial(merge_read, merge), self.reading, function, merge, *arguments
        )[2]


@dataclass(frozen=True, eq=False)
class LeadingPairs:
    """The m leading singular triplets of M, and moments of the samples."""

    weight: float  # sum over all samples
    mean: _Array  # (d,)
    target_mean: _Array  # (c,)
    left: _Array  # (d, m) columns of ``(X^T W X + r I)^{-1/2} U``
    right: _Array  # (c, m) columns of ``B^{-1/2} V``
    values: _Array  # (m,) descending
    covariance: _Array  # (m, m) of the projections of the samples on `left`


class _Sums(NamedTuple):
    """Sums of a pass, centred. Z are the samples times P, T the targets times R."""

    weight: float  # sum over all samples
    mean: _Array  # (d,)
    target_mean: _Array  # (c,)
    squares: tuple[float, float]  # mean squared norm of samples and of targets, not centred
    cross: _Array  # (d, l) X^T W T
    image: _Array  # (c, l) Y^T W Z
    gram: _Array  # (l, l) Z^T W Z
    target_gram: _Array  # (l, l) T^T W T
    moments: tuple[ClassMoments, ...]


def leading_pairs(
    samples: Any,
    n_targets: int,
    estimator: Any,
    *,
    whiten_targets: bool = False,
    one_label: bool = False,
) -> LeadingPairs:
    """Compute leading singular triplets for `n_targets` targets (c).

    The parameters of `estimator`, a LabelEmbedding or RandomizedCCA, are the options. With
    `whiten_targets`, B is the metric of the targets instead of the identity. With `one_label`,
    each sample has one label: the centred indicators of k labels sum to 0, so their rank is k - 1.
    """
    width, d = estimator.n_components + estimator.n_oversamples, samples.n_features
    random = check_random_state(estimator.random_state)
    P, R = (random.standard_normal((count, min(width, count))) for count in (d, n_targets))
    means = np.zeros(d), np.zeros(n_targets)
    formed = d <= _MAX_METRIC_COLUMNS, whiten_targets and n_targets <= _MAX_METRIC_COLUMNS
    sums = _pass(samples, P, R, means, estimator.n_threads, formed)
    means = sums.mean, sums.target_mean
    moments, metrics, ridges = iter(sums.moments), [], []
    for name, is_formed, mean, square in zip("Xy", formed, means, sums.squares, strict=True):
        covariance = next(moments).covariance(0) if is_formed else None
        metric, ridge = _metric(name, covariance, mean, square, estimator.ridge)
        metrics.append(metric)
        ridges.append(ridge)
    for _ in range(estimator.n_passes - 1):
        P, R = _basis(sums.cross, metrics[0]), _basis(sums.image, metrics[1])
        sums = _pass(samples, P, R, means, estimator.n_threads)
    root = _inverse_root(sums.gram + ridges[0] * P.T @ P)
    if whiten_targets:
        target_root = _inverse_root(sums.target_gram + ridges[1] * R.T @ R)
        U, values, V = linalg.svd(root.T @ P.T @ sums.cross @ target_root, full_matrices=False)
        right = R @ target_root @ V.T
    else:
        right, values, U = linalg.svd(sums.image @ root, full_matrices=False)
        U = U.T
    rank = min(estimator.n_components, np.count_nonzero(values > _MIN_EIGENVALUE * values[0]))
    if one_label:
        rank = min(rank, np.count_nonzero(sums.target_mean) - 1)
    if rank < 1:
        raise ValueError("X: expected nonzero covariances of columns with the targets, got zeros")
    rotation = root @ U[:, :rank]
    left = P @ rotation
    signs = column_signs(left)  # signs that do not depend on rounding errors
    rotation = rotation * signs
    return LeadingPairs(
        sums.weight,
        sums.mean,
        sums.target_mean,
        left * signs,
        right[:, :rank] * signs,
        values[:rank],
        rotation.T @ sums.gram @ rotation,
    )


class Sketching(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class: limits of the parameters, and the projection of samples."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "n_oversamples": [Interval(Integral, 0, None, closed="left")],
        "n_passes": [Interval(Integral, 2, 100, closed="both")],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    components_: _Array
    mean_: _Array
    n_threads: int | None

    @over_blocks
    def transform(self, X: Rows | RowBlocks) -> Floats:
        """Project samples: ``(X - mean_) @ components_.T``.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples.

        Returns
        -------
        (n, m) array, float32 if `X` is float32, else float64
        """
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, order="C", reset=False)
        return affine(rows, self.components_, -self.components_ @ self.mean_, self.n_threads)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def affine(X: Any, weights: _Array, constants: _Array, n_threads: int | None) -> Floats:
    """``X @ weights.T + constants``, in the type of X."""
    W = np.column_stack([weights, constants]).T
    W = np.ascontiguousarray(W, dtype=np.float32 if X.dtype == np.float32 else np.float64)
    return core_rows(X, constant=True).scores(W, threads.resolve(n_threads))


def _metric(
    name: str, covariance: _Array | None, mean: _Array, square: float, ridge: float
) -> tuple[_Array | None, float]:
    """Root of the inverse metric, if its covariance is formed, and the ridge r.

    ValueError if no column varies by more than rounding errors of the mean squared norm `square`.
    """
    variance = square - mean @ mean if covariance is None else np.trace(covariance)
    rounding = _MIN_EIGENVALUE * square if covariance is None else _MIN_EIGENVALUE**2 * square
    if not variance > rounding:
        raise ValueError(f"{name}: expected a column that varies, got constant columns")
    ridge = ridge * float(variance) / len(mean)
    return None if covariance is None else _inverse_root(covariance, ridge), ridge


def _basis(products: _Array, metric: _Array | None) -> _Array:
    """Well-conditioned basis of the columns of `products`, multiplied by the inverse metric."""
    if metric is None:
        return np.asarray(linalg.qr(products, mode="economic")[0])
    return np.asarray(metric @ linalg.qr(metric.T @ products, mode="economic")[0])


def _inverse_root(matrix: _Array, ridge: float = 0.0) -> _Array:
    """A matrix K of full column rank such that ``K^T (matrix + ridge I) K = I``."""
    values, vectors = linalg.eigh(matrix)
    nonzero = values > _MIN_EIGENVALUE * max(values[-1], 0.0)
    return np.asarray(vectors[:, nonzero] / np.sqrt(values[nonzero] + ridge))


# ---- sums over a block ---------------------------------------------------------------------------


def _pass(
    samples: Any,
    P: _Array,
    R: _Array,
    means: tuple[_Array, _Array],
    n_threads: int | None,
    formed: tuple[bool, bool] = (False, False),
) -> _Sums:
    """One pass over all samples.

    Subtracting `means`, zeros in the first pass, before the products reduces rounding errors.
    """
    offsets = means[0] @ P, means[1] @ R
    arguments = P, R, *offsets, formed, n_threads
    merged: Any = samples.reduce(_block_sums, add, *arguments)
    squares, target_squares, products, image, target_sum, gram, target_gram, *moments = merged
    total = products[-1, -1]
    x_sum, t_sum = products[:-1, -1], products[-1, :-1]
    z_sum = x_sum @ P - total * offsets[0]
    mean, target_mean = x_sum / total, target_sum / total
    norms = squares / total, target_squares / total
    cross, image = products[:-1, :-1] - np.outer(mean, t_sum), image - np.outer(target_mean, z_sum)
    gram, target_gram = (
        G - np.outer(s, s) / total for G, s in ((gram, z_sum), (target_gram, t_sum))
    )
    cross, image, gram, target_gram = (a / total for a in (cross, image, gram, target_gram))
    return _Sums(total, mean, target_mean, norms, cross, image, gram, target_gram, tuple(moments))


def _block_sums(
    block: Block,
    P: _Array,
    R: _Array,
    offset: _Array,
    target_offset: _Array,
    formed: tuple[bool, bool],
    n_threads: int | None,
) -> tuple[Any, ...]:
    """Sums of a block for `_pass`, not centred; merged by `add`."""
    check_finite(block.X, block.start)
    with_offset = np.vstack([P, -offset])
    total: tuple[Any, ...] | None = None
    for rows in row_blocks(len(block), 4 * max(P.shape[1], R.shape[1])):
        part = block.take(rows)
        Y = _target_rows(part.y, len(R))
        weight = np.ones(len(part)) if part.weight is None else part.weight
        Z = part.scores(with_offset, True, n_threads).astype(np.float64)
        T = Y @ R - target_offset
        if not np.isfinite(T).all():
            row = block.start + rows.start
            raise ValueError(f"y: expected finite numbers, got NaN or infinity from row {row}")
        ZW, TW = Z * weight[:, None], T * weight[:, None]
        products = part.products(np.column_stack([TW, weight]), True, n_threads)
        sums: list[Any] = [_squares(part.X, weight), _squares(Y, weight), products]
        sums += [Y.T @ ZW, Y.T @ weight, ZW.T @ Z, TW.T @ T]
        for values, wanted in zip((part.X, Y), formed, strict=True):
            if wanted:
                labels = np.zeros(len(part), dtype=np.int64)
                sums.append(ClassMoments().update(values, labels, weight, n_threads=n_threads))
        total = tuple(sums) if total is None else add(total, tuple(sums))
    assert total is not None
    return total


def _target_rows(y: Any, n_targets: int) -> Any:
    """Targets as a matrix: the given matrix, or indicators of the indices of labels (m,)."""
    if y.ndim == 2 and y.shape[1] != n_targets:
        raise ValueError(f"y: expected {n_targets} columns in all blocks, got {y.shape[1]}")
    if y.ndim == 2:
        return y
    m = len(y)
    return sparse.csr_array((np.ones(m), y, np.arange(m + 1)), shape=(m, n_targets))


def _squares(X: Any, weight: _Array) -> float:
    """Weighted sum of all squares."""
    if isinstance(X, np.ndarray):
        return float(weight @ np.einsum("ij,ij->i", X, X, dtype=np.float64))
    return float(np.repeat(weight, np.diff(X.indptr)) @ X.data.astype(np.float64) ** 2)
