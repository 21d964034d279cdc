"""Labelled samples in memory, and weights of samples and classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt

from eigenfeat._base.threads import resolve
from eigenfeat._base.types import Codes, DType, Floats, Labels
from eigenfeat._base.validation import (
    check_some_weight,
    check_weights,
    has_missing,
    usual_weights,
)
from eigenfeat.expansion.features import (
    CoreRows,
    ExpandedFeatures,
    core_rows,
    hidden_features,
    layer_features,
    take_rows,
)
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples.completion import GaussianImputer, completed

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import ArrayLike
    from scipy.sparse import csr_array

    from eigenfeat._base.types import Targets
    from eigenfeat.expansion.features import Layer

__all__ = [
    "Block",
    "MemorySamples",
    "class_factors",
    "class_weighted",
    "labelled_moments",
    "row_weights",
    "weighted_rows",
    "weights_of_mean_1",
]

_Result = TypeVar("_Result")
_Rows = TypeVar("_Rows", bound="Floats | csr_array | ExpandedFeatures | npt.NDArray[np.intp]")
_Labels = TypeVar("_Labels", bound="Targets")


@dataclass(frozen=True, eq=False)
class Block:
    """A block of consecutive samples.

    Attributes
    ----------
    X : (m, d) array, sparse matrix, data frame or ExpandedFeatures
        Samples, or their features.
    y : (m,) array, (m, c) array or CSR matrix, or None
        Labels, or targets of several outputs; None if they are not known.
    weight : (m,) array, or None
        Weights of the samples; None means 1.
    start : int
        Index of the first sample among all samples.
    missing : (m, d) array of bool, or None
        Mask of the completed entries of `X`; None without completion.
    """

    X: Any
    y: Any = None
    weight: npt.NDArray[np.float64] | None = None
    start: int = 0
    missing: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def labels(self) -> Any:
        """The labels `y`; ValueError without labels."""
        if self.y is None:
            raise ValueError(
                f"y: expected the labels of the samples from {self.start} on, got None"
            )
        return self.y

    def take(self, rows: Codes | slice) -> Block:
        """Select samples.

        Parameters
        ----------
        rows : (r,) array of int or slice
            Indices of the samples within the block.

        Returns
        -------
        Block
        """
        y = None if self.y is None else _array(self.y)[rows]
        weight = None if self.weight is None else np.asarray(self.weight)[rows]
        missing = None if self.missing is None else self.missing[rows]
        return Block(take_rows(self.X, rows), y, weight, self.start, missing)

    def core(self, constant: bool) -> CoreRows:
        """Return the features in the form of the core; the result is cached.

        Parameters
        ----------
        constant : bool
            Whether to add a last feature of ones.

        Returns
        -------
        CoreRows
        """
        if constant not in self._cores:
            self._cores[constant] = core_rows(self.X, constant)
        return self._cores[constant]

    @cached_property
    def _cores(self) -> dict[bool, CoreRows]:
        return {}

    def scores(self, W: Floats, constant: bool, n_threads: int | None) -> Floats:
        """Compute logits; the result for the latest weights is cached.

        Parameters
        ----------
        W : (p, k) array
            Weights of the features, with `constant` also of the feature of ones.
        constant : bool
            Whether to add a last feature of ones.
        n_threads : int or None
            Number of threads; None means all.

        Returns
        -------
        (m, k) array
            Logits in the type of the samples.
        """
        cached = self.__dict__.get("_scores")
        if cached is None or cached[0] is not W or cached[1] != constant:
            weights = np.ascontiguousarray(W, dtype=_floating(self.X))
            cached = W, constant, self.core(constant).scores(weights, resolve(n_threads))
            self.__dict__["_scores"] = cached
        return cast("Floats", cached[2])

    def products(
        self, residuals: Floats, constant: bool, n_threads: int | None
    ) -> npt.NDArray[np.float64]:
        """Compute ``Phi^T residuals`` for the features Phi (m, p).

        Parameters
        ----------
        residuals : (m, k) array
            Residuals of the samples.
        constant : bool
            Whether to add a last feature of ones.
        n_threads : int or None
            Number of threads; None means all.

        Returns
        -------
        (p, k) array of float64
        """
        residuals = np.ascontiguousarray(residuals, dtype=_floating(self.X))
        return self.core(constant).products(residuals, resolve(n_threads))


def _floating(X: Any) -> Any:
    return np.float32 if X.dtype == np.float32 else np.float64


def _array(values: Any) -> Any:
    return values if hasattr(values, "tocsr") else np.asarray(values)


@dataclass(frozen=True, eq=False)
class MemorySamples:
    """Checked labelled samples in memory."""

    block: Block  # features; labels as int32 indices
    classes: Labels  # (k,) sorted
    n_threads: int | None = None  # of a pass; None means all
    completion: GaussianImputer | None = None  # the model that has completed missing entries
    hidden_layers: tuple[Layer, ...] = ()  # applied to `block` in each pass

    in_memory: ClassVar[Literal[True]] = True

    @classmethod
    def of(
        cls,
        X: Floats | csr_array | ExpandedFeatures,
        y: Labels,
        weight: npt.NDArray[np.float64] | None,
        n_threads: int | None,
        names: Sequence[str] | None = None,
    ) -> MemorySamples:
        """Create samples from checked arrays; weights are positive or None.

        Missing entries are completed; warnings call the columns by `names`.
        """
        missing = gaussian = None
        if not isinstance(X, ExpandedFeatures) and has_missing(X):
            X, missing, gaussian = completed(X, y, weight, n_threads, names)
        labels, codes = np.unique(y, return_inverse=True)
        block = Block(X, codes.astype(np.int32), weight, missing=missing)
        return cls(block, labels, n_threads, gaussian)

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """Indices (n,) of the labels."""
        return np.asarray(self.block.y)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.block.y)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.block.X.shape[1])

    @property
    def dtype(self) -> DType:
        """Type of the features."""
        return np.dtype(self.block.X.dtype)

    @property
    def dense(self) -> bool:
        """Whether the features are an array."""
        return isinstance(self.block.X, np.ndarray)

    @property
    def sparse(self) -> bool:
        """Whether the features are a sparse matrix."""
        return not isinstance(self.block.X, np.ndarray | ExpandedFeatures)

    def in_float32(self) -> MemorySamples:
        """The samples rounded to float32."""
        return self.with_features(self.block.X.astype(np.float32))

    def mapped(self, layers: Sequence[Layer], *, hidden: bool = False) -> MemorySamples:
        """The samples seen through fitted layers.

        With `hidden`, the features are the input of another layer, and are computed in each pass.
        """
        if hidden:
            return replace(self, hidden_layers=tuple(layers))
        if not layers:
            return self
        return self.with_features(layer_features(self.block.X, layers, self.n_threads))

    def centred(self, centre: npt.NDArray[np.float64]) -> MemorySamples:
        """Dense samples minus a centre (d,)."""
        X = self.block.X
        shifted = np.subtract(X, centre, out=np.empty_like(X), casting="same_kind")
        return self.with_features(shifted)

    def with_features(self, X: Floats | csr_array | ExpandedFeatures) -> MemorySamples:
        """The samples with other, complete features."""
        return replace(self, block=Block(X, self.block.y, self.block.weight))

    def subset(self, rows: Codes) -> MemorySamples:
        """Select samples by index."""
        return replace(self, block=self.block.take(rows))

    def take(self, rows: Codes) -> Block:
        """Select samples by index, in this order, as one block; labels are indices."""
        return self.block.take(rows)

    def together(self) -> Block:
        """All samples as one block."""
        return self.block

    def reduce(
        self,
        function: Callable[..., _Result],
        merge: Callable[[_Result, _Result], _Result],
        *arguments: object,
    ) -> _Result:
        """Return ``function(block, *arguments)`` for the block of all samples."""
        return function(self.block, *arguments)

    def moments(self) -> ClassMoments:
        """Moments of the classes. Hidden layers are applied piece by piece."""
        if not self.hidden_layers:
            return labelled_moments(self.block, self.classes, self.n_threads, self.completion)
        result, labels, weight = ClassMoments(), self.classes[self.codes], self.block.weight
        for rows, X in hidden_features(self.block.X, self.hidden_layers, self.n_threads):
            part = None if weight is None else weight[rows]
            result.update(X, labels[rows], part, n_threads=self.n_threads)
        return result


def labelled_moments(
    block: Block,
    classes: Labels,
    n_threads: int | None,
    completion: GaussianImputer | None,
) -> ClassMoments:
    """Class moments of a block whose labels are indices of `classes`.

    The conditional covariances of completed entries are added.
    """
    result = ClassMoments()
    result.update(block.X, classes[block.y], block.weight, n_threads=n_threads)
    if block.missing is not None and completion is not None:
        present, codes = np.unique(block.y, return_inverse=True)
        spread = completion.spread(block.missing, codes, len(present), block.weight, n_threads)
        for code, scatter in zip(present, spread, strict=True):
            result.add_scatter(classes[code], scatter)
    return result


# ---- weights of samples and classes --------------------------------------------------------------


def row_weights(sample_weight: ArrayLike | None, n: int) -> npt.NDArray[np.float64]:
    """Check weights (n,) and scale extreme weights, see `usual_weights`; ones for None.

    ValueError if weights are negative, not finite, too few or too many, or all 0.
    """
    weights = check_weights(sample_weight, n)
    if weights is None:
        return np.ones(n)
    check_some_weight(n == 0 or bool(weights.any()))
    return usual_weights(weights)


def weights_of_mean_1(weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Weights (n,) scaled to a mean of 1, and rounded to 30 bits.

    A factor of all weights then changes nothing, not even the ties between splits of trees.
    """
    fraction, exponent = np.frexp(weight / weight.mean())
    rounded: npt.NDArray[np.float64] = np.ldexp(np.round(fraction * 2.0**30), exponent - 30)
    return rounded


def weighted_rows(
    X: _Rows, y: _Labels, sample_weight: ArrayLike | None
) -> tuple[_Rows, _Labels, npt.NDArray[np.float64] | None]:
    """Check weights and leave out samples of weight 0; without weights all samples remain.

    ValueError if weights are negative, not finite, too few or too many, or none is positive.
    """
    if sample_weight is None:
        return X, y, None
    weight = row_weights(sample_weight, X.shape[0])
    positive = weight > 0
    if positive.all():
        return X, y, weight
    rows = cast("_Rows", take_rows(X, positive))
    return rows, cast("_Labels", None if y is None else np.asarray(y)[positive]), weight[positive]


def class_factors(
    class_weight: dict[Hashable, float] | str, classes: Labels, sums: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Class weights (k,), by which sample weights are multiplied; `sums` are total weights W_c.

    A dict has weights by label, 1 for other labels. "balanced" is ``W / (k W_c)``, where W is the
    weight of all samples. ValueError if a class weight is not positive and finite, or if the dict
    has an unknown label and lacks a class. A dict of all classes may have further labels, because a
    part of the samples may lack a rare class.
    """
    if isinstance(class_weight, str):
        factors = sums.sum() / (len(classes) * sums)
    else:
        known = classes.tolist()
        unknown = [label for label in class_weight if label not in known]
        if unknown and not class_weight.keys() >= set(known):
            raise ValueError(f"class_weight: expected labels of y, got {unknown[0]!r}")
        factors = np.array([class_weight.get(label, 1.0) for label in known], dtype=np.float64)
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise ValueError(f"class_weight: expected positive weights, got {class_weight!r}")
    return factors


def class_weighted(
    class_weight: dict[Hashable, float] | str | None,
    y: Labels,
    weight: npt.NDArray[np.float64] | None,
) -> npt.NDArray[np.float64] | None:
    """Weights (n,) of samples times the weights of their classes; see `class_factors`.

    Without `class_weight`, the given weights are returned.
    """
    if class_weight is None:
        return weight
    classes, codes = np.unique(y, return_inverse=True)
    result = class_factors(class_weight, classes, np.bincount(codes, weight).astype(float))[codes]
    with np.errstate(over="ignore", under="ignore"):
        product = result if weight is None else result * weight
    if not (np.isfinite(product) & (product > 0)).all():
        raise ValueError(
            "class_weight: expected factors whose products with sample_weight fit float64, got "
            f"{class_weight!r}"
        )
    return usual_weights(product)
