"""What all streams of a fitted model share, and what a sample makes of some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.lazy import ProcessLock
from eigenfeat.incomplete._completion.conditional import Conditional
from eigenfeat.incomplete._completion.mixture import spectra_of
from eigenfeat.incomplete._rules.rule import Shared, pair_variances

if TYPE_CHECKING:
    from eigenfeat.incomplete._rules.fitted import Fitted
    from eigenfeat.incomplete._rules.rule import Case
    from eigenfeat.regions.prefix_gaussian import PrefixGaussian

__all__ = ["Pushed", "plan_of"]

_Array = NDArray[np.float64]

KEPT_NUMBERS = 2**22  # of all times' covariances; more are computed time by time


class Plan:
    """What all streams of a fitted model share: its Gaussians, and spreads at every time."""

    def __init__(self, core: Fitted) -> None:
        d = core.n_features
        completion = core.completion
        self.models: list[PrefixGaussian] = completion.mixture_.prefix_models(
            core.seen_as, n_threads=completion.n_threads
        )
        times = np.arange(d + 1)
        self.variances = np.stack([one.variance_table for one in self.models], axis=1)
        self.start = np.stack([one.feature_mean for one in self.models])
        ell = self.start.shape[1]
        self.wanted = core.needs_covariance
        few = len(times) * len(self.models) * ell * ell <= KEPT_NUMBERS
        self.covariances = None
        if self.wanted and few:
            stacks = [one.covariances(times) for one in self.models]
            self.covariances = np.stack(stacks, axis=1)
        self.by_spectra = core.needs_spectra
        self._paired = self.covariances is not None and core.scores is not None
        self._kept: list[tuple[dict[str, Any], Shared] | None] = [None] * (d + 1)

    def covariance(self, t: int) -> _Array | None:
        """(1, parts, ell, ell) after t entries, if there is need of it."""
        if not self.wanted:
            return None
        if self.covariances is not None:
            return self.covariances[t : t + 1]
        return np.stack([one.covariances(t) for one in self.models], axis=1)

    def after(self, t: int) -> tuple[dict[str, Any], Shared]:
        """What conditionals and cases have in common after t entries, computed once."""
        found = self._kept[t]
        if found is None:
            common = {
                "variances": self.variances[t : t + 1],
                "covariances": None if self.covariances is None else self.covariance(t),
                "missing": np.array([len(self._kept) - 1 - t], dtype=np.intp),
                "spectra": spectra_of([(self.models, t)]) if self.by_spectra else None,
                "gaussians": [(self.models, t)],
            }
            found = self._kept[t] = common, Shared(self._pair_variances(t))
        return found

    def _pair_variances(self, t: int) -> _Array | None:
        """(parts, k, k) of differences of scores."""
        if not self._paired:
            return None
        covariance = self.covariance(t)
        assert covariance is not None
        k = covariance.shape[-1]
        every = np.arange(k)
        return np.stack(
            [pair_variances(np.repeat(one[None], k, axis=0), every) for one in covariance[0]]
        )

    def case(self, core: Fitted, entries: int, means: _Array, densities: _Array) -> Case:
        """The rule's case of (parts, m, ell) means after so many entries."""
        m, alone = means.shape[1], len(means) == 1
        common, shared = self.after(entries)
        if self.wanted and self.covariances is None:
            common = common | {"covariances": self.covariance(entries)}
        known = Conditional(
            weights=np.ones((m, 1)) if alone else core.completion.mixture_.posterior(densities.T),
            means=np.ascontiguousarray(means.transpose(1, 0, 2)),
            pattern=np.zeros(m, dtype=np.intp),
            **common,
        )
        return core.case_of(known, shared)


@dataclass(eq=False, slots=True)
class Pushed:
    """One sample more of some series that have seen as many, and those of them it decides."""

    time: int
    rows: NDArray[np.intp]
    entries: slice
    samples: _Array
    holes: NDArray[np.bool_]
    innovations: _Array
    means: _Array
    densities: _Array
    items: NDArray[np.intp]
    code: NDArray[np.intp]
    reliability: _Array


_PLANS: WeakKeyDictionary[Any, Plan] = WeakKeyDictionary()
_PLANS_LOCK = ProcessLock()


def plan_of(core: Fitted) -> Plan:
    """The model's plan, by its rule, which every fit makes anew."""
    with _PLANS_LOCK():
        plan = _PLANS.get(core.rule)
    if plan is None:
        plan = Plan(core)
        with _PLANS_LOCK():
            plan = _PLANS.setdefault(core.rule, plan)
    return plan
