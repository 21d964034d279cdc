"""GEM classifier: moments, directions, expansion and logit in one estimator."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence, Sized
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.types import ClassWeight, Floats, Pairs, RandomState, Rows
from eigenfeat._base.validation import FLOATS, MOST
from eigenfeat.expansion.features import Layer, as_layer, few_features, layer_features
from eigenfeat.gem.clusters import class_clusters, cross_pairs
from eigenfeat.gem.gem import GEM
from eigenfeat.gem.pool import (
    MOST_CLASSES,
    MOST_COLUMNS,
    MOST_SMALL,
    View,
    fit_pool,
    pooled_scores,
)
from eigenfeat.gem.views import VIEWS, TableStatistics
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.samples.blocks import ArrayBlocks, RowBlocks
from eigenfeat.samples.completion import ALLOW_NAN, complete
from eigenfeat.samples.estimator import (
    BaseEstimator,
    Iterative,
    Verbose,
    class_weighted,
    encoded_names,
    given_blocks,
    is_valid,
    keep_columns,
    keep_completion,
    steps_of,
    unchanged_on_error,
    validate_columns,
    weighted_rows,
    with_steps,
)
from eigenfeat.samples.labelled import MemoryRows, scan_blocks
from eigenfeat.samples.out_of_core import FromLogits, over_blocks

if TYPE_CHECKING:
    from eigenfeat.expansion.features import ExpandedRows
    from eigenfeat.pencils.contrasts import Contrasts
    from eigenfeat.samples.labelled import LabelledRows

__all__ = ["GEMClassifier", "default_logit", "with_gaps"]


class GEMClassifier(Iterative, Verbose, FromLogits, ClassifierMixin, BaseEstimator):
    """Classifier of tables, images and signals: a pool of views of the features.

    Use it first for any table: numbers, text, categories and gaps need no preparation, and most
    tables need no tuning. With ``views="gem"``, tune the `ridge` and `n_directions` of `gem` and
    the `penalty` of `logit`. User guide: :doc:`/guide/classifier`.

    Each view is a representation of the features with a multinomial logit on it. Views are pooled
    by weights that minimise the log loss of out-of-fold probabilities. ``views="gem"`` is the
    classifier of Karampatziakis and Mineiro (2014): a logit on GEM features.

    Parameters
    ----------
    views : "auto", the name of a view, or a list of names, default="auto"
        "columns" (standardised, categories one-hot), "splines" (of each numeric column), "gem" (GEM
        features), "gem_ranks" (of the ranks), "kernel" (Gaussian, of the ranks) and "interactions"
        (pairs of columns, in bins). "auto" pools all that the samples allow; the guide says when
        that is "gem" alone. Parameters marked * have an effect with ``views="gem"`` only.
    gem : GEM or None, default=None
        Parameters of the GEM features, as an estimator that is not fitted; None means `GEM()`.
    logit : MultinomialLogit or None, default=None
        Parameters of the logit, as an estimator that is not fitted; a pool uses `tol` and
        `max_iter`. None: ``MultinomialLogit(tol=1e-3, temperature="auto", solver="auto")``.
    depth : int >= 1, default=1
        Number of layers; each takes the expanded projections of the one before.*
    hidden_directions, hidden_ridge : int >= 1 or "auto", float >= 0, "auto" or None
        Directions per pair and ridge of hidden layers. "auto": at most 20; None: that of `gem`.*
    n_clusters : int >= 1, default=1
        Clusters of each class, between which the first layer solves for directions.*
    categorical_features : "from_dtype" or None, default="from_dtype"
        Columns of text and categories in data frames become one-hot; dates and text that nearly
        always differs are left out with a warning. None refuses them.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights by label.
    random_state : int, RandomState or None, default=0
        Seed, also in place of those of `gem` and `logit`.
    n_threads, verbose : int or None, int, default=None, 0
        Number of threads, all by default; 1 prints a line for each step on stderr.

    Attributes
    ----------
    views_ : list of View
        Name, weight, log loss and penalty of each view, and why one is not used.
    layers_ : list of Layer
        Directions, offsets, eigenvalues and pairs of each layer of the view "gem".
    logit_ : MultinomialLogit
        The classifier on the features of the views with weight, side by side.
    penalty_, temperature_ : float
        Those of the view with the largest weight; the temperature of a pool is 1.
    out_of_fold_proba_ : (n, k) array or None
        Probabilities of training samples by pools fitted without their fold; None with
        ``views="gem"`` or more than 5,000 samples.
    classes_, n_features_in_, feature_names_in_
        Labels, sorted; number of input features, and their names if they had names.
    columns_, completion_ : TableColumns, GaussianRows
        Encoder of categories, and the Gaussian of missing numbers; only if `fit` had some.

    See Also
    --------
    GEMClassifierCV : Search over the parameters of ``views="gem"``.
    GEM : The features alone, for other classifiers.
    eigenfeat.gem.contributions : What a prediction rests on.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors",
    ICML 2014: Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat import GEMClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = GEMClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "views": [StrOptions({"auto", *VIEWS}), list, tuple],
        "gem": [GEM, None],
        "logit": [MultinomialLogit, None],
        "depth": [Interval(Integral, 1, MOST, closed="both")],
        "hidden_directions": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "hidden_ridge": GEM._parameter_constraints["ridge"],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "categorical_features": [StrOptions({"from_dtype"}), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    out_of_fold_proba_: NDArray[np.float64] | None = None

    def __init__(
        self,
        views: str | Sequence[str] = "auto",
        gem: GEM | None = None,
        logit: MultinomialLogit | None = None,
        depth: int = 1,
        hidden_directions: int | str = "auto",
        hidden_ridge: float | str | None = None,
        n_clusters: int = 1,
        categorical_features: str | None = "from_dtype",
        class_weight: ClassWeight = None,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.gem = gem
        self.logit = logit
        self.depth = depth
        self.hidden_directions = hidden_directions
        self.hidden_ridge = hidden_ridge
        self.n_clusters = n_clusters
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    @with_steps
    def fit(
        self,
        X: Rows | RowBlocks,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        events: ArrayLike | None = None,
    ) -> GEMClassifier:
        """Fit the directions of each layer, then the logit on their expansion.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples; NaN is a missing entry. Blocks are read again for
            every layer and in every iteration of the logit; neither samples nor projections are
            kept in memory. Files (`open_rows`) whose features take at most 64 MB are read into
            memory.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.
        events : (n,) array-like, optional
            Groups of samples that the moments are conditioned on instead of the labels, for example
            bins of a continuous target or clusters within classes.

        Returns
        -------
        GEMClassifier
            The estimator itself.
        """
        self._check_parameters()
        with unchanged_on_error(self):
            started = time.perf_counter()
            rows, groups = self._rows(X, y, sample_weight, events)
            self._learn(rows, groups, started)
        return self

    def _learn(self, rows: LabelledRows, groups: LabelledRows, started: float) -> None:
        """Fit directions, views and logit to checked samples."""
        gem, clusters = self._first(groups)
        gem._learn(clusters, started)
        if not self._fit_views(rows, groups, gem):
            self._fit(rows, groups, gem)

    @over_blocks
    def decision_function(self, X: Rows | RowBlocks) -> Floats:
        """Logits of the classes.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, with missing entries only if `fit` had some. For blocks, an iterator over the
            results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the logit of the second class over the first.
        """
        if "logit_" not in self.__dict__:
            check_is_fitted(self, "logit_")
        filled = X
        if not is_valid(self, X):
            X = self._validated(X, reset=False)
            filled = complete(getattr(self, "completion_", None), X, self.n_threads)
        if "statistics_" in self.__dict__:
            table = self.statistics_.table(with_gaps(filled, X, self.gaps_), self.n_threads)
            return pooled_scores(self.views_, self.logit_, table, filled, self.n_threads)
        few = None if self._has_input() else few_features(filled, self.layers_, self.n_threads)
        if few is not None:
            return self.logit_.scores_of(few)
        out: NDArray[Any] = self.logit_.decision_function(self._features(filled, self.layers_))
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    def _check_parameters(self) -> None:
        self._validate_params()
        gem = self._base_gem()
        gem._check_parameters()
        self._base_logit()._validate_params()
        if gem.expansion == "none":
            raise ValueError(
                "expansion: expected 'auto', 'half_wave', 'shifted' or 'polynomial' in a "
                "classifier, got 'none'"
            )
        drawn = _drawn_pairs(gem.pairs)
        every = isinstance(gem.pairs, str) and gem.pairs in ("auto", "all")
        if self.n_clusters > 1 and not every and (drawn is None or drawn < 1):
            raise ValueError(
                f"pairs: expected 'all' or ('random', n) with n_clusters > 1, got {gem.pairs!r}"
            )

    def _base_gem(self) -> GEM:
        """The parameters of the GEM features, as given or by default."""
        return GEM() if self.gem is None else self.gem

    def _base_logit(self) -> MultinomialLogit:
        """The parameters of the logit, likewise."""
        return default_logit() if self.logit is None else self.logit

    def _rows(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, events: Any, *, moments: bool = True
    ) -> tuple[LabelledRows, LabelledRows]:
        """Checked rows with their labels, and with what the moments are conditioned on instead."""
        blocks = given_blocks(X, y, sample_weight, estimator=self)
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
            raise ValueError(
                f"events: expected {len(y)} groups, one per sample, got {groups.shape}"
            )
        X, index, weight = weighted_rows(X, np.arange(len(y)), sample_weight)
        weight = class_weighted(self.class_weight, y[index], weight)
        rows = MemoryRows.completed(X, y[index], weight, self.n_threads, encoded_names(self))
        check_two_labels(rows.classes)
        return rows, rows if events is None else rows.relabelled(groups[index])

    def _block_rows(
        self, blocks: RowBlocks, events: Any, moments: bool
    ) -> tuple[LabelledRows, LabelledRows]:
        """Likewise of blocks; whether the first pass takes the moments, too."""
        self._check_block_parameters()
        first_pass = partial(
            scan_blocks,
            small=True,
            n_threads=self.n_threads,
            allows_missing=True,
            class_weight=self.class_weight,
        )
        if events is None:
            rows = groups = first_pass(blocks, moments=moments)
        elif isinstance(blocks, ArrayBlocks) and self.class_weight is None:
            groups = first_pass(blocks.relabelled(events, "events"), moments=True)
            rows = first_pass(blocks)
        else:
            raise ValueError(
                "events: expected None with class_weight or blocks other than ArrayBlocks, got "
                f"{type(events).__name__} with {type(blocks).__name__}"
            )
        check_two_labels(rows.classes)
        keep_columns(self, blocks, rows.n_features)
        return rows, groups

    def _check_block_parameters(self) -> None:
        if self.n_clusters > 1:
            raise ValueError(f"n_clusters: expected 1 with blocks of rows, got {self.n_clusters}")

    def _checked(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        result = self._validated(X, reset=reset, y=y)
        if reset:
            return result
        return complete(getattr(self, "completion_", None), result, self.n_threads)

    def _validated(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        """Samples as numbers, categories one-hot; with `y`, both."""
        small = getattr(X, "dtype", None) in (np.uint8, np.int8, np.uint16, np.int16, np.bool_)
        options = ALLOW_NAN | {"dtype": np.float32 if small else FLOATS}
        return validate_columns(self, X, y, reset=reset, **options)

    def _fit_views(self, rows: LabelledRows, groups: LabelledRows, first: GEM) -> bool:
        """Fit the pool of views; whether it is better than GEM features of the columns alone."""
        for name in ("statistics_", "gaps_", "out_of_fold_proba_"):
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
        statistics = TableStatistics.fit(X, rows.block.weight, groups_of, len(gaps))

        def extractor(scale: str) -> GEM:
            return self._gem(0, len(rows.classes)).set_params(scale=scale, verbose=0)

        given = self._base_logit()

        def logit(common: bool, ridge: float) -> MultinomialLogit:
            return MultinomialLogit(
                ridge=ridge,
                ridge_scale="common" if common else "columns",
                tol=given.tol,
                max_iter=given.max_iter,
                random_state=self.random_state,
                n_threads=self.n_threads,
            )

        seed = np.random.RandomState(check_random_state(self.random_state).randint(2**31 - 1))
        table = statistics.table(X, self.n_threads)
        steps = self._log, self._step_done
        pool = fit_pool(names, rows, table, first, extractor, logit, seed, *steps)
        if pool is None:
            return False
        keep_completion(self, rows.completion)
        self.statistics_, self.gaps_ = statistics, gaps
        self.views_, self.logit_ = pool.views, pool.logit
        self.out_of_fold_proba_ = pool.out_of_fold
        self.classes_ = rows.classes
        gem = [view for view in pool.views if view.name == "gem" and view.weight > 0]
        self.layers_ = list(gem[0].learned) if gem else []
        self.penalty_ = max(pool.views, key=lambda view: view.weight).penalty
        self.temperature_ = 1.0
        self._log(f"pool of {sum(view.weight > 0 for view in pool.views)} views", started)
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
        if self.depth > 1 or self.n_clusters > 1 or self._base_gem().include_input:
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
        gem = clone(self._base_gem())
        last = level == self.depth - 1
        if level > 0:
            gem.set_params(constant=True, scale="none")
            if self.n_clusters > 1:
                gem.pairs = "auto"
        if not last:
            sizes = n_classes, n_rows, n_columns
            gem.pairs, gem.n_directions = hidden_pairs(gem.pairs, self.hidden_directions, *sizes)
            gem.threshold = None
            if self.hidden_ridge is not None:
                gem.ridge = self.hidden_ridge
        expansion, powers = self._expansion() if last else ("shifted", (1,))
        return gem.set_params(
            expansion=expansion,
            powers=powers,
            include_input=False,
            random_state=self.random_state,
            n_threads=self.n_threads,
            verbose=self.verbose,
        )

    def _expansion(self) -> tuple[str, tuple[int, ...]]:
        """Expansion and powers of the last layer."""
        gem = self._base_gem()
        smooth = "shifted" if self._is_smooth() else "half_wave"
        return smooth if gem.expansion == "auto" else gem.expansion, tuple(gem.powers)

    def _is_smooth(self) -> bool:
        """Whether the features shall be smooth."""
        return self.depth > 1

    def _fit(self, rows: LabelledRows, groups: LabelledRows, first: GEM) -> None:
        """Fit the layers after the first, whose extractor is fitted, and the logit."""
        keep_completion(self, rows.completion)
        layers = [as_layer(first)]
        for level in range(1, self.depth):
            layers.append(self._layer(groups, layers, level))
        started = time.perf_counter()
        include_input = self._base_gem().include_input
        reading = replace(rows.reading, layers=tuple(layers), include_input=include_input)
        features = rows.read_as(reading)
        logit = self._logit()
        with steps_of(self, logit):
            logit.fit_path(features, None, None)
        counts = f"{logit.n_features_in_} features, {logit.n_iter_[0]} iterations"
        self._log(f"logit: {counts}", started)
        self._log(f"penalty: {logit.penalty_:.3g}, temperature: {logit.temperature_:.3g}")
        self._adopt(layers, logit)

    def _adopt(self, layers: list[Layer], logit: MultinomialLogit) -> None:
        """Take fitted layers and a fitted logit as the only view."""
        self.layers_, self.logit_, self.classes_ = layers, logit, logit.classes_
        self.penalty_, self.temperature_ = logit.penalty_, logit.temperature_
        one = View("gem", 1.0 / logit.temperature_, n_features=logit.n_features_in_, learned=layers)
        self.views_ = [replace(one, penalty=logit.penalty_)]

    def _first(self, groups: LabelledRows) -> tuple[GEM, LabelledRows]:
        """The first layer's extractor, not fitted, and rows labelled by what it tells apart."""
        gem = self._gem(0, len(groups.classes), groups.n_rows, groups.n_features)
        pairs = self._base_gem().pairs
        if self.n_clusters == 1 or not isinstance(groups, MemoryRows):
            return gem, groups
        names, of_classes = class_clusters(
            groups.block.X,
            groups.classes[groups.codes],
            self.n_clusters,
            scaled=gem.scale == "columns",
            random_state=self.random_state,
        )
        gem.pairs = cross_pairs(of_classes, _drawn_pairs(pairs), self.random_state)
        return gem, groups.relabelled(names)

    def _layer(self, groups: LabelledRows, layers: Sequence[Layer], level: int) -> Layer:
        """A layer after the first, from moments of the features of those before it."""
        started = time.perf_counter()
        reading = replace(groups.reading, layers=tuple(layers), hidden=True)
        moments = groups.read_as(reading).moments()
        columns = moments.n_features_in_
        self._log(f"moments of layer {level + 1}: {columns} columns", started)
        sizes = len(moments.active_classes), groups.n_rows, columns
        return as_layer(self._gem(level, *sizes)._adopt(moments))

    def _features(self, X: Any, layers: Sequence[Layer]) -> ExpandedRows:
        """The last layer's features, by their projections."""
        return layer_features(X, layers, self._has_input(), self.n_threads)

    def _has_input(self) -> bool:
        """Whether the input of the last layer is among the features of the fitted logit."""
        return bool(self.layers_) and self.logit_.n_features_in_ > self.layers_[-1].width

    def _most_steps(self) -> int:
        """Those of the logit."""
        return self._base_logit().max_iter

    def _logit(self) -> MultinomialLogit:
        columns = self._base_gem().include_input and self.depth == 1
        given = self._base_logit().get_params(deep=False)
        # Directions are in one unit, that of their denominators; input columns may be in any.
        changes = {
            "ridge_scale": "columns" if columns else "common",
            "random_state": self.random_state,
            "n_threads": self.n_threads,
        }
        return MultinomialLogit(**(given | changes))


def default_logit() -> MultinomialLogit:
    """The parameters of a classifier's logit where none is given."""
    return MultinomialLogit(tol=1e-3, temperature="auto", solver="auto")


def _drawn_pairs(pairs: Any) -> int | None:
    """The number n of ``("random", n)``; None of other pairs."""
    if not (isinstance(pairs, tuple) and len(pairs) == 2):
        return None
    kind, count = pairs
    return int(count) if kind == "random" and isinstance(count, Integral) else None


def with_gaps(filled: Any, X: Any, gaps: Any) -> Any:
    """Complete samples, followed by indicators of what was missing in the columns `gaps`."""
    filled = filled.toarray() if issparse(filled) else filled
    out = np.hstack([filled, np.isnan(X[:, gaps])]) if len(gaps) else filled
    return np.asarray(out, dtype=np.float64)


# ---- directions of hidden layers -----------------------------------------------------------------
#
# The next layer's moments are to fit into memory. A layer of F directions has 2 F + 1 features, and
# the next one keeps k second moments of them, those of a block of samples and those of all before:
# 16 k (2 F + 1)^2 bytes.


MOST_BYTES = 2**31  # of the next layer's moments
_MOST_BYTES_OF_GROUPS = 2**29  # whose directions are many more than the next layer needs
_MOST_OF_GROUPS = 600
_MOST_OF_A_PAIR = 20
_PAIRS_OF_A_PARTITION = 30


def hidden_pairs(
    pairs: Pairs | Contrasts,
    n_directions: int | str,
    n_classes: int,
    n_rows: int | None = None,
    n_columns: int | None = None,
) -> tuple[Pairs | Contrasts, int]:
    """Pairs and directions a pair of a hidden layer of k classes.

    With "auto" 20 directions a pair, or fewer such that the next layer's moments take at most two
    gigabytes. If all pairs of classes are too many for that with one direction each, "auto" pairs
    are those of random groups, at most as many as of a first layer, for moments of half a gigabyte.

    There are no more directions than rows, whose features would have no higher rank, and no more of
    a pair than columns and the constant.
    """
    if not isinstance(n_directions, str):
        return pairs, n_directions
    by_rows = MOST_BYTES if n_rows is None else n_rows
    most = min(_directions(MOST_BYTES, n_classes), by_rows)
    count = _count(pairs, n_classes)
    if isinstance(pairs, str) and pairs == "auto" and count > most:
        most = min(_directions(_MOST_BYTES_OF_GROUPS, n_classes), _MOST_OF_GROUPS, by_rows)
        count = max(most // _PAIRS_OF_A_PARTITION, 1) * _PAIRS_OF_A_PARTITION
        pairs = ("random_groups", count)
    rank = _MOST_OF_A_PAIR if n_columns is None else n_columns + 1
    return pairs, max(1, min(_MOST_OF_A_PAIR, rank, most // count))


def _directions(n_bytes: int, n_classes: int) -> int:
    """Directions of a layer whose features have moments of so many bytes."""
    return (math.isqrt(n_bytes // (16 * n_classes)) - 1) // 2


def _count(pairs: Pairs | Contrasts, k: int) -> int:
    """Number of pairs, to a factor of two where it depends on the rows."""
    if isinstance(pairs, tuple) and len(pairs) == 2 and isinstance(pairs[0], str):
        return max(int(pairs[1]), 1)
    if not isinstance(pairs, str):
        return max(len(pairs), 1) if isinstance(pairs, Sized) else 1
    cube = k * max((k - 1).bit_length(), 1)
    kinds = {"one_vs_rest": 2 * k, "class_tree": 2 * (k - 1), "confusion": 6 * k}
    kinds |= {"all": k * (k - 1), "auto": k * (k - 1), "random_groups": 600}
    return min(kinds.get(pairs, cube), max(k * (k - 1), 600))
