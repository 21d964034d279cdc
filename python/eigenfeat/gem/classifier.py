"""GEM classifier: moments, directions, expansion and logit in one estimator."""

from __future__ import annotations

import time
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.saved import fits
from eigenfeat._base.types import ClassWeight, Floats, Pairs, RandomState, Rows
from eigenfeat._base.validation import MOST
from eigenfeat.gem.gem import GEM
from eigenfeat.gem.pool import check_pool, pooled_scores
from eigenfeat.gem.steps import ClassifierSteps, with_gaps
from eigenfeat.gem.views import VIEWS
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.linear.logit_steps import PENALTY
from eigenfeat.rows.completion import complete
from eigenfeat.rows.estimator import unchanged_on_error, with_steps
from eigenfeat.rows.out_of_core import over_blocks

if TYPE_CHECKING:
    from eigenfeat.pencils.contrasts import Contrasts
    from eigenfeat.rows.blocks import RowBlocks

__all__ = ["GEMClassifier"]


class GEMClassifier(ClassifierSteps):
    """Classifier of tables, images and signals: a pool of views of the columns.

    Use it first for any table: numbers, text, categories and gaps need no preparation. It needs no
    tuning on most tables; with ``views="gem"``, tune `ridge`, `penalty` and `n_directions`. User
    guide: :doc:`/guide/classifier`.

    Each view is a representation of the columns with a multinomial logit on it. Views are pooled by
    weights that minimise the log loss of out-of-fold probabilities, which also calibrates them.
    ``views="gem"`` is the classifier of Karampatziakis and Mineiro (2014): a multinomial logit on
    GEM features, which are never stored.

    Parameters
    ----------
    views : "auto", the name of a view, or a list of names, default="auto"
        "columns" (standardised, categories one-hot), "splines" (of each numeric column), "gem" (GEM
        features of the columns), "gem_ranks" (of their ranks), "kernel" (Gaussian, of the ranks)
        and "interactions" (pairs of columns, in bins). "auto" pools all that the samples allow; GEM
        features of the columns alone with `depth` over 1, `joint_epochs`, `n_clusters`,
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
        Number of input columns, and their names if they had names.
    columns_ : TableColumns
        Encoder of the columns; only if `fit` had a data frame with categories.
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
            Rows; NaN is a missing entry. Blocks and memory-mapped arrays are read again for every
            layer and in every iteration of the logit; neither rows nor projections are kept in
            memory. Files (`open_rows`) whose features take at most 64 MB are read into memory.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the rows.
        events : (n,) array-like, optional
            Groups of rows that the moments are conditioned on instead of the labels, for example
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
            Rows, with missing entries only if `fit` had some. For blocks, an iterator over the
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
