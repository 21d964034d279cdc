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
from eigenfeat.incomplete._series.results import StreamDecision
from eigenfeat.incomplete._series.steps import looks_of, taus_of
from eigenfeat.incomplete._stream_plan import Pushed, plan_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat.incomplete._rules.rule import Case

__all__ = ["Streams"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]
_Given = ArrayLike | None

_NONE = np.empty(0, dtype=np.intp)
_NOTHING = _NONE, _NONE, np.empty(0)
_MADE = "_lock", "_plan"  # anew, where streams are loaded


class Streams:
    """Decide many series that arrive sample by sample, each at its own time.

    A sample costs O(t + ell) for the conditional mean and the rule's check. A series with missing
    samples needs a Cholesky factor, O(d^3), at each look, unless another series missed the same.
    Methods may be called from several threads; every push is atomic, and after an error the streams
    are unchanged. Streams can be pickled at any time. Fitting the model again does not change
    streams that were opened before.

    Parameters
    ----------
    model : ReliableClassifier
        Fitted model.
    n_series : int >= 1
        Number of series.
    reliability : float or (n_series,) array-like, optional
        tau; the model's by default.
    steps : ascending integers in ``1..n_timepoints_``, optional
        Numbers of samples after which series may be decided, always including the last; by default
        as in `ReliableClassifier.predict_early`.

    Raises
    ------
    ValueError
        If parameters are invalid.

    See Also
    --------
    ReliableClassifier.predict_early : The same for complete series.
    """

    def __init__(
        self,
        model: BaseEstimator,
        n_series: int,
        reliability: _Given = None,
        *,
        steps: _Given = None,
    ) -> None:
        check_is_fitted(model)
        n = check_whole(n_series, "n_series", at_least=1)
        self._tau = taus_of(model, reliability, n)
        self._core = core = replace(model.fitted_, n_threads=model.n_threads)
        self._layout, d, length = core.layout, core.layout.width, core.layout.length
        self._looks = np.zeros(length + 1, dtype=bool)
        self._looks[looks_of(model, steps, length)] = True
        self._plan = plan = plan_of(core)
        parts = len(plan.models)
        self._rows = np.full((n, d), np.nan)
        self._holes = np.zeros(n, dtype=bool)
        self._innovations = np.zeros((parts, n, d))
        self._means = np.repeat(plan.start[:, None], n, axis=1)
        self._densities = np.zeros((parts, n))
        self._seen = np.zeros(n, dtype=np.int64)
        self._time = np.zeros(n, dtype=np.int64)
        self._code = np.full(n, -1, dtype=np.intp)
        self._reliability = np.zeros(n)
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._seen)

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            kept = {name: value for name, value in vars(self).items() if name not in _MADE}
            return {name: copy.copy(value) for name, value in kept.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._plan = plan_of(self._core)
        self._lock = threading.RLock()

    @property
    def decided(self) -> NDArray[np.bool_]:
        """(n,): which series are decided."""
        with self._lock:
            return np.asarray(self._code >= 0)

    @property
    def labels(self) -> NDArray[np.object_]:
        """(n,) array of objects: the labels, None where undecided."""
        with self._lock:
            out = self._core.classes[np.maximum(self._code, 0)].astype(object)
            out[self._code < 0] = None
            return out

    @property
    def time(self) -> NDArray[np.int64]:
        """(n,): number of samples used for each decision; 0 where undecided."""
        with self._lock:
            return self._time.copy()

    @property
    def reliability(self) -> _Array:
        """(n,): the largest tau that held at the time of decision; 0 where undecided."""
        with self._lock:
            return self._reliability.copy()

    def decision(self, number: int) -> StreamDecision | None:
        """The decision of one series, once there is one."""
        with self._lock:
            if self._code[number] < 0:
                return None
            label = self._core.classes[self._code[number]]
            return StreamDecision(label, int(self._time[number]), float(self._reliability[number]))

    @property
    def seen(self) -> NDArray[np.int64]:
        """(n,): number of samples that each series has received."""
        with self._lock:
            return self._seen.copy()

    def push(self, values: ArrayLike, at: _Given = None, *, time: _Given = None) -> _Codes:
        """Push one more sample to each of some series.

        Parameters
        ----------
        values : (m,) or (m, channels) array-like
            Samples; NaN is missing and counts as one time step. Samples of decided series are
            ignored.
        at : (m,) array-like of int, optional
            Distinct indices of series; all by default.
        time : int or (m,) array-like of int, optional
            Numbers of the samples, starting at 1; skipped ones are missing. The next by default.

        Returns
        -------
        (k,) array of int
            Indices of the series decided by this call, ascending.

        Raises
        ------
        ValueError
            If samples are infinite or do not match, or times go back or past the last one; then
            nothing is pushed.
        """
        with self._lock:
            where = self._numbers(at)
            return self._take(where, self._samples(values, where), time)

    def push_one(self, number: int, sample: _Array, time: int | None) -> StreamDecision | None:
        """Push a sample (channels,) to one series unless it is decided; return its decision."""
        with self._lock:
            if self._code[number] < 0:
                self._take(np.array([number]), sample[None], time)
            return self.decision(number)

    def _take(self, where: _Codes, given: _Array, time: Any) -> _Codes:
        """Push samples (m, channels) of the right shape."""
        n = len(where)
        waiting = (self._code[where] < 0).nonzero()[0]
        if len(waiting) < n:
            where, given = where[waiting], given[waiting]
        times = self._times(time, waiting, where, n)
        if np.isinf(given).any():
            k, j = np.argwhere(np.isinf(given))[0]
            raise ValueError(
                f"values: expected finite numbers or NaN, got {given[k, j]} for series {where[k]}"
            )
        pushed = [
            self._pushed(int(t), where[k], given[k]) for t, k in _by(times, self._seen[where])
        ]
        # Nothing fails from here on.
        fresh = [self._keep(one) for one in pushed]
        return fresh[0] if len(fresh) == 1 else np.sort(np.concatenate([_NONE, *fresh]))

    def finish(self, at: _Given = None) -> _Codes:
        """Decide series that have ended, from their known samples.

        Missing samples are filled by the last samples or, where the model was fitted with a
        `horizon`, by conditional means.

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
            If a series has no sample yet; then nothing is decided.
        """
        with self._lock:
            where = self._numbers(at)
            where = np.sort(where[self._code[where] < 0])
            rows = self._rows[where]
            empty = np.isnan(rows).all(axis=1)
            if empty.any():
                raise ValueError(
                    f"at: expected series with known samples, got {where[int(empty.argmax())]}"
                )
            if self._layout.held:
                for row, seen in zip(rows, self._seen[where], strict=True):
                    self._layout.hold(row.reshape(-1, self._layout.channels), int(seen))
            code, reliability = self._core.at_the_end(rows)
            self._decide(where, code, reliability, self._seen[where])
            return where

    def outlook(self) -> tuple[NDArray[Any], _Array]:
        """Return the label that each series would get now, and the largest tau for it.

        Returns
        -------
        label, reliability : (n,) arrays
            For decided series, those of the decision.
        """
        with self._lock:
            code, reliability = self._code.copy(), self._reliability.copy()
            waiting = np.flatnonzero(code < 0)
            for t, k in _by(self._seen[waiting]):
                rows = waiting[k]
                for some, case in self._cases(
                    int(t),
                    self._holes[rows],
                    self._rows[rows],
                    self._means[:, rows],
                    self._densities[:, rows],
                ):
                    reliability[rows[some]], score = self._core.rule.largest(case, None)
                    code[rows[some]] = self._core.discriminants.labels[score]
            return self._core.classes[code], reliability

    def reset(self, at: _Given = None) -> None:
        """Restart some or all series.

        Parameters
        ----------
        at : (m,) array-like of int, optional
            Distinct indices of series; all by default.
        """
        with self._lock:
            where = self._numbers(at)
            self._rows[where], self._holes[where] = np.nan, False
            self._means[:, where] = self._plan.start[:, None]
            self._densities[:, where] = 0.0
            self._seen[where] = self._time[where] = 0
            self._code[where] = -1
            self._reliability[where] = 0.0

    def _numbers(self, at: Any) -> _Codes:
        n = len(self)
        if at is None:
            return np.arange(n)
        where = np.asarray(at)
        whole = where.ndim == 1 and (where.dtype.kind in "iu" or not where.size)
        good = whole and (not where.size or (where.min() >= 0 and where.max() < n))
        if not good or len(np.unique(where)) != len(where):
            raise ValueError(f"at: expected distinct integers in 0..{n - 1}, got {show(at)}")
        return where.astype(np.intp)

    def _samples(self, values: Any, where: _Codes) -> _Array:
        """(m, channels)."""
        given = real_array(values, "values", np.dtype(np.float64))
        channels = self._layout.channels
        shape = where.shape if channels == 1 else (len(where), channels)
        if given.shape != shape:
            raise ValueError(f"values: expected shape {shape}, got {given.shape}")
        return given.reshape(len(where), channels)

    def _times(self, time: Any, waiting: _Codes, where: _Codes, n: int) -> NDArray[np.int64]:
        """(m,): how many samples there are with the new ones, of series that wait."""
        seen = self._seen[where]
        if time is None:
            return seen + 1
        times = np.asarray(time)
        if times.dtype.kind not in "iu" or times.shape not in ((), (n,)):
            raise ValueError(f"time: expected an integer, or {n} of them, got {show(time)}")
        times = np.broadcast_to(times, (n,))[waiting].astype(np.int64)
        wrong = (times <= seen) | (times > self._layout.length)
        if wrong.any():
            k = int(wrong.argmax())
            raise ValueError(
                f"time: expected {seen[k] + 1}..{self._layout.length} for series {where[k]}, "
                f"got {times[k]}"
            )
        return times

    def _pushed(self, time: int, rows: _Codes, samples: _Array) -> Pushed:
        """What the sample makes of series that have seen as many, of which nothing changes yet."""
        channels, seen = self._layout.channels, int(self._seen[rows[0]])
        entries = slice((time - 1) * channels, time * channels)
        one_alone = len(self) == 1
        whole = self._rows.copy() if one_alone else self._rows[rows]
        whole[:, entries] = samples
        absent = np.isnan(samples)
        holes = self._holes[rows] | absent.any(axis=1)
        if time > seen + 1:
            holes[:] = True
        if one_alone:  # innovations that were not kept yet are written over, and read by nobody
            innovations = self._innovations
            means, densities = self._means.copy(), self._densities.copy()
        else:
            innovations = np.ascontiguousarray(self._innovations[:, rows])
            means = np.ascontiguousarray(self._means[:, rows])
            densities = np.ascontiguousarray(self._densities[:, rows])
        if not holes.all():  # means of series with holes are not used any more
            given = np.where(absent, 0.0, samples)
            for j in range(channels):
                t, sample = entries.start + j, np.ascontiguousarray(given[:, j])
                for g, one in enumerate(self._plan.models):
                    one.step(t, sample, innovations[g], means[g], densities[g])
        items, code, reliability = self._judged(time, rows, holes, whole, means, densities)
        return Pushed(
            time, rows, entries, samples, holes, innovations, means, densities,
            items, code, reliability,
        )  # fmt: skip

    def _keep(self, one: Pushed) -> _Codes:
        rows = one.rows
        self._rows[rows, one.entries], self._holes[rows] = one.samples, one.holes
        if one.innovations is self._innovations:
            self._means, self._densities = one.means, one.densities
        else:
            self._innovations[:, rows, one.entries] = one.innovations[:, :, one.entries]
            self._means[:, rows], self._densities[:, rows] = one.means, one.densities
        self._seen[rows] = one.time
        decided = rows[one.items]
        self._decide(decided, one.code, one.reliability, one.time)
        return decided

    def _decide(self, where: _Codes, code: _Codes, reliability: _Array, time: Any) -> None:
        self._code[where], self._reliability[where], self._time[where] = code, reliability, time

    def _judged(
        self,
        time: int,
        rows: _Codes,
        holes: NDArray[np.bool_],
        whole: _Array,
        means: _Array,
        densities: _Array,
    ) -> tuple[_Codes, _Codes, _Array]:
        """Which of some series are decided now, as what, and how surely."""
        core, n = self._core, len(rows)
        if time == self._layout.length:
            return np.arange(n), *core.at_the_end(whole)
        if not self._looks[time]:
            return _NOTHING
        tau = self._tau[rows]
        if time * self._layout.channels < core.rule.least_known(float(tau.min())):
            return _NOTHING
        code, reliability = np.full(n, -1, dtype=np.intp), np.zeros(n)
        for some, case in self._cases(time, holes, whole, means, densities):
            found = core.rule.decides(case, tau[some])
            at = found.decided.nonzero()[0]
            if len(at):
                code[some[at]] = core.discriminants.labels[found.guess[at]]
                reliability[some[at]] = core.rule.surely(case, found, at)
        items = (code >= 0).nonzero()[0]
        return items, code[items], reliability[items]

    def _cases(
        self,
        seen: int,
        holes: NDArray[np.bool_],
        rows: _Array,
        means: _Array,
        densities: _Array,
    ) -> Iterator[tuple[_Codes, Case]]:
        """Some of the series, and what is known of them: by their means, or by patterns."""
        entries, plan = seen * self._layout.channels, self._plan
        if not holes.any():
            yield np.arange(len(holes)), plan.case(self._core, entries, means, densities)
            return
        plain = (~holes).nonzero()[0]
        if len(plain):
            yield plain, plan.case(self._core, entries, means[:, plain], densities[:, plain])
        for part in self._core.open_parts(holes.astype(np.intp)):
            yield part, self._core.case(rows[part])


def _by(*keys: NDArray[np.int64]) -> Iterator[tuple[np.int64, _Codes]]:
    """Distinct values of the first key, with numbers of those that have all keys in common."""
    if not len(keys[0]):
        return
    if len(keys[0]) == 1 or all((key == key[0]).all() for key in keys):
        yield keys[0][0], np.arange(len(keys[0]))
        return
    distinct, which = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    for k, values in enumerate(distinct):
        yield values[0], np.flatnonzero(which.reshape(-1) == k)
