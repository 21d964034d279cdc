"""GEM classifier: moments, directions, expansion and logit in one estimator."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.saved import fits
from eigenfeat._base.types import ClassWeight, Floats, Pairs, RandomState, Rows
from eigenfeat._base.validation import FLOATS, MOST
from eigenfeat._base.verbose import Verbose
from eigenfeat.expansion.features import check_powers
from eigenfeat.expansion.layers import Layer, as_layer, layer_features
from eigenfeat.gem.clusters import class_clusters, cross_pairs
from eigenfeat.gem.gem import GEM
from eigenfeat.gem.hidden import hidden_pairs
from eigenfeat.gem.joint import Joint, train_jointly
from eigenfeat.gem.pool import (
    MOST_CLASSES,
    MOST_COLUMNS,
    MOST_SMALL,
    View,
    check_pool,
    fit_pool,
    pooled_scores,
)
from eigenfeat.gem.views import VIEWS, TableStatistics
from eigenfeat.linear.logistic import PENALTY, MultinomialLogit
from eigenfeat.rows.blocks import ArrayBlocks, RowBlocks
from eigenfeat.rows.columns import validate_columns
from eigenfeat.rows.completion import ALLOW_NAN, complete, keep_completion
from eigenfeat.rows.estimator import (
    BaseEstimator,
    Iterative,
    steps_of,
    unchanged_on_error,
    with_steps,
)
from eigenfeat.rows.memory import MemoryRows, scan_blocks
from eigenfeat.rows.out_of_core import FromLogits, given_blocks, keep_columns, over_blocks
from eigenfeat.rows.row_weights import class_weighted, weighted_rows
from eigenfeat.wide.rows import is_wide

if TYPE_CHECKING:
    from eigenfeat.expansion.features import ExpandedRows
    from eigenfeat.pencils.contrasts import Contrasts
    from eigenfeat.rows.blocks import RowBlocks
    from eigenfeat.rows.labelled import LabelledRows

__all__ = ["GEMClassifier", "with_gaps"]


class GEMClassifier(Iterative, Verbose, FromLogits, ClassifierMixin, BaseEstimator):
    """Classifier of tables, images and signals: a pool of views of the features.

    Use it first for any table: numbers, text, categories and gaps need no preparation. It needs no
    tuning on most tables; with ``views="gem"``, tune `ridge`, `penalty` and `n_directions`. User
    guide: :doc:`/guide/classifier`.

    Each view is a representation of the features with a multinomial logit on it. Views are pooled
    by weights that minimise the log loss of out-of-fold probabilities, which also calibrates them.
    ``views="gem"`` is the classifier of Karampatziakis and Mineiro (2014): a multinomial logit on
    GEM features, which are never stored.

    Parameters
    ----------
    views : "auto", the name of a view, or a list of names, default="auto"
        "columns" (standardised, categories one-hot), "splines" (of each numeric column), "gem" (GEM
        features of the features), "gem_ranks" (of their ranks), "kernel" (Gaussian, of the ranks)
        and "interactions" (pairs of columns, in bins). "auto" pools all that the samples allow; GEM
        features of the features alone with `depth` over 1, `joint_epochs`, `n_clusters`,
        `include_input`, `events`, sparse samples, blocks, more than 100 classes, or more than 200
        columns and 5,000 samples. Parameters marked * have an effect with ``views="gem"`` only.
    ridge, pairs, denominator, constant, scale
        As in :class:`GEM`.
    n_directions : int >= 1 or "auto", default="auto"
        Maximum number of directions of a pair. "auto": 10 for up to 300 pairs, 3,000 divided by
        their number (at least 3) for up to 3,000, and 1 beyond and for random groups.
    threshold : float, "auto" or None, default=1.5
        Smallest eigenvalue of the last layer's directions; see :class:`GEM`.
    expansion : {"auto", "half_wave", "shifted", "polynomial"}, default="auto"
        As in :class:`GEM`. "auto": "half_wave"; "shifted" with `depth` over 1 or `joint_epochs`.
    powers : distinct numbers out of 1, 2, 3, default=(1, 2, 3)
        Exponents of the expansion.
    include_input : bool, default=False
        Whether the logit also uses the input of the last layer.*
    penalty : float >= 0 or "auto", default=0.03
        Weight of the energy of the logits, see :class:`MultinomialLogit`; "auto" takes that of six
        with the least log loss of held-out samples.*
    tol : float > 0, default=1e-3
        Tolerance of the logit.
    depth : int >= 1, default=1
        Number of layers; each takes the expanded projections of the one before.*
    hidden_directions : int >= 1 or "auto", default="auto"
        Directions per pair in hidden layers. "auto": 20, or fewer so that the next layer's moments
        take at most 2 GB.*
    hidden_ridge : float >= 0, "auto" or None, default=None
        Ridge of the hidden layers; None means `ridge`.*
    n_clusters : int >= 1, default=1
        Clusters of each class, between which the first layer solves for directions.*
    categorical_features : "from_dtype" or None, default="from_dtype"
        Columns of text and categories in data frames become one-hot; a missing category is one of
        its own, those that occur once are pooled, and unknown ones are zeros. Columns of dates and
        of text that nearly always differs are left out with a warning. None refuses them.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights by label. They change the logit, not the moments of a class.
    temperature : float > 0 or "auto", default="auto"
        Divisor of the logits; "auto" minimises the log loss of held-out samples.*
    logit_solver : {"auto", "lbfgs", "gaussian"}, default="auto"
        "lbfgs" minimises the penalised log loss; "gaussian" is a closed form, which "auto" uses
        beyond 100 classes. See :class:`MultinomialLogit`.*
    joint_epochs : int >= 0, default=0
        Passes over the samples in which all layers are improved together.*
    perturbation : float >= 0, default=0.15
        Length of the adversarial shifts in `joint_epochs`, relative to the root of the total
        variance.*
    learning_rate : float > 0, default=0.02
        Typical relative change of directions and weights in a step of `joint_epochs`.*
    random_state : int, RandomState or None, default=0
        Seed for folds, `scale`, clusters, random pairs and the order of samples.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. Results do not depend on it.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    views_ : list of View
        Name, weight, out-of-fold log loss, number of features and penalty of each view, and a note
        on why a view is not used.
    layers_ : list of Layer
        Directions, offsets, eigenvalues and pairs of each layer of the view "gem"; empty if it has
        no weight.
    logit_ : MultinomialLogit
        The classifier on the features of the views with weight, side by side.
    penalty_, temperature_ : float
        The values chosen or given, of the view with the largest weight; the temperature of a pool
        is 1.
    classes_ : (k,) array
        Labels, sorted.
    n_features_in_, feature_names_in_
        Number of input features, and their names if they had names.
    columns_ : TableColumns
        Encoder of the features; only if `fit` had a data frame with categories.
    completion_ : GaussianRows
        The Gaussian that missing numbers are completed by; only if `fit` had some.

    Raises
    ------
    ValueError
        If there are fewer than two classes, or samples, labels, weights or parameters are invalid.
    SingularDenominatorError
        If a class's matrix is singular and `ridge` too small; the message gives a sufficient ridge.

    Warns
    -----
    ConvergenceWarning
        If the loss has more than doubled in `joint_epochs`.

    See Also
    --------
    GEMClassifierCV : Search over the parameters of ``views="gem"``.
    GEM : The features alone, for other classifiers.
    FisherLDA : Linear discriminants; the fastest with many classes.
    eigenfeat.gem.contributions : What a prediction rests on.
    eigenfeat.plotting.ViewsDisplay : Weights and log losses of the views.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors",
    ICML 2014: Algorithm 1; section 4.1 (depth). C. Guo, G. Pleiss, Y. Sun and K. Weinberger, "On
    calibration of modern neural networks", ICML 2017: temperature. I. Goodfellow, J. Shlens and C.
    Szegedy, "Explaining and harnessing adversarial examples", ICLR 2015: `joint_epochs`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat import GEMClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = GEMClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    >>> sum(view.weight > 0 for view in model.views_) > 1
    True
    """

    _saved: ClassVar[dict[str, str]] = {
        "classes_": "labels k",
        "n_features_in_": "count",
        "completion_": "of GaussianRows?",
        "layers_": "many Layer",
        "views_": "many View",
        "columns_": "of TableColumns?",
        "statistics_": "of TableStatistics?",
        "gaps_": "whole *?",
        "logit_": "of MultinomialLogit",
        "penalty_": "number",
        "temperature_": "number",
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "views": [StrOptions({"auto", *VIEWS}), list, tuple],
        "ridge": GEM._parameter_constraints["ridge"],
        "n_directions": GEM._parameter_constraints["n_directions"],
        "threshold": GEM._parameter_constraints["threshold"],
        "pairs": GEM._parameter_constraints["pairs"],
        "denominator": GEM._parameter_constraints["denominator"],
        "constant": ["boolean"],
        "scale": GEM._parameter_constraints["scale"],
        "expansion": [StrOptions({"auto", "half_wave", "shifted", "polynomial"})],
        "powers": ["array-like"],
        "include_input": ["boolean"],
        "penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "tol": MultinomialLogit._parameter_constraints["tol"],
        "depth": [Interval(Integral, 1, MOST, closed="both")],
        "hidden_directions": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "hidden_ridge": GEM._parameter_constraints["ridge"],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "categorical_features": [StrOptions({"from_dtype"}), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "temperature": MultinomialLogit._parameter_constraints["temperature"],
        "logit_solver": MultinomialLogit._parameter_constraints["solver"],
        "joint_epochs": [Interval(Integral, 0, MOST, closed="both")],
        "perturbation": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        views: str | Sequence[str] = "auto",
        ridge: float | str | None = None,
        n_directions: int | str = "auto",
        threshold: float | str | None = 1.5,
        pairs: Pairs | Contrasts = "auto",
        denominator: str = "second_moment",
        constant: bool = True,
        scale: str = "auto",
        expansion: str = "auto",
        powers: Sequence[int] = (1, 2, 3),
        include_input: bool = False,
        penalty: float | str = PENALTY,
        tol: float = 1e-3,
        depth: int = 1,
        hidden_directions: int | str = "auto",
        hidden_ridge: float | str | None = None,
        n_clusters: int = 1,
        categorical_features: str | None = "from_dtype",
        class_weight: ClassWeight = None,
        temperature: float | str = "auto",
        logit_solver: str = "auto",
        joint_epochs: int = 0,
        perturbation: float = 0.15,
        learning_rate: float = 0.02,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.ridge = ridge
        self.n_directions = n_directions
        self.threshold = threshold
        self.pairs = pairs
        self.denominator = denominator
        self.constant = constant
        self.scale = scale
        self.expansion = expansion
        self.powers = powers
        self.include_input = include_input
        self.penalty = penalty
        self.tol = tol
        self.depth = depth
        self.hidden_directions = hidden_directions
        self.hidden_ridge = hidden_ridge
        self.n_clusters = n_clusters
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.temperature = temperature
        self.logit_solver = logit_solver
        self.joint_epochs = joint_epochs
        self.perturbation = perturbation
        self.learning_rate = learning_rate
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
            Samples; NaN is a missing entry. Blocks and memory-mapped arrays are read again for
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
            gem, clusters = self._first(groups)
            gem._learn(clusters, started)
            if not self._fit_views(rows, groups, gem):
                self._fit(rows, groups, gem)
        return self

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
        check_is_fitted(self, "logit_")
        X = self._validated(X, reset=False)
        filled = complete(getattr(self, "completion_", None), X, self.n_threads)
        if hasattr(self, "statistics_"):
            table = self.statistics_.table(with_gaps(filled, X, self.gaps_))
            return pooled_scores(self.views_, self.logit_, table, filled, self.n_threads)
        out: NDArray[Any] = self.logit_.decision_function(self._features(filled, self.layers_))
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    def _check_loaded(self) -> None:
        layers, logit = self.layers_, self.logit_
        d = self.n_features_in_
        if hasattr(self, "columns_"):
            d = len(self.columns_.feature_names_)
        fits(np.array_equal(logit.classes_, self.classes_), "GEMClassifier.classes_")
        fits(logit.coef_.shape[1] == logit.n_features_in_, "GEMClassifier.logit_")
        if hasattr(self, "statistics_"):
            check_pool(self.views_, logit, self.statistics_, d, self.gaps_)
            return
        fits(layers, "GEMClassifier.layers_")
        widths = [d, *(layer.width for layer in layers)]
        if self.include_input:
            widths[-1] += widths[-2]
        fits(
            [layer.directions.shape[0] for layer in layers] == widths[:-1], "GEMClassifier.layers_"
        )
        fits(logit.n_features_in_ == widths[-1], "GEMClassifier.logit_")

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
        first_pass = partial(scan_blocks, small=True, n_threads=self.n_threads, allows_missing=True)
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
        steps = self._log, self._step_done
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
        self._log(f"logit: {counts}", started)
        self._log(f"penalty: {logit.penalty_:.3g}, temperature: {logit.temperature_:.3g}")
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
            self._log("joint training: there are no directions")
            return layers, logit
        settings = Joint(
            self.joint_epochs,
            self.perturbation,
            self.learning_rate,
            self.random_state,
            self.n_threads,
        )

        def done(text: str, begun: float) -> bool:
            self._log(text, begun)
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
        self._log(f"moments of layer {level + 1}: {columns} columns", started)
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
