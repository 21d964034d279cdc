"""Samples of a fit whose categories are encoded, with target statistics out of fold."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from eigenfeat.samples.block_samples import BlockSamples, class_sums, first_scan
from eigenfeat.samples.blocks import ArrayBlocks, RowBlocks, RowTransform
from eigenfeat.samples.columns import TableColumns
from eigenfeat.samples.labelled import Block
from eigenfeat.samples.target_statistics import FoldStatistics, Targets

__all__ = ["encoded_table", "with_statistics"]

_Result = TypeVar("_Result")


def encoded_table(
    X: Any, y: Any, sample_weight: npt.NDArray[np.float64] | None, *, continuous: bool
) -> tuple[TableColumns, npt.NDArray[np.float64]]:
    """Encoder of a table's columns, and the encoded samples (n, D), with NaN for missing numbers.

    Columns of many categories are encoded by target statistics, those of the training samples out
    of fold.

    Parameters
    ----------
    X : table
    y : (n,) or (n, q) array
        Checked labels; with `continuous`, numbers.
    sample_weight : (n,) array or None
        Samples of weight 0 are ignored.
    continuous : bool
    """
    encoder = TableColumns().fit(X, sample_weight)
    coded = encoder.transform(X)
    if not encoder.coded:
        return encoder, coded
    targets = Targets.of(y, sample_weight, continuous=continuous)
    blocks = ArrayBlocks(coded, sample_weight=sample_weight)
    statistics = FoldStatistics.fit(blocks, encoder.coded, targets)
    encoder.set_statistics(statistics.tables, targets.names)
    return encoder, statistics.encoded(coded, slice(None))


class _StatisticBlocks(RowBlocks):
    """Blocks with statistics in place of the codes of categories."""

    def __init__(
        self, blocks: RowBlocks, encoder: TableColumns, statistics: FoldStatistics
    ) -> None:
        self._blocks, self._encoder, self._statistics = blocks, encoder, statistics

    def __iter__(self) -> Iterator[Block]:
        return (_encoded(block, self._statistics) for block in self._blocks)

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return self._blocks.n_rows

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self._encoder.feature_names_)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns; None if they have none."""
        return self._blocks.column_names

    @property
    def layout(self) -> dict[str, Any] | None:
        """See `RowBlocks.layout`."""
        return self._blocks.layout

    @property
    def encoder(self) -> TableColumns:
        """Encoder of new samples."""
        return self._encoder

    def reduce(
        self,
        function: Callable[..., _Result],
        merge: Callable[[_Result, _Result], _Result],
        *arguments: object,
    ) -> _Result:
        """See `RowBlocks.reduce`."""
        return self._blocks.reduce(_of_encoded, merge, self._statistics, function, *arguments)

    def take(self, rows: npt.NDArray[np.intp]) -> Block:
        """See `RowBlocks.take`."""
        block = self._blocks.take(rows)
        return replace(block, X=self._statistics.encoded(block.X, rows))


def _encoded(block: Block, statistics: FoldStatistics) -> Block:
    rows = slice(block.start, block.start + len(block))
    return replace(block, X=statistics.encoded(block.X, rows))


def _of_encoded(
    block: Block, statistics: FoldStatistics, function: Callable[..., _Result], *arguments: object
) -> _Result:
    return function(_encoded(block, statistics), *arguments)


def with_statistics(blocks: RowBlocks) -> RowBlocks:
    """Replace codes of categories by statistics of the labels, after two passes.

    Blocks without such codes are returned.
    """
    encoder = blocks.encoder
    if encoder is None or not encoder.coded:
        return blocks
    scan = first_scan(blocks, RowTransform(allows_missing=True))
    samples = BlockSamples(blocks, RowTransform(), scan)
    used = samples.weighted
    used = np.ones(samples.n_samples, dtype=bool) if used is None else used
    targets = Targets.of_classes(samples.classes, samples.codes, class_sums(scan), used)
    statistics = FoldStatistics.fit(blocks, encoder.coded, targets)
    encoder = copy.copy(encoder)  # blocks keep the encoder of codes
    encoder.set_statistics(statistics.tables, targets.names)
    return _StatisticBlocks(blocks, encoder, statistics)
