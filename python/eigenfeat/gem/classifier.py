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

    Each view is a representation of the columns with a multinomial logit on it. Views are pooled by
    weights that minimise the log loss of out-of-fold probabilities, which also calibrates them; the
    pool is one multinomial logit on the features of all views. ``views="gem"`` is the classifier of
    Karampatziakis and Mineiro (2014): a multinomial logit on GEM features, which are never stored.

    Parameters
    ----------
    views : "auto", the name of a view, or a list of names, default="auto"
        "columns" (standardised, categories one-hot), "splines" (of each numeric column), "gem" (GEM
        features of the columns), "gem_ranks" (of their ranks), "kernel" (a Gaussian kernel of the
        ranks) and "interactions" (pairs of columns, in bins). "auto" pools all that the samples
        allow; GEM features of the columns alone with `depth` over 1, `joint_epochs`, `n_clusters`,
        `include_input`, `events`, sparse samples, blocks, more than 100 classes, or more than 200
        columns and 5,000 samples. `views_` says which are used.
    ridge, pairs, denominator, constant, scale
        As in :class:`GEM`.
    n_directions : int >= 1 or "auto", default="auto"
        Maximum number of directions to keep for a pair. "auto": 10; with more than 300 pairs 3,000
        divided by their number, but at least 3; with more than 3,000 pairs, and of random groups,
        which "auto" takes of more than 50 classes, 1. So F is at most some 7,400, and 600 with more
        than 50 classes.
    threshold : float, "auto" or None, default=1.5
        Directions of the last layer with a smaller eigenvalue are dropped; see :class:`GEM`.
    expansion : {"auto", "half_wave", "shifted", "polynomial"}, default="auto"
        Expansion of the projections, as in :class:`GEM`. "auto" is "half_wave" with `depth` 1, and
        "shifted", which is smooth at 0, with a larger `depth` and with `joint_epochs`.
    powers : distinct numbers out of 1, 2, 3, default=(1, 2, 3)
        Exponents of the expansion.
    include_input : bool, default=False
        Whether the logit also uses the input of the last layer: the columns of X or, with `depth`
        over 1, the features of the previous layer.
    penalty : float >= 0 or "auto", default=0.03
        Weight of the energy of the logits, see :class:`MultinomialLogit`.
    tol : float > 0, default=1e-3
        Tolerance of the logit, see :class:`MultinomialLogit`. Smaller values hardly change held-out
        errors.
    depth : int >= 1, default=1
        Number of layers. Hidden layers output 1 and ``sqrt(1 + max(0, s p)) - 1`` for both signs s.
    hidden_directions : int >= 1 or "auto", default="auto"
        Number of directions per pair in the hidden layers, which have no threshold. "auto": 20, or
        fewer such that the next layer's moments take at most 2 GB; where one direction of all pairs
        is too much for that, as with 33 classes or more, ``pairs="auto"`` are random groups' there,
        at most 600, and the moments take at most 0.5 GB. There are no more directions than rows,
        and no more of a pair than columns and the constant.
    hidden_ridge : float >= 0, "auto" or None, default=None
        Ridge of the hidden layers; None means `ridge`. On MNIST, three to four times `ridge` works.
    n_clusters : int >= 1, default=1
        Number of clusters of each class. The first layer solves for directions between clusters of
        different classes, with ``pairs="all"`` or ``("random", n)``. This gives more and finer
        moments for classes of several shapes; see :mod:`eigenfeat.gem.clusters`.
    categorical_features : "from_dtype" or None, default="from_dtype"
        Columns of text and categories in data frames: one-hot, where a missing category is one of
        its own, those that occur once are pooled, and unknown ones are zeros; columns of dates and
        of text that nearly always differs are left out with a warning. None refuses them.
    class_weight : dict, "balanced" or None, default=None
        Factors of the row weights by label; "balanced" gives all classes the same weight. They
        change the logit and the mean and deviations of all rows, but not the moments of a class.
    temperature : float > 0 or "auto", default="auto"
        Number that the logits are divided by, which changes probabilities and no labels. "auto"
        minimises the log loss of rows that had no part in the logit's weights, see Notes.
    logit_solver : {"auto", "lbfgs", "gaussian"}, default="auto"
        How the logit's weights are found. "lbfgs" minimises the penalised log loss; "gaussian"
        takes those of Gaussian classes that share a covariance, in closed form, with a shrinkage
        that is chosen by leave-one-out instead of `penalty`. "auto" is "gaussian" with more than
        100 classes and the default `penalty`. See :class:`MultinomialLogit`.
    joint_epochs : int >= 0, default=0
        Passes over the rows in which directions, offsets and weights of all layers are improved
        together, from those that have been fitted one after the other. See Notes.
    perturbation : float >= 0, default=0.15
        With `joint_epochs`, length of the shift of each row to where its loss is larger, relative
        to the root of the total variance of the (scaled) columns. 0: no shifted rows.
    learning_rate : float > 0, default=0.02
        With `joint_epochs`, typical change of directions and weights in a step, relative to their
        root mean square (single entries may move six times as far, offsets move five times as
        far). It rises in the first steps, and then falls to zero.
    random_state : int, RandomState or None, default=0
        Seed for `scale`, clusters, random pairs, the rows of the logit's metric, the folds of the
        temperature, and the order of rows in `joint_epochs`.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. Results do not depend on it.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    views_ : list of View
        Name, weight in the pool, out-of-fold log loss, number of features and penalty of each view,
        and a note on why a view is not used.
    layers_ : list of Layer
        Directions, offsets, eigenvalues and pairs of each layer of the view "gem"; empty if it has
        no weight.
    logit_ : MultinomialLogit
        The classifier on the features of the views with weight, side by side.
    penalty_ : float
        The penalty that was chosen or given, of the view with the largest weight; of Gaussian
        classes, the shrinkage.
    temperature_ : float
        Number that the logits were divided by; 1 for a pool, whose weights calibrate it.
    columns_ : TableColumns
        Encoder of the columns; only if `fit` had a data frame with categories.
    classes_ : (k,) array
        Labels, sorted.
    n_features_in_ : int
        Number of input columns, d.
    feature_names_in_ : (d,) array of str
        Names of the input columns, if they had names.
    completion_ : GaussianRows
        The Gaussian that missing entries are completed by; only if the rows of `fit` had some.

    Raises
    ------
    ValueError
        If there are fewer than two classes, or rows, labels, weights or parameters are invalid.
    SingularDenominatorError
        If a class's matrix is singular and `ridge` too small; the message gives a sufficient ridge.

    Warns
    -----
    ConvergenceWarning
        If the loss, of rows and shifted rows, has more than doubled in `joint_epochs`.

    Notes
    -----
    A pool chooses a penalty for each view; `penalty`, `temperature` and `logit_solver` have an
    effect with ``views="gem"`` only. Up to 5,000 samples there are five, three or two folds, and
    what a view learns with labels comes from the samples outside the fold. Beyond, 4,000 samples
    show which views lower the log loss by 2%, and one fold of 10,000 and 5,000 samples gives the
    weights. The pool keeps at most 2,000 features per view but GEM's, float32.

    Integer rows of up to 16 bits are converted to float32, which is exact; float64 rows keep their
    precision up to the projections. Missing entries are completed by a Gaussian of all rows,
    estimated by expectation-maximisation, and the first layer's moments are those of the expected
    products of rows.

    The temperature is that of held-out logits: the logit is fitted again, to a coarse tolerance, to
    the rows outside each of three folds (up to 1,000 rows) or two, or to a half of at most 20,000
    rows beyond 5,000. The directions are those of all rows, so that where they are nearly as many
    as a class has rows, probabilities remain somewhat too confident. ``penalty="auto"`` takes
    that of six penalties with the least log loss of held-out rows.

    `joint_epochs` lower ``sum_i w_i (loss(x_i) + loss(x_i + r_i))`` by Adam's steps of up to 250
    rows, in float32, where `r_i` is the shift of the given length that raises the loss of row i
    most, to first order. All layers need the shifted expansion. There is no penalty beyond that of
    the start, which sets the size of the weights' steps, and no temperature: `temperature_` is 1.
    `eigenvalues`, pairs and ranks of the layers are those of the directions that the steps began
    with. An epoch takes 10 n M flops for the first layer and 12 n M for others, M the product of a
    layer's inputs and directions (4 and 6 without shifts), and memory 16 M bytes, and 12 p for each
    of at most 4,000 rows with p features. Rows must be readable in any order: blocks of an array or
    a memory-mapped file are, others are not.

    Memory beyond the rows, with F directions on the last layer and p features: 4 n F bytes for
    projections, and at most 4 F min(n, 30,000) for those of a fold; 4 p^2 for the logit's metric,
    or 2 m^2 if that is of a sample of m rows, fewer than p, and again for a fold's unless it has
    the same metric (see :class:`MultinomialLogit`); 320 p k for its search; and 16 k d^2 for
    moments, where d is the width of the widest layer's input, 2 F' + 1 with F' directions on the
    layer before. For 20,000 rows of 1,000 classes in 200 columns (F = 420, p =
    2,520) that is 1.5 GB without folds. With more than 100 classes, in place of metric, search and
    folds: 14 p^2 + 40 p k bytes and 100 MB; there 1.0 GB in all were measured.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors",
    ICML 2014: Algorithm 1; section 4.1 (depth). C. Guo, G. Pleiss, Y. Sun and K. Weinberger, "On
    calibration of modern neural networks", ICML 2017: temperature. D. Kingma and J. Ba, "Adam: a
    method for stochastic optimization", ICLR 2015; I. Goodfellow, J. Shlens and C. Szegedy,
    "Explaining and harnessing adversarial examples", ICLR 2015: `joint_epochs`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import GEMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> GEMClassifier().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.95
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
            memory.
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
