"""GEM: features from the generalized eigenvectors of pairs of second moments, in layers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.types import Floats, Pairs, RandomState, Rows, Targets, Weights
from eigenfeat._base.validation import take_names
from eigenfeat.expansion.features import (
    EXPANSIONS,
    Layer,
    as_layer,
    check_powers,
    column_suffixes,
)
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.contrasts import (
    KINDS,
    MAX_GROUP_PAIRS,
    PAIRS_PER_PARTITION,
    Contrasts,
)
from eigenfeat.pencils.fitted_directions import FittedDirections, Solution, solve, try_options
from eigenfeat.pencils.problems import MAX_CLASSES_ALL, PencilOptions
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.completion import ALLOW_NAN, refuse_missing
from eigenfeat.samples.estimator import (
    BaseEstimator,
    Verbose,
    complete,
    keep_completion,
    prepare,
    unchanged_on_error,
    validate_data,
)
from eigenfeat.samples.labelled import MemorySamples, weighted_rows
from eigenfeat.samples.out_of_core import over_blocks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from eigenfeat.samples.block_samples import LabelledSamples

__all__ = ["GEM", "Depth", "PairFeatures", "solve_layers"]

# Limits on the number of directions of a hidden layer.
_MAX_BYTES = 2**31  # of the next layer's moments
_MAX_GROUP_BYTES = 2**29  # of the next layer's moments, with random groups of classes
_MAX_DIRECTIONS = 20  # per pair


class PairFeatures(Verbose, TransformerMixin, BaseEstimator):
    """Base class: names of the expanded projections on directions of pairs."""

    expansion: str
    powers: Sequence[int]
    pairs_: Any  # (F, 2) names of numerator and denominator
    ranks_: Any  # (F,) ranks within the pairs

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Name the columns of `transform`, as in "gem_3_vs_2_rank0_pos_pow1".

        Parameters
        ----------
        input_features : (d,) array-like of str, optional
            Names of the input features; they must be those seen in `fit`, if it saw names.

        Returns
        -------
        (columns,) array of str
            Numerator and denominator label (or name, as in "gem_3_vs_rest_rank0_pos_pow1"), rank
            within the pair, half wave, and power.
        """
        check_is_fitted(self)
        inputs = _check_feature_names_in(self, input_features)
        ranked = zip(self.pairs_, self.ranks_, strict=True)
        stems = [self._stem(pair, rank) for pair, rank in ranked]
        suffixes = column_suffixes(self._expansion(), check_powers(self.powers))
        names = [stem + suffix for suffix in suffixes for stem in stems]
        with_input = self.expansion == "with_input"
        return np.asarray([*inputs, *names] if with_input else names, dtype=object)

    def _stem(self, pair: Any, rank: int) -> str:
        return f"gem_{pair[0]}_vs_{pair[1]}_rank{rank}"

    @property
    def _n_features_out(self) -> int:
        return len(self.get_feature_names_out())

    def _expansion(self) -> str:
        return "half_wave" if self.expansion == "auto" else self.expansion

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class GEM(FittedDirections, PairFeatures):
    """Discriminative features from generalized eigenvectors, for any linear classifier.

    Use it before a linear classifier of your own, where classes differ in variances and not only in
    means. Tune `ridge` first, then `n_directions` and `threshold`. User guide: :doc:`/guide/gem`.

    For ordered pairs (i, j) of classes, GEM solves ``C_i u = lambda (C_j + r_j I) u`` with their
    second moments (Karampatziakis and Mineiro, ICML 2014, Algorithm 1). The features are powers
    ``max(0, s p)^(a/2)`` of both half waves (s = 1 and -1) of the projections p.

    Parameters
    ----------
    ridge : float >= 0, "auto" or None, default=None
        Multiple of a denominator's mean eigenvalue that is added to its diagonal. "auto": .03 to 1,
        chosen by each class's spectrum. None: .2, or .5 without a constant. In `GEMClassifier` also
        a list with a value for each layer.
    n_directions : int >= 1 or "auto", default="auto"
        Maximum number of directions of a pair. "auto": 10, or fewer with more than 300 pairs.
    threshold : float, "auto" or None, default=1.5
        Smallest eigenvalue. "auto": above what sampling noise alone would give.
    pairs : str, tuple, list or Contrasts, default="auto"
        "all", "hypercube", "confusion", "one_vs_rest", "class_tree", "random_groups", or pairs of
        labels; see the guide. "auto": "all" for up to 50 classes, else "random_groups".
    denominator : {"second_moment", "covariance"}, default="second_moment"
        With "covariance", both matrices are about the mean of class j.
    constant : bool or "auto", default="auto"
        Whether directions have an offset. "auto": unless this costs errors on held-out samples.
    scale : {"auto", "none", "columns"}, default="auto"
        "columns" divides columns by their deviations. "auto" tries both on held-out samples.
    expansion : str, default="auto"
        "half_wave"; "compressed": half waves, after projections of pairs with a common denominator
        are divided by the root of their mean absolute value; "shifted":
        ``(sqrt(1 + max(0, s p)) - 1)^a``; "with_input": the input features, then those of
        "shifted"; "polynomial": ``p^a``; "none": projections. "auto": "half_wave"; in
        `GEMClassifier` "compressed" with all pairs of classes, and "shifted" with several layers.
    powers : distinct numbers out of 1, 2, 3, default=(1, 2, 3)
        The exponents a of the expansion.
    random_state : int, RandomState or None, default=0
        Seed for `scale`, `constant` and random pairs.
    n_threads : int or None, default=None
        Number of threads; None means all.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    directions_ : (d, F) array
        Directions; projections are ``X @ directions_ + offset_``.
    offset_ : (F,) array
        Offsets of the projections.
    eigenvalues_ : (F,) array
        Eigenvalue of each direction.
    ranks_ : (F,) array
        Rank of each direction in its pair, from 0.
    pairs_ : (F, 2) array
        Labels of numerator and denominator.
    classes_ : (k,) array
        Labels, sorted.
    moments_ : ClassMoments
        Moments of the classes, from which the directions are computed.
    scale_report_ : ScaleReport
        The choices of `scale` and `constant`, with their reasons.

    See Also
    --------
    GEMClassifier : GEM with a logit, without storing the features.
    eigenfeat.gem.RandomizedGEM : For tens of thousands of columns and more.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from eigenfeat import GEM
    >>> X, y = load_digits(return_X_y=True)
    >>> Z = GEM(n_directions=5).fit(X[:1000], y[:1000]).transform(X)
    >>> round(RidgeClassifier().fit(Z[:1000], y[:1000]).score(Z[1000:], y[1000:]), 2)
    0.97
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"}), None],
        "n_directions": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "threshold": [Interval(Real, None, None, closed="neither"), StrOptions({"auto"}), None],
        "pairs": [StrOptions(set(KINDS)), tuple, list, Contrasts],
        "denominator": [StrOptions({"second_moment", "covariance"})],
        "constant": ["boolean", StrOptions({"auto"})],
        "scale": [StrOptions({"auto", "none", "columns"})],
        "expansion": [StrOptions({"auto", "compressed", "with_input", *EXPANSIONS})],
        "powers": ["array-like"],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        ridge: float | str | Sequence[float | str | None] | None = None,
        n_directions: int | str = "auto",
        threshold: float | str | None = 1.5,
        pairs: Pairs | Contrasts = "auto",
        denominator: str = "second_moment",
        constant: bool | str = "auto",
        scale: str = "auto",
        expansion: str = "auto",
        powers: Sequence[int] = (1, 2, 3),
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.ridge = ridge
        self.n_directions = n_directions
        self.threshold = threshold
        self.pairs = pairs
        self.denominator = denominator
        self.constant = constant
        self.scale = scale
        self.expansion = expansion
        self.powers = powers
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: Rows | RowBlocks, y: Targets = None, sample_weight: Weights = None) -> GEM:
        """Accumulate the classes' moments and solve for directions.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples; NaN is a missing entry. Blocks are read one to four times.
        y : (n,) array-like
            Labels of any sortable type; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        GEM
            The estimator itself.
        """
        with unchanged_on_error(self):
            self.check_parameters()
            self.fit_samples(prepare(self, X, y, sample_weight, allows_missing=True))
        return self

    def partial_fit(
        self, X: Rows, y: Targets, classes: Targets = None, sample_weight: Weights = None
    ) -> GEM:
        """Add a batch of samples to the moments; directions are computed when next needed.

        `scale` and `constant` are chosen on the first batch, if it has at least 300 samples.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Finite samples.
        y : (n,) array-like
            Labels.
        classes : array-like, optional
            All labels, given with the first batch; any other label is then an error. Without it,
            any batch may add labels. Classes without samples are in no pair.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        GEM
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self.check_parameters()
            started, first = time.perf_counter(), not hasattr(self, "moments_")
            rows, labels = validate_data(self, X, y, reset=first, **ALLOW_NAN)
            check_classification_targets(labels)
            rows, labels, weight = weighted_rows(rows, labels, sample_weight)
            refuse_missing(rows)
            moments = ClassMoments(classes) if first else self.moments_
            moments.update(rows, labels, weight, n_threads=self.n_threads)
            self._log(f"moments: {rows.shape[0]} samples, {rows.shape[1]} features", started)
            if first:
                self._try_options(moments, MemorySamples.of(rows, labels, weight, self.n_threads))
            self._keep_moments(moments)
        return self

    def fit_moments(self, moments: ClassMoments) -> GEM:
        """Solve for directions from given moments.

        Parameters
        ----------
        moments : ClassMoments
            Moments, copied: later batches of either object do not change the other. Names of
            columns become `feature_names_in_`.

        Returns
        -------
        GEM
            The estimator itself. An error leaves it unchanged.
        """
        if not isinstance(moments, ClassMoments):
            raise TypeError(f"moments: expected ClassMoments, got {type(moments).__name__}")
        with unchanged_on_error(self):
            self.check_parameters()
            check_two_labels(moments.active_classes)
            take_names(self, moments)
            self._solve_moments(moments.copy())
        return self

    def fit_samples(self, samples: LabelledSamples, moments: ClassMoments | None = None) -> GEM:
        """Solve for directions from prepared samples.

        Parameters
        ----------
        samples : LabelledSamples
            Checked samples with labels and positive weights.
        moments : ClassMoments, optional
            Moments of the samples, if known; kept, not copied.

        Returns
        -------
        GEM
            The estimator itself.
        """
        started = time.perf_counter()
        if moments is None:
            moments = samples.moments()
            d = moments.n_features_in_
            self._log(f"moments: {samples.n_samples} samples, {d} features", started)
        return self._solve_moments(moments, samples)

    def _solve_moments(self, moments: ClassMoments, samples: LabelledSamples | None = None) -> GEM:
        """Keep the moments, without a copy, and solve; options are tried on samples, if given."""
        self.n_features_in_ = moments.n_features_in_
        keep_completion(self, None if samples is None else samples.completion)
        self._try_options(moments, samples)
        self._keep_moments(moments)
        started = time.perf_counter()
        result = self._solution
        pairs = len({tuple(pair) for pair in result.pairs.tolist()})
        self._log(f"scale: {result.scale}")
        self._log(f"directions: {len(result.ranks)} of {pairs} class pairs", started)
        return self

    @over_blocks
    def transform(self, X: Rows | RowBlocks) -> Floats:
        """Expand samples into features.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, with NaN only if the training samples had NaN. For blocks, an iterator over the
            results of the blocks is returned.

        Returns
        -------
        (n, columns) array, float32 if `X` is float32, else float64
            ``[for s in (+, -): for a in powers: F columns]``, with "with_input" after the columns
            of `X`; with "none" F columns.
        """
        layer = as_layer(self)
        rows = complete(self, validate_data(self, X, reset=False, **ALLOW_NAN))
        return layer.transform(rows, self.n_threads)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _try_options(self, moments: ClassMoments, samples: LabelledSamples | None) -> None:
        """Draw the seed of the pairs; try scale and constant on samples, if given."""
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._trial = None
        if samples is not None and "auto" in (self.scale, self.constant):
            self._trial = try_options(self._options(), samples, moments)

    def _keep_moments(self, moments: ClassMoments) -> None:
        super()._keep_moments(moments)
        self.classes_ = np.asarray(moments.classes_)

    def _options(self) -> PencilOptions:
        return PencilOptions.of(self, self._seed)

    def _solve(self, moments: ClassMoments, options: PencilOptions) -> Solution:
        return solve(moments, options, self._trial)

    @property
    def constant_(self) -> bool:
        """The choice made for `constant`."""
        return bool(self._solution.scale.constant)

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        self._validate_params()
        check_powers(self.powers)


# ---- layers --------------------------------------------------------------------------------------
#
# Algorithm 1, lines 1 to 5, once for each layer. After a hidden layer, the input of the next layer
# consists of the shifted square roots of both half waves of the projections, and a constant
# (Karampatziakis and Mineiro, ICML 2014, section 4.1).


@dataclass(frozen=True)
class Depth:
    """Parameters of the layers of a classifier."""

    gem: GEM  # parameters of the last layer, with seed and number of threads; not fitted
    levels: int
    hidden_directions: int | str  # directions per pair in hidden layers

    def layer(self, level: int, n_classes: int, n_samples: int, n_features: int) -> GEM:
        """The GEM of one layer, not fitted, for samples of these sizes."""
        gem: GEM = clone(self.gem)
        if isinstance(gem.ridge, (list, tuple)):
            gem.ridge = gem.ridge[level]
        if level > 0:
            gem.set_params(constant=True, scale="none")
        if level == self.levels - 1:
            if gem.expansion == "auto" and _are_all_pairs(gem.pairs, n_classes):
                gem.expansion = "compressed"
            return gem
        sizes = n_classes, n_samples, n_features
        pairs, n_directions = _hidden_pairs(gem.pairs, self.hidden_directions, *sizes)
        return gem.set_params(
            pairs=pairs,
            n_directions=n_directions,
            threshold=None,
            expansion="shifted",
            powers=(1,),
        )


def _are_all_pairs(pairs: Pairs | Contrasts, n_classes: int) -> bool:
    """Whether each class is the denominator of all other classes."""
    return isinstance(pairs, str) and (
        pairs == "all" or (pairs == "auto" and n_classes <= MAX_CLASSES_ALL)
    )


def solve_layers(
    samples: LabelledSamples,
    depth: Depth,
    log: Callable[[str, float], None],
    moments: ClassMoments | None = None,
) -> tuple[list[Layer], GEM]:
    """Solve for the directions of each layer, from the moments of the features before it.

    `log` receives a line about each layer and the time when the layer began; `moments` are those of
    the samples, if known. The second result is the fitted GEM of the first layer.
    """
    sizes = len(samples.classes), samples.n_samples, samples.n_features
    first = depth.layer(0, *sizes).fit_samples(samples, moments)
    layers = [as_layer(first)]
    for level in range(1, depth.levels):
        started = time.perf_counter()
        sizes = len(samples.classes), samples.n_samples, layers[-1].width
        gem = depth.layer(level, *sizes).fit_samples(samples.mapped(layers, hidden=True))
        layers.append(as_layer(gem))
        log(f"layer {level + 1}: {len(gem.ranks_)} directions of {sizes[-1]} columns", started)
    return layers, first


# ---- directions of hidden layers -----------------------------------------------------------------
#
# A layer of F directions has 2 F + 1 features. The next layer stores the second moments
# of k classes twice, of the current block and of all samples before: 16 k (2 F + 1)^2 bytes.


def _hidden_pairs(
    pairs: Pairs | Contrasts,
    n_directions: int | str,
    n_classes: int,
    n_samples: int,
    n_features: int,
) -> tuple[Pairs | Contrasts, int]:
    """Pairs of a hidden layer of k classes, and the number of directions of each pair.

    "auto" means 20 directions per pair, or fewer if the next layer's moments would take more than
    two gigabytes. If one direction for each pair of classes already takes more, "auto" pairs become
    random groups of classes, and the moments take at most half a gigabyte.

    The number of directions is at most the number of samples, because more would not raise the rank
    of the features; per pair it is at most the number of columns plus one for the constant.
    """
    if not isinstance(n_directions, str):
        return pairs, n_directions
    most = min(_most_directions(_MAX_BYTES, n_classes), n_samples)
    count = _n_pairs(pairs, n_classes)
    if isinstance(pairs, str) and pairs == "auto" and count > most:
        most = min(_most_directions(_MAX_GROUP_BYTES, n_classes), MAX_GROUP_PAIRS, n_samples)
        count = max(most // PAIRS_PER_PARTITION, 1) * PAIRS_PER_PARTITION
        pairs = ("random_groups", count)
    return pairs, max(1, min(_MAX_DIRECTIONS, n_features + 1, most // count))


def _most_directions(n_bytes: int, n_classes: int) -> int:
    """The number of directions F whose features' moments take `n_bytes`."""
    return (math.isqrt(n_bytes // (16 * n_classes)) - 1) // 2


def _n_pairs(pairs: Any, k: int) -> int:
    """Number of pairs; within a factor of two if the number depends on the samples."""
    if isinstance(pairs, tuple) and len(pairs) == 2 and isinstance(pairs[0], str):
        return max(int(pairs[1]), 1)
    if not isinstance(pairs, str):
        return max(len(pairs), 1) if isinstance(pairs, Sized) else 1
    cube = k * max((k - 1).bit_length(), 1)
    kinds = {"one_vs_rest": 2 * k, "class_tree": 2 * (k - 1), "confusion": 6 * k}
    kinds |= {"all": k * (k - 1), "auto": k * (k - 1), "random_groups": MAX_GROUP_PAIRS}
    return min(kinds.get(pairs, cube), max(k * (k - 1), MAX_GROUP_PAIRS))
