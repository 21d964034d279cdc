"""All problems of one call, solved in batches that hold a bounded number of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core
from eigenfeat._base.saved import Saved
from eigenfeat._base.types import Labels, Pairs, Seed
from eigenfeat._base.validation import check_memory, random_generator, show
from eigenfeat.moments.groups import moments_of_groups
from eigenfeat.pencils.class_matrices import ClassMatrices, Contraction, PencilOptions, Unions
from eigenfeat.pencils.contrasts import KINDS, Contrasts, class_tree, one_vs_rest
from eigenfeat.pencils.eigh import PencilResult, Status
from eigenfeat.pencils.pairs import (
    CONFUSION_RIDGE,
    chosen_pairs,
    confusion_pairs,
    random_partitions,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import ArrayLike

    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.pencils.span import Span

__all__ = ["PairDirections", "PairOptions", "Problems", "problems_of", "solve_problems"]

_Array = npt.NDArray[np.float64]
_Rows = npt.NDArray[np.int64]

# Matrices held at a time: so many bytes, or so many matrices if these are more. Where matrices
# occur in several problems, a larger batch forms and factorises them less often.
_SHARED_BYTES = 2**30
_BYTES = 2**27
_FEWEST = 16

_SOLVERS = ("auto", "full", "subset", "krylov")
_COUNTED = ("random", "stratified", "confusion", "random_groups")
_MOST_IN_ALL = 50


@dataclass(frozen=True, eq=False)
class Problems:
    """P eigenproblems (P, 2) between groups of the classes `labels`, and their names (P, 2).

    `moments` are those of the labels: with `random_groups` of groups drawn from the classes.
    """

    moments: ClassMoments
    labels: Sequence[Hashable]
    groups: list[Contraction]
    items: _Rows
    names: Labels
    of_classes: bool  # every group is one class, and named by its label
    random_groups: bool = False

    def names_below(self, groups: list[int]) -> list[Hashable]:
        """What to call these denominators: labels, or the first contrasts that have them."""
        rows = [int(np.argmax(self.items[:, 1] == group)) for group in groups]
        if self.of_classes:
            return [self.names[row : row + 1, 1].tolist()[0] for row in rows]
        return [tuple(self.names[row].tolist()) for row in rows]


@dataclass(frozen=True, eq=False)
class PairOptions:
    """Requested results of each problem; validated arguments of `pair_directions`."""

    n_directions: int
    threshold: float | None  # None: where each problem's noise ends
    solver: str
    n_threads: int
    options: PencilOptions
    solve: Callable[..., PencilResult]


@dataclass(frozen=True, eq=False)
class PairDirections(Saved):
    """F directions of P class pairs, for d features.

    Attributes
    ----------
    vectors : ndarray of shape (d, F)
        One direction per column, in the units of the samples: projections are ``X @ vectors``, plus
        ``offset`` if it is not None.
    eigenvalues : ndarray of shape (F,)
        Descending within a pair: mean square of the projections of the numerator's samples, divided
        by that of the (regularised) denominator.
    pairs : ndarray of labels, shape (F, 2)
        Numerator and denominator class of each direction; for groups of classes, their names in
        `Contrasts`.
    ranks : ndarray of int, shape (F,)
        Rank within its pair, from 0.
    residuals : ndarray of shape (F,)
        As in `PencilResult`.
    offset : ndarray of shape (F,), or None
        With ``constant=True``, the contribution of the constant column; with the covariance as
        denominator, minus the projection of the denominator's mean.
    solved_pairs : ndarray of labels, shape (P, 2)
        All solved pairs, including those without directions.
    status, iterations : ndarray of int, shape (P,)
        Outcome (`Status`) of each solved pair, and the iterations of krylov as in `PencilResult`.
    solver : ndarray of str, shape (P,)
        Solver of each solved pair.
    """

    _saved: ClassVar[dict[str, str]] = {
        "vectors": "floats d F",
        "eigenvalues": "floats F",
        "pairs": "labels F 2",
        "ranks": "whole F",
        "residuals": "floats F",
        "offset": "floats F?",
        "solved_pairs": "labels P 2",
        "status": "whole P",
        "iterations": "whole P",
        "solver": "labels P",
    }

    vectors: npt.NDArray[np.float64]
    eigenvalues: npt.NDArray[np.float64]
    pairs: Labels
    ranks: npt.NDArray[np.int64]
    residuals: npt.NDArray[np.float64]
    offset: npt.NDArray[np.float64] | None
    solved_pairs: Labels
    status: npt.NDArray[np.int32]
    iterations: npt.NDArray[np.int64]
    solver: npt.NDArray[np.str_]

    def __repr__(self) -> str:
        d, n = self.vectors.shape
        return f"PairDirections({n} directions of {len(self.status)} pairs, {d} features)"


def settled_kind(kind: Pairs | Contrasts, n_classes: int, of_many: str) -> Pairs | Contrasts:
    """What "auto" stands for: all pairs of few classes, another kind for many."""
    if not isinstance(kind, str) or kind != "auto":
        return kind
    return "all" if n_classes <= _MOST_IN_ALL else of_many


def problems_of(
    moments: ClassMoments,
    labels: Labels,
    pairs: Pairs | Contrasts,
    scale: ArrayLike | None,
    random_state: Seed,
    span: Span | None = None,
) -> Problems:
    """Spell out the argument `pairs` for the classes with weight, `labels`.

    With a span, problems are between the moments of its coordinates.
    """
    solved = moments if span is None else span.moments
    kind, count = pairs, None
    if isinstance(pairs, tuple) and len(pairs) == 2 and isinstance(pairs[1], Integral):
        kind, count = pairs
        if not isinstance(kind, str) or kind not in _COUNTED:
            raise ValueError(f"pairs: expected one of {_COUNTED} with a number, got {show(pairs)}")
    if isinstance(kind, str) and kind not in KINDS:
        kinds = ", ".join(map(repr, KINDS))
        raise ValueError(
            f"pairs: expected {kinds}, a list of pairs of labels or Contrasts, got {show(pairs)}"
        )
    kind = settled_kind(kind, len(labels), "random_groups")
    if isinstance(kind, str) and kind == "random_groups":
        return _of_random_groups(solved, labels, moments.n_features_in_, count, random_state)
    if isinstance(kind, str) and kind == "one_vs_rest":
        kind = one_vs_rest(labels)
    elif isinstance(kind, str) and kind == "class_tree":
        kind = class_tree(moments, scale=scale)
    elif isinstance(kind, str) and kind == "confusion":
        how = {"scale": scale} if span is None else {"ridge": CONFUSION_RIDGE * span.share}
        kind, count = confusion_pairs(solved, n_pairs=count, **how), None
    if isinstance(kind, Contrasts):
        return _of_contrasts(solved, kind)
    items = chosen_pairs(labels, kind, n_pairs=count, random_state=random_state)
    groups = [Contraction(np.array([c]), np.ones(1)) for c in range(len(labels))]
    return Problems(solved, labels.tolist(), groups, items, labels[items], True)


def _of_random_groups(
    moments: ClassMoments, labels: Labels, d: int, n_pairs: int | None, random_state: Seed
) -> Problems:
    """All ordered pairs of groups in each of several random partitions of the classes."""
    partitions = random_partitions(len(labels), d, n_pairs, random_generator(random_state))
    n_groups = int(partitions.max()) + 1
    names = [f"group{r}.{g}" for r in range(len(partitions)) for g in range(n_groups)]
    whole = moments.classes_.tolist()
    groups = np.zeros((len(partitions), len(whole)), dtype=np.int64)  # classes without weight: any
    active = set(labels.tolist())
    groups[:, [label in active for label in whole]] = partitions
    groups += n_groups * np.arange(len(partitions))[:, None]
    merged = moments_of_groups(moments, groups, names)
    within = np.array([(i, j) for i in range(n_groups) for j in range(n_groups) if i != j])
    items = np.concatenate([n_groups * r + within for r in range(len(partitions))])
    alone = [Contraction(np.array([g]), np.ones(1)) for g in range(len(names))]
    return Problems(merged, names, alone, items, np.array(names)[items], False, True)


def _of_contrasts(moments: ClassMoments, contrasts: Contrasts) -> Problems:
    """Without the classes that have no weight."""
    classes = contrasts.classes or tuple(moments.classes_.tolist())
    known_labels = set(moments.classes_.tolist())
    unknown = [c for c in classes if c not in known_labels]
    if unknown:
        raise ValueError(f"pairs: expected classes of the moments, got {show(unknown)}")
    if contrasts.n_classes not in (None, len(classes)):
        raise ValueError(
            f"pairs: expected weights of {len(classes)} classes, got {contrasts.n_classes}"
        )
    weights = np.array([moments.weight(c) for c in classes])
    position = np.where(weights > 0, np.cumsum(weights > 0) - 1, -1)
    known: dict[int, int] = {}
    groups: list[Contraction] = []
    items = np.empty((len(contrasts), 2), dtype=np.int64)
    for row, sides in enumerate(zip(contrasts.above, contrasts.below, strict=True)):
        for column, side in enumerate(sides):
            if id(side) not in known:
                known[id(side)] = len(groups)
                groups.append(_present(side, weights, position, contrasts.names[row, column]))
            items[row, column] = known[id(side)]
    present = [c for c, weight in zip(classes, weights, strict=True) if weight > 0]
    return Problems(moments, present, groups, items, contrasts.names, False)


def _present(
    side: Contraction, weights: _Array, position: npt.NDArray[np.intp], name: str
) -> Contraction:
    if len(side.indices) and side.indices.max() >= len(weights):
        raise ValueError(
            f"pairs: expected indices below {len(weights)} in {show(name)}, "
            f"got {side.indices.max()}"
        )
    if not side.dense(len(weights)) @ weights > 0:
        raise ValueError(f"pairs: expected classes with rows in {show(name)}, got none")
    selected = position[side.indices] >= 0
    return Contraction(position[side.indices[selected]], side.weights[selected], side.others)


def solve_problems(problems: Problems, pair_options: PairOptions) -> PairDirections:
    """Solve batch by batch; raises SingularDenominatorError at the end if there is reason to."""
    unions = Unions(problems.moments, problems.labels)
    matrices = ClassMatrices(unions, problems.groups, pair_options.options)
    m = min(pair_options.n_directions, matrices.order)
    batches = _batches(problems.items, matrices.order, pair_options.options)
    solver = _settled_solver(problems.items, matrices.order, m, pair_options)
    _check_memory(problems, batches, matrices.order, m, solver, pair_options)
    results: list[PencilResult] = []
    failed: set[int] = set()
    for rows in batches:
        batch = matrices.batch(problems.items[rows])
        result = pair_options.solve(
            batch.numerators,
            batch.denominators,
            batch.shifts,
            batch.items,
            m,
            1.0 if pair_options.threshold is None else pair_options.threshold,
            solver,
            pair_options.n_threads,
        )
        if pair_options.threshold is None:
            result = _above(result, matrices.noise_edges(problems.items[rows]))
        singular = result.status == Status.NOT_POSITIVE_DEFINITE
        failed.update(problems.items[rows[singular], 1].tolist())
        results.append(result)
        del batch
    if failed:
        groups = sorted(failed)
        what = "class" if problems.of_classes else "contrast"
        raise matrices.singular(groups, what, problems.names_below(groups))
    return _joined(results, batches, problems, matrices, pair_options.options)


def _above(result: PencilResult, edges: _Array) -> PencilResult:
    """Without the eigenvalues, which descend, that are not above these (n,)."""
    selected = (result.eigenvalues > edges[:, None]).sum(axis=1)  # NaN is not
    return replace(
        result,
        n_eigenpairs=np.minimum(result.n_eigenpairs, selected).astype(result.n_eigenpairs.dtype),
    )


def _offset_below(
    vectors: _Array, below: _Rows, matrices: ClassMatrices, options: PencilOptions
) -> _Array:
    """Minus the projection of the mean below (F,), with vectors in the units solved for."""
    offset = np.empty(len(below))
    scale = 1.0 if options.scale is None else options.scale
    for group in np.unique(below).tolist():
        columns = below == group
        offset[columns] = -(matrices.mean(group) / scale) @ vectors[:, columns]
    return offset


def _settled_solver(items: _Rows, order: int, m: int, pair_options: PairOptions) -> str:
    """One solver for all batches, whatever share of the problems each has."""
    if not isinstance(pair_options.solver, str) or pair_options.solver not in _SOLVERS:
        names = ", ".join(_SOLVERS)
        raise ValueError(f"solver: expected one of {names}, got {show(pair_options.solver)}")
    if pair_options.solver != "auto":
        return pair_options.solver
    return core.choose_solver(order, m, len(items) / len(np.unique(items[:, 1])))


def _batches(items: _Rows, order: int, options: PencilOptions) -> list[_Rows]:
    """Cut problems into batches of bounded numbers of matrices, in an order in which they share."""
    apart = options.denominator == "covariance"
    n_groups = len(np.unique(items))
    room = (_SHARED_BYTES if len(items) > n_groups else _BYTES) // (8 * order * order)
    room = max(_FEWEST, room)
    matrix = items
    if apart:  # numerators are shared by no two problems
        matrix = np.column_stack([items.max() + 1 + np.arange(len(items)), items[:, 1]])
    if len(np.unique(matrix)) <= room:
        return [np.arange(len(items))]
    block = items[:, 1] if apart else items[:, 1] // max(1, room // 4)
    rows = np.lexsort((items[:, 1], items[:, 0], block))
    return [np.sort(batch) for batch in _cut(rows, matrix, room)]


def _cut(rows: npt.NDArray[Any], items: _Rows, room: int) -> Iterator[npt.NDArray[Any]]:
    needed: set[int] = set()
    first = 0
    for at, row in enumerate(rows):
        needed.update(items[row].tolist())
        if len(needed) > room:
            yield rows[first:at]
            needed, first = set(items[row].tolist()), at
    yield rows[first:]


def _check_memory(
    problems: Problems,
    batches: list[_Rows],
    order: int,
    m: int,
    solver: str,
    pair_options: PairOptions,
) -> None:
    """MemoryError before anything is taken: matrices, the core's scratch, and directions."""
    apart = pair_options.options.denominator == "covariance"
    formed_at_once, largest = 0, 0.0
    for rows in batches:
        items = problems.items[rows]
        n_below = len(np.unique(items[:, 1]))
        formed = n_below + len(rows) if apart else len(np.unique(items))
        formed_at_once = max(formed_at_once, formed)
        used = core.pencil_bytes(order, len(rows), n_below, m, solver, pair_options.n_threads)
        largest = max(largest, used)
    selected = 0
    if any(group.others for group in problems.groups):
        selected = 2 + len(problems.labels).bit_length()
    directions = len(problems.items) * m / order  # as matrices; there may be less
    total = (
        formed_at_once + 2 + selected + math.ceil(largest / (8 * order * order) + 2 * directions)
    )
    check_memory("pair_directions", total, order)


def _joined(
    results: list[PencilResult],
    batches: list[_Rows],
    problems: Problems,
    matrices: ClassMatrices,
    options: PencilOptions,
) -> PairDirections:
    """Eigenpairs in the order of the problems and in the units of the samples."""
    n, d = len(problems.items), matrices.n_features
    counts = np.zeros(n, dtype=np.int64)
    for rows, result in zip(batches, results, strict=True):
        counts[rows] = result.n_eigenpairs
    ends = np.cumsum(counts)
    total = int(ends[-1])
    vectors, offset = np.empty((d, total)), np.empty(total) if options.constant else None
    values, residuals = np.empty(total), np.empty(total)
    status, iterations = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
    solver = np.empty(n, dtype="U6")
    for rows, result in zip(batches, results, strict=True):
        selected = np.arange(result.eigenvalues.shape[1]) < result.n_eigenpairs[:, None]
        at = (ends - counts)[rows][:, None] + np.arange(selected.shape[1])
        columns = at[selected]
        directions = np.swapaxes(result.vectors, 1, 2)[selected]
        vectors[:, columns] = directions[:, :d].T
        if offset is not None:
            offset[columns] = directions[:, d]
        values[columns], residuals[columns] = (
            result.eigenvalues[selected],
            result.residuals[selected],
        )
        status[rows], iterations[rows] = result.status, result.iterations
        solver[rows] = result.solver
    of = np.repeat(np.arange(n), counts)
    if options.denominator == "covariance":
        offset = _offset_below(vectors, problems.items[of, 1], matrices, options)
    if options.scale is not None:
        vectors /= options.scale[:, None]
    if offset is not None and options.centre is not None:
        offset = offset - options.centre @ vectors
    return PairDirections(
        vectors=vectors,
        eigenvalues=values,
        pairs=problems.names[of],
        ranks=np.arange(total) - np.repeat(ends - counts, counts),
        residuals=residuals,
        offset=offset,
        solved_pairs=problems.names,
        status=status,
        iterations=iterations,
        solver=solver,
    )
