r"""Classifier of tables: a pool of views of the columns.

The pool is ``p(y | x) ~ exp(sum_v w_v log p_v(y | x))`` (Genest and Zidek 1986) with weights that
minimise the out-of-fold log loss; see `pool_weights`. Up to 10,000 samples every view predicts each
sample out of fold. Above 10,000 samples, a single fold of at most 5,000 samples is held out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from eigenfeat._base.labels import fold_indices
from eigenfeat._base.subsamples import draw_subsample
from eigenfeat._base.types import ClassWeight, Codes, Floats, RandomState, Rows
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.linear.logit_problem import loss_at_best
from eigenfeat.linear.pools import MIN_SHARE, log_probabilities, pool_weights
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import (
    complete,
    prepare,
    steps_of,
    unchanged_on_error,
    with_steps,
)
from eigenfeat.samples.labelled import MemorySamples
from eigenfeat.samples.out_of_core import FromLogits, over_blocks
from eigenfeat.tables.classification_views import (
    MANY_SAMPLES,
    VIEWS,
    ClassifierView,
    GemView,
    reason_against,
)
from eigenfeat.tables.estimator import (
    PooledView,
    TableEstimator,
    checked,
    prior_weights,
    table_of,
)
from eigenfeat.tables.views import Samples

if TYPE_CHECKING:
    from eigenfeat.expansion.features import Layer
    from eigenfeat.samples.block_samples import LabelledSamples

__all__ = ["TableClassifier"]

_Array = NDArray[np.float64]

_MAX_CLASSES = 100  # with more, only the view "gem" is fitted
# bench/tables.py shows the effect of the following numbers.
_PRIOR_SAMPLES = 500.0  # the prior of the views' weights counts like this number / n samples
_FEW_SAMPLES = 100  # with fewer, the prior has more weight, and views with small weights stay
_FOLDS_OF_MANY = 4  # only the first of these folds is held out
_MAX_HELD, _MAX_TRAINED = 5_000, 20_000  # samples of this fold that are held out, and trained on


class TableClassifier(FromLogits, ClassifierMixin, TableEstimator):
    """Classifier of tables: a pool of views of the columns.

    Use it first for any table: numbers, text, categories and missing entries need no preparation,
    and most tables need no tuning. User guide: :doc:`/guide/tables`.

    Each view is a classifier on one representation of the columns. Views are pooled by weights that
    minimise the log loss of out-of-fold probabilities.

    Parameters
    ----------
    views : "auto", name or list of names and classifiers, default="auto"
        "columns" (standardised, categories one-hot), "splines" (of each numeric column), "gem" (GEM
        features), "gem_ranks" (GEM features of the ranks), "kernel" (Gaussian, of the ranks),
        "interactions" (pairs of columns, in bins), "forest" and "boosting" (trees),
        "boosting_pairs" (trees that also read sums and differences of two numeric columns).
        "auto" pools all views that suit the samples. Classifiers with `predict_proba`, such as
        ``LGBMClassifier()``, are views of their own.
    categorical_features : "from_dtype" or None, default="from_dtype"
        Columns of text and categories in data frames become one-hot, or target statistics if
        there are more than 50 categories; dates become numbers. Of text that nearly always
        differs, only the missing cells are used, with a warning. With None, such columns are an
        error.
    time_limit : float or None, default=None
        Seconds of the fit; no further view is tried after 60% of the limit. The first view is
        always tried.
    class_weight : dict, "balanced" or None, default=None
        Class weights, multiplied into `sample_weight`.
    random_state : int, RandomState or None, default=0
        Seed of folds, landmarks, directions and trees.
    n_threads : int or None, default=None
        Number of threads; None means all.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    views_ : list of PooledView
        Name, weight, score and time of each view, and why a view is not used.
    layers_ : list of Layer
        Directions, offsets, eigenvalues and pairs of the view "gem"; empty if it has no weight.
    out_of_fold_proba_ : (n, k) array or None
        Probabilities of training samples by pools fitted without their fold; None with the view
        "gem" alone and with more than 10,000 samples.
    classes_ : (k,) array
        Labels, sorted.
    n_features_in_ : int
        Number of input features.
    feature_names_in_ : (d,) array of str
        Names of the input features, if they have names.
    columns_ : TableColumns
        Encoder of categories; only if the training samples have categories.
    completion_ : GaussianImputer
        Gaussian that completes missing numbers; only if the training samples have some.

    See Also
    --------
    GEMClassifier : One view, with parameters to tune and any number of layers.
    TableRegressor : Numbers instead of classes.
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
        **TableEstimator._parameter_constraints,
        "views": [StrOptions({"auto", *VIEWS}), list, tuple],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _views, _own_view, _kind = VIEWS, ClassifierView, "classifiers with predict_proba"
    _measure = "mean log likelihood"
    _folds = ((300, 10), (MANY_SAMPLES, 5), (10_000, 3))

    layers_: list[Layer]
    # Set before a fit, too: early classifiers recognise pools by this attribute.
    out_of_fold_proba_: NDArray[np.float64] | None = None

    def __init__(
        self,
        views: str | Sequence[Any] = "auto",
        *,
        categorical_features: str | None = "from_dtype",
        time_limit: float | None = None,
        class_weight: ClassWeight = None,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            views,
            categorical_features=categorical_features,
            time_limit=time_limit,
            random_state=random_state,
            n_threads=n_threads,
            verbose=verbose,
        )
        self.class_weight = class_weight

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
            tables of more than 100 classes are fitted by the view "gem" alone.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples. A constant factor changes nothing.

        Returns
        -------
        TableClassifier
            The estimator itself. An error leaves it unchanged.
        """
        self._validate_params()
        names, estimators = self._asked()
        with unchanged_on_error(self):
            rows = prepare(
                self,
                X,
                y,
                sample_weight,
                allows_missing=True,
                small=True,
                class_weight=self.class_weight,
                mean_weight_1=True,
            )
            self.classes_ = rows.classes
            only_gem = names == ["gem"] and not estimators
            reason = "" if only_gem else _why_only_gem(rows)
            if reason and self.views != "auto":
                raise ValueError(
                    f"views: expected 'auto' or 'gem' here ({reason}), got {self.views!r}"
                )
            if only_gem or reason:
                self._fit_gem(rows, names, reason)
            elif isinstance(rows, MemorySamples):
                samples = self._samples(rows, np.asarray(rows.codes, dtype=np.intp))
                del rows  # frees completed samples, of which `samples` has a copy
                self._fit_views(samples)
        return self

    def _fit_views(self, samples: Samples) -> None:
        """Fit a pool of views."""
        self.__dict__.pop("alone_", None)
        held_out, folds = self._fit_pool(samples)
        self.out_of_fold_proba_ = None
        if len(folds.parts) > 1:
            self.out_of_fold_proba_ = softmax(self._out_of_fold(held_out, samples, folds), axis=1)
        models = [view.model for view in self.views_ if isinstance(view.model, GemView)]
        self.layers_ = [model.learned for model in models if model.inputs == "columns"]

    def _fit_gem(self, rows: LabelledSamples, names: list[str], reason: str) -> None:
        """Fit the paper's classifier as the only view."""
        started = time.perf_counter()
        alone = GEMClassifier(random_state=self.random_state, n_threads=self.n_threads)
        with steps_of(self, alone):
            alone.fit_samples(rows)
        self.alone_ = alone
        for name in ("gaps_", "statistics_"):
            self.__dict__.pop(name, None)
        view = PooledView(
            "gem",
            1.0 / alone.temperature_,
            seconds=time.perf_counter() - started,
            n_features=alone.logit_.n_features_in_,
            penalty=alone.penalty_,
        )
        others = [PooledView(name, 0.0, note=reason) for name in names if name != "gem"]
        self.views_, self.layers_, self.out_of_fold_proba_ = [view, *others], alone.layers_, None

    def _takes(self, estimator: Any) -> bool:
        return hasattr(estimator, "predict_proba")

    def _reason_against(self, name: str, names: Sequence[str], samples: Samples) -> str:
        return reason_against(name, names, samples)

    def _one_fold(self, codes: Codes, random: np.random.RandomState) -> tuple[Codes, Codes]:
        train, held = fold_indices(codes, len(self.classes_), _FOLDS_OF_MANY, random)[0]
        train = train[draw_subsample(len(train), _MAX_TRAINED, codes[train])]
        return train, held[draw_subsample(len(held), _MAX_HELD, codes[held])]

    def _summand(self, outputs: _Array) -> _Array:
        return log_probabilities(outputs)

    def _score(self, outputs: _Array, samples: Samples, held: Codes) -> float:
        return -loss_at_best(outputs, samples.targets[held], samples.weight_of(held))[0]

    def _weights(self, held_out: dict[str, _Array], samples: Samples, held: Codes) -> _Array:
        codes, weight = samples.targets[held], samples.weight_of(held)
        prior, n = prior_weights(held_out), len(held)
        # Few samples say little about weights: the prior counts more, and views stay even if their
        # prior weights are below `MIN_SHARE`, as with many views.
        factor = max(_FEW_SAMPLES / n, 1.0)
        prior_samples, min_share = factor * _PRIOR_SAMPLES / n, MIN_SHARE / factor
        logits = list(held_out.values())
        return pool_weights(logits, codes, weight, prior, prior_samples, min_share)

    @over_blocks
    def decision_function(self, X: Rows | RowBlocks) -> Floats:
        """Logits of the classes.

        Parameters
        ----------
        X : (n, d) data frame, array-like, sparse matrix or RowBlocks
            Samples, with missing entries only if the training samples had missing entries. For
            blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the logit of the second class over the first.
        """
        if hasattr(self, "alone_"):
            return self.alone_.logits_of(complete(self, checked(self, X)))
        logits = self._pooled(table_of(self, X))
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = isinstance(self.views, str)  # views of a list take dense samples
        return tags


def _why_only_gem(rows: LabelledSamples) -> str:
    """Return the reason to fit the view "gem" alone; empty if other views can be fitted."""
    if not isinstance(rows, MemorySamples) or not rows.dense:
        return "sparse samples and blocks of rows allow only the view gem"
    if len(rows.classes) > _MAX_CLASSES:
        return f"more than {_MAX_CLASSES} classes"
    if np.bincount(rows.codes).max() < 2:
        return "no class has two samples, which folds need"
    return ""
