"""Base classes of reducers: checks of samples, fitted attributes, projections."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Floats, Targets, Weights
from eigenfeat._base.validation import FLOATS
from eigenfeat.expansion.features import expand
from eigenfeat.ldg._solving.coordinates import triangle_of
from eigenfeat.ldg._solving.scatters import Array, ClassDeviations, Factors
from eigenfeat.moments.columns import signed
from eigenfeat.samples.block_samples import LabelledSamples
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import BaseEstimator, prepare, unchanged_on_error, validate_data
from eigenfeat.samples.labelled import Block, MemorySamples
from eigenfeat.samples.out_of_core import over_blocks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self


class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Projects centred samples onto components: ``(X - mean_) @ components_.T``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }

    @over_blocks
    def transform(self, X: ArrayLike | RowBlocks) -> Floats:
        """Project samples: ``(X - mean_) @ components_.T``.

        Parameters
        ----------
        X : (n, d) array-like or RowBlocks
            Finite samples. For blocks the result is an iterator over blocks.

        Returns
        -------
        (n, ell) array, float32 if `X` is float32, else float64
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=FLOATS, order="C", reset=False)
        return self._projected(rows - self.mean_.astype(rows.dtype))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _projected(self, centred: NDArray[Any]) -> NDArray[Any]:
        return expand(centred, self.components_.T, expansion="none")


def components_of(directions: Array) -> Array:
    """Return directions (d, ell) as rows; the entry of largest magnitude of each is positive."""
    return np.ascontiguousarray(signed(directions).T)


class ClassReducer(Reducer):
    """A `Reducer` that learns from samples with labels."""

    _in_blocks = True  # whether scatters suffice, so that samples may come in blocks

    def fit(self, X: ArrayLike | RowBlocks, y: Targets = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : (n, d) array-like or RowBlocks
            Finite samples. Blocks are read twice; estimators that compare samples with each other
            accept only rows of files, which are read into memory.
        y : (n,) array-like
            Labels of at least two classes; None with blocks, which contain labels.

        Returns
        -------
        object
            The estimator itself. An error leaves it unchanged.
        """
        return self._fit(X, y, None)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        with unchanged_on_error(self):
            self._validate_params()
            in_memory = not self._in_blocks
            samples = prepare(
                self, X, y, sample_weight, in_memory=in_memory, dense=True, moments=False
            )
            rows = _deviations(samples)
            self.components_ = components_of(self._solve(rows))
            self.mean_, self.classes_ = rows.mean, rows.classes
        return self

    def _solve(self, rows: ClassDeviations) -> Array:
        """Set further fitted attributes, and return the directions (d, ell)."""
        raise NotImplementedError


class WeightedReducer(ClassReducer):
    """A `ClassReducer` with sample weights; a weight of 2 is equivalent to two samples."""

    def fit(
        self,
        X: ArrayLike | RowBlocks,
        y: Targets = None,
        sample_weight: Weights = None,
    ) -> Self:
        """Find the components.

        Parameters
        ----------
        X : (n, d) array-like or RowBlocks
            Finite samples. Blocks are read twice.
        y : (n,) array-like
            Labels of at least two classes; None with blocks, which contain labels.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples; None with blocks, which contain weights. A weight of
            2 is equivalent to two equal samples. Scaling all weights changes nothing.

        Returns
        -------
        object
            The estimator itself. An error leaves it unchanged.
        """
        return self._fit(X, y, sample_weight)


def _deviations(samples: LabelledSamples) -> ClassDeviations:
    """Deviations of samples from the means of their classes.

    For blocks, a triangle takes the place of the samples: the triangle R of the QR decomposition of
    the deviations has the same scatter as the deviations. Unlike sums of squares, it keeps all
    digits, as for samples in memory.
    """
    if isinstance(samples, MemorySamples):
        block = samples.block
        return ClassDeviations.of(block.X, samples.classes[samples.codes], block.weight)
    classes, n, d = samples.classes, samples.n_samples, samples.n_features
    if n < d:  # the samples take less memory than the triangle
        block = samples.take(np.arange(n))
        return ClassDeviations.of(block.X, classes[samples.codes], block.weight)
    origin = samples.take(np.zeros(1, dtype=int)).X[0].astype(np.float64)
    factors = samples.reduce(_block_factors, _merged, origin, len(classes))
    return ClassDeviations.scaled(factors, classes, origin, n, summed=True)


def _block_factors(block: Block, origin: Array, n_classes: int) -> Factors:
    """Factors of the samples of a block, with the triangle of the deviations."""
    factors = Factors.of(block.X, block.y, n_classes, origin, block.weight)
    return factors._replace(within=triangle_of(factors.within))


def _merged(a: Factors, b: Factors) -> Factors:
    """Merge factors by the formula of Chan, Golub and LeVeque (1983) for sums of squares."""
    counts, gaps = a.counts + b.counts, b.means - a.means
    shares = b.counts / np.where(counts > 0, counts, 1)
    between = np.sqrt(a.counts * shares)[:, None] * gaps
    triangle = triangle_of(np.vstack([a.within, b.within, between]))
    means = a.means + shares[:, None] * gaps
    return Factors(counts, means, triangle, np.maximum(a.rounding, b.rounding))
