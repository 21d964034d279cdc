"""Reductions over several random splits: chosen on the training rows, measured by 3-NN."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers import settings
from bench.papers.families import ByItself, Family, Rules
from bench.papers.measuring import Job, Outcome
from bench.papers.protocol import Context
from bench.papers.three_nearest import accuracy, leave_one_out

__all__ = ["Score", "Table", "by_splits", "evaluate", "n_splits", "standardised"]

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """All rows of a data set, NaN where there is no value, and how many of them train.

    `most_testing` bounds the others; None means all of them.
    """

    X: NDArray[Any]
    codes: Codes
    n_train: int
    most_testing: int | None = None

    def parts(self, seed: int) -> tuple[Array, Codes, Array, Codes]:
        """Return training rows, their codes, test rows and theirs, of a random split."""
        order = np.random.RandomState(seed).permutation(len(self.codes))
        train, test = order[: self.n_train], order[self.n_train :][: self.most_testing]
        rows, queries = standardised(self.X[train], self.X[test])
        return rows, self.codes[train], queries, self.codes[test]


@dataclass(frozen=True)
class Score:
    """What one split gave: 3-NN accuracy on its test rows, in the dimension that was chosen.

    `curve` has accuracies by dimension, `few` the one in a dimension less than there are classes
    (None if there is nothing to choose), and `nonzeros` how many columns each direction weighs.
    """

    accuracy: float
    dimension: int
    seconds: float
    parameters: dict[str, Any] = field(default_factory=dict)
    curve: dict[int, float] = field(default_factory=dict)
    few: float | None = None
    nonzeros: tuple[int, ...] = ()


def standardised(train: NDArray[Any], test: NDArray[Any]) -> tuple[Array, Array]:
    """Return rows in the training rows' units, without columns that are constant in these.

    A missing value becomes the mean of its column.
    """
    rows = train.astype(np.float64)
    mean, deviation = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    kept = deviation > 1e-6 * np.nanmax(np.abs(rows), axis=0)
    mean, deviation = mean[kept], deviation[kept]

    def apply(part: NDArray[Any]) -> Array:
        moved: Array = (part[:, kept].astype(np.float64) - mean) / deviation
        return np.nan_to_num(moved)

    return apply(train), apply(test)


def n_splits(context: Context) -> int:
    """Return how many splits a run has."""
    return settings.LDG_QUICK_SPLITS if context.quick else settings.LDG_SPLITS


def by_splits(job: Job, outcome: Outcome, step: Callable[[str], None], *, rules: Rules) -> None:
    """Fill in an outcome: one score a split."""
    step("loading")
    table: Table = job.problem.load(job.folder / job.problem.file, job.context)
    total = n_splits(job.context)
    followed = rules.quick() if job.context.quick else rules
    for number in range(total):
        step(f"split {number + 1} of {total}")
        parts = table.parts(job.context.seed + number)
        outcome.splits.append(evaluate(job.method.build(job.context), *parts, followed))
    outcome.n_train, outcome.n_test = len(parts[1]), len(parts[3])


def evaluate(
    family: Family | ByItself,
    rows: Array,
    codes: Codes,
    queries: Array,
    query_codes: Codes,
    rules: Rules,
) -> Score:
    """Choose parameters and dimension on rows, and measure the reduction on queries.

    Parameters
    ----------
    family : callable
        Yields the candidates, or chooses by itself.
    rows, queries : (n, d) and (m, d) arrays
        Standardised.
    codes, query_codes : (n,) and (m,) arrays
    rules : Rules

    Returns
    -------
    Score
        Its seconds are those of all candidates and choices.
    """
    n_classes = int(codes.max()) + 1
    started = time.perf_counter()
    if isinstance(family, ByItself):
        chosen = _by_itself(family, rows, codes)
    elif rules.folds is None:
        chosen = _by_leave_one_out(family, rows, codes, rules, n_classes)
    else:
        chosen = _by_folds(family, rows, codes, rules, n_classes)
    seconds = time.perf_counter() - started
    model, reduced = chosen.model, chosen.reduced
    moved = np.ascontiguousarray(model.transform(queries))
    few = min(n_classes - 1, reduced.shape[1]) if chosen.tried else None
    shown = {*chosen.tried, chosen.dimension} | ({few} if few else set())
    if isinstance(family, ByItself):
        return _own_score(family, chosen, rows, codes, queries, query_codes, seconds)
    curve = {m: accuracy(reduced[:, :m], codes, moved[:, :m], query_codes) for m in sorted(shown)}
    return Score(
        accuracy=curve[chosen.dimension],
        dimension=chosen.dimension,
        seconds=seconds,
        parameters=chosen.parameters,
        curve=curve,
        few=curve[few] if few else None,
        nonzeros=tuple(np.count_nonzero(getattr(model, "components_", []), axis=-1).ravel()),
    )


@dataclass(frozen=True, eq=False)
class _Chosen:
    """A fitted model and its rows, the dimension, and those whose accuracies are to be shown."""

    model: Any
    parameters: dict[str, Any]
    reduced: Array
    dimension: int
    tried: list[int]


def _by_itself(family: ByItself, rows: Array, codes: Codes) -> _Chosen:
    """Fit what chooses by itself."""
    model = family.make("cv").fit(rows, codes)
    parameters = {"gamma": model.gamma_, "n_neighbors": model.n_neighbors_}
    reduced = np.ascontiguousarray(model.transform(rows))
    return _Chosen(model, parameters, reduced, reduced.shape[1], [])


def _own_score(
    family: ByItself,
    chosen: _Chosen,
    rows: Array,
    codes: Codes,
    queries: Array,
    query_codes: Codes,
    seconds: float,
) -> Score:
    """In the dimension that was chosen, and with other parameters in one less than classes."""

    def measured(model: Any) -> float:
        parts = (np.ascontiguousarray(model.transform(part)) for part in (rows, queries))
        return accuracy(next(parts), codes, next(parts), query_codes)

    few = min(int(codes.max()), rows.shape[1])
    curve = {
        chosen.dimension: measured(chosen.model),
        few: measured(family.make(few).fit(rows, codes)),
    }
    return Score(
        accuracy=measured(chosen.model),
        dimension=chosen.dimension,
        seconds=seconds,
        parameters=chosen.parameters,
        curve=curve,
        few=curve[few],
    )


def _by_leave_one_out(
    family: Family, rows: Array, codes: Codes, rules: Rules, n_classes: int
) -> _Chosen:
    """Choose in directions of all rows; a transformer without components keeps all columns."""
    best: tuple[float, dict[str, Any], Any, Array] | None = None
    for parameters, model in family(rows, codes, rules):
        reduced = np.ascontiguousarray(model.transform(rows))
        score = leave_one_out(reduced[:, : n_classes + rules.at], codes)
        if best is None or score >= best[0]:
            best = (score, parameters, model, reduced)
    assert best is not None, "a family has a candidate at least"
    _, parameters, model, reduced = best
    width = reduced.shape[1]
    if not hasattr(model, "components_"):
        return _Chosen(model, parameters, reduced, width, [])
    most = min(width, rules.limit(n_classes))
    dimension = _greedily(reduced[:, :most], codes)
    return _Chosen(model, parameters, reduced, dimension, list(range(1, most + 1)))


def _greedily(reduced: Array, codes: Codes) -> int:
    """Return the dimension, counted up from 1, after which one more lowers the accuracy."""
    before = leave_one_out(reduced[:, :1], codes)
    for m in range(2, reduced.shape[1] + 1):
        score = leave_one_out(reduced[:, :m], codes)
        if score < before:
            return m - 1
        before = score
    return reduced.shape[1]


def _by_folds(family: Family, rows: Array, codes: Codes, rules: Rules, n_classes: int) -> _Chosen:
    """Choose by rows that were left out, and fit the choice to all rows."""
    dimensions = sorted({max(n_classes + step, 1) for step in rules.steps or ()})
    hits: list[NDArray[np.float64]] = []  # of each candidate, in each dimension
    for fold in _folds(codes, int(rules.folds or 2)):
        known = ~fold
        for number, (_, model) in enumerate(family(rows[known], codes[known], rules)):
            if number == len(hits):
                hits.append(np.zeros(len(dimensions)))
            reduced = np.ascontiguousarray(model.transform(rows[known]))
            asked = np.ascontiguousarray(model.transform(rows[fold]))
            hits[number] += [
                fold.sum() * accuracy(reduced[:, :m], codes[known], asked[:, :m], codes[fold])
                for m in dimensions
            ]
    at = dimensions.index(max(n_classes + rules.at, 1))
    scores = [float(one[at]) for one in hits]
    best = len(scores) - 1 - int(np.argmax(scores[::-1]))
    parameters, model = next(islice(family(rows, codes, rules), best, None))
    reduced = np.ascontiguousarray(model.transform(rows))
    width = reduced.shape[1]
    dimension = min(dimensions[int(np.argmax(hits[best]))], width)
    return _Chosen(model, parameters, reduced, dimension, [min(m, width) for m in dimensions])


def _folds(codes: Codes, n_folds: int) -> Iterator[NDArray[np.bool_]]:
    """Yield which rows are left out: each class dealt evenly, in the order of rows."""
    order = np.argsort(codes, kind="stable")
    for number in range(n_folds):
        fold = np.zeros(len(codes), dtype=bool)
        fold[order[number::n_folds]] = True
        yield fold
