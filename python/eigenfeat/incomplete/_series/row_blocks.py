"""Rows in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["blocks"]

BLOCK_NUMBERS = 2**22  # about 32 MB


def blocks(n: int, numbers_per_row: int) -> Iterator[slice]:
    """Slices of n rows, each with some BLOCK_NUMBERS numbers at most."""
    width = max(1, BLOCK_NUMBERS // max(1, numbers_per_row))
    for start in range(0, n, width):
        yield slice(start, min(start + width, n))
