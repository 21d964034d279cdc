"""Common spatial patterns: GEM for epochs of many channels, such as EEG."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.text_columns import naming_text
from eigenfeat._base.types import Floats
from eigenfeat._base.unchanged import unchanged_on_error
from eigenfeat._base.validation import show
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.eigh import generalized_eigh
from eigenfeat.rows.estimator import BaseEstimator
from eigenfeat.rows.row_weights import row_weights

__all__ = ["SpatialFilters"]

_Array = NDArray[np.float64]
_BLOCK = 1 << 22  # numbers of epochs that are turned into rows at a time


class SpatialFilters(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Common spatial patterns (CSP) of epochs, for two or more classes.

    Each problem has a class i against the others, or two classes i and j. Its filters w solve
    ``C_i w = lambda (C_i + C_j) w`` with the mean covariances of the classes' epochs. If lambda is
    near 1, only epochs of class i have power; if it is near 0, only the other epochs have. The
    features are the logarithms of the power of the filtered epochs. The pencils are those of GEM,
    but both ends of each spectrum are used: lambda / (1 - lambda) is GEM's eigenvalue.

    Parameters
    ----------
    n_filters : int >= 1, default=4
        Number of filters of each problem, alternately from both ends of the spectrum, lambda near 1
        first.
    pairs : {"one_vs_rest", "all"}, default="one_vs_rest"
        One problem for each class, where C_j is the mean of the other classes' covariances, or one
        for each pair of classes. With two classes, both options give one problem.
    covariance : {"concat", "epoch"}, default="concat"
        Covariance of a class: that of all its samples, or the mean of its epochs' covariances, each
        divided by its trace.
    center : bool, default=True
        Whether each channel's mean over an epoch is subtracted from it.
    ridge : float >= 0, default=0.01
        Multiple of a covariance's mean eigenvalue that is added to its eigenvalues in the span of
        the signals.
    rank_tol : float in (0, 1), default=1e-8
        Filters exclude the directions in which the mean covariance is below this fraction of its
        largest eigenvalue. At least 1e-5 is used for float32 epochs. After an average reference, or
        with ICA components removed, channels span fewer dimensions.
    log : bool, default=True
        Whether to return the natural logarithm of the power.
    n_threads : int or None, default=None
        Number of threads for the covariances; None means all OpenMP threads.

    Attributes
    ----------
    filters_ : (F, channels) array
        One filter per row, as in MNE. Filters are scaled to a total power of 1 over both sides of
        the problem, ``w^T (C_i + C_j) w = 1``.
    patterns_ : (F, channels) array
        One pattern per row: the signal in the channels from the source that the filter extracts,
        ``(C_i + C_j) w``. For a complete set of filters this is the pseudoinverse.
    evals_ : (F,) array
        lambda of each filter.
    pairs_ : (F, 2) array
        Label of the class whose share of the power is lambda, and label of the other, or "rest".
    rank_ : int
        Dimension of the span of the signals.
    moments_ : ClassMoments
        Moments of the samples; each sample is a row of channels.
    classes_ : (k,) array
        Labels, sorted.
    n_channels_ : int

    Raises
    ------
    ValueError
        If the epochs in X differ in number of channels or in length, are not finite, or a channel
        is constant; if there are fewer than two classes; or if parameters are invalid.

    Notes
    -----
    `moments_` stores k matrices of channels by channels, for any number of epochs. Batches may
    differ in the length of their epochs; with "concat", epochs count by their number of samples.

    References
    ----------
    H. Ramoser, J. Muller-Gerking and G. Pfurtscheller, "Optimal spatial filtering of single trial
    EEG during imagined hand movement", IEEE Trans. Rehab. Eng. 8, 2000. G. Dornhege et al.,
    "Boosting bit rates in noninvasive EEG single-trial classifications by feature combination and
    multiclass paradigms", IEEE Trans. Biomed. Eng. 51, 2004 (pairs, one against the rest). S. Haufe
    et al., "On the interpretation of weight vectors of linear models in multivariate neuroimaging",
    NeuroImage 87, 2014 (patterns).

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat import SpatialFilters
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.standard_normal((40, 8, 100))
    >>> X[y == 1, 3] *= 2.0
    >>> model = SpatialFilters(n_filters=2).fit(X, y)
    >>> model.transform(X).shape
    (40, 2)
    >>> int(np.abs(model.patterns_[1]).argmax())
    3
    """

    _saved: ClassVar[dict[str, str]] = {
        "moments_": "of ClassMoments",
        "_coarse": "value",
        "rank_": "count",
        "filters_": "numbers F d",
        "patterns_": "numbers F d",
        "evals_": "floats F",
        "pairs_": "labels F 2",
        "classes_": "labels k",
        "n_channels_": "count",
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_filters": [Interval(Integral, 1, None, closed="left")],
        "pairs": [StrOptions({"one_vs_rest", "all"})],
        "covariance": [StrOptions({"concat", "epoch"})],
        "center": ["boolean"],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "rank_tol": [Interval(Real, 0, 1, closed="neither")],
        "log": ["boolean"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    moments_: ClassMoments
    n_channels_: int
    _coarse: bool

    def __init__(
        self,
        n_filters: int = 4,
        *,
        pairs: str = "one_vs_rest",
        covariance: str = "concat",
        center: bool = True,
        ridge: float = 0.01,
        rank_tol: float = 1e-8,
        log: bool = True,
        n_threads: int | None = None,
    ) -> None:
        self.n_filters = n_filters
        self.pairs = pairs
        self.covariance = covariance
        self.center = center
        self.ridge = ridge
        self.rank_tol = rank_tol
        self.log = log
        self.n_threads = n_threads

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SpatialFilters:
        """Accumulate the classes' covariances and solve for filters.

        Parameters
        ----------
        X : (n, channels, times) array-like
            Finite epochs.
        y : (n,) array-like
            Labels.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the epochs.

        Returns
        -------
        SpatialFilters
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._take(X, y, sample_weight, None, first=True)
            check_two_labels(self.moments_.active_classes)
            self._solve()
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> SpatialFilters:
        """Add a batch of epochs; filters are available once there are two classes.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array-like, optional
            All labels, given with the first batch; any other label is then an error.

        Returns
        -------
        SpatialFilters
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._take(X, y, sample_weight, classes, first=not hasattr(self, "moments_"))
            if len(self.moments_.active_classes) > 1:
                self._solve()
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Compute the power of filtered epochs.

        Parameters
        ----------
        X : (n, channels, times) array-like
            Finite epochs, of any length.

        Returns
        -------
        (n, F) array of float32 or float64, as `X`
            Mean squares over an epoch, or their logarithms. For an epoch without power, this is the
            logarithm of the smallest normal number.
        """
        check_is_fitted(self, "filters_")
        checked = self._epochs(X, self.n_channels_)
        filters = self.filters_.astype(checked.dtype)
        out = np.empty((len(checked), len(filters)), dtype=checked.dtype)
        for rows in _blocks(checked):
            signals = filters @ checked[rows]
            if self.center:
                signals -= signals.mean(axis=2, keepdims=True)
            out[rows] = np.einsum("nft,nft->nf", signals, signals) / checked.shape[2]
        return np.log(np.maximum(out, np.finfo(checked.dtype).tiny)) if self.log else out

    def apply(self, X: ArrayLike) -> Floats:
        """Filter epochs: the sources instead of the channels, shape (n, F, times).

        Parameters
        ----------
        X : (n, channels, times) array-like
            Finite epochs.
        """
        check_is_fitted(self, "filters_")
        rows = self._epochs(X, self.n_channels_)
        signals: NDArray[Any] = self.filters_.astype(rows.dtype) @ rows
        return signals

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.filters_)

    def _epochs(self, X: Any, channels: int | None) -> NDArray[Any]:
        """Checked epochs, float32 or float64."""
        lengths = _shapes(X)
        if len(set(lengths)) > 1:
            odd = next(i for i, shape in enumerate(lengths) if shape != lengths[0])
            raise ValueError(
                "X: expected epochs of one number of channels and one length, got shapes "
                f"{lengths[0]} and, of epoch {odd}, {lengths[odd]}"
            )
        try:
            array = np.asarray(X)
            array = array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
        except (TypeError, ValueError):
            raise ValueError(f"X: expected an array of numbers, got {show(X)}") from None
        if array.ndim != 3 or not array.size:
            raise ValueError(
                f"X: expected epochs of shape (n, channels, times), got shape {array.shape}"
            )
        if channels is not None and array.shape[1] != channels:
            raise ValueError(f"X: expected {channels} channels, got {array.shape[1]}")
        for rows in _blocks(array):
            if not np.isfinite(array[rows]).all():
                epoch, channel, time = np.argwhere(~np.isfinite(array[rows]))[0]
                raise ValueError(
                    f"X: expected finite numbers, got {array[rows][epoch, channel, time]} in epoch "
                    f"{epoch + (rows.start or 0)}, channel {channel}, sample {time}"
                )
        return array

    def _take(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, classes: Any, *, first: bool
    ) -> None:
        self._validate_params()
        X = self._epochs(X, None if first else self.n_channels_)
        labels = np.asarray(y)
        if labels.shape != (len(X),):
            raise ValueError(
                f"y: expected {len(X)} labels, one per epoch, got shape {labels.shape}"
            )
        with naming_text(None, labels):
            check_classification_targets(labels)
        weight = row_weights(sample_weight, len(X))
        if first:
            self.moments_, self.n_channels_ = ClassMoments(classes), X.shape[1]
        fresh = ClassMoments(classes) if first else ClassMoments()
        for label in np.unique(labels[weight > 0]):
            of_class = np.flatnonzero((labels == label) & (weight > 0))
            self._add(fresh, X[of_class], label, weight[of_class])
        merged = self.moments_.copy().merge(fresh, n_threads=self.n_threads)
        self._coarse = X.dtype == np.float32 or (not first and self._coarse)
        self._check_channels(merged)
        self.moments_ = merged
        self.classes_ = np.asarray(merged.classes_)

    def _add(self, moments: ClassMoments, X: NDArray[Any], label: Any, weight: _Array) -> None:
        """Samples of a class's epochs, in blocks."""
        times = X.shape[2]
        for rows in _blocks(X):
            epochs = X[rows]
            if self.center:
                epochs = epochs - epochs.mean(axis=2, keepdims=True)
            if self.covariance == "epoch":
                trace = np.einsum("nct,nct->n", epochs, epochs) / (times * X.shape[1])
                if not (trace > 0).all():
                    raise ValueError(
                        "X: expected epochs that vary with covariance='epoch', got a constant one"
                    )
                epochs = epochs / np.sqrt(trace)[:, None, None]
            samples = np.ascontiguousarray(epochs.transpose(0, 2, 1)).reshape(-1, X.shape[1])
            share = weight[rows] / (times if self.covariance == "epoch" else 1.0)
            moments.update(
                samples,
                np.full(len(samples), label),
                np.repeat(share, times),
                n_threads=self.n_threads,
            )

    def _check_channels(self, moments: ClassMoments) -> None:
        labels = moments.active_classes
        if not len(labels):
            raise ValueError("sample_weight: expected a positive weight, got none")
        power = np.sum([np.diag(moments.second_moment(c)) for c in labels], axis=0)
        constant = np.flatnonzero(power <= 1e-20 * power.max())
        if self.center and len(constant):
            raise ValueError(
                f"X: expected channels that vary, got constant ones: {show(constant.tolist())}; "
                "leave them out"
            )

    def _solve(self) -> None:
        """Filters of all problems, in the span of the mean covariance."""
        labels = self.moments_.active_classes
        matrices = np.array([self.moments_.second_moment(c) for c in labels])
        size = float(np.trace(matrices.mean(axis=0))) / self.n_channels_
        values, vectors = np.linalg.eigh(matrices.mean(axis=0) / size)
        tol = max(self.rank_tol, 1e-5) if self._coarse else self.rank_tol
        span = vectors[:, values > tol * values[-1]]
        self.rank_ = span.shape[1]
        inner = np.einsum("ca,kcd,db->kab", span, matrices / size, span, optimize=True)
        inner += (
            self.ridge
            * np.einsum("kaa->k", inner)[:, None, None]
            * np.eye(self.rank_)
            / (self.rank_)
        )
        above, below, names = _problems(inner, list(labels), self.pairs)
        found = generalized_eigh(above, above + below, n_threads=self.n_threads)
        chosen = _both_ends(self.rank_, self.n_filters)
        filters, patterns = [], []
        for one, w in zip(above + below, found.vectors[:, :, chosen], strict=True):
            filters.append((span @ w).T)
            patterns.append((span @ (one @ w)).T)
        self.filters_ = np.ascontiguousarray(np.vstack(filters)) / np.sqrt(size)
        self.patterns_ = np.ascontiguousarray(np.vstack(patterns)) * np.sqrt(size)
        self.evals_ = found.eigenvalues[:, chosen].ravel()
        self.pairs_ = np.repeat(names, len(chosen), axis=0)


def _problems(
    matrices: _Array, labels: list[Any], pairs: str
) -> tuple[_Array, _Array, NDArray[Any]]:
    """Covariances on both sides of each problem (P, r, r), and their names (P, 2)."""
    k = len(labels)
    labels = np.array(labels).tolist()  # plain ones beside "rest"
    if k == 2 or pairs == "all":
        items = np.array(list(combinations(range(k), 2)))
        return matrices[items[:, 0]], matrices[items[:, 1]], np.array(labels)[items]
    rest = np.array([matrices[np.arange(k) != c].mean(axis=0) for c in range(k)])
    names = np.array([(label, "rest") for label in labels], dtype=object)
    return matrices, rest, names


def _both_ends(count: int, n: int) -> NDArray[np.intp]:
    """First, last, second, last but one, ... of `count`, at most n."""
    order = np.empty(count, dtype=np.intp)
    order[::2] = np.arange((count + 1) // 2)
    order[1::2] = count - 1 - np.arange(count // 2)
    return order[:n]


def _shapes(X: Any) -> list[tuple[int, ...]]:
    """Shapes of the epochs of a list; nothing of an array, where they are one."""
    if isinstance(X, np.ndarray) and X.dtype != object:
        return []
    if not isinstance(X, (list, tuple, np.ndarray)):
        return []
    try:
        return [np.shape(epoch) for epoch in X]
    except ValueError:
        raise ValueError("X: expected epochs of shape (channels, times), got ragged ones") from None


def _blocks(X: NDArray[Any]) -> Iterator[slice]:
    """Slices of epochs of a bounded number of entries."""
    step = max(1, _BLOCK // (X.shape[1] * X.shape[2]))
    return (slice(first, first + step) for first in range(0, len(X), step))
