"""Labelled samples in blocks: the results of a first pass, and later passes over the samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from eigenfeat._base.labels import LabelTable
from eigenfeat._base.types import ClassWeight, Codes, DType, Labels
from eigenfeat._base.validation import check_some_weight, has_missing, weight_unit
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples.blocks import (
    RowBlocks,
    RowTransform,
    check_finite,
    merge_read,
    read,
    sum_of_bits,
)
from eigenfeat.samples.completion import GaussianImputer, sampled, warn_empty
from eigenfeat.samples.labelled import (
    Block,
    MemorySamples,
    class_factors,
    labelled_moments,
)
from eigenfeat.samples.target_statistics import CategoryTargets, with_statistics

if TYPE_CHECKING:
    from collections.abc import Hashable

    from eigenfeat.expansion.features import Layer
    from eigenfeat.samples.columns import TableColumns

__all__ = [
    "BlockSamples",
    "LabelledSamples",
    "first_scan",
    "scan_blocks",
]

_Array = npt.NDArray[np.float64]
_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class Piece:
    """Labels of one block."""

    start: int
    n_samples: int
    codes: Codes  # (m,) indices into `labels`, of the samples of positive weight
    labels: tuple[Hashable, ...]
    weighted: npt.NDArray[np.bool_] | None  # mask of the samples of positive weight; None: all
    weights: _Array  # sums of the samples' weights by label


@dataclass(eq=False)
class BlockScan:
    """Result of a first pass over blocks."""

    n_features: int
    dtype: DType  # float32 if all blocks are, else float64
    sparse: bool  # whether some blocks are sparse
    n_samples: int  # including samples without weight
    bits: int  # see `sum_of_bits`
    table: LabelTable  # labels of samples of positive weight
    weight: float | None  # sum of the weights; None without weights
    heaviest: float  # largest weight; 0 without weights
    pieces: list[Piece] = field(default_factory=list)  # one per block, in any order
    moments: ClassMoments | None = None
    missing: bool = False  # whether some entries are missing


def scan(block: Block, reading: RowTransform, with_moments: bool = False) -> BlockScan:
    """Check one raw block; collect its labels and optionally the moments of its classes.

    ValueError if samples are not finite (the message gives row and column), or labels are missing.
    """
    checked = reading.checked(block)
    check_finite(checked.X, block.start, missing=reading.allows_missing)
    missing = has_missing(checked.X)
    n = len(checked)
    keep = None if checked.weight is None else checked.weight > 0
    rows = reading.weighted(checked)
    labels = rows.labels if reading.groups is None else reading.groups(rows)
    codes, table = LabelTable().encode(labels, len(rows), block.start)
    result = None
    if with_moments and len(rows) and not missing:
        result = ClassMoments().update(rows.X, labels, rows.weight, n_threads=reading.n_threads)
    narrow = codes.astype(np.min_scalar_type(max(len(table) - 1, 0)))
    weights = np.bincount(codes, rows.weight, len(table)).astype(np.float64)
    keep = None if keep is None or keep.all() else keep
    piece = Piece(block.start, n, narrow, table.labels, keep, weights)
    return BlockScan(
        checked.X.shape[1],
        checked.X.dtype,
        not isinstance(checked.X, np.ndarray),
        n,
        sum_of_bits(checked.X),
        table,
        None if checked.weight is None else float(checked.weight.sum()),
        0.0 if checked.weight is None else float(checked.weight.max(initial=0.0)),
        [piece],
        result,
        missing,
    )


def merge_scans(a: BlockScan, b: BlockScan) -> BlockScan:
    """Merge two scans; changes and returns `a`."""
    if a.n_features != b.n_features:
        first, later = sorted([a, b], key=lambda part: min(p.start for p in part.pieces))
        start = min(piece.start for piece in later.pieces)
        raise ValueError(
            f"X: expected {first.n_features} columns, got {later.n_features} in the block from row "
            f"{start} on"
        )
    if (a.weight is None) != (b.weight is None):
        without = a if a.weight is None else b
        start = min(piece.start for piece in without.pieces)
        raise ValueError(
            "sample_weight: expected weights in all blocks or in no block, got none in the block "
            f"from row {start} on"
        )
    if b.table.dtype is not None:
        a.table = a.table.joined(b.table.labels, b.table.dtype, "y")
    a.dtype = np.result_type(a.dtype, b.dtype)
    a.sparse |= b.sparse
    a.missing |= b.missing
    a.n_samples += b.n_samples
    a.bits += b.bits
    a.weight = None if a.weight is None or b.weight is None else a.weight + b.weight
    a.heaviest = max(a.heaviest, b.heaviest)
    a.pieces += b.pieces
    if a.moments is None or b.moments is None:
        a.moments = a.moments or b.moments
    else:
        a.moments.merge(b.moments)
    return a


@dataclass(frozen=True, eq=False)
class BlockSamples:
    """Labelled samples in blocks.

    Samples without weight are left out; indices count the other samples from 0.
    """

    blocks: RowBlocks
    reading: RowTransform  # applied in each pass
    scan: BlockScan  # results of the first pass
    encoder: TableColumns | None = None  # of the columns, if some of them are categories
    indices: npt.NDArray[np.int64] | None = None  # of a subset; None: all samples

    in_memory: ClassVar[Literal[False]] = False

    @property
    def classes(self) -> Labels:
        """Labels (k,), sorted."""
        return self.scan.table.classes

    @property
    def n_threads(self) -> int | None:
        """Number of threads of a pass."""
        return self.reading.n_threads

    @cached_property
    def codes(self) -> Codes:
        """Indices (n,) of the labels, in the smallest integer type that holds them."""
        table = LabelTable.of(self.classes)
        narrow = np.min_scalar_type(max(len(table) - 1, 0))
        by_piece = []
        for piece in self.scan.pieces:
            indices = np.array([table.index(label) for label in piece.labels], dtype=narrow)
            by_piece.append(indices[piece.codes])
        codes = np.concatenate(by_piece)
        return codes if self.indices is None else codes[self.indices]

    @property
    def weighted(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the samples with positive weight; None if all weights are positive."""
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
        """Number of columns after the encoding of categories."""
        return self.scan.n_features if self.encoder is None else len(self.encoder.feature_names_)

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
        return np.dtype(np.float32) if self.reading.layers else self.scan.dtype

    def mapped(self, layers: Sequence[Layer], *, hidden: bool = False) -> BlockSamples:
        """See `MemorySamples.mapped`; layers are applied in each pass."""
        return self._read_as(layers=tuple(layers), hidden=hidden)

    def centred(self, centre: _Array) -> BlockSamples:
        """Dense samples minus a centre (d,), which each pass subtracts."""
        return self._read_as(centre=centre)

    def _read_as(self, **changes: Any) -> BlockSamples:
        return replace(self, reading=replace(self.reading, **changes))

    def moments(self) -> ClassMoments:
        """Moments of the classes, from the first pass at the first call, later from a new pass."""
        result = self.scan.moments
        if result is None or self.indices is not None or self.reading.layers:
            arguments = self.classes, self.n_threads, self.completion
            return self.reduce(labelled_moments, ClassMoments.merge, *arguments)
        self.scan.moments = None
        return result

    def subset(self, rows: Codes) -> BlockSamples:
        """Select samples by ascending indices."""
        numbers = np.asarray(rows, dtype=np.int64)
        mask = np.zeros(self.scan.n_samples, dtype=bool)
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

        ValueError if the samples differ from those of the first pass.
        """
        count, bits, result = self.blocks.reduce(
            read, partial(merge_read, merge), self.reading, function, merge, *arguments
        )
        expected, same = self.scan.n_samples, (bits - self.scan.bits) % 2**64 == 0
        if count != expected or not same or result is None:
            what = f"{count} with other values" if count == expected else f"{count}"
            raise ValueError(
                f"X: expected the {expected} samples of the first pass in every pass, got {what}: "
                "the blocks have changed"
            )
        return result

    def take(self, rows: Codes) -> Block:
        """Select samples by index, in this order, as one block of checked and completed samples."""
        numbers = np.asarray(rows, dtype=np.int64)
        order = np.argsort(numbers, kind="stable")
        rows = self._global(numbers[order])
        block = self.reading.checked(self.blocks.take(rows))
        block = self.reading.completed(self.reading.encoded(block, rows))
        if len(block) != len(numbers):
            raise ValueError(f"X: expected {len(numbers)} selected samples, got {len(block)}")
        codes = self.codes[numbers].astype(np.int32)
        weight = self.reading.class_weighted(codes[order], block.weight)
        if (order[1:] > order[:-1]).all():
            return Block(block.X, codes, weight)
        back = np.argsort(order)
        return Block(block.X[back], codes, None if weight is None else weight[back])

    def together(self) -> Block:
        """All features, held in memory."""
        raw = self.take(np.arange(self.n_samples))
        return Block(self.reading.features_of(raw.X), raw.y, raw.weight)

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
    small: bool,
    moments: bool,
    n_threads: int | None,
    allows_missing: bool,
    class_weight: ClassWeight,
    mean_weight_1: bool,
) -> BlockSamples:
    """Scan blocks of labelled samples, with the options of `prepare`.

    Columns of many categories need a second pass, missing entries another pass.
    ValueError for invalid samples, labels or weights gives their index among all samples.
    """
    reading = RowTransform(small=small, n_threads=n_threads, allows_missing=allows_missing)
    encoder = blocks.encoder
    coded = encoder is not None and bool(encoder.coded)
    result = first_scan(blocks, reading, moments=moments and class_weight is None and not coded)
    classes, unit = result.table.classes, weight_unit(result.heaviest)
    n_weighted = sum(len(piece.codes) for piece in result.pieces)
    if mean_weight_1 and result.weight is not None:
        unit = result.weight / n_weighted
    check_classification_targets(np.repeat(classes, 3))
    if result.weight is not None:
        result.weight /= unit
    known = replace(reading, n_features=result.n_features, classes=classes, weight_unit=unit)
    if class_weight is not None:
        sums = _class_sums(result) / unit
        factors = class_factors(class_weight, classes, sums)
        if mean_weight_1:
            factors = factors * (n_weighted / float(factors @ sums))
        else:
            factors = factors / weight_unit(float(factors.max()) * (result.heaviest / unit or 1.0))
        result.weight = float(factors @ sums)
        known = replace(known, class_factors=factors)
    samples = BlockSamples(blocks, known, result, encoder)
    if coded:
        samples = _with_statistics(samples)
    if not result.missing:
        return samples
    result.moments = None  # the moments lack the blocks with missing entries
    drawn = samples.take(sampled(samples.n_samples, samples.n_features))
    gaussian = GaussianImputer.fit(drawn.X, drawn.weight, n_threads=n_threads)
    encoder = samples.encoder
    warn_empty(gaussian, blocks.column_names if encoder is None else [*encoder.feature_names_])
    return replace(samples, reading=replace(samples.reading, completion=gaussian))


def _with_statistics(samples: BlockSamples) -> BlockSamples:
    """Encode categories by statistics of the labels instead of codes."""
    used = samples.weighted
    used = np.ones(samples.n_samples, dtype=bool) if used is None else used
    sums = _class_sums(samples.scan)
    targets = CategoryTargets.of_classes(samples.classes, samples.codes, sums, used)
    assert samples.encoder is not None
    encoder, statistics = with_statistics(samples.encoder, samples.blocks, targets)
    reading = replace(samples.reading, statistics=statistics.encoded)
    return replace(samples, reading=reading, encoder=encoder)


def first_scan(blocks: RowBlocks, reading: RowTransform, *, moments: bool) -> BlockScan:
    """Scan blocks in a first pass; the pieces are in the order of the samples."""
    result = blocks.reduce(scan, merge_scans, reading, moments)
    result.pieces.sort(key=lambda piece: piece.start)
    _check_order(result.pieces)
    if result.n_samples == 0:
        raise ValueError("X: expected at least one sample, got none")
    check_some_weight(len(result.table) > 0)
    return result


def _class_sums(scan: BlockScan) -> npt.NDArray[np.float64]:
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
