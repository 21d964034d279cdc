"""Scatters of classes from blocks of rows: a triangle takes the place of the rows.

Deviations from the means of classes have the squares of the triangle R of their QR decomposition,
and R of several blocks is that of their R's, one below the other: the digits that squares would
lose are kept, as with rows in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.labels import check_two_labels
from eigenfeat.ldg._solving.scatters import (
    Array,
    ClassRows,
    between_means,
    check_varies,
    triangle_of,
)
from eigenfeat.rows.blocks import Block, RowBlocks
from eigenfeat.rows.out_of_core import surveyed

__all__ = ["class_rows"]

_Origins = tuple[Array, NDArray[Any]]


def class_rows(blocks: RowBlocks) -> ClassRows:
    """What `ClassRows.of` makes of rows in memory.

    Raises
    ------
    ValueError
        As `ClassRows.of`; or if the rows have weights.
    TypeError
        If some rows are sparse.
    """
    rows = surveyed(blocks)
    if rows.survey.sparse:
        raise TypeError("X: expected dense rows, got sparse ones")
    if rows.survey.weight is not None:
        raise ValueError("sample_weight: expected rows without weights, got some with")
    check_two_labels(rows.classes)
    n, d = rows.n_rows, rows.survey.n_features
    if n < d:  # fewer numbers than a triangle has
        return ClassRows.of(rows.take(np.arange(n)).X, rows.classes[rows.codes])
    counts = np.bincount(rows.codes)
    first = np.unique(rows.codes, return_index=True)[1]
    firsts = rows.take(first).X.astype(np.float64)
    origin = rows.take(np.zeros(1, dtype=int)).X[0].astype(np.float64)
    exponent = check_varies(rows.reduce(largest_deviation, max, origin))
    # About a row of its own class a column that is constant there is 0, and so is its mean.
    shifts = rows.reduce(deviation_sums, np.add, firsts, exponent) / counts[:, None]
    triangle = rows.reduce(class_triangle, merge_triangles, firsts, shifts, exponent)
    means = np.ldexp(firsts - origin, -exponent) + shifts
    mean, between = between_means(means, counts)
    mean = origin + np.ldexp(mean, exponent)
    unit = 2.0**exponent
    return ClassRows(triangle, between, counts, rows.classes, mean, unit, summed=True)


def largest_deviation(block: Block, origin: Array) -> float:
    """Largest magnitude of rows less an origin; merged by `max`."""
    return float(np.abs(block.X - origin).max())


def deviation_sums(block: Block, firsts: Array, exponent: int) -> Array:
    """Sums (k, d) of rows less a row of their class; merged by adding."""
    deviations = np.ldexp(block.X - firsts[block.y], -exponent)
    out = np.zeros_like(firsts)
    for c in np.unique(block.y):
        out[c] = deviations[block.y == c].sum(axis=0)
    return out


def class_triangle(block: Block, firsts: Array, shifts: Array, exponent: int) -> Array:
    """R (d, d) of rows less the means of their classes."""
    deviations = np.ldexp(block.X - firsts[block.y], -exponent)
    deviations -= shifts[block.y]
    return triangle_of(deviations)


def merge_triangles(a: Array, b: Array) -> Array:
    """R of the rows of both."""
    return triangle_of(np.vstack([a, b]))
