"""Rows by what is missing of them, and one factorisation for each pattern."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.lazy import ProcessLock

if TYPE_CHECKING:
    from eigenfeat.regions.prefix_gaussian import PrefixGaussian

__all__ = ["Pattern", "PatternCache", "patterns_of"]


class Pattern:
    """Which entries are known: the known first, each part in the order of the columns."""

    def __init__(self, known: NDArray[np.bool_]) -> None:
        self.known = int(known.sum())
        self.missing = len(known) - self.known
        self.is_prefix = bool(known[: self.known].all())
        self.order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
        self.key = b"" if self.is_prefix else np.packbits(known).tobytes()

    @property
    def permutation(self) -> NDArray[np.intp] | None:
        """The order of the columns, or None where it is theirs."""
        return None if self.is_prefix else self.order


def patterns_of(known: NDArray[np.bool_]) -> Iterator[tuple[Pattern, NDArray[np.intp]]]:
    """Distinct patterns and their row numbers, in the order of first appearance."""
    groups: dict[bytes, list[int]] = {}
    for row, key in enumerate(np.packbits(known, axis=1)):
        groups.setdefault(key.tobytes(), []).append(row)
    for rows in groups.values():
        yield Pattern(known[rows[0]]), np.array(rows, dtype=np.intp)


class PatternCache:
    """Factorised Gaussians by pattern and features, least recently used out first.

    Copies and pickles start empty.
    """

    LIMIT = 128 * 2**20  # bytes

    def __init__(self) -> None:
        self._models: OrderedDict[tuple[bytes, bytes], list[PrefixGaussian]] = OrderedDict()
        self._bytes = 0
        self._lock = ProcessLock()

    def __len__(self) -> int:
        return len(self._models)

    def __reduce__(self) -> tuple[type[PatternCache], tuple[()]]:
        return PatternCache, ()

    def get(
        self, pattern: Pattern, features: bytes, make: Callable[[], list[PrefixGaussian]]
    ) -> list[PrefixGaussian]:
        """What `make` returns, or returned before for the same pattern and key of features."""
        key = (pattern.key, features)
        with self._lock():
            if key in self._models:
                self._models.move_to_end(key)
                return self._models[key]
        models = make()
        with self._lock():
            if key not in self._models:
                self._models[key] = models
                self._bytes += _size(models)
            while self._bytes > self.LIMIT and len(self._models) > 1:
                _, dropped = self._models.popitem(last=False)
                self._bytes -= _size(dropped)
        return models


def _size(models: list[PrefixGaussian]) -> int:
    return sum(model.nbytes for model in models)
