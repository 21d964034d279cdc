"""The steps of a GEM classifier, from checked rows to layers and logit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.speaking import Speaks
from eigenfeat._base.validation import FLOATS
from eigenfeat.expansion.features import check_powers
from eigenfeat.expansion.layers import Layer, as_layer, layer_features
from eigenfeat.gem.clusters import class_clusters, cross_pairs
from eigenfeat.gem.gem import GEM
from eigenfeat.gem.hidden import hidden_pairs
from eigenfeat.gem.joint import Joint, train_jointly
from eigenfeat.gem.pool import MOST_CLASSES, MOST_COLUMNS, MOST_SMALL, View, fit_pool
from eigenfeat.gem.views import VIEWS, TableStatistics
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.pencils.wide_rows import is_wide
from eigenfeat.rows.blocks import ArrayBlocks, RowBlocks
from eigenfeat.rows.columns import validate_columns
from eigenfeat.rows.completion import ALLOW_NAN, complete, keep_completion
from eigenfeat.rows.estimator import BaseEstimator, Iterative, steps_of
from eigenfeat.rows.memory import MemoryRows
from eigenfeat.rows.out_of_core import FromLogits, given_blocks, keep_columns
from eigenfeat.rows.row_weights import class_weighted, weighted_rows
from eigenfeat.rows.surveyed import surveyed

if TYPE_CHECKING:
    from eigenfeat._base.types import ClassWeight, Pairs, RandomState
    from eigenfeat.expansion.features import ExpandedRows
    from eigenfeat.pencils.contrasts import Contrasts
    from eigenfeat.rows.completion import GaussianRows
    from eigenfeat.rows.labelled import LabelledRows

__all__ = ["ClassifierSteps", "with_gaps"]


class ClassifierSteps(Iterative, Speaks, FromLogits, ClassifierMixin, BaseEstimator):
    """Single steps of :class:`GEMClassifier`, also used for searches and ensembles.

    Its parameters are those of the classifier, which documents them.
    """

    views: str | Sequence[str]
    categorical_features: str | None
    ridge: float | str | None
    n_directions: int | str
    threshold: float | str | None
    pairs: Pairs | Contrasts
    denominator: str
    constant: bool
    scale: str
    expansion: str
    powers: Sequence[int]
    include_input: bool
    penalty: float | str
    tol: float
    depth: int
    hidden_directions: int | str
    hidden_ridge: float | str | None
    n_clusters: int
    class_weight: ClassWeight
    temperature: float | str
    logit_solver: str
    joint_epochs: int
    perturbation: float
    learning_rate: float
    random_state: RandomState
    n_threads: int | None
    verbose: int

    layers_: list[Layer]
    logit_: MultinomialLogit
    views_: list[View]
    completion_: GaussianRows

    def _check_parameters(self) -> None:
        self._validate_params()
        check_powers(self.powers)
        self._check_clusters()
        if self.joint_epochs > 0 and self.expansion not in ("auto", "shifted"):
            raise ValueError(
                "expansion: expected 'auto' or 'shifted' with joint_epochs > 0, whose steps need "
                f"features that are smooth, got {self.expansion!r}"
            )

    def _check_clusters(self) -> None:
        drawn = self._drawn_pairs()
        every = isinstance(self.pairs, str) and self.pairs in ("auto", "all")
        if self.n_clusters > 1 and not every and (drawn is None or drawn < 1):
            raise ValueError(
                f"pairs: expected 'all' or ('random', n) with n_clusters > 1, got {self.pairs!r}"
            )

    def _drawn_pairs(self) -> int | None:
        """The number n of ``("random", n)``; None of other pairs."""
        if not (isinstance(self.pairs, tuple) and len(self.pairs) == 2):
            return None
        kind, count = self.pairs
        return int(count) if kind == "random" and isinstance(count, Integral) else None

    def _rows(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, events: Any, *, moments: bool = True
    ) -> tuple[LabelledRows, LabelledRows]:
        """Checked rows with their labels, and with what the moments are conditioned on instead."""
        wide = is_wide(X, "auto")
        if wide and self.joint_epochs > 0:
            raise ValueError(
                f"joint_epochs: expected 0 with {X.shape[1]} columns, got {self.joint_epochs}"
            )
        blocks = None if wide else given_blocks(X, y, sample_weight, estimator=self)
        whole = None if blocks is None or events is not None else blocks.in_memory()
        if blocks is not None and (whole is None or whole.y is None or not len(whole)):
            return self._block_rows(blocks, events, moments)
        if whole is not None:
            X, y, sample_weight = whole.X, whole.y, whole.weight
        X, y = self._checked(X, reset=True, y=y)
        if whole is not None:
            keep_columns(self, blocks, X.shape[1])
        check_classification_targets(y)
        if events is not None and self.n_clusters > 1:
            raise ValueError("events: expected None with n_clusters > 1, which makes events itself")
        groups = y if events is None else np.asarray(plain_labels(events, "events"))
        if groups.shape != y.shape:
            raise ValueError(f"events: expected {len(y)} groups, one per row, got {groups.shape}")
        X, index, weight = weighted_rows(X, np.arange(len(y)), sample_weight)
        weight = class_weighted(self.class_weight, y[index], weight)
        rows = MemoryRows.completed(X, y[index], weight, self.n_threads)
        check_two_labels(rows.classes)
        return rows, rows if events is None else rows.relabelled(groups[index])

    def _block_rows(
        self, blocks: RowBlocks, events: Any, moments: bool
    ) -> tuple[LabelledRows, LabelledRows]:
        """Likewise of blocks; whether the first pass takes the moments, too."""
        self._check_block_parameters()
        if self.joint_epochs > 0 and not isinstance(blocks, ArrayBlocks):
            raise ValueError(
                "joint_epochs: expected 0 with rows that cannot be read in any order (arrays and "
                f"memory-mapped files can), got {self.joint_epochs}"
            )
        first_pass = partial(surveyed, small=True, n_threads=self.n_threads, allows_missing=True)
        if events is None:
            rows = groups = first_pass(blocks, moments=moments)
        elif isinstance(blocks, ArrayBlocks):
            groups = first_pass(blocks.relabelled(events, "events"), moments=True)
            rows = first_pass(blocks)
        else:
            raise ValueError(
                "events: expected None with blocks of rows but ArrayBlocks, got "
                f"{type(events).__name__} with {type(blocks).__name__}"
            )
        check_two_labels(rows.classes)
        keep_columns(self, blocks, rows.n_features)
        return rows, groups

    def _check_block_parameters(self) -> None:
        if self.class_weight is not None:
            raise ValueError(
                "class_weight: expected None with blocks of rows, whose weights can say the same, "
                f"got {self.class_weight!r}"
            )
        if self.n_clusters > 1:
            raise ValueError(f"n_clusters: expected 1 with blocks of rows, got {self.n_clusters}")

    def _checked(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        found = self._validated(X, reset=reset, y=y)
        if reset:
            return found
        return complete(getattr(self, "completion_", None), found, self.n_threads)

    def _validated(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        """Samples as numbers, categories one-hot; with `y`, both."""
        small = getattr(X, "dtype", None) in (np.uint8, np.int8, np.uint16, np.int16, np.bool_)
        options = ALLOW_NAN | {"dtype": np.float32 if small else FLOATS}
        return validate_columns(self, X, y, reset=reset, **options)

    def _fit_views(self, rows: LabelledRows, groups: LabelledRows, first: GEM) -> bool:
        """Fit the pool of views; whether it is better than GEM features of the columns alone."""
        for name in ("statistics_", "gaps_"):
            self.__dict__.pop(name, None)
        names = self._view_names(rows, groups)
        if names == ["gem"]:
            return False
        assert isinstance(rows, MemoryRows)
        started = time.perf_counter()
        X, missing = rows.block.X, rows.block.missing
        gaps = (
            np.empty(0, dtype=np.intp) if missing is None else np.flatnonzero(missing.any(axis=0))
        )
        if missing is not None:
            X = np.hstack([X, missing[:, gaps]])
        X = np.asarray(X, dtype=np.float64)
        groups_of = np.arange(rows.n_features)
        if hasattr(self, "columns_"):
            groups_of = self.columns_.groups_
        groups_of = np.append(groups_of, groups_of[gaps])
        statistics = TableStatistics.fit(X, rows.block.weight, groups_of)

        def extractor(scale: str) -> GEM:
            gem = self._gem(0, len(rows.classes))
            gem.scale, gem.verbose = scale, 0
            return gem

        def logit(common: bool, ridge: float) -> MultinomialLogit:
            return MultinomialLogit(
                ridge=ridge,
                ridge_scale="common" if common else "columns",
                tol=self.tol,
                random_state=self.random_state,
                n_threads=self.n_threads,
            )

        seed = np.random.RandomState(check_random_state(self.random_state).randint(2**31 - 1))
        table = statistics.table(X)
        steps = self._say, self._step_done
        pool = fit_pool(names, rows, table, first, extractor, logit, seed, *steps)
        if pool is None:
            return False
        keep_completion(self, rows.completion)
        self.statistics_, self.gaps_ = statistics, gaps
        self.views_, self.logit_ = pool.views, pool.logit
        self.classes_ = rows.classes
        gem = [view for view in pool.views if view.name == "gem" and view.weight > 0]
        self.layers_ = list(gem[0].learned) if gem else []
        self.penalty_ = max(pool.views, key=lambda view: view.weight).penalty
        self.temperature_ = 1.0
        self._say(f"pool of {sum(view.weight > 0 for view in pool.views)} views", started)
        return True

    def _view_names(self, rows: LabelledRows, groups: LabelledRows) -> list[str]:
        """The views to try."""
        asked = VIEWS if self.views == "auto" else self.views
        names = [asked] if isinstance(asked, str) else list(asked)
        unknown = [name for name in names if name not in VIEWS]
        if unknown or not names or len(set(names)) < len(names):
            raise ValueError(
                f"views: expected 'auto' or different ones of {', '.join(VIEWS)}, "
                f"got {self.views!r}"
            )
        why = ""
        if self.depth > 1 or self.joint_epochs > 0 or self.n_clusters > 1 or self.include_input:
            why = "layers, clusters and input columns have GEM features of the columns alone"
        elif not isinstance(rows, MemoryRows) or not rows.dense or groups is not rows:
            why = "sparse samples, blocks and events have GEM features of the columns alone"
        elif len(rows.classes) > MOST_CLASSES:
            why = f"more than {MOST_CLASSES} classes"
        elif rows.n_rows > MOST_SMALL and rows.n_features > MOST_COLUMNS:
            why = f"more than {MOST_COLUMNS} columns with more than {MOST_SMALL} samples"
        if not why or names == ["gem"]:
            return names
        if self.views != "auto":
            raise ValueError(f"views: expected 'auto' or 'gem' here ({why}), got {self.views!r}")
        return ["gem"]

    def _gem(
        self, level: int, n_classes: int, n_rows: int | None = None, n_columns: int | None = None
    ) -> GEM:
        """The extractor of one layer, for moments of so many classes, rows and columns."""
        last = level == self.depth - 1
        pairs = "auto" if level > 0 and self.n_clusters > 1 else self.pairs
        count = self.n_directions
        if not last:
            given = self.hidden_directions, n_classes, n_rows, n_columns
            pairs, count = hidden_pairs(pairs, *given)
        expansion, powers = self._expansion() if last else ("shifted", (1,))
        return GEM(
            ridge=self.ridge if last or self.hidden_ridge is None else self.hidden_ridge,
            n_directions=count,
            threshold=self.threshold if last else None,
            pairs=pairs,
            denominator=self.denominator,
            constant=self.constant or level > 0,
            scale=self.scale if level == 0 else "none",
            expansion=expansion,
            powers=powers,
            random_state=self.random_state,
            n_threads=self.n_threads,
            verbose=self.verbose,
        )

    def _expansion(self) -> tuple[str, tuple[int, ...]]:
        if self.expansion == "auto":
            smooth = self.depth > 1 or self.joint_epochs > 0
            return "shifted" if smooth else "half_wave", tuple(self.powers)
        return self.expansion, tuple(self.powers)

    def _fit(self, rows: LabelledRows, groups: LabelledRows, first: GEM) -> None:
        """Fit the layers after the first, whose extractor is fitted, and the logit."""
        keep_completion(self, rows.completion)
        layers = [as_layer(first)]
        for level in range(1, self.depth):
            layers.append(self._layer(groups, layers, level))
        started = time.perf_counter()
        reading = replace(rows.reading, layers=tuple(layers), include_input=self.include_input)
        features = rows.read_as(reading)
        logit = self._logit(self.penalty)
        with steps_of(self, logit):
            logit.fit_path(features, None, None)
        self.logit_ = logit
        counts = f"{self.logit_.n_features_in_} features, {self.logit_.n_iter_[0]} iterations"
        self._say(f"logit: {counts}", started)
        self._say(f"penalty: {logit.penalty_:.3g}, temperature: {logit.temperature_:.3g}")
        if self.joint_epochs > 0:
            layers, self.logit_ = self._jointly(rows, layers, logit, first)
        self.classes_ = self.logit_.classes_
        self.penalty_, self.temperature_ = logit.penalty_, logit.temperature_
        self.layers_ = layers
        one = View("gem", 1.0 / logit.temperature_, n_features=logit.n_features_in_, learned=layers)
        self.views_ = [replace(one, penalty=logit.penalty_)]

    def _jointly(
        self, rows: LabelledRows, layers: list[Layer], logit: MultinomialLogit, first: GEM
    ) -> tuple[list[Layer], MultinomialLogit]:
        """Layers and logit after `joint_epochs`."""
        if not all(len(layer.offset) for layer in layers):
            self._say("joint training: there are no directions")
            return layers, logit
        settings = Joint(
            self.joint_epochs,
            self.perturbation,
            self.learning_rate,
            self.random_state,
            self.n_threads,
        )

        def done(text: str, begun: float) -> bool:
            self._say(text, begun)
            return self._step_done()

        whole = first.moments_, first.column_scale_
        return train_jointly(settings, rows, *whole, layers, logit, done)

    def _first(self, groups: LabelledRows) -> tuple[GEM, LabelledRows]:
        """The first layer's extractor, not fitted, and rows labelled by what it tells apart."""
        gem = self._gem(0, len(groups.classes), groups.n_rows, groups.n_features)
        if isinstance(groups, MemoryRows) and is_wide(groups.block.X, "auto"):
            gem.pairs = self.pairs  # which has no groups of classes
        if self.n_clusters == 1 or not isinstance(groups, MemoryRows):
            return gem, groups
        names, of_classes = class_clusters(
            groups.block.X,
            groups.classes[groups.codes],
            self.n_clusters,
            scaled=self.scale == "columns",
            random_state=self.random_state,
        )
        gem.pairs = cross_pairs(of_classes, self._drawn_pairs(), self.random_state)
        return gem, groups.relabelled(names)

    def _layer(self, groups: LabelledRows, layers: Sequence[Layer], level: int) -> Layer:
        """A layer after the first, from moments of the features of those before it."""
        started = time.perf_counter()
        reading = replace(groups.reading, layers=tuple(layers), hidden=True)
        moments = groups.read_as(reading).moments()
        columns = moments.n_features_in_
        self._say(f"moments of layer {level + 1}: {columns} columns", started)
        sizes = len(moments.active_classes), groups.n_rows, columns
        return as_layer(self._gem(level, *sizes)._adopt(moments))

    def _features(self, X: Any, layers: Sequence[Layer]) -> ExpandedRows:
        """The last layer's features, by their projections."""
        return layer_features(X, layers, self.include_input, self.n_threads)

    def _most_steps(self) -> int:
        """Those of the logit."""
        return self._logit(self.penalty).max_iter + self.joint_epochs

    def _logit(self, penalty: float | str) -> MultinomialLogit:
        columns = self.include_input and self.depth == 1
        return MultinomialLogit(
            penalty=penalty,
            # Directions are in one unit, that of their denominators; input columns may be in any.
            ridge_scale="columns" if columns else "common",
            tol=self.tol,
            temperature=1.0 if self.joint_epochs > 0 else self.temperature,
            solver=self.logit_solver,
            random_state=self.random_state,
            n_threads=self.n_threads,
        )


def with_gaps(filled: Any, X: Any, gaps: Any) -> Any:
    """Complete samples, followed by indicators of what was missing in the columns `gaps`."""
    filled = filled.toarray() if issparse(filled) else filled
    out = np.hstack([filled, np.isnan(X[:, gaps])]) if len(gaps) else filled
    return np.asarray(out, dtype=np.float64)
