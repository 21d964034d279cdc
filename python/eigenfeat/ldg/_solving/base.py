"""Base classes of the relatives of LDG: validation of rows, fitted attributes, projections."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.signs import signed
from eigenfeat._base.types import Floats, Targets
from eigenfeat._base.unchanged import unchanged_on_error
from eigenfeat._base.validation import FLOATS
from eigenfeat.expansion.features import expand
from eigenfeat.ldg._solving.scatters import (
    Array,
    ClassRows,
    Reduction,
    between_means,
    check_varies,
    triangle_of,
)
from eigenfeat.rows.blocks import Block, RowBlocks, is_blocks
from eigenfeat.rows.checked import validate_data
from eigenfeat.rows.estimator import BaseEstimator
from eigenfeat.rows.out_of_core import given_blocks, over_blocks
from eigenfeat.rows.surveyed import surveyed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["ClassReducer", "Reducer"]


_ClassReducer = TypeVar("_ClassReducer", bound="ClassReducer")


class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Projects centred rows onto components: ``(X - mean_) @ components_.T``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }
    _supervised = True

    components_: Array
    mean_: Array

    @over_blocks
    def transform(self, X: ArrayLike | RowBlocks) -> Floats:
        """Project rows: ``(X - mean_) @ components_.T``.

        Parameters
        ----------
        X : (n, d) array-like or RowBlocks
            Finite rows. For blocks the result is an iterator over blocks.

        Returns
        -------
        (n, ell) array of float32 or float64, as `X`

        Raises
        ------
        ValueError, TypeError
            If rows are not finite, are sparse, or have another number of columns.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=FLOATS, order="C", reset=False)
        return self._projected(rows - self.mean_.astype(rows.dtype))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._supervised
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _projected(self, centred: NDArray[Any]) -> NDArray[Any]:
        return expand(centred, self.components_.T, wave="none")

    def _keep(self, found: Reduction, mean: Array) -> None:
        self.components_ = np.ascontiguousarray(signed(found.directions).T)
        self.mean_ = mean
        for name, value in found.attributes.items():
            setattr(self, name, value)


class ClassReducer(Reducer):
    """A `Reducer` that learns from rows with labels."""

    classes_: NDArray[Any]
    _in_blocks = True  # whether scatters are all it needs

    def fit(self: _ClassReducer, X: ArrayLike | RowBlocks, y: Targets = None) -> _ClassReducer:
        """Find the components.

        Parameters
        ----------
        X : (n, d) array-like or RowBlocks
            Finite rows. Blocks and memory-mapped arrays are read four times; estimators that
            compare rows with each other do not accept them.
        y : (n,) array-like
            Labels of at least two classes; None with blocks, which have their own labels.

        Returns
        -------
        object
            The estimator itself. If an error is raised, it is unchanged.

        Raises
        ------
        ValueError, TypeError
            If rows, labels or parameters are invalid, or rows are sparse.
        """
        with unchanged_on_error(self):
            self._validate_params()
            blocks = given_blocks(X, y) if self._in_blocks or is_blocks(X) else None
            if blocks is None:
                rows = ClassRows.of(*validate_data(self, X, y, dtype=FLOATS))
            else:
                rows = self._rows_of(blocks)
            self._keep(self._reduce(rows), rows.mean)
            self.classes_ = rows.classes
        return self

    def _rows_of(self, blocks: RowBlocks) -> ClassRows:
        if not self._in_blocks:
            name = type(self).__name__
            raise ValueError(f"X: expected rows in memory, which {name} compares, got blocks")
        rows = _class_rows(blocks)
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = len(rows.mean)
        return rows

    def _reduce(self, rows: ClassRows) -> Reduction:
        raise NotImplementedError


def _class_rows(blocks: RowBlocks) -> ClassRows:
    """What `ClassRows.of` makes of rows in memory: a triangle takes the place of the rows.

    Deviations from the means of classes have the squares of the triangle R of their QR
    decomposition, and R of several blocks is that of their R's, one below the other: the digits
    that squares would lose are kept, as with rows in memory.

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
    exponent = check_varies(rows.reduce(_largest_deviation, max, origin))
    # About a row of its own class a column that is constant there is 0, and so is its mean.
    shifts = rows.reduce(_deviation_sums, np.add, firsts, exponent) / counts[:, None]
    triangle = rows.reduce(_class_triangle, _merge_triangles, firsts, shifts, exponent)
    means = np.ldexp(firsts - origin, -exponent) + shifts
    mean, between = between_means(means, counts)
    mean = origin + np.ldexp(mean, exponent)
    unit = 2.0**exponent
    return ClassRows(triangle, between, counts, rows.classes, mean, unit, summed=True)


def _largest_deviation(block: Block, origin: Array) -> float:
    """Largest magnitude of rows less an origin; merged by `max`."""
    return float(np.abs(block.X - origin).max())


def _deviation_sums(block: Block, firsts: Array, exponent: int) -> Array:
    """Sums (k, d) of rows less a row of their class; merged by adding."""
    deviations = np.ldexp(block.X - firsts[block.y], -exponent)
    out = np.zeros_like(firsts)
    for c in np.unique(block.y):
        out[c] = deviations[block.y == c].sum(axis=0)
    return out


def _class_triangle(block: Block, firsts: Array, shifts: Array, exponent: int) -> Array:
    """R (d, d) of rows less the means of their classes."""
    deviations = np.ldexp(block.X - firsts[block.y], -exponent)
    deviations -= shifts[block.y]
    return triangle_of(deviations)


def _merge_triangles(a: Array, b: Array) -> Array:
    """R of the rows of both."""
    return triangle_of(np.vstack([a, b]))
