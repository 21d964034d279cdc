"""Classifier of tables: a pool of views of the columns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import ClassWeight, Floats, RandomState, Rows
from eigenfeat.expansion.features import as_layer, few_features, layer_features
from eigenfeat.gem.classifier import default_logit
from eigenfeat.gem.gem import GEM
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.completion import complete
from eigenfeat.samples.estimator import (
    BaseEstimator,
    Iterative,
    Verbose,
    is_valid,
    steps_of,
    unchanged_on_error,
    validate_columns,
    with_steps,
)
from eigenfeat.samples.labelled import MemoryRows
from eigenfeat.samples.out_of_core import FromLogits, over_blocks
from eigenfeat.samples.prepare import input_options, prepare
from eigenfeat.tables.pool import (
    MOST_CLASSES,
    MOST_COLUMNS,
    MOST_SMALL,
    View,
    fit_pool,
    pooled_scores,
)
from eigenfeat.tables.views import VIEWS, TableStatistics

if TYPE_CHECKING:
    from eigenfeat.samples.labelled import LabelledRows

__all__ = ["TableClassifier", "with_gaps"]


class TableClassifier(Iterative, Verbose, FromLogits, ClassifierMixin, BaseEstimator):
    """Classifier of tables: a pool of views of the columns.

    Use it first for any table: numbers, text, categories and gaps need no preparation, and most
    tables need no tuning. User guide: :doc:`/guide/tables`.

    Each view is a representation of the columns with a multinomial logit on it. Views are pooled by
    weights that minimise the log loss of out-of-fold probabilities.

    Parameters
    ----------
    views : "auto", the name of a view, or a list of names, default="auto"
        "columns" (standardised, categories one-hot), "splines" (of each numeric column), "gem" (GEM
        features), "gem_ranks" (GEM features of the ranks), "kernel" (Gaussian, of the ranks) and
        "interactions" (pairs of columns, in bins). "auto" pools all that the samples allow.
    categorical_features : "from_dtype" or None, default="from_dtype"
        Columns of text and categories in data frames become one-hot, or target statistics if
        there are more than 50 categories; dates become numbers, and text that nearly always
        differs is left out with a warning. None refuses them.
    class_weight : dict, "balanced" or None, default=None
        Class weights, multiplied into `sample_weight`.
    random_state : int, RandomState or None, default=0
        Seed of folds, landmarks and directions.
    n_threads : int or None, default=None
        Number of threads; None means all.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    views_ : list of View
        Name, weight, log loss and penalty of each view, and why a view is not used.
    layers_ : list of Layer
        Directions, offsets, eigenvalues and pairs of the view "gem"; empty if it has no weight.
    logit_ : MultinomialLogit
        The classifier on the features of the views with weight, side by side.
    penalty_ : float
        Penalty of the view with the largest weight.
    out_of_fold_proba_ : (n, k) array or None
        Probabilities of training samples by pools fitted without their fold; None with a single
        view or with more than 5,000 samples.
    classes_ : (k,) array
        Labels, sorted.
    n_features_in_ : int
        Number of input features.
    feature_names_in_ : (d,) array of str
        Names of the input features, if they have names.
    columns_ : TableColumns
        Encoder of categories; only if `fit` had some.
    completion_ : GaussianRows
        The Gaussian that completes missing numbers; only if `fit` had some.

    See Also
    --------
    GEMClassifier : One view, with parameters to tune and any number of layers.
    eigenfeat.tables.contributions : Explain a prediction by views and pairs of classes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat import TableClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = TableClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "views": [StrOptions({"auto", *VIEWS}), list, tuple],
        "categorical_features": [StrOptions({"from_dtype"}), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    statistics_: TableStatistics | None
    gaps_: NDArray[np.intp] | None
    # Set for all objects: early classifiers look for it before a fit.
    out_of_fold_proba_: NDArray[np.float64] | None = None

    def __init__(
        self,
        views: str | Sequence[str] = "auto",
        categorical_features: str | None = "from_dtype",
        class_weight: ClassWeight = None,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
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
    ) -> TableClassifier:
        """Fit the views and their weights.

        Parameters
        ----------
        X : (n, d) data frame, array-like, sparse matrix or RowBlocks
            Samples; NaN is a missing entry. Sparse samples, blocks that do not fit into memory and
            tables of more than 100 classes have the view "gem" alone.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        TableClassifier
            The estimator itself. An error leaves it unchanged.
        """
        self._validate_params()
        names = self._names()
        with unchanged_on_error(self):
            samples = prepare(
                self,
                X,
                y,
                sample_weight,
                allows_missing=True,
                small=True,
                class_weight=self.class_weight,
            )
            reason = _why_one_view(samples)
            if reason and self.views != "auto" and names != ["gem"]:
                raise ValueError(
                    f"views: expected 'auto' or 'gem' here ({reason}), got {self.views!r}"
                )
            if isinstance(samples, MemoryRows) and not reason and names != ["gem"]:
                self._fit_pool(samples, names)
            else:
                self._fit_gem(samples, reason)
        return self

    def _names(self) -> list[str]:
        """The views to try, in the order of their definition."""
        asked = VIEWS if self.views == "auto" else self.views
        names = [asked] if isinstance(asked, str) else list(asked)
        unknown = [name for name in names if name not in VIEWS]
        if unknown or not names or len(set(names)) < len(names):
            raise ValueError(
                f"views: expected 'auto' or distinct names out of {', '.join(VIEWS)}, "
                f"got {self.views!r}"
            )
        return [name for name in VIEWS if name in names]

    def _fit_gem(self, samples: LabelledRows, reason: str) -> None:
        """Fit GEM features and a logit on them as the only view."""
        layer = as_layer(self._gem("auto").fit_samples(samples))
        logit = default_logit().set_params(
            ridge_scale="common", random_state=self.random_state, n_threads=self.n_threads
        )
        with steps_of(self, logit):
            logit.fit_path(samples.mapped([layer]), None, None)
        view = View(
            "gem",
            1.0 / logit.temperature_,
            n_features=logit.n_features_in_,
            penalty=logit.penalty_,
            learned=[layer],
        )
        others = [View(name, 0.0, note=reason) for name in self._names() if name != "gem"]
        self.statistics_, self.gaps_, self.out_of_fold_proba_ = None, None, None
        self.views_ = [view, *others] if reason else [view]
        self.logit_, self.classes_, self.layers_ = logit, logit.classes_, [layer]
        self.penalty_ = logit.penalty_

    def _fit_pool(self, samples: MemoryRows, names: list[str]) -> None:
        """Fit a pool of several views."""
        started = time.perf_counter()
        X, missing = samples.block.X, samples.block.missing
        gaps = np.empty(0, dtype=np.intp)
        if missing is not None:
            gaps = np.flatnonzero(missing.any(axis=0))
            X = np.hstack([X, missing[:, gaps]])
        X = np.asarray(X, dtype=np.float64)
        columns = np.arange(samples.n_features)
        if hasattr(self, "columns_"):
            columns = self.columns_.indicator_groups
        groups = np.append(columns, columns[gaps])
        statistics = TableStatistics.fit(X, samples.block.weight, groups, len(gaps))
        seed = np.random.RandomState(check_random_state(self.random_state).randint(2**31 - 1))
        table = statistics.table(X, self.n_threads)
        first = self._gem("auto").fit_samples(samples)
        steps = self._log, self._step_done
        pool = fit_pool(names, samples, table, first, self._gem, self._logit, seed, *steps)
        if pool is None:
            self._fit_gem(samples, "no gain in the first look")
            return
        self.statistics_, self.gaps_ = statistics, gaps
        self.views_, self.logit_ = pool.views, pool.logit
        self.out_of_fold_proba_ = pool.out_of_fold
        self.classes_ = samples.classes
        gem = [view for view in pool.views if view.name == "gem" and view.weight > 0]
        self.layers_ = list(gem[0].learned) if gem else []
        self.penalty_ = max(pool.views, key=lambda view: view.weight).penalty
        self._log(f"pool of {sum(view.weight > 0 for view in pool.views)} views", started)

    def _gem(self, scale: str) -> GEM:
        return GEM(scale=scale, random_state=self.random_state, n_threads=self.n_threads)

    def _logit(self, common: bool, ridge: float) -> MultinomialLogit:
        return MultinomialLogit(
            ridge=ridge,
            ridge_scale="common" if common else "columns",
            tol=1e-3,
            random_state=self.random_state,
            n_threads=self.n_threads,
        )

    @over_blocks
    def decision_function(self, X: Rows | RowBlocks) -> Floats:
        """Logits of the classes.

        Parameters
        ----------
        X : (n, d) data frame, array-like, sparse matrix or RowBlocks
            Samples, with missing entries only if `fit` had some. For blocks, an iterator over the
            results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the logit of the second class over the first.
        """
        given, filled = self.validated(X)
        if self.statistics_ is not None:
            table = self.statistics_.table(with_gaps(filled, given, self.gaps_), self.n_threads)
            return pooled_scores(self.views_, self.logit_, table, filled, self.n_threads)
        few = few_features(filled, self.layers_, self.n_threads)
        if few is not None:
            return self.logit_.scores_of(few)
        features = layer_features(filled, self.layers_, False, self.n_threads)
        return np.asarray(self.logit_.decision_function(features))

    def validated(self, X: Any) -> tuple[Any, Any]:
        """Samples to predict as numbers, with and without missing entries."""
        if is_valid(self, X):
            return X, X
        check_is_fitted(self, "logit_")
        X = validate_columns(self, X, reset=False, **input_options(X))
        return X, complete(getattr(self, "completion_", None), X, self.n_threads)

    def _most_steps(self) -> int:
        return int(default_logit().max_iter)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def _why_one_view(samples: LabelledRows) -> str:
    """Why the samples can have the view "gem" alone; empty if they can have others."""
    if not isinstance(samples, MemoryRows) or not samples.dense:
        return "sparse samples and blocks of rows have GEM features of the columns alone"
    if len(samples.classes) > MOST_CLASSES:
        return f"more than {MOST_CLASSES} classes"
    if samples.n_rows > MOST_SMALL and samples.n_features > MOST_COLUMNS:
        return f"more than {MOST_COLUMNS} columns with more than {MOST_SMALL} samples"
    return ""


def with_gaps(filled: Any, X: Any, gaps: Any) -> NDArray[np.float64]:
    """Complete samples, followed by indicators of the entries missing in the columns `gaps`."""
    filled = filled.toarray() if issparse(filled) else filled
    out = np.hstack([filled, np.isnan(X[:, gaps])]) if len(gaps) else filled
    return np.asarray(out, dtype=np.float64)
