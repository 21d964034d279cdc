"""Pencils of class pairs, distributed over workers by their denominators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads as _threads
from eigenfeat._base.types import Pairs
from eigenfeat.distributed._dask import computed, module
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils import pencils
from eigenfeat.pencils.pencils import PairDirections, PencilResult

if TYPE_CHECKING:
    from eigenfeat._base.validation import RealArray
    from eigenfeat.pencils.contrasts import Contrasts

__all__ = ["pair_directions", "solve_pencils", "solve_pencils_if_many"]

_Rows = npt.NDArray[np.int64]

_TASKS = 32  # of a batch, at most
_BATCH_BYTES = 2**28  # of matrices in one graph
_MANY = 2e10  # problems times d^3, some seconds of one core


def pair_directions(
    moments: ClassMoments, pairs: Pairs | Contrasts = "all", **options: Any
) -> PairDirections:
    """Solve the pencils of :func:`eigenfeat.pencils.pair_directions` on the workers.

    Each task has the pairs of some denominator classes.

    Parameters
    ----------
    moments : ClassMoments
        Moments on the client, as `class_moments` returns them.
    pairs, **options
        As in :func:`eigenfeat.pencils.pair_directions`. With ``n_threads=None`` a task has one
        thread.

    Returns
    -------
    PairDirections
        Bitwise equal to those of one machine.
    """
    return pencils.pair_directions(moments, pairs, solve_with=solve_pencils, **options)


def solve_pencils_if_many(
    numerators: list[RealArray],
    denominators: list[RealArray],
    shifts: RealArray,
    items: _Rows,
    n_vectors: int,
    threshold: float,
    solver: str,
    n_threads: int,
) -> PencilResult:
    """Like `pencils.solve`: here if that takes a few seconds, else by `solve_pencils`."""
    many = len(items) * float(numerators[0].shape[0]) ** 3 > _MANY
    solve = solve_pencils if many else pencils.solve
    return solve(numerators, denominators, shifts, items, n_vectors, threshold, solver, n_threads)


def solve_pencils(
    numerators: list[RealArray],
    denominators: list[RealArray],
    shifts: RealArray,
    items: _Rows,
    n_vectors: int,
    threshold: float,
    solver: str,
    n_threads: int,
) -> PencilResult:
    """Like `pencils.solve`, by tasks that get the matrices they need and no others.

    A matrix is a task of its own: it goes to the scheduler once, to a worker that needs it once,
    and is there again when a worker is lost.
    """
    settings = (n_vectors, threshold, solver)
    if len(items) < 2:
        return pencils.solve(
            numerators, denominators, shifts, items, *settings, n_threads=n_threads
        )
    parts: list[PencilResult] = []
    order: list[_Rows] = []
    dask = module("dask")
    task = dask.delayed(_solved, pure=False, traverse=False)
    for batch in _batches(items, numerators[0].nbytes):
        known: dict[int, Any] = {}
        tasks = []
        for rows in _by_denominator(batch, items):
            above, below = (np.unique(items[rows, side], return_inverse=True) for side in (0, 1))
            local = np.column_stack([above[1], below[1]]).astype(np.int64)
            matrices = [
                [_sent(side[i], known) for i in used.tolist()]
                for side, used in ((numerators, above[0]), (denominators, below[0]))
            ]
            tasks.append(task(*matrices, shifts[below[0]], local, settings, n_threads))
            order.append(rows)
        parts += computed(tasks)
    return _assembled(parts, order)


def _solved(
    numerators: list[Any],
    denominators: list[Any],
    shifts: Any,
    items: _Rows,
    settings: tuple[int, float, str],
    n_threads: int,
) -> PencilResult:
    with _threads.default(1):
        threads = n_threads or _threads.resolve(None)
        return pencils.solve(numerators, denominators, shifts, items, *settings, n_threads=threads)


def _sent(matrix: Any, known: dict[int, Any]) -> Any:
    """The task that is this matrix; numerators and denominators may share it."""
    if id(matrix) not in known:
        known[id(matrix)] = module("dask").delayed(matrix, pure=False, traverse=False)
    return known[id(matrix)]


def _batches(items: _Rows, matrix_bytes: int) -> Iterator[_Rows]:
    """Problems whose matrices, of either side, take half a batch at most."""
    room = max(1, _BATCH_BYTES // 2 // matrix_bytes)
    if len(np.unique(items[:, 0])) == len(items):  # no problems share a numerator
        rows = np.argsort(items[:, 1], kind="stable")
        return (rows[first : first + room] for first in range(0, len(rows), room))
    tiles, tile = np.unique(items // room, axis=0, return_inverse=True)
    return (np.flatnonzero(tile.ravel() == i) for i in range(len(tiles)))


def _by_denominator(batch: _Rows, items: _Rows) -> Iterator[_Rows]:
    """Cut a batch into tasks that share no denominator, as even as may be."""
    batch = batch[np.argsort(items[batch, 1], kind="stable")]
    first = np.flatnonzero(np.diff(items[batch, 1], prepend=-1))
    cuts = first[
        np.unique(np.linspace(0, len(first), min(_TASKS, len(first)) + 1).astype(int)[:-1])
    ]
    return (rows for rows in np.split(batch, cuts[1:]))


def _assembled(parts: list[PencilResult], order: list[_Rows]) -> PencilResult:
    """The tasks' results in the order of the problems."""
    where = np.argsort(np.concatenate(order), kind="stable")
    names = (field.name for field in fields(PencilResult))
    return PencilResult(
        *(np.concatenate([getattr(part, name) for part in parts])[where] for name in names)
    )
