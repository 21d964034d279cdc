"""How many directions a hidden layer has: the next layer's moments are to fit into memory.

A layer of F directions has 2 F + 1 features, and the next one keeps k second moments of them, those
of a block of rows and those of all before: 16 k (2 F + 1)^2 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sized
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eigenfeat._base.types import Pairs
    from eigenfeat.pencils.contrasts import Contrasts

__all__ = ["MOST_BYTES", "hidden_pairs"]

MOST_BYTES = 2**31  # of the next layer's moments
_MOST_BYTES_OF_GROUPS = 2**29  # whose directions are many more than the next layer needs
_MOST_OF_GROUPS = 600
_MOST_OF_A_PAIR = 20
_PAIRS_OF_A_PARTITION = 30


def hidden_pairs(
    pairs: Pairs | Contrasts,
    n_directions: int | str,
    n_classes: int,
    n_rows: int | None = None,
    n_columns: int | None = None,
) -> tuple[Pairs | Contrasts, int]:
    """Pairs and directions a pair of a hidden layer of k classes.

    With "auto" 20 directions a pair, or fewer such that the next layer's moments take at most two
    gigabytes. If all pairs of classes are too many for that with one direction each, "auto" pairs
    are those of random groups, at most as many as of a first layer, for moments of half a gigabyte.

    There are no more directions than rows, whose features would have no higher rank, and no more of
    a pair than columns and the constant.
    """
    if not isinstance(n_directions, str):
        return pairs, n_directions
    by_rows = MOST_BYTES if n_rows is None else n_rows
    most = min(_directions(MOST_BYTES, n_classes), by_rows)
    count = _count(pairs, n_classes)
    if isinstance(pairs, str) and pairs == "auto" and count > most:
        most = min(_directions(_MOST_BYTES_OF_GROUPS, n_classes), _MOST_OF_GROUPS, by_rows)
        count = max(most // _PAIRS_OF_A_PARTITION, 1) * _PAIRS_OF_A_PARTITION
        pairs = ("random_groups", count)
    rank = _MOST_OF_A_PAIR if n_columns is None else n_columns + 1
    return pairs, max(1, min(_MOST_OF_A_PAIR, rank, most // count))


def _directions(n_bytes: int, n_classes: int) -> int:
    """Directions of a layer whose features have moments of so many bytes."""
    return (math.isqrt(n_bytes // (16 * n_classes)) - 1) // 2


def _count(pairs: Pairs | Contrasts, k: int) -> int:
    """Number of pairs, to a factor of two where it depends on the rows."""
    if isinstance(pairs, tuple) and len(pairs) == 2 and isinstance(pairs[0], str):
        return max(int(pairs[1]), 1)
    if not isinstance(pairs, str):
        return max(len(pairs), 1) if isinstance(pairs, Sized) else 1
    cube = k * max((k - 1).bit_length(), 1)
    kinds = {"one_vs_rest": 2 * k, "class_tree": 2 * (k - 1), "confusion": 6 * k}
    kinds |= {"all": k * (k - 1), "auto": k * (k - 1), "random_groups": 600}
    return min(kinds.get(pairs, cube), max(k * (k - 1), 600))
