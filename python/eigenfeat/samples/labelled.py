"""Labelled samples of a fit, in memory or in blocks, and their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from eigenfeat._base.labels import LabelTable
from eigenfeat._base.types import ClassWeight, Codes, DType, Floats, Labels
from eigenfeat._base.validation import (
    check_some_weight,
    check_weights,
    has_missing,
    usual_weights,
    weight_unit,
)
from eigenfeat.expansion.features import CoreRows, ExpandedFeatures, take_rows
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples import reductions
from eigenfeat.samples.blocks import Block, RowBlocks, RowTransform, merge_read, read
from eigenfeat.samples.completion import GaussianImputer, completed, sampled, warn_empty

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import ArrayLike
    from scipy.sparse import csr_array

    from eigenfeat._base.types import Targets
    from eigenfeat.expansion.features import Layer
    from eigenfeat.samples.reductions import BlockScan, Piece

__all__ = [
    "BlockSamples",
    "CachedBlock",
    "LabelledSamples",
    "MemorySamples",
    "class_sums",
    "class_weighted",
    "first_scan",
    "labelled_moments",
    "row_weights",
    "scan_blocks",
    "weighted_rows",
]

_Result = TypeVar("_Result")
_Rows = TypeVar("_Rows", bound="Floats | csr_array | ExpandedFeatures | npt.NDArray[np.intp]")
_Labels = TypeVar("_Labels", bound="Targets")
_Samples = TypeVar("_Samples", bound="_ReadSamples")


class CachedBlock(Block):
    """A block that is read in several passes; the core's view of it is cached."""

    def core(self, constant: bool) -> CoreRows:
        """See `Block.core`."""
        cores: dict[bool, CoreRows] = self.__dict__.setdefault("_cores", {})
        if constant not in cores:
            cores[constant] = super().core(constant)
        return cores[constant]

    def scores(self, W: npt.NDArray[np.float64], constant: bool, n_threads: int | None) -> Floats:
        """See `Block.scores`; the result for the latest weights is cached."""
        cached = self.__dict__.get("_scores")
        if cached is None or cached[0] is not W:
            cached = W, super().scores(W, constant, n_threads)
            self.__dict__["_scores"] = cached
        return cached[1]


class _ReadSamples:
    """Base class: samples with a transform that each pass applies."""

    reading: RowTransform

    def read_as(self: _Samples, reading: RowTransform) -> _Samples:
        """The samples after another transform."""
        raise NotImplementedError

    @property
    def n_threads(self) -> int | None:
        """Number of threads of a pass."""
        return self.reading.n_threads

    def mapped(
        self: _Samples,
        layers: Sequence[Layer],
        *,
        hidden: bool = False,
        include_input: bool = False,
    ) -> _Samples:
        """The samples seen through fitted layers.

        With `hidden` the features are the input of a next layer; with `include_input` they follow
        the input of the last one.
        """
        reading = replace(
            self.reading, layers=tuple(layers), hidden=hidden, include_input=include_input
        )
        return self.read_as(reading)


@dataclass(frozen=True, eq=False)
class MemorySamples(_ReadSamples):
    """Checked labelled samples in memory."""

    block: Block  # features; labels as int32 indices
    classes: Labels  # (k,) sorted
    reading: RowTransform  # hidden layers that each pass applies to `block`
    completion: GaussianImputer | None = None  # the model that has completed missing entries

    in_memory: ClassVar[Literal[True]] = True

    @classmethod
    def of(
        cls,
        X: Floats | csr_array | ExpandedFeatures,
        y: ArrayLike,
        weight: npt.NDArray[np.float64] | None,
        n_threads: int | None,
        missing: npt.NDArray[np.bool_] | None = None,
        completion: GaussianImputer | None = None,
    ) -> MemorySamples:
        """Create samples from complete checked arrays; weights are positive or None.

        `missing` (n, d) is the mask of entries that `completion` has filled in.
        """
        labels, codes = np.unique(y, return_inverse=True)
        block = CachedBlock(X, codes.astype(np.int32), weight, missing=missing)
        return cls(block, labels, RowTransform(n_threads=n_threads), completion)

    @classmethod
    def completed(
        cls,
        X: Floats | csr_array | ExpandedFeatures,
        y: Labels,
        weight: npt.NDArray[np.float64] | None,
        n_threads: int | None,
        names: Sequence[str] | None = None,
    ) -> MemorySamples:
        """Create samples from arrays that may have missing entries; see `completion.completed`."""
        if isinstance(X, ExpandedFeatures) or not has_missing(X):
            return cls.of(X, y, weight, n_threads)
        rows, missing, gaussian = completed(X, y, weight, n_threads, names)
        return cls.of(rows, y, weight, n_threads, missing, gaussian)

    @classmethod
    def of_features(
        cls, samples: MemorySamples, X: Floats | csr_array | ExpandedFeatures
    ) -> MemorySamples:
        """Create samples with complete features X and the labels and weights of `samples`."""
        block = CachedBlock(X, samples.block.y, samples.block.weight)
        return cls(block, samples.classes, RowTransform(n_threads=samples.n_threads))

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """Indices (n,) of the labels."""
        return np.asarray(self.block.y)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.codes)

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
        block = self.block
        return replace(self, block=CachedBlock(block.X.astype(np.float32), block.y, block.weight))

    def read_as(self, reading: RowTransform) -> MemorySamples:
        """The samples after another transform; only hidden layers are applied in each pass."""
        if reading.hidden:
            return replace(self, reading=reading)
        return self._with_features(reading.whole(self.block.X))

    def _with_features(self, X: Floats | csr_array | ExpandedFeatures) -> MemorySamples:
        return replace(self, block=CachedBlock(X, self.block.y, self.block.weight))

    def narrowed(
        self, layer: Layer, mask: npt.NDArray[np.bool_], include_input: bool
    ) -> MemorySamples:
        """Projected samples with the directions of `layer`, which `mask` selects."""
        features = self.block.X
        projections = features.projections if mask.all() else features.projections[:, mask]
        X = features.X if include_input else None
        return self._with_features(layer.features(projections, X))

    def subset(self, rows: Codes) -> MemorySamples:
        """Select samples by index."""
        part = self.block.take(rows)
        block_in_memory = CachedBlock(part.X, part.y, part.weight, missing=part.missing)
        return replace(self, block=block_in_memory)

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
        if not self.reading.hidden:
            return labelled_moments(self.block, self.classes, self.n_threads, self.completion)
        result = ClassMoments()
        for piece in self.reading.features(self.block):
            labels = self.classes[piece.y]
            result.update(piece.X, labels, piece.weight, n_threads=self.n_threads)
        return result


@dataclass(frozen=True, eq=False)
class BlockSamples(_ReadSamples):
    """Labelled samples in blocks.

    Samples without weight are left out; indices count the other samples from 0.
    """

    blocks: RowBlocks
    reading: RowTransform  # applied in each pass
    scan: BlockScan  # results of the first pass
    indices: npt.NDArray[np.int64] | None = None  # of a subset; None: all samples

    in_memory: ClassVar[Literal[False]] = False

    @property
    def classes(self) -> Labels:
        """Labels (k,), sorted."""
        return self.scan.table.classes

    @cached_property
    def codes(self) -> Codes:
        """Indices (n,) of the labels, in the smallest integer type that holds them."""
        table = LabelTable.of(self.classes)
        narrow = np.min_scalar_type(max(len(table) - 1, 0))
        parts = []
        for piece in self.scan.pieces:
            indices = np.array([table.index(label) for label in piece.labels], dtype=narrow)
            parts.append(indices[piece.codes])
        codes = np.concatenate(parts)
        return codes if self.indices is None else codes[self.indices]

    @property
    def weighted(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the samples with positive weight; None if all have one."""
        pieces = self.scan.pieces
        if all(piece.weighted is None for piece in pieces):
            return None
        return np.concatenate(
            [np.ones(p.n_samples, bool) if p.weighted is None else p.weighted for p in pieces]
        )

    @property
    def completion(self) -> GaussianImputer | None:
        """The model that completes missing entries, or None."""
        return self.reading.completion

    @property
    def n_samples(self) -> int:
        """Number of samples of positive weight."""
        if self.indices is not None:
            return len(self.indices)
        return sum(len(piece.codes) for piece in self.scan.pieces)

    @property
    def n_features(self) -> int:
        """Number of columns of the input."""
        return self.scan.n_features

    @property
    def dense(self) -> bool:
        """Whether the features are arrays: not sparse, and not projected."""
        return not (self.scan.sparse or self.reading.layers)

    @property
    def sparse(self) -> bool:
        """Whether the features are sparse matrices, not projected."""
        return bool(self.scan.sparse) and not self.reading.layers

    @property
    def dtype(self) -> DType:
        """Type of the features."""
        return self.reading.dtype(self.scan.dtype)

    def read_as(self, reading: RowTransform) -> BlockSamples:
        """The samples after another transform."""
        return replace(self, reading=reading)

    def narrowed(
        self, layer: Layer, mask: npt.NDArray[np.bool_], include_input: bool
    ) -> BlockSamples:
        """As `MemorySamples.narrowed`; passes project on the selected directions only."""
        layers = (*self.reading.layers[:-1], layer)
        return self.read_as(replace(self.reading, layers=layers, include_input=include_input))

    def moments(self) -> ClassMoments:
        """Moments of the classes; moments of the first pass are returned once."""
        result = self.scan.moments
        if result is None or self.indices is not None or self.reading.layers:
            arguments = self.classes, self.n_threads, self.completion
            return self.reduce(labelled_moments, reductions.merge_moments, *arguments)
        self.scan.moments = None
        return result

    def subset(self, rows: Codes) -> BlockSamples:
        """Select samples by ascending indices."""
        numbers = np.asarray(rows, dtype=np.int64)
        mask = np.zeros(self.scan.checksum.n_samples, dtype=bool)
        mask[self._global(numbers)] = True
        chosen = numbers if self.indices is None else self.indices[numbers]
        reading = replace(self.reading, mask=np.packbits(mask))
        return replace(self, reading=reading, indices=chosen)

    def reduce(
        self,
        function: Callable[..., _Result],
        merge: Callable[[_Result, _Result], _Result],
        *arguments: object,
    ) -> _Result:
        """Merge ``function(piece, *arguments)`` over pieces of the features.

        Raises
        ------
        ValueError
            If the samples differ from those of the first pass.
        """
        checksum, result = self.blocks.reduce(
            read, partial(merge_read, merge), self.reading, function, merge, *arguments
        )
        expected = self.scan.checksum
        if checksum != expected or result is None:
            count = checksum.n_samples
            what = f"{count} with other values" if count == expected.n_samples else f"{count}"
            raise ValueError(
                f"X: expected the {expected.n_samples} samples of the first pass in every pass, "
                f"got {what}: the blocks have changed"
            )
        return result

    def take(self, rows: Codes) -> Block:
        """Select samples by index, in this order, as one block of checked and completed samples."""
        numbers = np.asarray(rows, dtype=np.int64)
        order = np.argsort(rows, kind="stable")
        block = self.reading.checked(self.blocks.take(self._global(numbers[order])))
        block = self.reading.completed(block)
        if len(block) != len(numbers):
            raise ValueError(f"X: expected {len(numbers)} samples by number, got {len(block)}")
        codes = self.codes[numbers].astype(np.int32)
        weight = self.reading.class_weighted(codes[order], block.weight)
        if (order[1:] > order[:-1]).all():
            return Block(block.X, codes, weight)
        back = np.argsort(order)
        return Block(block.X[back], codes, None if weight is None else weight[back])

    def together(self) -> Block:
        """All features, held in memory."""
        raw = self.take(np.arange(self.n_samples))
        return Block(self.reading.whole(raw.X), raw.y, raw.weight)

    def _global(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Indices among all samples of the blocks."""
        chosen = rows if self.indices is None else self.indices[rows]
        mask = self.weighted
        return chosen if mask is None else np.flatnonzero(mask)[chosen]


LabelledSamples: TypeAlias = MemorySamples | BlockSamples
"""Samples of a fit, with labels and positive weights."""


def scan_blocks(
    blocks: RowBlocks,
    *,
    small: bool = False,
    moments: bool = False,
    n_threads: int | None = None,
    allows_missing: bool = False,
    class_weight: ClassWeight = None,
    mean_weight_1: bool = False,
) -> BlockSamples:
    """Scan blocks of labelled samples; a second pass fits the completion of missing entries.

    Parameters
    ----------
    small
        As in `RowTransform`.
    moments
        Whether the first pass accumulates the moments of the classes; not with `class_weight`.
    allows_missing
        Whether NaN is a missing entry, and not an error.
    class_weight
        Class weights, see `class_factors`.
    mean_weight_1
        Whether to scale the weights to a mean of 1.

    Raises
    ------
    ValueError
        If samples, labels or weights are invalid; the message gives the index among all samples.
    """
    reading = RowTransform(small=small, n_threads=n_threads, allows_missing=allows_missing)
    result = first_scan(blocks, reading, moments=moments and class_weight is None)
    classes, unit = result.table.classes, weight_unit(result.heaviest)
    n_weighted = sum(len(piece.codes) for piece in result.pieces)
    if mean_weight_1 and result.weight is not None:
        unit = result.weight / n_weighted
    check_classification_targets(np.repeat(classes, 3))
    if result.weight is not None:
        result.weight /= unit
    known = replace(reading, n_features=result.n_features, classes=classes, weight_unit=unit)
    if class_weight is not None:
        sums = class_sums(result) / unit
        factors = class_factors(class_weight, classes, sums)
        if mean_weight_1:
            factors = factors * (n_weighted / float(factors @ sums))
        else:
            factors = factors / weight_unit(float(factors.max()) * (result.heaviest / unit or 1.0))
        result.weight = float(factors @ sums)
        known = replace(known, class_factors=factors)
    samples = BlockSamples(blocks, known, result)
    if not result.missing:
        return samples
    result.moments = None  # they lack the blocks with missing entries
    drawn = samples.take(sampled(samples.n_samples, samples.n_features))
    gaussian = GaussianImputer.fit(drawn.X, drawn.weight, n_threads=n_threads)
    encoder = blocks.encoder
    warn_empty(gaussian, blocks.column_names if encoder is None else [*encoder.feature_names_])
    return samples.read_as(replace(known, completion=gaussian))


def first_scan(blocks: RowBlocks, reading: RowTransform, *, moments: bool = False) -> BlockScan:
    """Scan blocks in a first pass; the pieces are in the order of the samples."""
    result = blocks.reduce(reductions.scan, reductions.merge_scans, reading, moments)
    result.pieces.sort(key=lambda piece: piece.start)
    _check_order(result.pieces)
    if result.checksum.n_samples == 0:
        raise ValueError("X: expected at least one sample, got none")
    check_some_weight(len(result.table) > 0)
    return result


def class_sums(scan: BlockScan) -> npt.NDArray[np.float64]:
    """Total weight (k,) of each class."""
    table, sums = LabelTable.of(scan.table.classes), np.zeros(len(scan.table))
    for piece in scan.pieces:
        sums[[table.index(label) for label in piece.labels]] += piece.weights
    return sums


def _check_order(pieces: list[Piece]) -> None:
    expected = 0
    for piece in pieces:
        if piece.start != expected:
            raise ValueError(
                f"X: expected a block that starts at row {expected}, got one at {piece.start}"
            )
        expected += piece.n_samples


def labelled_moments(
    block: Block,
    classes: Labels,
    n_threads: int | None = None,
    completion: GaussianImputer | None = None,
) -> ClassMoments:
    """Class moments of a block whose labels are indices of `classes`.

    Completed entries add their conditional covariances.
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
    """Check weights (n,) and scale extreme ones, see `usual_weights`; ones for None.

    ValueError if weights are negative, not finite, too few or too many, or all 0.
    """
    weights = check_weights(sample_weight, n)
    if weights is None:
        return np.ones(n)
    check_some_weight(n == 0 or bool(weights.any()))
    return usual_weights(weights)


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
    some = cast("_Rows", take_rows(X, positive))
    return some, cast("_Labels", None if y is None else np.asarray(y)[positive]), weight[positive]


def class_factors(
    class_weight: dict[Hashable, float] | str, classes: Labels, sums: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Class weights (k,), by which sample weights are multiplied; `sums` are total weights W_c.

    A dict has weights by label, 1 for other labels. "balanced" is ``W / (k W_c)``, where W is the
    weight of all samples.

    Raises
    ------
    ValueError
        If a class weight is not positive and finite, or a label of the dict is not a class.
    """
    if isinstance(class_weight, str):
        factors = sums.sum() / (len(classes) * sums)
    else:
        known = classes.tolist()
        unknown = [label for label in class_weight if label not in known]
        if unknown:
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
