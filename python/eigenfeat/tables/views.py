"""Base classes of the views of both tasks, and the samples and folds that views are fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from eigenfeat.samples.labelled import MemorySamples
from eigenfeat.tables.representations import Table, TableStatistics
from eigenfeat.tables.trees import (
    CHOSEN,
    SCREENED,
    Trees,
    chosen_features,
    fit_forest,
    grow,
    unequal,
)

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes

__all__ = ["STEP", "Folds", "Samples", "View"]

_Array = NDArray[np.float64]
_Option = TypeVar("_Option")

STEP = 25  # multiples of this number of boosting steps are tried
_LEAST_GAIN = 0.03  # relative decrease of the loss by as many steps again


@dataclass(frozen=True, eq=False)
class Folds:
    """Indices of the samples to train on and to hold out, for each fold."""

    parts: list[tuple[Codes, Codes]]
    n_samples: int

    @cached_property
    def held(self) -> Codes:
        """Indices of the held-out samples, fold after fold."""
        return np.concatenate([part[1] for part in self.parts])

    def outside(self, function: Callable[[Codes], Any], merge: Callable[[Any, Any], Any]) -> Any:
        """Values of `function` for the samples to train on in each fold.

        Each of several folds trains on all samples but its own: the values of `function` for the
        other folds are merged.
        """
        if len(self.parts) == 1:
            return [function(self.parts[0][0])]
        never = np.setdiff1d(np.arange(self.n_samples), self.held)
        groups = [*(held for _, held in self.parts), *[never] * (len(never) > 0)]
        values, out = [function(group) for group in groups], []
        for fold in range(len(self.parts)):
            others = [value for i, value in enumerate(values) if i != fold]
            out.append(reduce(merge, others[1:], others[0].copy()))
        return out


@dataclass(frozen=True, eq=False)
class Samples:
    """Training samples.

    Attributes
    ----------
    rows : MemorySamples
        Complete columns with weights; for a classifier also with labels.
    table : Table
        The same columns with indicators of gaps, as views read them.
    targets : (n,) array of int, or (n, q) array
        Indices of the labels, or outputs of mean 0 and variance 1.
    seed : int
        Seed of forests, landmarks and subsamples.
    size : int
        Number of samples of the whole fit, which determines options of views.
    logarithms : (n, q) array or None
        Logarithms of positive outputs divided by their standard deviations; None if an output is
        not positive, and for classes.
    zero : (q,) array
        Standardised values of outputs of 0; not used for classes.
    """

    rows: MemorySamples
    table: Table
    targets: NDArray[Any]
    seed: int
    size: int
    logarithms: _Array | None = None
    zero: _Array = field(default_factory=lambda: np.zeros(1))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def weight(self) -> _Array | None:
        """Positive weights, or None for equal weights."""
        return self.rows.block.weight

    def weight_of(self, indices: Codes | slice) -> _Array | None:
        """Weights of the samples `indices`, or None for equal weights."""
        return None if self.weight is None else self.weight[indices]

    @property
    def share(self) -> _Array:
        """Weights of sum 1."""
        weight = np.ones(len(self)) if self.weight is None else self.weight
        share: _Array = weight / weight.sum()
        return share

    @property
    def n_threads(self) -> int | None:
        """Number of threads."""
        return self.table.n_threads

    @property
    def plain_targets(self) -> NDArray[Any]:
        """Targets as scikit-learn takes them: (n,) for one output."""
        return self.targets[:, 0] if self.targets.shape[1:] == (1,) else self.targets

    def subset(self, indices: Codes) -> Samples:
        """Samples by their indices."""
        block, X = self.rows.block, self.table.X[indices]
        table = replace(self.table, X=X, origin=(self.table, indices))
        if block.X is self.table.X or block.X.base is self.table.X:  # its first columns
            width = block.X.shape[1]
            block = replace(block, X=block.X[:, :0]).take(indices)
            rows = replace(self.rows, block=replace(block, X=X[:, :width]))
        else:
            rows = self.rows.subset(indices)
        logarithms = None if self.logarithms is None else self.logarithms[indices]
        targets = self.targets[indices]
        return replace(self, rows=rows, table=table, targets=targets, logarithms=logarithms)

    def without_cache(self) -> Samples:
        """The samples without the representations that their table has computed."""
        return replace(self, table=replace(self.table))

    def without_columns(self) -> Samples:
        """The targets and weights of the samples, without their columns."""
        rows = self.rows.with_features(np.empty((len(self), 0)))
        return replace(
            self,
            rows=rows,
            table=Table(self.table.statistics, self.table.X[:0].copy(), self.n_threads),
        )

    def drawn(self, most: int) -> Samples:
        """Draw at most `most` samples at random."""
        if len(self) <= most:
            return self
        drawn = np.random.RandomState(self.seed).permutation(len(self))[:most]
        return self.subset(np.sort(drawn))

    def levels_by_targets(self) -> _Array:
        """`TableStatistics.levels_by` for the targets of these samples."""
        outputs = self.targets
        if outputs.ndim == 1:
            outputs = np.eye(len(self.rows.classes))[outputs]
        return self.table.statistics.levels_by(self.table.X, outputs, self.weight)

    def sized(self, options: Sequence[tuple[float, _Option]]) -> _Option:
        """The option for the size of the fit, from pairs of a largest size and an option."""
        return next(found for most, found in options if self.size <= most)


class View:
    """A model of one representation of a table.

    Its outputs are logits (n, k), or standardised predictions (n, q). `inputs` names the attribute
    of `Table` that it reads.
    """

    penalty = np.nan  # of a linear model
    n_features = 0  # of a linear model

    def __init__(self, inputs: str) -> None:
        self.inputs = inputs

    def features(self, table: Table) -> Any:
        """Features (n, p) of samples."""
        return getattr(table, self.inputs)

    def cross_fit(self, samples: Samples, folds: Folds) -> _Array:
        """Outputs (m, k) of held-out samples, in the order of `Folds.held`."""
        return self.fold_outputs(self.fit, samples, folds)

    def fold_outputs(
        self, fit: Callable[[Samples], None], samples: Samples, folds: Folds
    ) -> _Array:
        """Outputs of held-out samples, after `fit` has fitted the view without their fold."""
        parts = []
        for train, held in folds.parts:
            fit(samples.subset(train))
            parts.append(self.outputs(samples.table.subset(held)))
        return np.concatenate(parts)

    def fit(self, samples: Samples) -> None:
        """Fit to all samples; does nothing if `cross_fit` made the final fit."""

    def outputs(self, table: Table) -> _Array:
        """Outputs of samples."""
        raise NotImplementedError


class TreesView(View):
    """Trees on columns and on numbered levels of categories."""

    levels: _Array  # weights (D, C) of indicators
    trees: Trees

    def features(self, table: Table, read: NDArray[np.intp] | None = None) -> NDArray[np.float32]:
        """All features (n, p) of samples, or those of the indices `read`."""
        features: NDArray[np.float32] = getattr(table, self.inputs)(self.levels, read)
        return features


class ForestView(TreesView):
    """Forest; out of fold, a sample is predicted by the trees that were grown without it."""

    def cross_fit(self, samples: Samples, folds: Folds) -> _Array:
        self.levels = samples.table.statistics.levels
        X, held = self.features(samples.table), folds.held
        forest, weight = self.unfitted(samples), unequal(samples.weight)
        several = samples.targets.ndim > 1
        k = samples.targets.shape[1] if several else len(samples.rows.classes)
        self.trees, means = fit_forest(forest, X, samples.plain_targets, weight, held, k)
        return self.of_means(means)

    def outputs(self, table: Table) -> _Array:
        return self.of_means(self.trees.predict(self.features(table)))

    def n_inputs(self, samples: Samples) -> int:
        """Number of features that the trees read."""
        return len(samples.table.statistics.without_levels) + self.levels.shape[1]

    def unfitted(self, samples: Samples) -> Any:
        """The forest of scikit-learn, not fitted, with options for these samples."""
        raise NotImplementedError

    def of_means(self, means: _Array) -> _Array:
        """Outputs from the mean values of the leaves."""
        return means


class BoostingView(TreesView):
    """Gradient boosting (Friedman 2001) of small trees.

    The number of steps doubles while this lowers the loss of the first fold by 3%. Of these steps,
    the first ones with the smallest loss of all held-out samples are kept. With more than
    `max_refitted` samples, the fit to all samples that are not held out is the final fit.
    """

    max_refitted: int  # samples
    steps: int
    is_final = False  # whether `cross_fit` made the final fit

    def cross_fit(self, samples: Samples, folds: Folds) -> _Array:
        parts = folds.parts
        self.is_final = samples.size > self.max_refitted
        if self.is_final:
            parts = [(np.setdiff1d(np.arange(len(samples)), folds.held), folds.held)]
        staged = [self._grow_first(samples, *parts[0])]
        for train, held in parts[1:]:
            self.grow(samples.subset(train))
            staged.append(self._staged(samples.table.subset(held)))
        stages = np.concatenate(staged, axis=1)
        best = int(np.argmin([self.loss(outputs, samples, folds.held) for outputs in stages]))
        self.steps = (best + 1) * STEP
        if self.is_final:
            self.trees = self.trees.first(len(self.trees.roots) * (best + 1) // len(stages))
            return self.outputs(samples.table.subset(folds.held))
        chosen: _Array = stages[best]
        return chosen

    def _grow_first(self, samples: Samples, train: Codes, held: Codes) -> _Array:
        """Choose the number of steps in the first fold; return the outputs of `_staged`."""
        self.steps, most = self.step_limits(samples)
        table = samples.table.subset(held)
        while True:
            self.grow(samples.subset(train))
            stages = self._staged(table)
            half, loss = (self.loss(stages[i], samples, held) for i in (len(stages) // 2 - 1, -1))
            if 2 * self.steps > most or loss >= (1.0 - _LEAST_GAIN) * half:
                return stages
            self.steps *= 2

    def _staged(self, table: Table) -> _Array:
        """Outputs (stages, n, k) after each 25 steps."""
        X = self.features(table)
        roots = np.split(self.trees.roots, self.steps // STEP)
        parts = [replace(self.trees, roots=some).predict(X) for some in roots]
        return self.start + np.cumsum(parts, axis=0)

    def fit(self, samples: Samples) -> None:
        """See `View.fit`."""
        if not self.is_final:
            self.grow(samples)

    def grow(self, samples: Samples) -> None:
        """Fit to samples."""
        statistics = samples.table.statistics
        self.levels = np.hstack([statistics.levels, samples.levels_by_targets()])
        models, weight = self.unfitted(samples), unequal(samples.weight)
        reads = self._reads(samples, models)
        read = np.unique(np.concatenate(reads))
        X: NDArray[Any] = self.features(samples.table, read)
        samples = samples.without_columns()  # frees the columns of a subset
        X = X.astype(np.float64, order="C")
        steps = [
            grow(boosting, X, y, weight, np.searchsorted(read, own), samples.n_threads)
            for (boosting, y), own in zip(models, reads, strict=True)
        ]
        self.start, trees = self.joined([boosting for boosting, _ in models], steps)
        self.trees = Trees.of_boosting(trees, len(self.start), X)
        self.trees = replace(self.trees, feature=read[self.trees.feature].astype(np.int32))

    def _reads(
        self, samples: Samples, models: list[tuple[Any, NDArray[Any]]]
    ) -> list[NDArray[np.intp]]:
        """Indices of the features that the trees of each model read."""
        required, weight = self.required(samples.table.statistics), unequal(samples.weight)
        if np.count_nonzero(~required) <= CHOSEN:
            return [np.arange(len(required))] * len(models)
        some = np.random.RandomState(samples.seed).permutation(len(samples))[:SCREENED]
        X, w = self.features(samples.table.subset(some)), None if weight is None else weight[some]
        return [chosen_features(boosting, X, y[some], w, required) for boosting, y in models]

    def outputs(self, table: Table) -> _Array:
        return self.start + self.trees.predict(self.features(table))

    def required(self, statistics: TableStatistics) -> NDArray[np.bool_]:
        """Which features all trees may read: columns, and levels by their targets.

        Indicators, levels without an order, and pairs of columns often add little.
        """
        columns, n_categories = statistics.without_levels, len(statistics.categories)
        indicators = np.concatenate([np.arange(0), *statistics.categories])
        own = ~np.isin(columns, indicators) & (columns < len(statistics.mean) - statistics.n_gaps)
        n_pairs = 2 * statistics.numeric_pairs.shape[1] * (self.inputs == "with_pairs")
        by_order = np.repeat([False, True, False], [n_categories, n_categories, n_pairs])
        return np.concatenate([own, by_order])

    def step_limits(self, samples: Samples) -> tuple[int, int]:
        """Number of steps to begin with, a multiple of 25, and the largest number of steps."""
        raise NotImplementedError

    def loss(self, outputs: _Array, samples: Samples, held: Codes) -> float:
        """Loss of outputs of the samples `held`."""
        raise NotImplementedError

    def unfitted(self, samples: Samples) -> list[tuple[Any, NDArray[Any]]]:
        """Boosting models of scikit-learn, not fitted, each with its targets."""
        raise NotImplementedError

    def joined(
        self, fitted: list[Any], steps: list[list[Any]]
    ) -> tuple[_Array, list[tuple[int, Any]]]:
        """First outputs (k,), and pairs of an output and a tree that adds to it.

        `steps` are the trees of each step of each model.
        """
        raise NotImplementedError


class EstimatorView(View):
    """An estimator with scikit-learn's interface."""

    def __init__(self, estimator: Any) -> None:
        super().__init__("X")
        self.estimator = estimator

    def fit(self, samples: Samples) -> None:
        options, weight = {}, unequal(samples.weight)
        if weight is not None and has_fit_parameter(self.estimator, "sample_weight"):
            options["sample_weight"] = weight
        fitted = self.unfitted(samples)
        self.fitted = fitted.fit(self.features(samples.table), samples.plain_targets, **options)

    def unfitted(self, samples: Samples) -> Any:
        """The estimator for these samples."""
        return clone(self.estimator)
