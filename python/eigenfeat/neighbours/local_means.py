r"""Nearest neighbours in each class, and the scatters of LDG (Parrish 2012, chapter 3).

With :math:`\mu_{ij}` the mean of the `k` samples of class `j` nearest to sample :math:`x_i`, and
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
from eigenfeat._base.validation import CsrRows, RealArray, check_rows, physical_memory

__all__ = [
    "N_VOTES",
    "LocalScatters",
    "knn_correct",
    "local_discriminants",
    "local_gaussians",
    "local_neighbours",
    "local_scatters",
    "majority",
    "scatters_of_neighbours",
]

N_VOTES = 3  # neighbours of the k-NN classifier, sections 3.4 and 3.5.2


class LocalScatters(NamedTuple):
    """The two matrices of LDG, and the codes of classes with fewer neighbours than requested."""

    within: npt.NDArray[np.float64]  # (d, d) V, about local means of the samples' own classes
    weighted: npt.NDArray[np.float64]  # (d, d) A, about local means of all classes
    short_classes: npt.NDArray[np.int64]  # (s,) codes; local means use all samples of the class


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
    """Find the nearest samples of every class for each query.

    Neighbours are ordered by squared distances that are computed in float64 from the given samples,
    with a relative error of (d + 2) 2^-53.

    Parameters
    ----------
    X : (n, d) array
        References: finite, below 1e150 in magnitude.
    codes : (n,) array of int
        Class of each reference, 0 to ``n_classes - 1``.
    n_classes : int
        Number of classes k.
    n_neighbors : int
        Number of neighbours in each class.
    queries : (m, d) array, optional
        By default the references; a sample is then not its own neighbour, but its duplicates may
        be.
    groups : (n,) array of int, optional
        Without `queries`: samples of the same group are not neighbours of each other, as needed for
        the folds of a cross-validation.
    n_threads : int, optional
        Number of threads, all by default.

    Returns
    -------
    (m, n_classes, n_neighbors) array of int
        Indices of the neighbours, nearest first, ties in order of the index; -1 if a class has
        fewer samples.
    """
    rows, others = _dense(X, queries)
    class_codes = np.ascontiguousarray(codes, dtype=np.int32)
    same_group = None
    if groups is not None:
        same_group = np.unique(groups, return_inverse=True)[1].astype(np.int32)
    needed = 8 * len(rows if others is None else others) * n_classes * n_neighbors
    if needed > physical_memory():
        raise ValueError(
            f"n_neighbors: expected lists that fit into memory, got {n_neighbors}, which takes "
            f"{needed:,} bytes"
        )
    # A class has no more neighbours than samples.
    n_listed = min(n_neighbors, max(int(np.bincount(class_codes, minlength=1).max()), 1))
    neighbours: npt.NDArray[np.int64] = core.local_neighbours(
        rows, class_codes, n_classes, n_listed, others, same_group, threads.resolve(n_threads)
    )
    if n_listed < n_neighbors:
        missing = ((0, 0), (0, 0), (0, n_neighbors - n_listed))
        neighbours = np.pad(neighbours, missing, constant_values=-1)
    return neighbours


def local_scatters(
    X: ArrayLike,
    codes: ArrayLike,
    n_classes: int,
    n_neighbors: int,
    *,
    n_threads: int | None = None,
    method: str = "auto",
) -> LocalScatters:
    """V of (3.9) and A of (3.10) of samples X (n, d) and their nearest neighbours."""
    neighbours = local_neighbours(X, codes, n_classes, n_neighbors, n_threads=n_threads)
    return scatters_of_neighbours(X, codes, neighbours, n_threads=n_threads, method=method)


def scatters_of_neighbours(
    X: ArrayLike,
    codes: ArrayLike,
    neighbours: ArrayLike,
    *,
    queries: ArrayLike | None = None,
    query_codes: ArrayLike | None = None,
    n_threads: int | None = None,
    method: str = "auto",
) -> LocalScatters:
    """Sum the outer products of queries about their local means: V of (3.9) and A of (3.10).

    The priors p_j are the classes' fractions of the references.

    Parameters
    ----------
    X : (n, d) array
        References: finite, below 1e150 in magnitude.
    codes : (n,) array of int
        Class of each reference, 0 to ``n_classes - 1``.
    neighbours : (m, n_classes, n_neighbors) array of int
        Indices from `local_neighbours`, or ``neighbours[:, :, :number]`` for fewer neighbours.
    queries : (m, d) array, optional
        By default the references.
    query_codes : (m,) array of int, optional
        Classes of the queries, if `queries` is given.
    n_threads : int, optional
        Number of threads; all by default. The result does not depend on it, bit for bit.
    method : {"auto", "rows", "graph"}, default="auto"
        Summation of A by rank updates, or by ``X^T (L X)`` with the sparse Laplacian of (3.25),
        whose number of products does not grow with the classes, and whose error is relative to
        ``|X - mean| |D|`` instead of ``|D|^2``. ``"auto"``: the cheaper method.

    Returns
    -------
    LocalScatters
    """
    rows, others = _dense(X, queries)
    class_codes = np.ascontiguousarray(codes, dtype=np.int32)
    lists = np.ascontiguousarray(neighbours, dtype=np.int64)
    own = class_codes if others is None else np.ascontiguousarray(query_codes, dtype=np.int32)
    priors = np.bincount(class_codes, minlength=lists.shape[1]) / max(len(rows), 1)
    sums = core.local_scatters(rows, others, own, lists, priors, method, threads.resolve(n_threads))
    short = np.flatnonzero((lists[:, :, -1] < 0).any(axis=0))
    return LocalScatters(sums.within, sums.weighted, short)


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

    These scores (k, m, n_classes) of local QDA without priors are
    ``-1/2 sum_j ((x_j - mean_j)^2 / s_j + log s_j)`` with ``s = variance + ridge``, from the
    `counts` (k,) nearest samples of each class, ascending; minus infinity if a class has no
    neighbours. Other arguments are as in `scatters_of_neighbours`.
    """
    rows, others = _dense(X, queries)
    lists, numbers = (np.ascontiguousarray(a, dtype=np.int64) for a in (neighbours, counts))
    scores: npt.NDArray[np.float64] = core.local_discriminants(
        rows, others, lists, numbers, float(ridge), threads.resolve(n_threads)
    )
    return scores


def local_gaussians(
    X: ArrayLike,
    neighbours: ArrayLike,
    *,
    ridge: float = 1e-4,
    queries: ArrayLike | None = None,
    n_threads: int | None = None,
) -> core.LocalGaussians:
    """Means and variances (m, n_classes, d) of each query's neighbours, class by class.

    Arguments are as in `local_discriminants`. The variances include the ridge. NaN if a class has
    no neighbours.
    """
    rows, others = _dense(X, queries)
    lists = np.ascontiguousarray(neighbours, dtype=np.int64)
    return core.local_gaussians(rows, others, lists, float(ridge), threads.resolve(n_threads))


def _dense(X: Any, queries: Any) -> tuple[RealArray, RealArray | None]:
    """Check samples; queries must have the type and number of columns of the references."""
    rows = check_rows(X)
    assert not isinstance(rows, CsrRows)  # callers have made them dense
    if queries is None:
        return rows, None
    options: Any = {"dtype": rows.dtype, "n_columns": rows.shape[1]}
    others = check_rows(queries, name="queries", **options)
    assert not isinstance(others, CsrRows)
    return rows, others


def knn_correct(
    rows: Floats,
    codes: Codes,
    directions: Floats | None = None,
    *,
    queries: Floats | None = None,
    query_codes: Codes | None = None,
    n_threads: int | None = None,
) -> npt.NDArray[np.bool_]:
    """Whether the 3-NN classifier finds the class of each query (m,).

    Without queries, each sample is classified by the others. Samples and queries are projected onto
    `directions` (d, r), if given.
    """
    n = len(rows)
    if directions is not None:
        all_rows = np.ascontiguousarray(rows if queries is None else np.vstack([rows, queries]))
        matrix = np.ascontiguousarray(directions, dtype=all_rows.dtype)
        options: Any = (None, "none", [], False, threads.resolve(n_threads))
        projected = core.expand_dense(all_rows, matrix, *options)
        rows, queries = projected[:n], None if queries is None else projected[n:]
    one_class = np.zeros(n, dtype=np.int64)
    nearest = local_neighbours(rows, one_class, 1, N_VOTES, queries=queries, n_threads=n_threads)
    expected = codes if queries is None else query_codes
    return np.asarray(majority(nearest[:, 0], codes) == expected)


def majority(neighbours: npt.NDArray[np.integer[Any]], codes: Codes) -> Codes:
    """Most frequent class (m,) of three neighbours (m, 3), or that of the nearest; -1 is none."""
    first, second, third = np.where(neighbours >= 0, codes[neighbours], -1).T
    return np.asarray(np.where((second == third) & (second >= 0), second, first))
