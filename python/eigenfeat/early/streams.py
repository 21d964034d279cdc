"""Early decisions of series that arrive one value at a time."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import check_whole, real_array, show
from eigenfeat.early.completion import RunningStatistics
from eigenfeat.early.decisions import StreamDecision
from eigenfeat.early.rules import RuleInput
from eigenfeat.early.series import blocks, decision_times, padded, pushed_value, taus_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["Stream", "Streams"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

_Given = ArrayLike | None

_NO_CODES = np.empty(0, dtype=np.intp)


class Streams:
    """Decide many series that arrive value by value, each at its own time.

    A value costs O(t) for the t known values of a series and each Gaussian of the completion. With
    missing values, a time of decision costs O(d^3), once for all series with the same missing
    values. Methods may be called from several threads; every push is atomic, and an error leaves
    the streams unchanged. Streams can be pickled at any time. Fitting the model again does not
    change open streams.

    Parameters
    ----------
    model : ReliableClassifier or ReliableClassifierCV
        Fitted model. Streams of a search use its best estimator.
    n_series : int >= 1
        Number of series.
    reliability : float or (n_series,) array-like, optional
        tau in (0, 1); by default as in `ReliableClassifier.predict_early`.
    steps : ascending integers in ``1..n_timepoints_``, optional
        Numbers of values after which series may be decided, always including the last; by default
        as in `ReliableClassifier.predict_early`.

    See Also
    --------
    ReliableClassifier.predict_early : Decisions about complete series.
    """

    def __init__(
        self,
        model: BaseEstimator,
        n_series: int,
        reliability: _Given = None,
        *,
        steps: _Given = None,
    ) -> None:
        model = getattr(model, "best_estimator_", model)
        check_is_fitted(model)
        n = check_whole(n_series, "n_series", at_least=1)
        self._tau = taus_of(model, reliability, n)
        self._model = fitted = replace(model.fitted_, n_threads=model.n_threads)
        self._layout, d, length = fitted.layout, fitted.layout.width, fitted.layout.length
        self._decision_steps = np.zeros(length + 1, dtype=bool)
        times = decision_times(model, steps, length)
        self._decision_steps[times] = fitted.may_decide(self._tau, times * fitted.layout.channels)
        self._rows = np.full((n, d), np.nan)
        self._statistics = RunningStatistics(fitted.gaussians, n)
        self._seen = np.zeros(n, dtype=np.int64)
        self._time = np.zeros(n, dtype=np.int64)
        self._code = np.full(n, -1, dtype=np.intp)
        self._reliability = np.zeros(n)
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._seen)

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            omitted = ("_lock", "_statistics")
            return {n: copy.copy(value) for n, value in vars(self).items() if n not in omitted}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())
        self._statistics = RunningStatistics(self._model.gaussians, len(self))

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Mask (n,) of the decided series."""
        with self._lock:
            return np.asarray(self._code >= 0)

    @property
    def labels(self) -> NDArray[np.object_]:
        """Labels (n,), None for undecided series."""
        with self._lock:
            labels = self._model.classes[np.maximum(self._code, 0)].astype(object)
            labels[self._code < 0] = None
            return labels

    @property
    def time(self) -> NDArray[np.int64]:
        """Number (n,) of values used for each decision; 0 for undecided series."""
        with self._lock:
            return self._time.copy()

    @property
    def reliability(self) -> _Array:
        """Largest tau (n,) at the time of decision; 0 for undecided series."""
        with self._lock:
            return self._reliability.copy()

    def decision(self, number: int) -> StreamDecision | None:
        """Return the decision of one series.

        Parameters
        ----------
        number : int
            Index of the series.

        Returns
        -------
        StreamDecision or None
            None if the series is not decided.
        """
        with self._lock:
            if self._code[number] < 0:
                return None
            label = self._model.classes[self._code[number]]
            return StreamDecision(label, int(self._time[number]), float(self._reliability[number]))

    @property
    def seen(self) -> NDArray[np.int64]:
        """Number (n,) of values that each series has received."""
        with self._lock:
            return self._seen.copy()

    def push(self, values: ArrayLike, at: _Given = None, *, time: _Given = None) -> _Codes:
        """Push the next value to each of m series.

        Parameters
        ----------
        values : (m,) or (m, channels) array-like
            Values; NaN is missing and counts as one time step. Values of decided series are
            ignored.
        at : (m,) array-like of int, optional
            Distinct indices of series; all by default.
        time : int or (m,) array-like of int, optional
            Times of the values, starting at 1; skipped values are missing. By default the next
            time.

        Returns
        -------
        (k,) array of int
            Indices of the series decided by this call, ascending.

        Raises
        ------
        ValueError
            If values are infinite or of another shape, or times are in the past or after the end;
            then nothing is pushed.
        """
        with self._lock:
            indices = self._indices(at)
            samples = self._samples(values, indices)
            waiting = np.flatnonzero(self._code[indices] < 0)
            times = self._times(time, indices, waiting)
            indices, samples = indices[waiting], samples[waiting]
            if np.isinf(samples).any():
                k, j = np.argwhere(np.isinf(samples))[0]
                raise ValueError(
                    "values: expected finite numbers or NaN, got "
                    f"{samples[k, j]} for series {indices[k]}"
                )
            state = self._seen, self._time, self._code, self._reliability
            saved = [array[indices] for array in state]
            try:
                decided = [self._advance(t, indices[k], samples[k]) for t, k in _grouped(times)]
            except BaseException:
                for array, values_before in zip(state, saved, strict=True):
                    array[indices] = values_before
                later = np.arange(self._layout.width) >= saved[0][:, None] * self._layout.channels
                self._rows[indices] = np.where(later, np.nan, self._rows[indices])
                self._statistics.restart(indices)
                raise
            return np.sort(np.concatenate([_NO_CODES, *decided]))

    def finish(self, at: _Given = None) -> _Codes:
        """Decide series that have ended, from their known values.

        Each channel is padded with its last known value.

        Parameters
        ----------
        at : (m,) array-like of int, optional
            Distinct indices of series; all by default.

        Returns
        -------
        (k,) array of int
            Indices of the series decided by this call, ascending.

        Raises
        ------
        ValueError
            If a series has no known value; then nothing is decided.
        """
        with self._lock:
            indices = self._indices(at)
            indices = np.sort(indices[self._code[indices] < 0])
            rows = self._rows[indices]
            known = ~np.isnan(rows).all(axis=1)
            if not known.all():
                raise ValueError(
                    "finish: expected at least one known sample, got none for series "
                    f"{indices[int(known.argmin())]}"
                )
            rows = padded(self._layout.series(rows), self._seen[indices]).reshape(rows.shape)
            code, reliability = self._model.final_decisions(rows)
            self._decide(indices, code, reliability, self._seen[indices])
            return indices

    def outlook(self) -> tuple[NDArray[Any], _Array]:
        """Return the label that each series would get now, and the largest tau for it.

        Returns
        -------
        label : (n,) array
            The label that each series would get now, or the label of its decision.
        reliability : (n,) array
            The largest tau at which the series would get this label, or the tau of its decision.
        """
        with self._lock:
            code, reliability = self._code.copy(), self._reliability.copy()
            waiting = np.flatnonzero(code < 0)
            for t, k in _grouped(self._seen[waiting]):
                for rows, rule_input in self._inputs(t, waiting[k]):
                    reliability[rows], code[rows] = self._model.largest_tau(rule_input)
            return self._model.classes[code], reliability

    def reset(self, at: _Given = None) -> None:
        """Restart some or all series.

        Parameters
        ----------
        at : (m,) array-like of int, optional
            Distinct indices of series; all by default.
        """
        with self._lock:
            indices = self._indices(at)
            self._rows[indices] = np.nan
            self._statistics.restart(indices)
            self._seen[indices] = self._time[indices] = 0
            self._code[indices] = -1
            self._reliability[indices] = 0.0

    def _indices(self, at: Any) -> _Codes:
        n = len(self)
        if at is None:
            return np.arange(n)
        indices = np.asarray(at)
        integers = indices.ndim == 1 and (indices.dtype.kind in "iu" or not indices.size)
        valid = integers and (not indices.size or (indices.min() >= 0 and indices.max() < n))
        if not valid or len(np.unique(indices)) != len(indices):
            raise ValueError(f"at: expected distinct integers in 0..{n - 1}, got {show(at)}")
        return indices.astype(np.intp)

    def _samples(self, values: Any, indices: _Codes) -> _Array:
        """Checked samples (m, channels)."""
        samples = real_array(values, "values", np.dtype(np.float64))
        channels = self._layout.channels
        shape = indices.shape if channels == 1 else (len(indices), channels)
        if samples.shape != shape:
            raise ValueError(f"values: expected shape {shape}, got {samples.shape}")
        return samples.reshape(len(indices), channels)

    def _times(self, time: Any, indices: _Codes, waiting: _Codes) -> NDArray[np.int64]:
        """Numbers (m,) of samples after the push, of the undecided series ``indices[waiting]``."""
        seen = self._seen[indices[waiting]]
        if time is None:
            return seen + 1
        times, n = np.asarray(time), len(indices)
        if times.dtype.kind not in "iu" or times.shape not in ((), (n,)):
            raise ValueError(f"time: expected an integer or {n} integers, got {show(time)}")
        times = np.broadcast_to(times, (n,))[waiting].astype(np.int64)
        wrong = (times <= seen) | (times > self._layout.length)
        if wrong.any():
            k = int(wrong.argmax())
            raise ValueError(
                f"time: expected {seen[k] + 1}..{self._layout.length} for series "
                f"{indices[waiting[k]]}, got {times[k]}"
            )
        return times

    def _advance(self, time: int, rows: _Codes, samples: _Array) -> _Codes:
        """Store the samples of series at a time; return the series that are decided now."""
        channels = self._layout.channels
        self._rows[rows, (time - 1) * channels : time * channels] = samples
        self._seen[rows] = time
        if time == self._layout.length:
            code, reliability = self._model.final_decisions(self._rows[rows])
            self._decide(rows, code, reliability, time)
            return rows
        if not self._decision_steps[time]:
            return _NO_CODES
        model, decided = self._model, []
        for part, rule_input in self._inputs(time, rows):
            best = model.rule.best_classes(rule_input)
            new = model.decides(rule_input, best, self._tau[part]).nonzero()[0]
            if len(new):
                bound = model.bound(rule_input.take(new), best[new])
                self._decide(part[new], best[new], bound, time)
                decided.append(part[new])
        return np.concatenate([_NO_CODES, *decided])

    def _decide(self, indices: _Codes, code: _Codes, reliability: _Array, time: Any) -> None:
        self._code[indices], self._time[indices] = code, time
        self._reliability[indices] = reliability

    def _inputs(self, seen: int, rows: _Codes) -> Iterator[tuple[_Codes, RuleInput]]:
        """Yield series of `seen` samples and their rule inputs, in blocks of bounded memory."""
        model, statistics = self._model, self._statistics
        entries = seen * self._layout.channels
        statistics.include(rows, self._rows, entries)
        gaps = np.isnan(statistics.log_densities[0, rows])
        for series, have_gaps in (rows[~gaps], False), (rows[gaps], True):
            for block in blocks(len(series), model.numbers_per_row()):
                part = series[block]
                if have_gaps:
                    yield part, model.prefix_input(self._rows[part], np.array([entries]))
                else:
                    yield part, model.running_input(statistics, part, self._rows)


def _grouped(keys: NDArray[np.int64]) -> Iterator[tuple[int, _Codes]]:
    """Yield distinct keys and the indices of their items."""
    for key in sorted(set(keys.tolist())):
        yield key, np.flatnonzero(keys == key)


class Stream:
    """Stream of one series that arrives value by value: see `Streams`.

    Parameters
    ----------
    model : ReliableClassifier
        Fitted model.
    reliability : float, optional
        tau in (0, 1); by default as in `ReliableClassifier.predict_early`.
    steps : ascending integers in ``1..n_timepoints_``, optional
        Numbers of values after which the series may be decided; by default as in
        `ReliableClassifier.predict_early`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.early import ReliableClassifier
    >>> y = np.repeat([0, 1], 50)
    >>> X = np.random.default_rng(0).standard_normal((100, 8)) + 3 * y[:, None]
    >>> stream = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X, y).stream()
    >>> [decision and decision.label.item() for decision in map(stream.push, [1.2, 0.2, -0.4])]
    [None, 0, 0]
    """

    def __init__(
        self,
        model: BaseEstimator,
        reliability: float | None = None,
        *,
        steps: ArrayLike | None = None,
    ) -> None:
        self._streams = Streams(model, 1, reliability, steps=steps)
        self._channels = int(model.n_channels_)

    @property
    def seen(self) -> int:
        """Number of values that the series has received, at most until its decision."""
        return int(self._streams.seen[0])

    @property
    def decision(self) -> StreamDecision | None:
        """The decision, or None."""
        return self._streams.decision(0)

    def push(self, value: ArrayLike, *, time: int | None = None) -> StreamDecision | None:
        """Push the next value.

        Parameters
        ----------
        value : float or (channels,) array-like
            Value; NaN is missing and counts as one time step. Ignored once the series is decided.
        time : int, optional
            Time of the value, starting at 1; skipped values are missing. By default the next time.

        Returns
        -------
        StreamDecision or None
            The decision, from the deciding value on; None before.

        Raises
        ------
        ValueError
            If the value is infinite or of another shape, or its time is in the past; then nothing
            is pushed.
        """
        sample = pushed_value(value, self._channels, decided=self.decision is not None)
        self._streams.push(sample if self._channels == 1 else sample[None], time=time)
        return self.decision

    def finish(self) -> StreamDecision:
        """Decide the series, which has ended, from its known values.

        Each channel is padded with its last known value.

        Returns
        -------
        StreamDecision
            The decision, also if it was made before.

        Raises
        ------
        ValueError
            If the series has no known value; then nothing is decided.
        """
        self._streams.finish()
        decision = self.decision
        assert decision is not None
        return decision

    def outlook(self) -> StreamDecision:
        """Return the label that the series would get now, and the largest tau for it.

        Returns
        -------
        StreamDecision
            Label, number of values so far, and largest tau; after the decision, the decision.
        """
        label, reliability = self._streams.outlook()
        return StreamDecision(label[0], self.seen, float(reliability[0]))

    def reset(self) -> None:
        """Start a new series."""
        self._streams.reset()
