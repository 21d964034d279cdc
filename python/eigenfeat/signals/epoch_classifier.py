"""Classifier of epochs: a pool of spatial filters, covariances, averages and frequencies."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import entropy
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GroupKFold, PredefinedSplit
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base import threads
from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.types import Codes, Labels
from eigenfeat._base.validation import differing_name, real_array, show, warn_caller
from eigenfeat.linear.logit_problem import loss_at_best
from eigenfeat.linear.pools import PooledView, asked_views, pool_probabilities, pool_weights
from eigenfeat.samples.estimator import BaseEstimator, Verbose, unchanged_on_error
from eigenfeat.samples.labelled import row_weights
from eigenfeat.signals.alignment import SessionAlignment
from eigenfeat.signals.epoch_views import (
    LOWEST,
    EstimatorView,
    Folds,
    Frequencies,
    Means,
    Transformed,
    View,
    WeightedLabels,
    Xdawn,
    bands_around,
    bands_with_power,
    cross_fit,
    principal_components,
)
from eigenfeat.signals.epochs import (
    MIN_FILTERED,
    axes_checked,
    constant_channels,
    epoch_blocks,
    filter_bank,
    read_groups,
    read_labels,
    read_recording,
    too_large,
    warn_single_classes,
    warn_swapped,
)
from eigenfeat.signals.spatial_filters import SpatialFilters
from eigenfeat.signals.tangent_space import TangentSpace

__all__ = ["EpochClassifier"]

_Array = NDArray[np.float64]
_Bands = list[tuple[float, float]]
VIEWS = (
    *("filters", "filters_bands", "tangent", "tangent_bands"),
    *("means", "xdawn", "frequencies"),
)
_UNUSED = "adds nothing to the others"
_MAX_FOLDS = 5  # folds of out-of-fold probabilities
_SAMPLES_PER_PERIOD = 3.0  # samples per period of the upper edge of a band, after decimation


class EpochClassifier(Verbose, ClassifierMixin, BaseEstimator):
    """Classifier of epochs of EEG, MEG or EMG: a pool of views.

    Use it first for epochs of many channels; it needs no tuning. Give the sampling rate `sfreq`,
    and the `frequencies` of flickering stimuli. User guide: :doc:`/guide/eeg`.

    Each view is a linear classifier on one description of the epochs. Views are pooled by weights
    that minimise the log loss of out-of-fold probabilities, with a pull to equal weights.

    Parameters
    ----------
    sfreq : float or None, default=None
        Samples per second; not needed with MNE's `Epochs`. None with arrays: no bands.
    bands : sequence of (low, high), "auto" or None, default="auto"
        Pass bands of the views with bands, in the unit of `sfreq`. "auto" takes bands from 4 Hz on,
        of about a third of an octave to an octave, in which epochs have power, or bands around the
        `frequencies`.
    frequencies : sequence of float or None, default=None
        Frequencies of stimuli that evoke steady-state responses (SSVEP).
    views : "auto", name or list of names and classifiers, default="auto"
        "filters" (power of spatial filters) and "tangent" (covariances in the tangent space) use
        unfiltered epochs, "filters_bands" and "tangent_bands" each of the bands. "means": means in
        windows. "xdawn": epochs and mean responses after xDAWN. "frequencies": canonical
        correlations. "auto" pools all that the epochs allow. Classifiers of epochs with
        `predict_proba`, such as pipelines, are further views; they get aligned epochs and the
        indices of the labels.
    n_threads : int or None, default=None
        Number of threads for covariances and their logarithms; None means all OpenMP threads.
    verbose : int, default=0
        1 prints a line for each view on stderr.

    Attributes
    ----------
    views_ : list of PooledView
        Name, weight, log loss and time of each view, why a view is not used, and its `model` with
        the fitted `SpatialFilters` and `TangentSpace`.
    bands_ : list of (low, high)
        Pass bands of the views with bands.
    sfreq_ : float or None
        Samples per second.
    classes_ : (k,) array
        Labels, sorted.
    n_channels_ : int
        Number of channels.
    n_times_ : int
        Number of time points.
    channel_names_ : list of str or None
        Channels of MNE's `Epochs`.
    components_ : (64, channels) array or None
        With more than 64 channels, the principal components that the views use instead.
    alignment_ : SessionAlignment or None
        With `groups`, the `names` of the sessions and the `means` of their covariances.

    See Also
    --------
    SpatialFilters : One view, with patterns to plot.
    TangentSpace : One view, for a classifier of your own.
    TableClassifier : A pool of views of tables.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat import EpochClassifier
    >>> y = np.arange(80) % 2
    >>> X = np.random.default_rng(0).standard_normal((80, 8, 128))
    >>> X[y == 1, 3] *= 1.5  # class 1 has more power in channel 3
    >>> model = EpochClassifier(sfreq=128).fit(X[:50], y[:50])
    >>> model.score(X[50:], y[50:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sfreq": [Interval(Real, 0, None, closed="neither"), None],
        "bands": ["array-like", StrOptions({"auto"}), None],
        "frequencies": ["array-like", None],
        "views": [StrOptions({"auto", *VIEWS}), list, tuple],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    alignment_: SessionAlignment | None

    def __init__(
        self,
        sfreq: float | None = None,
        *,
        bands: Sequence[tuple[float, float]] | str | None = "auto",
        frequencies: Sequence[float] | None = None,
        views: str | Sequence[Any] = "auto",
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.sfreq = sfreq
        self.bands = bands
        self.frequencies = frequencies
        self.views = views
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> EpochClassifier:
        """Fit the views and their weights.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            Finite epochs of one length.
        y : (n,) array-like
            Labels. Out-of-fold probabilities need at least two epochs of each class.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the epochs. Their sum does not matter; alignment ignores them.
        groups : (n,) array-like, optional
            Sessions or persons. Epochs are then whitened by the mean covariance of their session,
            and folds leave sessions out if each class is in several. In a cross-validation, pass
            `groups` by metadata routing.

        Returns
        -------
        EpochClassifier
            The estimator itself. An error leaves it unchanged.

        Warns
        -----
        UserWarning
            If a channel is constant, a session has epochs of one class alone, there are many more
            channels than times, or `sfreq` is too low for every band.
        """
        with unchanged_on_error(self):
            self._validate_params()
            with threads.default(self.n_threads):
                self._fit(X, y, sample_weight, groups)
        return self

    def adapt(self, X: Any, groups: ArrayLike) -> EpochClassifier:
        """Add epochs without labels to the mean covariances of their sessions.

        Predictions of a session that arrives epoch by epoch are then aligned by all its epochs so
        far. The views do not change.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            Epochs of the channels in `fit`.
        groups : (n,) array-like
            Session of each epoch, known from `fit` or new.

        Returns
        -------
        EpochClassifier
            The estimator itself. An error leaves it unchanged.
        """
        check_is_fitted(self, "views_")
        with unchanged_on_error(self), threads.default(self.n_threads):
            data = self._checked(X)
            sessions = self._sessions(groups, len(data))
            if sessions is None or self.alignment_ is None:
                raise ValueError(f"groups: expected {len(data)} sessions, one per epoch, got None")
            banks = self._filtered(data, self.bands_)
            self.alignment_ = self.alignment_.extended(banks, sessions)
        return self

    def predict_proba(self, X: Any, groups: ArrayLike | None = None) -> _Array:
        """Compute the classes' probabilities.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            Epochs as in `fit`.
        groups : (n,) array-like, optional
            Sessions, if `fit` had `groups`. New sessions are aligned by their epochs here, with the
            mean of the training sessions as one further epoch; None is one new session.

        Returns
        -------
        (n, k) array

        Warns
        -----
        UserWarning
            If a new session has fewer than 10 epochs, or `fit` had several sessions and `groups` is
            None.
        """
        check_is_fitted(self, "views_")
        data = self._checked(X)
        sessions = self._sessions(groups, len(data))
        used = [(view, view.model) for view in self.views_ if view.model is not None]
        bands = self.bands_ if any(model.uses_bands for _, model in used) else []
        with threads.one_blas_thread(), threads.default(self.n_threads):
            banks = self._filtered(data, bands)
            if self.alignment_ is not None:
                banks = self.alignment_.aligned(banks, sessions)
            logits = [model.logits(model.parts(banks)) / view.temperature for view, model in used]
            return pool_probabilities(logits, np.array([view.weight for view, _ in used]))

    def predict(self, X: Any, groups: ArrayLike | None = None) -> Labels:
        """Predict the labels.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            As in `predict_proba`.
        groups : (n,) array-like, optional
            As in `predict_proba`.

        Returns
        -------
        (n,) array
        """
        proba = self.predict_proba(X, groups)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def decision_function(self, X: Any, groups: ArrayLike | None = None) -> _Array:
        """Compute the logarithms of the classes' probabilities.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            As in `predict_proba`.
        groups : (n,) array-like, optional
            As in `predict_proba`.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the log-odds of the second class.
        """
        logs = np.log(np.maximum(self.predict_proba(X, groups), np.finfo(float).tiny))
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> float:
        """Accuracy: fraction of epochs with a correct prediction, by weight.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            As in `predict_proba`.
        y : (n,) array-like
            Labels.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the epochs.
        groups : (n,) array-like, optional
            As in `predict_proba`.

        Returns
        -------
        float
        """
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    def _fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None
    ) -> None:
        """Fit to samples, after checks of the parameters."""
        data, self.sfreq_, self.channel_names_ = read_recording(X, sfreq=self.sfreq)
        n = len(data)
        labels, weight = read_labels(y, n), row_weights(sample_weight, n)
        sessions = read_groups(groups, n)
        used = weight > 0
        if not used.all():
            data, labels, weight = data[used], labels[used], weight[used]
            sessions = None if sessions is None else sessions[used]
        _, self.n_channels_, self.n_times_ = data.shape
        warn_swapped(X, data.shape, "epochs")
        self.classes_, codes = np.unique(labels, return_inverse=True)
        check_two_labels(self.classes_)
        self._check_counts(codes)
        power = np.zeros(self.n_channels_)
        for rows in epoch_blocks(data):
            with np.errstate(over="ignore"):
                power += data[rows].var(axis=2, dtype=np.float64).sum(axis=0)
        if not np.isfinite(power).all():
            raise too_large(data)
        constant_channels(power)
        self.components_ = principal_components(data)
        frequencies = self._frequencies()
        self.bands_, no_bands = self._choose_bands(data, frequencies)
        views, notes = self._candidates(frequencies, no_bands)
        banks = self._filtered(data, self.bands_)
        self.alignment_ = None
        if sessions is not None:
            self.alignment_ = SessionAlignment.fit(banks, sessions)
            warn_single_classes(codes, sessions)
            banks = self.alignment_.aligned(banks, sessions)
        targets = WeightedLabels(codes, weight / weight.mean(), len(self.classes_))
        with warnings.catch_warnings(), axes_checked():
            # Each view of each fold would warn of its own channels.
            warnings.filterwarnings("ignore", "X: constant channels", UserWarning)
            self._fit_pool(views, banks, targets, sessions)
        self.views_ += [PooledView(name, 0.0, note=why) for name, why in notes.items()]

    def _check_counts(self, codes: Codes) -> None:
        counts = np.bincount(codes)
        if counts.min() < 2:
            label = show(self.classes_[counts.argmin()])
            raise ValueError(
                f"y: expected at least 2 epochs of each class, got {counts.min()} of {label}"
            )

    def _choose_bands(self, X: NDArray[Any], frequencies: list[float]) -> tuple[_Bands, str]:
        """Return the bands of the views, and the reason if there are none."""
        if self.bands is None:
            return [], "bands is None"
        if not isinstance(self.bands, str):
            filter_bank(X[:1], self.bands, self.sfreq_)  # raises an error for wrong bands
            return [(float(low), float(high)) for low, high in self.bands], ""
        if self.sfreq_ is None:
            return [], "sfreq is not known"
        if X.shape[2] < MIN_FILTERED:
            return [], f"epochs of less than {MIN_FILTERED} samples"
        if frequencies:
            return bands_around(frequencies, self.sfreq_), ""
        if self.sfreq_ <= 2 * LOWEST:
            warn_caller(
                f"sfreq: expected samples per second, got {self.sfreq_:g}, half of which is below "
                f"all bands from {LOWEST:g} Hz; the views of bands are left out",
                UserWarning,
            )
        return bands_with_power(X, self.sfreq_), "no band has power"

    def _frequencies(self) -> list[float]:
        if self.frequencies is None:
            return []
        if self.sfreq_ is None:
            raise ValueError("sfreq: expected samples per second with frequencies, got None")
        found: list[float] = real_array(self.frequencies, "frequencies").ravel().tolist()
        if not found or not all(0 < one < self.sfreq_ / 2 for one in found):
            raise ValueError(
                f"frequencies: expected numbers in (0, sfreq / 2 = {self.sfreq_ / 2:g}), got "
                f"{show(self.frequencies)}"
            )
        return found

    def _candidates(
        self, frequencies: list[float], no_bands: str
    ) -> tuple[dict[str, View], dict[str, str]]:
        """Views to try, by name, and reasons why other views are not tried."""
        names, estimators = asked_views(
            self.views, VIEWS, "classifiers with predict_proba", _has_probabilities
        )
        notes = {} if self.bands_ else dict.fromkeys(("filters_bands", "tangent_bands"), no_bands)
        if not frequencies:
            notes["frequencies"] = "no frequencies given"
        notes = {name: notes[name] for name in names if name in notes}
        if notes and self.views != "auto":
            name, note = next(iter(notes.items()))
            raise ValueError(
                f"views: expected views that these epochs allow, got {name!r} ({note})"
            )
        views: dict[str, View] = {
            "filters": Transformed(SpatialFilters(), uses_bands=False),
            "filters_bands": Transformed(SpatialFilters(), uses_bands=True),
            "tangent": Transformed(TangentSpace(), uses_bands=False),
            "tangent_bands": Transformed(TangentSpace(), uses_bands=True),
            "means": Means(),
            "xdawn": Xdawn(),
            "frequencies": Frequencies(frequencies, self.sfreq_ or 0.0),
        }
        tried = {name: views[name] for name in names if name not in notes}
        tried |= {name: EstimatorView(one) for name, one in estimators.items()}
        return tried, notes

    def _fit_pool(
        self,
        views: dict[str, View],
        banks: list[NDArray[Any]],
        targets: WeightedLabels,
        sessions: NDArray[Any] | None,
    ) -> None:
        """Fit views and their weights; those no better than the class frequencies have weight 0."""
        folds = _folds(targets.codes, sessions)
        held = targets.subset(np.concatenate([test for _, test in folds]))
        chance = entropy(held.counts())
        logits, tried = [], []
        for name, view in views.items():
            started = time.perf_counter()
            z = cross_fit(view, view.parts(banks), targets, folds)
            loss, temperature = loss_at_best(z, held.codes, held.weight)
            took = time.perf_counter() - started
            logits.append(z / temperature)
            unused = PooledView(name, 0.0, -loss, took, temperature=temperature, note=_UNUSED)
            tried.append(unused)
            self._log(f"view {name}: out-of-fold log loss {loss:.4g}", started)
        best = min(view.log_loss for view in tried)
        used = [i for i, view in enumerate(tried) if view.log_loss < chance or chance <= best]
        weights = pool_weights([logits[i] for i in used], held.codes, held.weight)
        for i, weight in zip(used, weights.tolist(), strict=True):
            if weight > 0:
                tried[i] = replace(tried[i], weight=weight, note="", model=views[tried[i].name])
        self.views_ = tried

    def _checked(self, X: Any) -> NDArray[Any]:
        """Check that epochs to predict are like those of `fit`; return their array."""
        data, sfreq, names = read_recording(X, self.n_channels_)
        if data.shape[2] != self.n_times_:
            raise ValueError(
                f"X: expected epochs of {self.n_times_} samples as in fit, got {data.shape[2]}"
            )
        if sfreq is not None and self.sfreq_ not in (None, sfreq):
            raise ValueError(
                f"X: expected {self.sfreq_:g} samples per second as in fit, got {sfreq:g}"
            )
        if names is not None and self.channel_names_ is not None:
            differing = differing_name(self.channel_names_, names)
            if differing is not None:
                _, known, got = differing
                raise ValueError(
                    f"X: expected the channels of fit in their order, got {got} in place of {known}"
                )
        return data

    def _sessions(self, groups: ArrayLike | None, n: int) -> NDArray[Any] | None:
        """Check sessions (n,) of epochs to predict or to add."""
        if groups is not None and self.alignment_ is None:
            raise ValueError("groups: expected None, because fit had no groups, got sessions")
        return read_groups(groups, n)

    def _filtered(self, X: NDArray[Any], bands: _Bands) -> list[NDArray[Any]]:
        """Epochs without a filter and in each band, or their principal components."""
        if self.components_ is not None:
            X = self.components_.astype(X.dtype) @ X
        out = [X]
        for band in bands:
            filtered = filter_bank(X, [band], self.sfreq_)[0]
            step = max(1, int((self.sfreq_ or 0.0) / (_SAMPLES_PER_PERIOD * band[1])))
            out.append(filtered[:, :, ::step].copy() if step > 1 else filtered)
        return out


def _has_probabilities(estimator: Any) -> bool:
    return hasattr(estimator, "predict_proba")


def _folds(codes: Codes, sessions: NDArray[Any] | None) -> Folds:
    """Folds of sessions if each training part has all classes; otherwise of neighbouring epochs.

    Neighbouring epochs of a recording resemble each other: random folds would favour views that
    recognise neighbours. Each class is therefore divided in the order of its epochs.
    """
    k = int(codes.max()) + 1
    if sessions is not None and (count := min(_MAX_FOLDS, len(np.unique(sessions)))) > 1:
        parts = list(GroupKFold(count).split(codes, codes, sessions))
        if all(len(np.unique(codes[train])) == k for train, _ in parts):
            return parts
    count = min(_MAX_FOLDS, int(np.bincount(codes).min()))
    fold = np.empty(len(codes), dtype=np.intp)
    for c in range(k):
        rows = np.flatnonzero(codes == c)
        fold[rows] = np.arange(len(rows)) * count // len(rows)
    return list(PredefinedSplit(fold).split())
