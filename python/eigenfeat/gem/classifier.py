"""GEM classifier: moments, directions, expansion and logit in one estimator."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import ClassWeight, Floats, RandomState, Rows
from eigenfeat._base.validation import MOST
from eigenfeat.expansion.features import Layer, few_features, layer_features
from eigenfeat.gem.gem import GEM, Depth, solve_layers
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import (
    BaseEstimator,
    Iterative,
    Verbose,
    complete,
    input_options,
    is_valid,
    keep_completion,
    prepare,
    steps_of,
    unchanged_on_error,
    validate_columns,
    with_steps,
)
from eigenfeat.samples.out_of_core import FromLogits, over_blocks

if TYPE_CHECKING:
    from eigenfeat.expansion.features import ExpandedFeatures
    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.samples.block_samples import LabelledSamples

__all__ = ["GEMClassifier"]


class GEMClassifier(Iterative, Verbose, FromLogits, ClassifierMixin, BaseEstimator):
    """Multinomial logit on GEM features, in one or several layers.

    Use it for images, spectra, signals and other samples whose columns share a unit, and for data
    larger than memory. Tune ``gem__ridge``, ``gem__n_directions`` and ``logit__penalty`` first. The
    features are those of `GEM`, with its expansion "compressed" for all pairs of classes; they are
    never stored for all samples at once. User guide: :doc:`/guide/classifier`.

    Parameters
    ----------
    gem : GEM or None, default=None
        Parameters of the GEM features, as an estimator that is not fitted; None means `GEM()`.
    logit : MultinomialLogit or None, default=None
        Parameters of the logit, as an estimator that is not fitted. None means
        ``MultinomialLogit(tol=3e-3, temperature="auto", solver="auto")``.
    depth : int >= 1, default=1
        Number of layers; each takes the expanded projections of the previous layer. The ridge of
        `gem` may be a list with a value for each layer. With the expansion "with_input", the logit
        also reads the input of the last layer.
    hidden_directions : int >= 1 or "auto", default="auto"
        Directions per pair in the layers before the last. "auto": at most 20.
    categorical_features : "from_dtype" or None, default="from_dtype"
        Columns of text and categories become one-hot, or target statistics above 50 categories.
        None raises an error for such columns.
    class_weight : dict, "balanced" or None, default=None
        Class weights, multiplied into `sample_weight`.
    random_state : int, RandomState or None, default=0
        Seed; overrides `random_state` of `gem` and `logit`.
    n_threads : int or None, default=None
        Number of threads; None means all.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    layers_ : list of Layer
        Directions, offsets, eigenvalues and pairs of each layer.
    logit_ : MultinomialLogit
        The fitted classifier on the last layer's features.
    penalty_ : float
        Penalty of the logit.
    temperature_ : float
        Temperature by which the logits are divided.
    classes_ : (k,) array
        Labels, sorted.
    n_features_in_ : int
        Number of input features.
    feature_names_in_ : (d,) array of str
        Names of the input features, if they have names.
    columns_ : TableColumns
        Encoder of categories; only if the training samples have categories.
    completion_ : GaussianImputer
        Gaussian that completes missing entries; only if the training samples have some.

    See Also
    --------
    TableClassifier : For tables with words, missing entries and mixed units.
    GEMClassifierCV : Search over the parameters.
    GEM : The features alone, for other classifiers.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors",
    ICML 2014: Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import GEMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GEMClassifier().fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gem": [GEM, None],
        "logit": [MultinomialLogit, None],
        "depth": [Interval(Integral, 1, MOST, closed="both")],
        "hidden_directions": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "categorical_features": [StrOptions({"from_dtype"}), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    # Functions that return the estimators which replace None.
    _nested: ClassVar[dict[str, Callable[[], Any]]] = {
        "gem": GEM,
        "logit": partial(MultinomialLogit, tol=3e-3, temperature="auto", solver="auto"),
    }

    def __init__(
        self,
        gem: GEM | None = None,
        logit: MultinomialLogit | None = None,
        depth: int = 1,
        hidden_directions: int | str = "auto",
        categorical_features: str | None = "from_dtype",
        class_weight: ClassWeight = None,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gem = gem
        self.logit = logit
        self.depth = depth
        self.hidden_directions = hidden_directions
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def nested(self, part: str) -> Any:
        """Return the estimator that is a parameter, or its default.

        Parameters
        ----------
        part : {"gem", "logit"}
            Name of the parameter.

        Returns
        -------
        estimator
        """
        given = getattr(self, part)
        return self._nested[part]() if given is None else given

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, including those of default estimators.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return the parameters of `gem` and `logit`, too.

        Returns
        -------
        dict of str to object
        """
        params: dict[str, Any] = super().get_params(deep)
        if deep:
            for part, make in self._nested.items():
                if params[part] is None:
                    inner = make().get_params()
                    params |= {f"{part}__{name}": value for name, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters.

        Parameters
        ----------
        **params
            Parameters by name. ``gem__ridge``, for example, replaces ``gem=None`` by `GEM()` with
            this ridge.

        Returns
        -------
        GEMClassifier
            The estimator itself.
        """
        for part, make in self._nested.items():
            named = any(name.startswith(f"{part}__") for name in params)
            if named and params.get(part, getattr(self, part)) is None:
                params = {part: make()} | {n: v for n, v in params.items() if n != part}
        return super().set_params(**params)

    @with_steps
    def fit(
        self,
        X: Rows | RowBlocks,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> GEMClassifier:
        """Fit the directions of each layer, then the logit on their expansion.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples; NaN is a missing entry. Blocks are read again for every layer and in every
            iteration of the logit; neither samples nor projections are kept in memory. Files
            (`open_rows`) whose features take at most 64 MB are read into memory.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples, which count as copies.

        Returns
        -------
        GEMClassifier
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self.check_parameters()
            self.fit_samples(self.prepare(X, y, sample_weight))
        return self

    def fit_samples(
        self, samples: LabelledSamples, moments: ClassMoments | None = None
    ) -> GEMClassifier:
        """Fit to prepared samples.

        Parameters
        ----------
        samples : LabelledSamples
            Samples as `prepare` returns them.
        moments : ClassMoments, optional
            Moments of the samples, if they are known.

        Returns
        -------
        GEMClassifier
            The estimator itself.
        """
        layers, _ = solve_layers(samples, self.depth_options(), self._log, moments)
        logit = self.fit_logit(samples, layers)
        return self.keep(samples, layers, logit)

    @over_blocks
    def decision_function(self, X: Rows | RowBlocks) -> Floats:
        """Logits of the classes.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, with missing entries only if the training samples had missing entries. For
            blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the logit of the second class over the first.
        """
        return self.logits_of(X if is_valid(self, X) else self.validated(X))

    def logits_of(self, X: Any) -> Floats:
        """Compute logits without a check of the samples.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or ExpandedFeatures
            Checked samples without missing entries.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            As in `decision_function`.
        """
        rows = few_features(X, self.layers_, self.n_threads)
        if rows is not None:
            return self.logit_.scores_of(rows)
        return np.asarray(self.logit_.decision_function(self.features(X)))

    def features(self, X: Any) -> ExpandedFeatures:
        """Return the features of the fitted logit, without a check of the samples.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            Checked samples without missing entries.

        Returns
        -------
        ExpandedFeatures
        """
        return layer_features(X, self.layers_, self.n_threads)

    # ---- parts of a fit, for ensembles, searches and joint training ------------------------------

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid, also those of `gem` and `logit`."""
        self._validate_params()
        gem = self.nested("gem")
        by_layer = isinstance(gem.ridge, (list, tuple))
        if by_layer and len(gem.ridge) != self.depth:
            raise ValueError(
                f"ridge: expected a value, or a list of {self.depth}, one for each layer, "
                f"got {gem.ridge}"
            )
        for ridge in gem.ridge if by_layer else [gem.ridge]:
            clone(gem).set_params(ridge=ridge).check_parameters()
        self.nested("logit")._validate_params()
        if gem.expansion == "none":
            raise ValueError(
                "expansion: expected 'auto', 'half_wave', 'compressed', 'shifted', 'with_input' or "
                "'polynomial' in a classifier, got 'none'"
            )

    def prepare(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, moments: bool = True
    ) -> LabelledSamples:
        """Check samples, labels and weights; set the attributes that describe the input.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, as in `fit`.
        y : (n,) array-like or None
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like or None
            Nonnegative weights of the samples.
        moments : bool, default=True
            Whether the first pass over blocks also accumulates the moments.

        Returns
        -------
        LabelledSamples
            Complete samples with their labels and weights.
        """
        return prepare(
            self,
            X,
            y,
            sample_weight,
            allows_missing=True,
            small=True,
            moments=moments,
            class_weight=self.class_weight,
        )

    def validated(self, X: Any) -> Any:
        """Check and complete samples to predict.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Samples, as in `decision_function`.

        Returns
        -------
        (n, d) array or sparse matrix
        """
        check_is_fitted(self, "logit_")
        X = validate_columns(self, X, reset=False, **input_options(X))
        return complete(self, X)

    def depth_options(self) -> Depth:
        """Return the parameters of the layers.

        Returns
        -------
        Depth
        """
        gem = clone(self.nested("gem"))
        if gem.expansion == "auto" and self._is_smooth():
            gem.expansion = "shifted"
        gem.set_params(
            random_state=self.random_state,
            n_threads=self.n_threads,
            verbose=self.verbose,
        )
        return Depth(gem, self.depth, self.hidden_directions)

    def logit_options(self) -> MultinomialLogit:
        """Return the logit on the features, not fitted.

        Returns
        -------
        MultinomialLogit
        """
        given = self.nested("logit").get_params(deep=False)
        # Projections have a common unit, input columns have different units.
        columns = self.nested("gem").expansion == "with_input" and self.depth == 1
        changes = {
            "ridge_scale": "columns" if columns else "common",
            "random_state": self.random_state,
            "n_threads": self.n_threads,
        }
        return MultinomialLogit(**(given | changes))

    def keep(
        self, samples: LabelledSamples, layers: list[Layer], logit: MultinomialLogit
    ) -> GEMClassifier:
        """Set the fitted attributes.

        Parameters
        ----------
        samples : LabelledSamples
            Samples of the fit.
        layers : list of Layer
            Directions of each layer.
        logit : MultinomialLogit
            Fitted logit.

        Returns
        -------
        GEMClassifier
            The estimator itself.
        """
        keep_completion(self, samples.completion)
        self.layers_, self.logit_, self.classes_ = layers, logit, logit.classes_
        self.penalty_, self.temperature_ = logit.penalty_, logit.temperature_
        return self

    def fit_logit(self, samples: LabelledSamples, layers: list[Layer]) -> MultinomialLogit:
        """Fit the logit to the features of samples.

        Parameters
        ----------
        samples : LabelledSamples
            Samples of the fit.
        layers : list of Layer
            Directions of each layer.

        Returns
        -------
        MultinomialLogit
        """
        started = time.perf_counter()
        logit = self.logit_options()
        with steps_of(self, logit):
            (logit,) = logit.iterate_path(samples.mapped(layers), None, None)
        counts = f"{logit.n_features_in_} features, {logit.n_iter_[0]} iterations"
        self._log(f"logit: {counts}", started)
        self._log(f"penalty: {logit.penalty_:.3g}, temperature: {logit.temperature_:.3g}")
        return logit

    def _is_smooth(self) -> bool:
        """Whether the default expansion is "shifted", which is smooth."""
        return self.depth > 1

    def _most_steps(self) -> int:
        return int(self.nested("logit").max_iter)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags
