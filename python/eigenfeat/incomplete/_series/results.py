"""What is decided of incomplete rows, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat.incomplete._series.early_result import EarlyLabels

__all__ = ["Decisions", "EarlyDecisions", "StreamDecision"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decisions:
    """What is decided of n rows.

    Attributes
    ----------
    decided : (n,) array of bool
        Whether the row may be classified now.
    label : (n,) array
        The class that it is, or would be, classified as.
    reliability : (n,) array
        What is certain: P(the complete row is classified so) is at least that. A set's tau where
        it decides and 0 elsewhere; the bound itself with "pairwise" and "ideal"; 1 for rows
        without missing entries.
    checks : (n,) array of int
        Minima, or pairs' probabilities, that were computed.
    undecided_checks : (n,) array of int
        Of these, those of which rounding let no sign be certain; they count as failed.
    missing : (n,) array of int
        Missing entries.
    """

    decided: NDArray[np.bool_]
    label: NDArray[Any]
    reliability: _Array
    checks: NDArray[np.intp]
    undecided_checks: NDArray[np.intp]
    missing: NDArray[np.intp]

    @property
    def labels(self) -> NDArray[Any]:
        """(n,) array of objects: the labels, None where undecided."""
        out = self.label.astype(object)
        out[~self.decided] = None
        return out

    def __len__(self) -> int:
        return len(self.decided)


@dataclass(frozen=True, eq=False)
class EarlyDecisions(EarlyLabels):
    """When and as what n time series are decided.

    Attributes
    ----------
    label : (n,) array
        Labels at the time of decision.
    time : (n,) array of int
        How many samples were seen, 1 to d.
    reliability : (n,) array
        The largest tau at which the row is decided then; 1 with all samples.
    trace_label, trace_reliability : (n, p) arrays or None
        On request, the class it would be and the largest tau, after each of `steps` samples.
    steps : (p,) array of int
        The times that were looked at.
    """

    reliability: _Array
    steps: NDArray[np.int64]
    trace_label: NDArray[Any] | None = None
    trace_reliability: _Array | None = None


@dataclass(frozen=True)
class StreamDecision:
    """A series' label, how many samples it took, and the largest tau that held then."""

    label: Any
    time: int
    reliability: float
