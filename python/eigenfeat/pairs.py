"""Which ordered pairs of classes directions are solved for.

A pair (numerator, denominator) yields detectors that are large on the numerator's rows and small on
the denominator's. Every way of choosing makes sure that each class occurs in some pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ._labels import LabelTable, UnknownClassError
from ._validation import Generator, check_whole, random_generator, show

__all__ = ["class_pairs"]

_Pairs = npt.NDArray[np.int64]

_MAX_PLACEMENTS = 1000


def class_pairs(
    classes: Any, kind: Any = "all", *, n_pairs: int | None = None, random_state: Any = None
) -> _Pairs:
    """Ordered pairs of classes, as indices into `classes`.

    Parameters
    ----------
    classes : array-like of shape (k,)
        Distinct labels, at least two.
    kind : {"all", "hypercube", "random", "stratified"} or sequence of (label, label)
        - ``"all"``: all k (k - 1) ordered pairs (Karampatziakis and Mineiro 2014, Algorithm 1).
        - ``"hypercube"``: the labels are put at random on corners of a cube of ceil(log2 k)
          dimensions; neighbours (Hamming distance 1) make pairs, both ways (section 4.3). Drawn
          again until every class has a neighbour. O(k log k) pairs.
        - ``"random"``: drawn uniformly without repetition, after each class was put into one pair.
        - ``"stratified"``: every class is equally often numerator and denominator; `n_pairs` is
          rounded up to a multiple of k.
        - a sequence of (numerator, denominator) labels.
    n_pairs : int, optional
        How many, for "random" (at least k / 2, rounded up) and "stratified"; at most k (k - 1). By
        default as many as "hypercube" gives with the same `random_state`.
    random_state : None, int or NumPy generator
        Source of random numbers, as in scikit-learn.

    Returns
    -------
    ndarray of int64, shape (P, 2)
        Numerators and denominators; in lexicographic order, an explicit list in its own.

    Raises
    ------
    ValueError
        If there are fewer than two classes, or in an explicit list an unknown label, a pair of
        equal labels or one that occurs twice, or a class that is in no pair (named).
    """
    table = LabelTable.of(classes)
    k = len(table)
    if k < 2:
        raise ValueError(f"classes: expected at least 2 for pairs, got {show(classes)}")
    if not isinstance(kind, str):
        _refuse_count(n_pairs, "an explicit list")
        return _explicit(LabelTable(tuple(np.asarray(classes).tolist()), table.dtype), kind)
    if kind in ("all", "hypercube"):
        _refuse_count(n_pairs, repr(kind))
        return _all(k) if kind == "all" else _hypercube(k, random_generator(random_state))
    if kind not in _DRAWN:
        raise ValueError(
            "pairs: expected 'all', 'hypercube', 'random', 'stratified' or a list of pairs of "
            f"labels, got {show(kind)}"
        )
    rng = random_generator(random_state)
    if n_pairs is None:
        count = len(_hypercube(k, rng))
    else:
        least = (k + 1) // 2 if kind == "random" else 1
        count = check_whole(n_pairs, "n_pairs", at_least=least, at_most=k * (k - 1))
    return _DRAWN[kind](k, count, rng)


def _refuse_count(n_pairs: int | None, kind: str) -> None:
    if n_pairs is not None:
        raise ValueError(f"n_pairs: expected None with {kind}, got {show(n_pairs)}")


def _all(k: int) -> _Pairs:
    numerators, denominators = np.divmod(np.arange(k * k, dtype=np.int64), k)
    different = numerators != denominators
    return np.column_stack([numerators[different], denominators[different]])


def _hypercube(k: int, rng: Generator) -> _Pairs:
    dimensions = (k - 1).bit_length()
    for _ in range(_MAX_PLACEMENTS):
        corners = rng.permutation(2**dimensions)[:k]
        pairs = _neighbours(corners, dimensions)
        if len(np.unique(pairs[:, 0])) == k:
            return pairs
    # Corners 0..k-1: each but 0 has a neighbour with one bit less.
    return _neighbours(rng.permutation(k), dimensions)


def _neighbours(corners: npt.NDArray[Any], dimensions: int) -> _Pairs:
    """Pairs of labels, label i on corners[i], whose corners differ in one bit."""
    label_at = np.full(2**dimensions, -1, dtype=np.int64)
    label_at[corners] = np.arange(len(corners))
    flipped = corners[:, None] ^ (1 << np.arange(dimensions))
    numerators, axes = np.nonzero(label_at[flipped] >= 0)
    return _ordered(np.column_stack([numerators, label_at[flipped[numerators, axes]]]))


def _ordered(pairs: npt.NDArray[Any]) -> _Pairs:
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int64)


def _random(k: int, n_pairs: int, rng: Generator) -> _Pairs:
    shuffled = rng.permutation(k)
    if k % 2:
        shuffled = np.append(shuffled, shuffled[0])
    cover = shuffled.reshape(-1, 2)
    everything = _all(k)
    taken = np.isin(everything @ [k, 1], cover @ [k, 1])
    rest = everything[~taken]
    drawn = rng.permutation(len(rest))[: n_pairs - len(cover)]
    return _ordered(np.concatenate([cover, rest[drawn]]))


def _stratified(k: int, n_pairs: int, rng: Generator) -> _Pairs:
    """Rounds of k pairs along a random circle, each at another distance on it."""
    rounds = -(-n_pairs // k)
    circle = rng.permutation(k)
    distances = 1 + rng.permutation(k - 1)[:rounds]
    return _ordered(
        np.concatenate([np.column_stack([circle, np.roll(circle, -s)]) for s in distances])
    )


_DRAWN: dict[str, Callable[[int, int, Generator], _Pairs]] = {
    "random": _random,
    "stratified": _stratified,
}


def _explicit(table: LabelTable, pairs: Any) -> _Pairs:
    try:
        listed = [(numerator, denominator) for numerator, denominator in pairs]
    except (TypeError, ValueError):
        raise ValueError(
            f"pairs: expected a kind or a list of (numerator, denominator), got {show(pairs)}"
        ) from None
    indices = np.empty((len(listed), 2), dtype=np.int64)
    for row, pair in enumerate(listed):
        try:
            indices[row] = table.index(pair[0]), table.index(pair[1])
        except UnknownClassError as error:
            raise ValueError(f"pairs: unknown class in pair {row}: {error}") from None
        if indices[row, 0] == indices[row, 1]:
            raise ValueError(f"pairs: expected two different classes, got {show(pair)}")
    _check_explicit(table, indices)
    return indices


def _check_explicit(table: LabelTable, indices: _Pairs) -> None:
    distinct, counts = np.unique(indices, axis=0, return_counts=True)
    if (counts > 1).any():
        twice = distinct[np.argmax(counts > 1)]
        pair = tuple(table.labels[i] for i in twice)
        raise ValueError(f"pairs: expected distinct pairs, got {show(pair)} twice")
    missing = np.setdiff1d(np.arange(len(table)), indices)
    if len(missing):
        names = [table.labels[i] for i in missing]
        raise ValueError(f"pairs: expected every class in some pair, got none with {show(names)}")
