"""The steps of a GEM classifier, from checked rows to layers and logit."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from eigenfeat._base.text_columns import naming_text
from eigenfeat.expansion.features import ExpandedRows
from eigenfeat.expansion.layers import Layer, as_layer, hidden_features, layer_features
from eigenfeat.expansion.waves import check_powers
from eigenfeat.gem.clusters import class_clusters, cross_pairs
from eigenfeat.gem.gem import GEM
from eigenfeat.linear.linear import FromLogits, check_two_labels
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.rows.blocks import ArrayBlocks, RowBlocks
from eigenfeat.rows.out_of_core import block_moments, surveyed
from eigenfeat.rows.row_weights import class_weighted, weighted_rows
from eigenfeat.rows.surveyed import SurveyedBlocks

__all__ = ["ClassifierSteps"]


class ClassifierSteps(FromLogits, ClassifierMixin, BaseEstimator):
    """What :class:`GEMClassifier` does one by one, and those that search or combine it.

    Its parameters are those of the classifier, which documents them.
    """

    ridge: float | str
    n_directions: int
    threshold: float | str | None
    pairs: Any
    denominator: str
    constant: bool
    scale: str
    expansion: str
    powers: Sequence[int]
    include_input: bool
    penalty: float
    tol: float
    depth: int
    hidden_directions: int
    hidden_ridge: float | str | None
    n_clusters: int
    class_weight: Any
    random_state: Any
    n_threads: int | None
    verbose: int

    layers_: list[Layer]
    logit_: MultinomialLogit

    def _check_parameters(self) -> None:
        self._validate_params()
        check_powers(self.powers)
        self._check_clusters()

    def _check_clusters(self) -> None:
        drawn = isinstance(self.pairs, tuple) and len(self.pairs) == 2 and self.pairs[0] == "random"
        whole = drawn and isinstance(self.pairs[1], Integral) and int(self.pairs[1]) >= 1
        if self.n_clusters > 1 and self.pairs != "all" and not whole:
            raise ValueError(
                f"pairs: expected 'all' or ('random', n) with n_clusters > 1, got {self.pairs!r}"
            )

    def _training_rows(self, X: Any, y: Any, sample_weight: Any, events: Any) -> tuple[Any, ...]:
        """Rows, labels, weights and groups, checked; rows without weight left out."""
        X, y = self._checked(X, reset=True, y=y)
        check_classification_targets(y)
        if events is not None and self.n_clusters > 1:
            raise ValueError("events: expected None with n_clusters > 1, which makes events itself")
        groups = y if events is None else np.asarray(events)
        if groups.shape != y.shape:
            raise ValueError(f"events: expected {len(y)} groups, one a row, got {groups.shape}")
        index = np.arange(len(y))
        X, index, weight = weighted_rows(X, index, sample_weight)
        y, groups = y[index], groups[index]
        weight = class_weighted(self.class_weight, y, weight)
        check_two_labels(np.unique(y))
        return X, y, weight, groups

    def _checked(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        small = getattr(X, "dtype", None) in (np.uint8, np.int8, np.uint16, np.int16, np.bool_)
        options = {
            "accept_sparse": "csr",
            "dtype": np.float32 if small else [np.float64, np.float32],
            "order": "C",
            "reset": reset,
        }
        with naming_text(X):
            return validate_data(self, X, y, **options)

    def _gem(self, level: int) -> GEM:
        """The extractor of one layer."""
        last = level == self.depth - 1
        wave, powers = self._waves() if last else ("shifted", (1,))
        return GEM(
            ridge=self.ridge if last or self.hidden_ridge is None else self.hidden_ridge,
            n_directions=self.n_directions if last else self.hidden_directions,
            threshold=self.threshold if last else None,
            pairs="all" if level > 0 and self.n_clusters > 1 else self.pairs,
            denominator=self.denominator,
            constant=self.constant or level > 0,
            scale=self.scale if level == 0 else "none",
            expansion=wave,
            powers=powers,
            random_state=self.random_state,
            n_threads=self.n_threads,
            verbose=self.verbose,
        )

    def _waves(self) -> tuple[str, tuple[int, ...]]:
        if self.expansion == "auto":
            return "half_wave" if self.depth == 1 else "shifted", tuple(self.powers)
        return self.expansion, tuple(self.powers)

    def _fit_rows(
        self, X: Any, y: Any, weight: Any, groups: Any, first: GEM | None = None
    ) -> ClassifierSteps:
        """Fit on checked rows; `first` is the first layer's extractor if it is there already."""
        layers = [] if first is None else [as_layer(first)]
        for level in range(len(layers), self.depth):
            layers.append(self._fit_layer(X, groups, weight, layers, level))
        return self._fit_logit(layers, self._features(X, layers), y, weight)

    def _fit_blocks(self, blocks: RowBlocks, events: Any) -> ClassifierSteps:
        """Fit on blocks of rows, which every layer and every iteration goes through again."""
        return self._fit_surveyed(*self._surveyed(blocks, events))

    def _surveyed(
        self, blocks: RowBlocks, events: Any
    ) -> tuple[GEM, SurveyedBlocks, SurveyedBlocks]:
        """The first layer's extractor, the rows, and what its moments are conditioned on."""
        self._check_block_parameters()
        gem = self._gem(0)
        if events is None:
            rows = groups = gem._survey(blocks, small=True)
        elif isinstance(blocks, ArrayBlocks):
            groups = gem._survey(blocks.relabelled(events, "events"), small=True)
            rows = surveyed(blocks, small=True, n_threads=self.n_threads)
        else:
            raise ValueError("events: expected None with blocks of rows, got others")
        check_two_labels(rows.classes)
        return gem, rows, groups

    def _check_block_parameters(self) -> None:
        if self.class_weight is not None:
            raise ValueError(
                "class_weight: expected None with blocks of rows, whose weights can say the same, "
                f"got {self.class_weight!r}"
            )
        if self.n_clusters > 1:
            raise ValueError(f"n_clusters: expected 1 with blocks of rows, got {self.n_clusters}")

    def _fit_surveyed(
        self, gem: GEM, rows: SurveyedBlocks, groups: SurveyedBlocks
    ) -> ClassifierSteps:
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = rows.survey.n_features
        layers = [as_layer(gem)]
        for level in range(1, self.depth):
            layers.append(self._block_layer(groups, layers, level))
        features = rows.read_as(layers=tuple(layers), include_input=self.include_input)
        return self._fit_logit(layers, features)

    def _block_layer(self, groups: SurveyedBlocks, layers: Sequence[Layer], level: int) -> Layer:
        """A layer after the first, by a pass over the rows that its moments are conditioned on."""
        started = time.perf_counter()
        hidden = groups.read_as(layers=tuple(layers), hidden=True)
        return self._next_layer(block_moments(hidden), level, started)

    def _fit_logit(
        self, layers: list[Layer], features: Any, y: Any = None, weight: Any = None
    ) -> ClassifierSteps:
        started = time.perf_counter()
        self.logit_ = self._logit(self.penalty).fit(features, y, weight)
        counts = f"{self.logit_.n_features_in_} features, {self.logit_.n_iter_[0]} iterations"
        self._say(f"logit: {counts}", started)
        self.classes_ = self.logit_.classes_
        self.layers_ = layers
        return self

    def _first(self, X: Any, groups: NDArray[Any]) -> tuple[GEM, NDArray[Any]]:
        """The first layer's extractor, not fitted, and what its moments are conditioned on."""
        gem = self._gem(0)
        if self.n_clusters == 1:
            return gem, groups
        scaled = self.scale == "columns"
        options = {"scaled": scaled, "random_state": self.random_state}
        groups, of_classes = class_clusters(X, groups, self.n_clusters, **options)
        count = None if self.pairs == "all" else int(self.pairs[1])
        gem.pairs = cross_pairs(of_classes, count, self.random_state)
        return gem, groups

    def _fit_layer(
        self, X: Any, groups: NDArray[Any], weight: Any, layers: list[Layer], level: int
    ) -> Layer:
        if level == 0:
            gem, groups = self._first(X, groups)
            return as_layer(gem.fit(X, groups, weight))
        started = time.perf_counter()
        moments = ClassMoments()
        for rows, block in hidden_features(X, layers, self.n_threads):
            part = None if weight is None else weight[rows]
            moments.update(block, groups[rows], part, n_threads=self.n_threads)
        return self._next_layer(moments, level, started)

    def _next_layer(self, moments: ClassMoments, level: int, started: float) -> Layer:
        columns = moments.n_features_in_
        self._say(f"moments of layer {level + 1}: {columns} columns", started)
        return as_layer(self._gem(level)._adopt(moments))

    def _features(self, X: Any, layers: Sequence[Layer]) -> ExpandedRows:
        """The last layer's features, by their projections."""
        return layer_features(X, layers, self.include_input, self.n_threads)

    def _logit(self, penalty: float) -> MultinomialLogit:
        columns = self.include_input and self.depth == 1
        return MultinomialLogit(
            penalty=penalty,
            # Directions are in one unit, that of their denominators; input columns may be in any.
            ridge_scale="columns" if columns else "common",
            tol=self.tol,
            random_state=self.random_state,
            n_threads=self.n_threads,
        )

    def _say(self, text: str, started: float) -> None:
        if self.verbose:
            took = time.perf_counter() - started
            print(f"[GEMClassifier] {text} ({took:.1f} s)", file=sys.stderr, flush=True)
