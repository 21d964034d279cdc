"""Series that arrive one sample at a time, each decided as soon as may be."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._validation import check_whole, real_array, show
from eigenfeat.incomplete._completion import spectra_of
from eigenfeat.incomplete._patterns import Pattern
from eigenfeat.incomplete.conditional import Conditional, Spectra

if TYPE_CHECKING:
    from eigenfeat._prefix_gaussian import PrefixGaussian
    from eigenfeat.incomplete._rules import Case
    from eigenfeat.incomplete.decision import ReliableClassifier

__all__ = ["Stream", "StreamDecision", "Streams"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

KEPT_NUMBERS = 2**22  # of all times' covariances; more are computed time by time


@dataclass(frozen=True)
class StreamDecision:
    """A series' label, how many samples it took, and the largest tau that held then."""

    label: Any
    time: int
    reliability: float


class _Plan:
    """What all streams of a fitted model share: its Gaussians, and spreads at every time."""

    def __init__(self, model: ReliableClassifier) -> None:
        affine = model._affine if model._scores is None else model._scores
        d = model.n_features_in_
        self.models: list[PrefixGaussian] = model.completion_._models(
            Pattern(np.ones(d, dtype=bool)), affine
        )
        times = np.arange(d + 1)
        self.variances = np.stack([one.variance_table for one in self.models], axis=1)
        self.start = np.stack([one.feature_mean for one in self.models])
        ell = self.start.shape[1]
        self.wanted = model._needs_covariance
        few = len(times) * len(self.models) * ell * ell <= KEPT_NUMBERS
        self.covariances = None
        if self.wanted and few:
            stacks = [one.covariances(times) for one in self.models]
            self.covariances = np.stack(stacks, axis=1)
        self.by_spectra = model._needs_spectra

    def spectra(self, t: int) -> Spectra | None:
        """After t samples, if there is need of it."""
        return spectra_of([(self.models, t)]) if self.by_spectra else None

    def covariance(self, t: int) -> _Array | None:
        """(1, parts, ell, ell) after t samples, if there is need of it."""
        if not self.wanted:
            return None
        if self.covariances is not None:
            return self.covariances[t : t + 1]
        return np.stack([one.covariances(t) for one in self.models], axis=1)


_PLANS: WeakKeyDictionary[Any, _Plan] = WeakKeyDictionary()
_PLANS_LOCK = threading.Lock()


def _plan_of(model: ReliableClassifier) -> _Plan:
    """The model's plan, by its rule, which every fit makes anew."""
    with _PLANS_LOCK:
        plan = _PLANS.get(model._rule)
    if plan is None:
        plan = _Plan(model)
        with _PLANS_LOCK:
            plan = _PLANS.setdefault(model._rule, plan)
    return plan


class Streams:
    """Many series at once, each at a time of its own.

    A sample costs O(t + ell) for the conditional mean and the rule's check. Methods may be called
    from several threads; every push is a whole. Streams can be pickled, in the middle, too. A model
    that is fitted again does not change streams that were opened before.

    Parameters
    ----------
    model : ReliableClassifier
        Fitted.
    n_series : int >= 1
    reliability : float or (n_series,) array-like, optional
        tau; the model's by default.
    steps : ascending integers in 1..d, optional
        After how many samples to look; after every one by default, and always after the last.

    Raises
    ------
    ValueError
        If parameters are unfit.

    See Also
    --------
    ReliableClassifier.predict_early : The same for series that are complete.
    """

    def __init__(
        self,
        model: ReliableClassifier,
        n_series: int,
        reliability: Any = None,
        *,
        steps: Any = None,
    ) -> None:
        check_is_fitted(model)
        n = check_whole(n_series, "n_series", at_least=1)
        self._tau = model._taus(reliability, n)
        self._model = copy.copy(model)
        d = model.n_features_in_
        self._looks = np.zeros(d + 1, dtype=bool)
        self._looks[model.completion_._steps(steps)] = True
        plan = _plan_of(model)
        parts = len(plan.models)
        self._rows = np.zeros((n, d))
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
            state = {
                name: copy.copy(value) for name, value in self.__dict__.items() if name != "_lock"
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    @property
    def decided(self) -> NDArray[np.bool_]:
        """(n,): which series are decided."""
        with self._lock:
            return np.asarray(self._code >= 0)

    @property
    def labels(self) -> NDArray[Any]:
        """(n,) array of objects: the labels, None where undecided."""
        with self._lock:
            out = self._model.classes_[np.maximum(self._code, 0)].astype(object)
            out[self._code < 0] = None
            return out

    @property
    def time(self) -> NDArray[np.int64]:
        """(n,): how many samples the decisions took; 0 where undecided."""
        with self._lock:
            return self._time.copy()

    @property
    def reliability(self) -> _Array:
        """(n,): the largest tau that held at the time of decision; 0 where undecided."""
        with self._lock:
            return self._reliability.copy()

    @property
    def seen(self) -> NDArray[np.int64]:
        """(n,): how many samples each series has taken."""
        with self._lock:
            return self._seen.copy()

    def push(self, values: Any, at: Any = None) -> _Codes:
        """Give one more sample to each of some series.

        Parameters
        ----------
        values : (m,) array-like
            Finite samples; those of series that are decided are not looked at.
        at : (m,) array-like of int, optional
            Distinct numbers of series; all by default.

        Returns
        -------
        (k,) array of int
            Series that are decided by it, ascending.

        Raises
        ------
        ValueError
            If samples are not finite or do not match; nothing has been pushed then.
        """
        with self._lock:
            where = self._numbers(at)
            given = real_array(values, "values", np.dtype(np.float64))
            if given.shape != where.shape:
                raise ValueError(f"values: expected shape {where.shape}, got {given.shape}")
            waiting = self._code[where] < 0
            where, given = where[waiting], given[waiting]
            if not np.isfinite(given).all():
                k = int(np.argmin(np.isfinite(given)))
                raise ValueError(
                    f"values: expected finite numbers, got {given[k]} for series {where[k]}"
                )
            fresh = [self._step(t, where[k], given[k]) for t, k in self._by_time(where)]
            return np.sort(np.concatenate([*fresh, np.empty(0, dtype=np.intp)]))

    def outlook(self) -> tuple[NDArray[Any], _Array]:
        """What each series would be decided as now, and up to which tau.

        Returns
        -------
        label, reliability : (n,) arrays
            Of decided series, what they were decided as.
        """
        with self._lock:
            code, reliability = self._code.copy(), self._reliability.copy()
            where = np.flatnonzero(code < 0)
            for t, k in self._by_time(where):
                rows = where[k]
                case = self._case(t, self._means[:, rows], self._densities[:, rows])
                reliability[rows], score = self._model._rule.largest(case, None)
                code[rows] = self._model._discriminants.labels[score]
            return self._model.classes_[code], reliability

    def reset(self, at: Any = None) -> None:
        """Begin some series, or all, anew.

        Parameters
        ----------
        at : (m,) array-like of int, optional
            Distinct numbers of series; all by default.
        """
        with self._lock:
            where = self._numbers(at)
            self._means[:, where] = _plan_of(self._model).start[:, None]
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

    def _by_time(self, where: _Codes) -> Iterator[tuple[int, _Codes]]:
        """Samples seen, and which of the series have seen as many."""
        seen = self._seen[where]
        for t in np.unique(seen):
            yield int(t), np.flatnonzero(seen == t)

    def _step(self, t: int, rows: _Codes, samples: _Array) -> _Codes:
        """Take sample t of some series; return those that are decided by it."""
        innovations = np.ascontiguousarray(self._innovations[:, rows])
        means = np.ascontiguousarray(self._means[:, rows])
        densities = np.ascontiguousarray(self._densities[:, rows])
        for g, one in enumerate(_plan_of(self._model).models):
            one.step(t, samples, innovations[g], means[g], densities[g])
        decided = self._judged(t + 1, rows, samples, means, densities)
        # Nothing fails from here on.
        self._rows[rows, t] = samples
        self._innovations[:, rows, t] = innovations[:, :, t]
        self._means[:, rows], self._densities[:, rows] = means, densities
        self._seen[rows] = t + 1
        where, code, reliability = decided
        self._code[where], self._reliability[where] = code, reliability
        self._time[where] = t + 1
        return where

    def _judged(
        self, seen: int, rows: _Codes, samples: _Array, means: _Array, densities: _Array
    ) -> tuple[_Codes, _Codes, _Array]:
        """Which series are decided now, as what, and how surely."""
        model = self._model
        if seen == model.n_features_in_:
            whole = self._rows[rows]
            whole[:, -1] = samples
            return rows, model._codes(model._features_of(whole)), np.ones(len(rows))
        if not self._looks[seen] or seen < model._rule.least_known(float(self._tau[rows].min())):
            return rows[:0], rows[:0], np.empty(0)
        case = self._case(seen, means, densities)
        found = model._rule.decides(case, self._tau[rows])
        items = np.flatnonzero(found.decided)
        if not len(items):
            return rows[:0], rows[:0], np.empty(0)
        largest = model._rule.largest(case.some(items), None)[0]
        code = model._discriminants.labels[found.guess[items]]
        return rows[items], code, np.maximum(largest, found.reliability[items])

    def _case(self, seen: int, means: _Array, densities: _Array) -> Case:
        """The rule's case of (parts, m, ell) means after so many samples."""
        model, plan = self._model, _plan_of(self._model)
        m = means.shape[1]
        parts = list(densities[:, :, None]) if len(densities) > 1 else []
        known = Conditional(
            weights=model.completion_._posterior(parts, (m, 1))[:, 0],
            means=np.ascontiguousarray(means.transpose(1, 0, 2)),
            variances=plan.variances[seen : seen + 1],
            covariances=plan.covariance(seen),
            pattern=np.zeros(m, dtype=np.intp),
            missing=np.array([model.n_features_in_ - seen], dtype=np.intp),
            spectra=plan.spectra(seen),
            gaussians=[(plan.models, seen)],
        )
        return model._case_of(known)


class Stream:
    """One series, sample by sample: see `Streams`.

    Parameters
    ----------
    model : ReliableClassifier
        Fitted.
    reliability : float, optional
        tau; the model's by default.
    steps : ascending integers in 1..d, optional
        After how many samples to look.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.incomplete import ReliableClassifier
    >>> y = np.repeat([0, 1], 50)
    >>> X = np.random.default_rng(0).standard_normal((100, 8)) + 3 * y[:, None]
    >>> stream = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X, y).stream()
    >>> [decision and decision.label.item() for decision in map(stream.push, [0.1, 0.2, -0.4])]
    [None, 0, 0]
    """

    def __init__(
        self, model: ReliableClassifier, reliability: Any = None, *, steps: Any = None
    ) -> None:
        self._streams = Streams(model, 1, reliability, steps=steps)

    @property
    def seen(self) -> int:
        """How many samples were pushed before the decision, its own among them."""
        return int(self._streams.seen[0])

    @property
    def decision(self) -> StreamDecision | None:
        """The decision, once there is one."""
        one = self._streams
        with one._lock:
            if one._code[0] < 0:
                return None
            label = one._model.classes_[one._code[0]]
            return StreamDecision(label, int(one._time[0]), float(one._reliability[0]))

    def push(self, value: Any) -> StreamDecision | None:
        """Give the next sample.

        Parameters
        ----------
        value : float
            Finite. Not looked at once the series is decided.

        Returns
        -------
        StreamDecision or None
            The decision, from the sample on that brings it; None before.
        """
        given = real_array(value, "value", np.dtype(np.float64))
        if given.shape != ():
            raise ValueError(f"value: expected a number, got shape {given.shape}")
        if not np.isfinite(given) and self.decision is None:
            raise ValueError(f"value: expected a finite number, got {given}")
        self._streams.push(given[None])
        return self.decision

    def outlook(self) -> StreamDecision:
        """What the series would be decided as now, and up to which tau."""
        label, reliability = self._streams.outlook()
        return StreamDecision(label[0], self.seen, float(reliability[0]))

    def reset(self) -> None:
        """Begin anew."""
        self._streams.reset()
