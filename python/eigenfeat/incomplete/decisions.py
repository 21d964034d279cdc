"""Results of early classifiers: labels, times and reliabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Labels

__all__ = ["Decisions", "EarlyDecisions", "EarlyLabels", "StreamDecision"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EarlyLabels:
    """Labels and times of decision of n series.

    Attributes
    ----------
    label : (n,) array
        Labels at the time of decision.
    time : (n,) array of int
        Number of values used, 1 to d.
    """

    label: NDArray[Any]
    time: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions about n samples.

    Attributes
    ----------
    decided : (n,) array of bool
        Whether the sample may be classified now.
    label : (n,) array
        The class that it is, or would be, classified as.
    reliability : (n,) array
        Lower bound of P(the complete sample gets this label). For sets, tau where the sample is
        decided and 0 elsewhere; the bound itself with "pairwise" and "sampled"; 1 for complete
        samples.
    checks : (n,) array of int
        Number of minima, or of pairs' probabilities, that were computed.
    undecided_checks : (n,) array of int
        Number of these whose sign rounding leaves uncertain; they count as failed.
    missing : (n,) array of int
        Number of missing entries.
    """

    decided: NDArray[np.bool_]
    label: NDArray[Any]
    reliability: _Array
    checks: NDArray[np.intp]
    undecided_checks: NDArray[np.intp]
    missing: NDArray[np.intp]

    @property
    def labels(self) -> Labels:
        """(n,) array of objects: the labels, None where undecided."""
        out = self.label.astype(object)
        out[~self.decided] = None
        return out

    def __len__(self) -> int:
        return len(self.decided)


@dataclass(frozen=True, eq=False)
class EarlyDecisions(EarlyLabels):
    """Labels, times and reliabilities of n time series.

    Attributes
    ----------
    label : (n,) array
        Labels at the time of decision.
    time : (n,) array of int
        Number of values used, 1 to d.
    reliability : (n,) array
        The largest tau at which the sample is decided at that time; 1 at its end.
    trace_label, trace_reliability : (n, p) arrays or None
        On request, the label it would get and the largest tau, after each of `steps` values.
    steps : (p,) array of int
        The times at which series were evaluated.
    """

    reliability: _Array
    steps: NDArray[np.int64]
    trace_label: NDArray[Any] | None = None
    trace_reliability: _Array | None = None


@dataclass(frozen=True)
class StreamDecision:
    """Label of a series, number of values used, and the largest tau at that time."""

    label: Any
    time: int
    reliability: float
