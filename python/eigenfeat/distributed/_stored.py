"""Projections that workers keep between the passes of a fit, if their memory allows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from eigenfeat._base.validation import physical_memory
from eigenfeat.distributed._cluster import client_in_use, workers_of
from eigenfeat.rows.blocks import Block, Checksum, RowBlocks, RowTransform, merge_read

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["StoredBlock", "fits_memory", "reduced", "stored_blocks"]


_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class StoredBlock:
    """One block as every pass reads it: pieces of features by their projections, and a checksum."""

    checksum: Checksum
    pieces: list[Block]

    def __sizeof__(self) -> int:
        arrays = [piece.X.projections for piece in self.pieces]
        return object.__sizeof__(self) + sum(array.nbytes for array in arrays)


def fits_memory(reading: RowTransform, n_rows: int, share: float) -> bool:
    """Whether projections of so many rows take that share of the workers' memory at most.

    Rows that are not projected cost little to read.
    """
    if not reading.layers or reading.hidden:
        return False
    width = len(reading.layers[-1].offset)
    if reading.include_input:
        width += reading.layers[-1].directions.shape[0]
    return 4.0 * n_rows * width <= share * _memory()


def stored_blocks(blocks: RowBlocks, reading: RowTransform) -> list[StoredBlock]:
    """What `eigenfeat.rows.blocks.read` reads of blocks, before any function is called."""
    result = []
    for block in blocks:
        checked = reading.checked(block)
        pieces = list(reading.features(reading.weighted(checked)))
        result.append(StoredBlock(Checksum.of(checked.X), pieces))
    return result


def reduced(
    stored: Sequence[StoredBlock],
    function: Callable[..., _Result],
    merge: Callable[[_Result, _Result], _Result],
    arguments: Sequence[Any],
) -> tuple[Checksum, _Result | None] | None:
    """As `eigenfeat.rows.blocks.read` for each of the blocks, merged: the same bits."""
    total: Any = None
    for block in stored:
        solution: Any = None
        for piece in block.pieces:
            result = function(piece, *arguments)
            solution = result if solution is None else merge(solution, result)
        pair = block.checksum, solution
        total = pair if total is None else merge_read(merge, total, pair)
    return total


def _memory() -> float:
    """Bytes that the workers may have together."""
    client = client_in_use()
    if client is None:
        return float(physical_memory())
    workers = workers_of(client).values()
    limits = [worker["memory_limit"] or physical_memory() for worker in workers]
    return float(np.sum(limits))
