"""Groups of samples from continuous targets and from several targets.

Karampatziakis and Mineiro (2014), section 5: a continuous target is discretised for the extraction
of features; several targets are first contracted with a vector ``u``. The results are integer
labels, which `GEM` and `ClassMoments` accept as classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base.types import Seed, Weights
from eigenfeat._base.validation import (
    check_vector,
    check_whole,
    physical_memory,
    random_generator,
    real_array,
)
from eigenfeat.moments.columns import deviations, signed
from eigenfeat.samples.estimator import check_array
from eigenfeat.samples.labelled import row_weights

__all__ = [
    "assign_bins",
    "bin_edges",
    "discretize_target",
    "supervised_contractions",
    "target_groups",
    "task_of",
]

_Array = npt.NDArray[np.float64]
_MIN_REGRESSION_VALUES = 21  # distinct numbers in the target of a regression
_MIN_SAMPLES_PER_CLASS = 10  # mean number of samples per whole number, if these are classes
_MAX_NUMBERED_CLASSES = 100  # distinct whole numbers above which the task is unclear
_MAX_COMPONENTS = 20  # principal components of the samples; they have 210 products
_MIN_VARIANCE = 1e-6  # of a combination of outputs, relative to the largest variance


def discretize_target(
    y: ArrayLike, n_bins: int = 10, *, sample_weight: ArrayLike | None = None
) -> npt.NDArray[np.int64]:
    """Divide a target into bins of about equal weight, for use as class labels.

    The bins depend only on the order of `y`: a strictly increasing function gives the same bins.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, 1)
        Finite targets.
    n_bins : int >= 2, default=10
        Maximum number of bins. Equal targets share a bin, so there may be fewer. If `y` has at most
        `n_bins` distinct values, each value is a bin.
    sample_weight : array-like of shape (n,), optional
        Weights >= 0; a sample of weight 2 counts as two samples. All 1 by default.

    Returns
    -------
    ndarray of int64, shape (n,)
        Bins 0, 1, ... in the order of the targets, without empty bins.

    Raises
    ------
    ValueError
        If targets are not finite, or constant over the samples of positive weight, if there are
        several outputs, or a length does not match.

    See Also
    --------
    target_groups : Bins of several outputs.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors",
    ICML 2014, section 5.

    Examples
    --------
    >>> from eigenfeat.samples.targets import discretize_target
    >>> discretize_target([0.3, 9.0, 2.5, 2.5, 0.1, 4.0], n_bins=3)
    array([0, 2, 1, 1, 0, 2])
    """
    outputs = _outputs(y)
    if outputs.shape[1] > 1:
        q = outputs.shape[1]
        raise ValueError(f"y: expected one output, got {q}; use target_groups")
    return _binned(outputs[:, 0], n_bins, row_weights(sample_weight, len(outputs)))


def target_groups(
    y: ArrayLike,
    n_bins: int = 10,
    n_contractions: int = 5,
    random_state: Seed = None,
    *,
    sample_weight: Weights = None,
    contractions: ArrayLike | None = None,
) -> npt.NDArray[np.int64]:
    """Group the samples several times, by bins of contractions ``y @ u`` of the targets.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, q)
        Finite targets.
    n_bins : int >= 2, default=10
        Maximum number of bins of a grouping.
    n_contractions : int >= 1, default=5
        Number of random unit vectors u, applied to the outputs divided by their standard
        deviations. A single output always has one grouping.
    random_state : int, RandomState, Generator or None, default=None
        Seed for the vectors.
    sample_weight : array-like of shape (n,), optional
        Weights >= 0.
    contractions : array-like of shape (g, q), optional
        Vectors u in place of random vectors, in the units of the outputs, such as the result of
        `supervised_contractions`.

    Returns
    -------
    ndarray of int64, shape (g, n)
        One grouping per row, each as in `discretize_target`.

    Raises
    ------
    ValueError
        See `discretize_target`.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.samples.targets import target_groups
    >>> Y = np.random.default_rng(0).standard_normal((100, 3))
    >>> target_groups(Y, n_bins=4, n_contractions=6, random_state=0).shape
    (6, 100)
    """
    outputs = _outputs(y)
    weights = row_weights(sample_weight, len(outputs))
    n_samples, q = outputs.shape
    n_groups = check_whole(n_contractions, "n_contractions", at_least=1)
    if contractions is not None:
        vectors = _given_vectors(contractions, q)
        _check_memory("contractions", len(vectors), n_samples)
    elif q == 1:
        vectors = np.ones((1, 1))
    else:
        _check_memory("n_contractions", n_groups, n_samples + q)
        vectors = _random_vectors(outputs, weights, n_groups, random_generator(random_state))
    groups = np.empty((len(vectors), n_samples), dtype=np.int64)
    for group, u in zip(groups, vectors, strict=True):
        group[:] = _binned(_contracted(outputs, u), n_bins, weights)
    return groups


def _check_memory(name: str, n_groups: int, length: int) -> None:
    """Raise MemoryError if groups and vectors, of `length` numbers of 8 bytes each, do not fit."""
    if 8 * n_groups * length > physical_memory():
        raise MemoryError(f"{name}: expected groups that fit into memory, got {n_groups}")


def supervised_contractions(
    X: ArrayLike, y: ArrayLike, n_contractions: int = 5, *, sample_weight: ArrayLike | None = None
) -> npt.NDArray[np.float64]:
    """Vectors u for which ``y @ u`` is predicted best by first and second moments of the samples.

    Outputs are regressed on leading principal components of the samples and their products, with a
    small ridge. The vectors u maximise the explained fraction of variance,
    ``Cov(fitted) u = lambda Cov(y) u``. GEM uses second moments conditioned on the bins of
    ``y @ u``, so it can separate the bins of these contractions.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Finite samples. At most 20 principal components are used.
    y : array-like of shape (n, q)
        Finite targets.
    n_contractions : int >= 1, default=5
        Maximum number of vectors; at most the number of linearly independent outputs.
    sample_weight : array-like of shape (n,), optional
        Weights >= 0.

    Returns
    -------
    ndarray of shape (g, q)
        Vectors in the units of the outputs, best first; ``y @ u`` has variance 1.

    Raises
    ------
    ValueError
        If samples and targets do not match, are not finite, or no output varies.

    References
    ----------
    N. Karampatziakis and P. Mineiro (ICML 2014), section 5: "any sensible, data-dependent way of
    picking a good set of vectors u".

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.samples.targets import supervised_contractions
    >>> X, noise = np.random.default_rng(0).standard_normal((2, 500, 3))
    >>> Y = np.column_stack([X[:, 0] ** 2 + noise[:, 0], noise[:, 1]])
    >>> u = supervised_contractions(X, Y, 1)[0]
    >>> bool(abs(u[0]) > 5 * abs(u[1]))
    True
    """
    outputs = _outputs(y)
    rows = check_array(X, dtype=np.float64, input_name="X")
    if len(rows) != len(outputs):
        raise ValueError(f"X: expected {len(outputs)} samples, one per target, got {len(rows)}")
    count = check_whole(n_contractions, "n_contractions", at_least=1)
    share = row_weights(sample_weight, len(outputs))
    rows, outputs, share = (one[share > 0] for one in (rows, outputs, share))
    deviation = deviations(outputs, share)
    varying = np.flatnonzero(deviation > 0)
    if not len(varying):
        raise ValueError("y: expected an output that varies, got none")
    share = share / share.sum()
    targets = outputs[:, varying] / deviation[varying]
    targets = targets - share @ targets
    features = _with_products(rows, share)
    gram = (features.T * share) @ features
    gram[np.diag_indices_from(gram)] += 1e-2 + len(gram) / len(rows)  # larger with few samples
    cross = (features.T * share) @ targets
    explained = cross.T @ np.linalg.solve(gram, cross)
    values, axes = np.linalg.eigh((targets.T * share) @ targets)
    independent = values > _MIN_VARIANCE * values[-1]
    whitener = axes[:, independent] / np.sqrt(values[independent])
    vectors = whitener @ np.linalg.eigh(whitener.T @ explained @ whitener)[1][:, ::-1][:, :count]
    vectors = signed(vectors)
    out = np.zeros((vectors.shape[1], outputs.shape[1]))
    out[:, varying] = vectors.T / deviation[varying]
    return out


def _with_products(rows: _Array, share: _Array) -> _Array:
    """Leading components of standardised samples and their products, of variance 1 or 0."""
    standard = _standardised(rows, share)
    gram = (standard.T * share) @ standard
    values, vectors = np.linalg.eigh(gram)
    nonzero = values[::-1][:_MAX_COMPONENTS] > 1e-9 * max(values[-1], 1e-300)
    components = standard @ vectors[:, ::-1][:, :_MAX_COMPONENTS][:, nonzero]
    first, second = np.triu_indices(components.shape[1])
    return _standardised(
        np.hstack([components, components[:, first] * components[:, second]]), share
    )


def _standardised(rows: _Array, share: _Array) -> _Array:
    spread = deviations(rows, share)
    return (rows - share @ rows) / np.where(spread > 0, spread, np.inf)


def bin_edges(y: _Array, n_bins: int, sample_weight: _Array | None = None) -> _Array:
    """Lower ends of all bins but the first, ascending: at most ``n_bins - 1`` values of `y`.

    The edge for the quantile ``j / n_bins`` is the distinct value below which the share of the
    weight is nearest to ``j / n_bins``; the error is at most half the weight of a tie. Values
    without weight are left out.
    """
    n_bins = check_whole(n_bins, "n_bins", at_least=2)
    if sample_weight is not None:
        y, sample_weight = y[sample_weight > 0], sample_weight[sample_weight > 0]
    values, codes = np.unique(y, return_inverse=True)
    if len(values) < 2:
        got = f"the constant {values[0]:g}" if len(values) else "no samples with weight"
        got = "1 sample" if len(y) == 1 else got
        raise ValueError(f"y: expected at least two distinct values, got {got}")
    if len(values) <= n_bins:
        return values[1:]
    below = np.concatenate([[0.0], np.cumsum(np.bincount(codes, sample_weight))])
    shares = below[-1] * np.arange(1, n_bins) / n_bins
    above = np.searchsorted(below, shares)  # the first edge at or after the share
    nearer = np.where(below[above] - shares < shares - below[above - 1], above, above - 1)
    inner = np.unique(nearer[(nearer > 0) & (nearer < len(values))])
    edges: _Array = values[inner]
    return edges


def assign_bins(y: _Array, edges: _Array) -> npt.NDArray[np.int64]:
    """Bins (n,) of `y`: the number of `edges` that each value reaches."""
    return np.searchsorted(edges, y, side="right").astype(np.int64, copy=False)


def _binned(y: _Array, n_bins: int, weights: _Array) -> npt.NDArray[np.int64]:
    return assign_bins(y, bin_edges(y, n_bins, weights))


def _outputs(y: Any) -> _Array:
    """`y` as an (n, q) array of finite float64."""
    array = real_array(y, "y")
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(f"y: expected shape (n,) or (n, q), not empty, got {array.shape}")
    outputs = np.asarray(array, dtype=np.float64).reshape(len(array), -1)
    finite = np.isfinite(outputs)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(f"y: expected finite numbers, got {outputs[row, column]} in row {row}")
    return outputs


def _contracted(outputs: _Array, u: _Array) -> _Array:
    """``outputs @ u``, summed in a fixed order, so that equal rows have equal sums."""
    y = np.zeros(len(outputs))
    for column, factor in zip(outputs.T, u, strict=True):
        y += column * factor
    if not np.isfinite(y).all():
        raise ValueError("y: expected finite contractions, got an overflow")
    return y


def _given_vectors(contractions: ArrayLike, q: int) -> _Array:
    vectors = real_array(contractions, "contractions", np.dtype(np.float64))
    if vectors.ndim != 2 or not len(vectors):
        raise ValueError(f"contractions: expected shape (g, q), got {vectors.shape}")
    for u in vectors:
        if not check_vector(u, q, "contractions", positive=False).any():
            raise ValueError("contractions: expected vectors that are not zero, got zeros")
    return np.asarray(vectors)


def _random_vectors(outputs: _Array, weights: _Array, count: int, random: Any) -> _Array:
    """Random unit vectors (count, q) for outputs of unit deviation; entries of constants are 0."""
    drawn = random.standard_normal((count, outputs.shape[1]))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    deviation = deviations(outputs, weights)
    return np.divide(drawn, deviation, out=np.zeros_like(drawn), where=deviation > 0)


def task_of(labels: Any) -> tuple[str, int]:
    """Return "classification", "regression" or "unclear", and the number of distinct labels.

    Text that differs in more than half of the samples is unclear: it may be numbers with units.
    """
    target = np.asarray(labels)
    n_values = len(np.unique(target))
    if n_values < _MIN_REGRESSION_VALUES or target.dtype.kind == "b":
        return "classification", n_values
    if target.dtype.kind not in "iuf":
        return "unclear" if 2 * n_values > len(target) else "classification", n_values
    fractions = target.dtype.kind == "f" and bool((target != np.rint(target)).any())
    if fractions or len(target) < _MIN_SAMPLES_PER_CLASS * n_values:
        return "regression", n_values
    return ("unclear" if n_values > _MAX_NUMBERED_CLASSES else "classification"), n_values
