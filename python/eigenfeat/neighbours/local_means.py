r"""Class-wise nearest neighbours, and the scatters that LDG is made of (Parrish 2012, chapter 3).

With :math:`\mu_{ij}` the mean of the `k` rows of class `j` that are nearest to row :math:`x_i` and
:math:`\Delta_{ij} = x_i - \mu_{ij}`,

.. math::
    V = \sum_i \Delta_{i,g_i} \Delta_{i,g_i}^T \quad (3.9), \qquad
    A = \sum_i \sum_j p_j \Delta_{ij} \Delta_{ij}^T \quad (3.10).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.types import Codes, Floats
from eigenfeat._base.validation import (
    RealArray,
    check_count,
    check_number,
    check_rows,
    check_vector,
    check_whole,
    physical_memory,
    show,
)

__all__ = [
    "N_VOTES",
    "LocalScatters",
    "knn_accuracy",
    "local_discriminants",
    "local_gaussians",
    "local_neighbours",
    "local_scatters",
    "majority",
    "scatters_of_neighbours",
]

N_VOTES = 3  # neighbours of the k-NN classifier, sections 3.4 and 3.5.2

_METHODS = ("auto", "rows", "graph")


class LocalScatters(NamedTuple):
    """The two matrices of LDG, and the classes with too few rows.

    Attributes
    ----------
    within : ndarray of shape (d, d), float64
        V of (3.9): rows about the local means of their own classes.
    weighted : ndarray of shape (d, d), float64
        A of (3.10): rows about the local means of all classes, weighted by priors.
    short_classes : ndarray of int, shape (s,)
        Codes of the classes in which some row has fewer neighbours than requested. Their means are
        over the existing neighbours; a pair without neighbours adds nothing.
    """

    within: npt.NDArray[np.float64]
    weighted: npt.NDArray[np.float64]
    short_classes: npt.NDArray[np.int64]


def local_neighbours(
    X: ArrayLike,
    codes: npt.ArrayLike,
    n_classes: int,
    n_neighbors: int,
    *,
    queries: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_threads: int | None = None,
) -> npt.NDArray[np.int64]:
    """Find the nearest rows of every class for each query.

    Parameters
    ----------
    X : array-like of shape (n, d)
        References: finite, below 1e150 in magnitude. float32 is kept; all other types become
        float64.
    codes : array-like of int, shape (n,)
        Class of each reference, 0 to ``n_classes - 1``.
    n_classes : int
        Number of classes, at least 1.
    n_neighbors : int
        Number of neighbours in each class, at least 1.
    queries : array-like of shape (m, d), optional
        Rows to find neighbours of. None means the references, where no row is its own neighbour,
        but a duplicate of it may be.
    groups : array-like of int, shape (n,), optional
        Without `queries`: rows of the same group are not neighbours of each other, as needed for
        the folds of a cross-validation.
    n_threads : int, optional
        Number of threads; all by default. The result does not depend on it.

    Returns
    -------
    ndarray of int64, shape (m, n_classes, n_neighbors)
        Row indices of references, nearest first; ties are in order of the index. The last entries
        are -1 if a class has fewer rows.

    Raises
    ------
    ValueError
        If shapes do not match, entries are not finite, or codes are out of range.

    Notes
    -----
    The order is that of squared distances computed in float64 from the given rows, with a relative
    error of (d + 2) 2^-53. Most distances are compared by cheaper values from a matrix product,
    whose error is bounded. If the bounds overlap, the accurate distances are used.

    Examples
    --------
    >>> from eigenfeat.neighbours.local_means import local_neighbours
    >>> local_neighbours([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1], 2, 2).tolist()
    [[[1, -1], [2, 3]], [[0, -1], [2, 3]], [[1, 0], [3, -1]], [[1, 0], [2, -1]]]
    """
    rows = _dense(X, "X")
    n_classes = check_whole(n_classes, "n_classes", at_least=1, at_most=2**31 - 1)
    n_neighbors = check_count(n_neighbors, "n_neighbors", at_least=1)
    class_codes = _codes(codes, len(rows), "codes", n_classes)
    others = None if queries is None else _dense(queries, "queries", rows)
    if groups is not None and others is not None:
        raise ValueError("groups: expected None beside queries, got groups")
    same_group = None if groups is None else _group_codes(groups, len(rows))
    # No class has more neighbours than rows: what is beyond need not be looked for.
    needed = 8 * len(rows if others is None else others) * n_classes * n_neighbors
    if needed > physical_memory():
        raise ValueError(
            f"n_neighbors: expected lists that fit into memory, got {n_neighbors}, which takes "
            f"{needed:,} bytes"
        )
    result = min(n_neighbors, max(int(np.bincount(class_codes, minlength=1).max()), 1))
    neighbours: npt.NDArray[np.int64] = core.local_neighbours(
        rows, class_codes, n_classes, result, others, same_group, threads.resolve(n_threads)
    )
    if result < n_neighbors:
        missing = ((0, 0), (0, 0), (0, n_neighbors - result))
        neighbours = np.pad(neighbours, missing, constant_values=-1)
    return neighbours


def local_scatters(
    X: ArrayLike,
    codes: ArrayLike,
    n_classes: int,
    n_neighbors: int,
    *,
    priors: ArrayLike | None = None,
    queries: ArrayLike | None = None,
    query_codes: ArrayLike | None = None,
    n_threads: int | None = None,
    method: str = "auto",
) -> LocalScatters:
    """Sum the outer products of queries about their local means: V of (3.9) and A of (3.10).

    Parameters
    ----------
    X, codes, n_classes, n_neighbors, n_threads
        As in `local_neighbours`.
    priors : array-like of shape (n_classes,), optional
        Weights p_j >= 0 of the classes; by default, their fractions of the references.
    queries : array-like of shape (m, d), optional
        The rows x_i; by default the references, each left out of its own local mean.
    query_codes : array-like of int, shape (m,)
        Classes of the queries; required with `queries`, and not allowed without.
    method : {"auto", "rows", "graph"}
        Summation of A. rows: rank updates with the rows D. graph: ``X^T (L X)`` with the sparse
        Laplacian of (3.25), whose number of matrix products does not grow with the classes; its
        error is relative to ``|X - mean| |D|`` instead of ``|D|^2``. auto: the cheaper one. V is
        always summed by rows.

    Returns
    -------
    LocalScatters
        ``within``, ``weighted`` and ``short_classes``.

    Raises
    ------
    ValueError
        If shapes do not match, entries are not finite, or codes, priors or method are out of range.

    Examples
    --------
    >>> from eigenfeat.neighbours.local_means import local_scatters
    >>> V, A, _ = local_scatters([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1], 2, 1)
    >>> V.item(), round(A.item(), 12)
    (4.0, 15.0)
    """
    if (queries is None) != (query_codes is None):
        raise ValueError("query_codes: expected codes with queries, and only then")
    rows = _dense(X, "X")
    n_classes = check_whole(n_classes, "n_classes", at_least=1, at_most=2**31 - 1)
    others = None if queries is None else _dense(queries, "queries", rows)
    _check_method(method)
    if priors is not None:
        _check_priors(priors, n_classes)
    neighbours = local_neighbours(
        rows, codes, n_classes, n_neighbors, queries=others, n_threads=n_threads
    )
    return scatters_of_neighbours(
        rows,
        codes,
        neighbours,
        priors=priors,
        queries=others,
        query_codes=query_codes,
        n_threads=n_threads,
        method=method,
    )


def scatters_of_neighbours(
    X: ArrayLike,
    codes: ArrayLike,
    neighbours: ArrayLike,
    *,
    priors: ArrayLike | None = None,
    queries: ArrayLike | None = None,
    query_codes: ArrayLike | None = None,
    n_threads: int | None = None,
    method: str = "auto",
) -> LocalScatters:
    """`local_scatters` from the neighbours found by `local_neighbours`.

    Neighbours are sorted by distance. For a smaller number of them, use
    ``neighbours[:, :, :number]``; one search serves several numbers.

    Parameters
    ----------
    X, codes, priors, queries, query_codes, n_threads, method
        As in `local_scatters`.
    neighbours : array-like of int, shape (m, n_classes, n_neighbors)
        Row indices of references; the last entries are -1 for missing neighbours.

    Returns
    -------
    LocalScatters
        ``within``, ``weighted`` and ``short_classes``.

    Raises
    ------
    ValueError
        As `local_scatters`, and if neighbours are not row indices.
    """
    rows = _dense(X, "X")
    others = None if queries is None else _dense(queries, "queries", rows)
    lists = _whole_numbers(neighbours, "neighbours")
    m = len(rows if others is None else others)
    if lists.ndim != 3 or lists.shape[0] != m or 0 in lists.shape[1:]:
        raise ValueError(
            f"neighbours: expected shape ({m}, n_classes, n_neighbors), got {lists.shape}"
        )
    n_classes = lists.shape[1]
    class_codes = _codes(codes, len(rows), "codes", n_classes)
    if (others is None) != (query_codes is None):
        raise ValueError("query_codes: expected codes with queries, and only then")
    own = class_codes if others is None else _codes(query_codes, m, "query_codes", n_classes)
    _check_method(method)
    if priors is None:
        weights = np.bincount(class_codes, minlength=n_classes) / max(len(rows), 1)
    else:
        weights = _check_priors(priors, n_classes)
    within, weighted = core.local_scatters(
        rows, others, own, lists, weights, method, threads.resolve(n_threads)
    )
    short = np.flatnonzero((lists[:, :, -1] < 0).any(axis=0))
    return LocalScatters(within, weighted, short)


def local_discriminants(
    X: ArrayLike,
    neighbours: ArrayLike,
    counts: ArrayLike,
    *,
    ridge: float = 1e-4,
    queries: ArrayLike | None = None,
    n_threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Log densities of queries under diagonal Gaussians of their neighbours, class by class.

    These are the scores of local QDA without priors. Means and maximum-likelihood variances are
    those of the nearest rows of a class, for several numbers of neighbours in one pass.

    Parameters
    ----------
    X : array-like of shape (n, d)
        References.
    neighbours : array-like of int, shape (m, n_classes, n_neighbors)
        As returned by `local_neighbours`, nearest first.
    counts : array-like of int, shape (k,)
        Numbers of neighbours to use, ascending. A class with fewer rows uses all of them.
    ridge : float
        Added to every variance; positive.
    queries, n_threads
        As in `local_neighbours`.

    Returns
    -------
    ndarray of float64, shape (k, m, n_classes)
        ``-1/2 sum_j ((x_j - mean_j)^2 / s_j + log s_j)`` with ``s = variance + ridge``; minus
        infinity if a class has no neighbours.

    Raises
    ------
    ValueError
        If shapes do not match, or counts or ridge are out of range.
    """
    rows, others, lists = _pairs(X, queries, neighbours)
    numbers = _whole_numbers(counts, "counts")
    if numbers.ndim != 1:
        raise ValueError(f"counts: expected shape (k,), got {numbers.shape}")
    scores: npt.NDArray[np.float64] = core.local_discriminants(
        rows, others, lists, numbers, check_number(ridge, "ridge"), threads.resolve(n_threads)
    )
    return scores


def local_gaussians(
    X: ArrayLike,
    neighbours: ArrayLike,
    *,
    ridge: float = 1e-4,
    queries: ArrayLike | None = None,
    n_threads: int | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Means and diagonal variances of each query's neighbours, class by class.

    Parameters
    ----------
    X, ridge, queries, n_threads
        As in `local_discriminants`.
    neighbours : array-like of int, shape (m, n_classes, n_neighbors)
        As returned by `local_neighbours`; all of them are used.

    Returns
    -------
    means, variances : ndarray of float64, shape (m, n_classes, d)
        The variances include the ridge. NaN if a class has no neighbours.

    Raises
    ------
    ValueError
        If shapes do not match, or ridge is out of range.
    """
    rows, others, lists = _pairs(X, queries, neighbours)
    return core.local_gaussians(
        rows, others, lists, check_number(ridge, "ridge"), threads.resolve(n_threads)
    )


def _pairs(
    X: Any, queries: Any, neighbours: Any
) -> tuple[RealArray, RealArray | None, npt.NDArray[np.int64]]:
    rows = _dense(X, "X")
    others = None if queries is None else _dense(queries, "queries", rows)
    lists = _whole_numbers(neighbours, "neighbours")
    if lists.ndim != 3:
        raise ValueError(f"neighbours: expected 3 dimensions, got {lists.ndim}")
    return rows, others, lists


def _dense(X: Any, name: str, like: RealArray | None = None) -> RealArray:
    """Dense rows; queries in the references' type and number of columns."""
    rows = check_rows(
        X,
        name=name,
        dtype=None if like is None else like.dtype,
        n_columns=None if like is None else like.shape[1],
    )
    if not isinstance(rows, np.ndarray):
        raise ValueError(f"{name}: expected a dense array, got a sparse matrix")
    return rows


def _codes(codes: Any, n: int, name: str, n_classes: int) -> npt.NDArray[np.int32]:
    array = _integers(codes, n, name)
    bad = (array < 0) | (array >= n_classes)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{name}: expected integers in [0, {n_classes}), got {array[row]} in row {row}"
        )
    return np.ascontiguousarray(array, dtype=np.int32)


def _group_codes(groups: Any, n: int) -> npt.NDArray[np.int32]:
    _, codes = np.unique(_integers(groups, n, "groups"), return_inverse=True)
    return np.ascontiguousarray(codes, dtype=np.int32)


def _integers(values: Any, n: int, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (n,) or (n and array.dtype.kind not in "iu"):
        raise ValueError(
            f"{name}: expected {n} integers, one per sample, got {array.dtype} of shape "
            f"{array.shape}"
        )
    return array


def _whole_numbers(values: Any, name: str) -> npt.NDArray[np.int64]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name}: expected an array of integers, got {error}") from None
    if array.dtype.kind not in "iu" or (array.size and array.max() > np.iinfo(np.int64).max):
        raise ValueError(f"{name}: expected integers of 64 bits, got {show(values)}")
    return np.ascontiguousarray(array, dtype=np.int64)


def _check_priors(priors: Any, n_classes: int) -> npt.NDArray[np.float64]:
    weights = check_vector(priors, n_classes, "priors", positive=False)
    if (weights < 0).any():
        raise ValueError(f"priors: expected numbers >= 0, got {weights.min()}")
    return weights


def _check_method(method: str) -> None:
    if not isinstance(method, str) or method not in _METHODS:
        raise ValueError(f"method: expected one of {', '.join(_METHODS)}, got {show(method)}")


def knn_accuracy(rows: Floats, codes: Codes, n_threads: int | None = None) -> float:
    """Leave-one-out accuracy of the 3-NN classifier.

    Where no class has a majority, the nearest row decides.
    """
    together = np.zeros(len(rows), dtype=np.int64)
    result = local_neighbours(rows, together, 1, N_VOTES, n_threads=n_threads)[:, 0]
    return float(np.mean(majority(result, codes) == codes))


def majority(result: npt.NDArray[np.int64], codes: Codes) -> Codes:
    """The class of most of three neighbours, nearest first; -1 is none, and the nearest decides."""
    votes = np.where(result >= 0, codes[result], -1)
    pair = (votes[:, 1] == votes[:, 2]) & (votes[:, 1] >= 0)
    winners: npt.NDArray[np.integer[Any]] = np.where(pair, votes[:, 1], votes[:, 0])
    return winners
