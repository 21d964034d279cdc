"""Base classes of the relatives of LDG: validation of rows, fitted attributes, projections."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.signs import signed
from eigenfeat._base.unchanged import unchanged_on_error
from eigenfeat._base.validation import FLOATS
from eigenfeat.expansion.waves import expand
from eigenfeat.ldg._solving.block_rows import class_rows
from eigenfeat.ldg._solving.scatters import Array, ClassRows
from eigenfeat.rows.blocks import RowBlocks, is_blocks
from eigenfeat.rows.checked import validate_data
from eigenfeat.rows.estimator import BaseEstimator
from eigenfeat.rows.out_of_core import given_blocks, over_blocks

__all__ = [
    "ClassReducer",
    "Reducer",
    "Reduction",
    "count_components",
]


@dataclass(frozen=True, eq=False)
class Reduction:
    """Directions (d, ell), one a column, and other fitted attributes by name."""

    directions: Array
    attributes: dict[str, Any]


def count_components(n_components: int | None, most: int, reason: str) -> int:
    """Return how many components to keep, by default all.

    Raises
    ------
    ValueError
        If there are fewer than asked for; `reason` is what bounds them.
    """
    if n_components is None:
        return most
    if n_components > most:
        raise ValueError(
            f"n_components: expected at most {most} ({reason}), got {int(n_components)}"
        )
    return int(n_components)


class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Projects centred rows onto components: ``(X - mean_) @ components_.T``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }
    _supervised = True

    components_: Array
    mean_: Array

    @over_blocks
    def transform(self, X: Any) -> NDArray[Any]:
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
        X = validate_data(self, X, dtype=FLOATS, order="C", reset=False)
        return self._projected(X - self.mean_.astype(X.dtype))

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

    def fit(self, X: Any, y: Any = None) -> Any:
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
                X, y = validate_data(self, X, y, dtype=FLOATS)
                rows = ClassRows.of(X, y)
            else:
                rows = self._rows_of(blocks)
            self._keep(self._reduce(rows), rows.mean)
            self.classes_ = rows.classes
        return self

    def _rows_of(self, blocks: RowBlocks) -> ClassRows:
        if not self._in_blocks:
            name = type(self).__name__
            raise ValueError(f"X: expected rows in memory, which {name} compares, got blocks")
        rows = class_rows(blocks)
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = len(rows.mean)
        return rows

    def _reduce(self, rows: ClassRows) -> Reduction:
        raise NotImplementedError
