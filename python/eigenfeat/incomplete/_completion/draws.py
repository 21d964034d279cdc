"""Completions of incomplete rows, drawn with the same random numbers for all of them.

Given the first t entries of a row, in some order, the row is ``mean + gains[t:].T @ e[t:]`` with
independent normal ``e`` (see `PrefixGaussian`). One Cholesky factor serves all prefixes, and the
innovation of an entry that is still missing is the same number at all times.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenfeat.incomplete._series.row_blocks import BLOCK_NUMBERS

if TYPE_CHECKING:
    from eigenfeat.incomplete._completion.conditional import Conditional

__all__ = ["completions"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

CHUNK = 512  # samples that are made at once


def completions(
    known: Conditional, rows: _Codes, seed: int, samples: range
) -> Iterator[tuple[_Codes, _Array]]:
    """Completions of some rows, in blocks of bounded memory.

    Parameters
    ----------
    known : Conditional
        With its `gaussians`.
    rows : (m,) array of int
    seed : int
        Of all numbers.
    samples : range
        Which of the samples, counted from 0; those of a number are always the same.

    Yields
    ------
    (b,) array, (b, s, ell) array
        Numbers of rows, and some of their completions.
    """
    assert known.gaussians is not None
    ell = known.means.shape[2]
    # Rows of a pattern share their noise.
    rows = rows[np.argsort(known.pattern[rows], kind="stable")]
    ends = np.flatnonzero(np.diff(known.pattern[rows])) + 1
    for group in np.split(rows, ends) if len(rows) else []:
        models, t = known.gaussians[int(known.pattern[group[0]])]
        for begin, end in _chunks(samples):
            normal, share = _numbers(seed, len(models[0].mean), begin, end)
            noise = [normal[:, t:] @ model.gains[t:] for model in models]
            width = max(1, BLOCK_NUMBERS // (len(share) * ell))
            for first in range(0, len(group), width):
                some = group[first : first + width]
                yield some, _drawn(known, some, noise, share)


def _drawn(known: Conditional, rows: _Codes, noise: list[_Array], share: _Array) -> _Array:
    if len(noise) == 1:
        return np.asarray(known.means[rows, 0][:, None] + noise[0])
    ends = np.cumsum(known.weights[rows], axis=1)
    parts = (share[None] * ends[:, -1:])[:, :, None] >= ends[:, None, :-1]
    part = parts.sum(axis=2)  # (b, s)
    drawn = known.means[rows[:, None], part]
    for g, of_part in enumerate(noise):
        row, sample = np.nonzero(part == g)
        drawn[row, sample] += of_part[sample]
    return np.asarray(drawn)


def _chunks(samples: range) -> Iterator[tuple[int, int]]:
    begin = samples.start
    while begin < samples.stop:
        end = min(samples.stop, (begin // CHUNK + 1) * CHUNK)
        yield begin, end
        begin = end


def _numbers(seed: int, d: int, begin: int, end: int) -> tuple[_Array, _Array]:
    """Normal numbers (end - begin, d), and numbers in (0, 1) that choose parts of mixtures."""
    chunk = begin // CHUNK
    normal, share = _chunk(seed, d, chunk)
    some = slice(begin - chunk * CHUNK, end - chunk * CHUNK)
    return normal[some], share[some]


@lru_cache(maxsize=8)
def _chunk(seed: int, d: int, chunk: int) -> tuple[_Array, _Array]:
    random = np.random.default_rng([seed, d, chunk])
    return random.standard_normal((CHUNK, d)), random.random(CHUNK)
