"""Reductions over several random splits: chosen on the training samples, measured by 3-NN."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.papers.families import ByItself, accuracy, chosen_by
from bench.papers.protocol import seeds
from eigenfeat._base.labels import class_folds

# ---- splits --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table:
    """All samples of a data set, with NaN for missing values, and how many of them are trained on.

    `most_testing` limits the test samples; None means no limit.
    """

    X: NDArray[Any]
    codes: NDArray[np.int64]
    n_train: int
    most_testing: int | None = None

    def parts(self, seed):
        """Return training samples and codes, test samples and codes, of a random split."""
        order = np.random.RandomState(seed).permutation(len(self.codes))
        train, test = order[: self.n_train], order[self.n_train :][: self.most_testing]
        rows, queries = standardised(self.X[train], self.X[test])
        return rows, self.codes[train], queries, self.codes[test]


@dataclass(frozen=True)
class Score:
    """Results of a split: 3-NN accuracy on its test samples, in the chosen dimension.

    `curve` has accuracies by dimension, `few` the accuracy in one dimension less than classes (NaN
    without a choice of dimensions), `nonzeros` the number of nonzero weights of each direction, and
    `overlaps` the absolute cosines between directions.
    """

    accuracy: float
    dimension: int
    seconds: float
    parameters: dict[str, Any] = field(default_factory=dict)
    curve: dict[int, float] = field(default_factory=dict)
    few: float = np.nan
    nonzeros: tuple[int, ...] = ()
    overlaps: NDArray[np.float64] | None = None


def standardised(train, test):
    """Standardise both parts by the training samples; leave out columns that are constant there.

    A missing value becomes the mean of its column.
    """
    rows = train.astype(np.float64)
    mean, deviation = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    kept = deviation > 1e-6 * np.nanmax(np.abs(rows), axis=0)

    def apply(part):
        return np.nan_to_num((part[:, kept].astype(np.float64) - mean[kept]) / deviation[kept])

    return apply(train), apply(test)


def by_splits(job, outcome, *, rules):
    """Fill in an outcome: a score for each split."""
    table = job.load()
    followed = rules.quick() if job.context.quick else rules
    for seed in seeds(job.context):
        parts = table.parts(seed)
        outcome.splits.append(evaluate(job.method.build(job.context), *parts, followed))
        outcome.n_train, outcome.n_test = len(parts[1]), len(parts[3])


# ---- choices -------------------------------------------------------------------------------------


class _Chosen(NamedTuple):
    """A fitted model, its parameters and reduced samples, the dimension, and dimensions tried."""

    model: Any
    parameters: dict[str, Any]
    reduced: NDArray[np.float64]
    dimension: int
    tried: list[int]


def evaluate(family, rows, codes, queries, asked, rules):
    """Choose parameters and dimension on standardised samples, and measure on queries.

    The score's seconds are the processor time of all candidates and choices.
    """
    by_itself = isinstance(family, ByItself)
    choose = _by_itself if by_itself else _by_folds if rules.folds else _by_leave_one_out
    started = time.process_time()
    model, parameters, reduced, dimension, tried = choose(family, rows, codes, rules)
    seconds = time.process_time() - started
    moved = _apply(model, queries)
    few = min(int(codes.max()), reduced.shape[1]) if tried else None
    shown = sorted({*tried, dimension, few or dimension})
    curve = {m: accuracy(reduced[:, :m], codes, moved[:, :m], asked) for m in shown}
    right = curve[dimension]
    if by_itself:  # refit in one dimension less than classes, where other parameters may be best
        few = min(int(codes.max()), rows.shape[1])
        model = family.make(few).fit(rows, codes)
        curve[few] = accuracy(_apply(model, rows), codes, _apply(model, queries), asked)
    directions = np.atleast_2d(getattr(model, "components_", np.empty((0, 0))))
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    return Score(
        accuracy=right,
        dimension=dimension,
        seconds=seconds,
        parameters=parameters,
        curve=curve,
        few=curve[few] if few else np.nan,
        nonzeros=tuple(np.count_nonzero(directions, axis=1)),
        overlaps=np.abs(unit @ unit.T),
    )


def _apply(model, rows):
    return np.ascontiguousarray(model.transform(rows))


def _by_itself(family, rows, codes, rules):
    """Fit a reduction that chooses by itself."""
    model = family.make("cv").fit(rows, codes)
    reduced = _apply(model, rows)
    return _Chosen(model, chosen_by(model), reduced, reduced.shape[1], [])


def _by_leave_one_out(family, rows, codes, rules):
    """Choose in directions of all samples; a transformer without components keeps all columns."""
    n_classes = int(codes.max()) + 1
    best = -1.0
    for given, candidate in family(rows, codes, rules):
        found = _apply(candidate, rows)
        score = accuracy(found[:, : n_classes + rules.at], codes)
        if score >= best:
            best, parameters, model, reduced = score, given, candidate, found
    width = reduced.shape[1]
    if not hasattr(model, "components_"):
        return _Chosen(model, parameters, reduced, width, [])
    most = min(width, rules.limit(n_classes))
    dimension = _greedily(reduced[:, :most], codes)
    return _Chosen(model, parameters, reduced, dimension, list(range(1, most + 1)))


def _greedily(reduced, codes):
    """Return the first dimension, from 1, after which the accuracy falls."""
    before = -1.0
    for m in range(1, reduced.shape[1] + 1):
        score = accuracy(reduced[:, :m], codes)
        if score < before:
            return m - 1
        before = score
    return reduced.shape[1]


def _by_folds(family, rows, codes, rules):
    """Choose by folds, and fit the choice to all samples."""
    n_classes = int(codes.max()) + 1
    dimensions = sorted({max(n_classes + step, 1) for step in rules.steps})
    hits = 0.0  # of each candidate, in each dimension
    folds = class_folds(codes, rules.folds)
    for fold in (folds == number for number in range(rules.folds)):
        known, part = codes[~fold], codes[fold]
        right = []
        for _, model in family(rows[~fold], known, rules):
            reduced, asked = _apply(model, rows[~fold]), _apply(model, rows[fold])
            right.append([accuracy(reduced[:, :m], known, asked[:, :m], part) for m in dimensions])
        hits += fold.sum() * np.array(right)
    scores = hits[:, dimensions.index(max(n_classes + rules.at, 1))]
    best = len(scores) - 1 - int(np.argmax(scores[::-1]))
    parameters, model = next(islice(family(rows, codes, rules), best, None))
    reduced = _apply(model, rows)
    width = reduced.shape[1]
    dimension = min(dimensions[int(np.argmax(hits[best]))], width)
    return _Chosen(model, parameters, reduced, dimension, [min(m, width) for m in dimensions])
