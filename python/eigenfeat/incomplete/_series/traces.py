"""Early decisions at many reliabilities from one look at every time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import real_array, show
from eigenfeat.incomplete._series.early_result import EarlyLabels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from eigenfeat.incomplete._series.results import EarlyDecisions

__all__ = ["checked_taus", "runs"]

_Array = NDArray[np.float64]

FEW = 8  # reliabilities up to which runs of their own, which stop at decisions, cost less


def checked_taus(tau: ArrayLike, name: str = "tau") -> _Array:
    """Ascending numbers in (0, 1), at least one."""
    asked = np.atleast_1d(real_array(tau, name, np.dtype(np.float64)))
    good = asked.ndim == 1 and asked.size and bool(np.all((asked > 0) & (asked < 1)))
    if not good or np.any(np.diff(asked) <= 0):
        raise ValueError(f"{name}: expected ascending numbers in (0, 1), got {show(tau)}")
    return asked


def runs(
    model: BaseEstimator, X: ArrayLike, tau: _Array, steps: ArrayLike | None = None
) -> Iterator[EarlyDecisions | EarlyLabels]:
    """What `predict_early` says of the rows at each reliability, one after the other."""
    # What folds show of a corrected rule differs from tau to tau, up or down.
    if len(tau) <= FEW or hasattr(model, "correction_"):
        for value in tau:
            yield model.predict_early(X, float(value), steps=steps)
        return
    traced = model.predict_early(X, float(tau[-1]), steps=steps, trace=True)
    for value in tau:
        yield _first(traced, float(value))


def _first(traced: EarlyDecisions, tau: float) -> EarlyLabels:
    """Labels and times at the first look at which the largest reliability reaches tau."""
    assert traced.trace_label is not None
    assert traced.trace_reliability is not None
    first = (traced.trace_reliability >= tau).argmax(axis=1)
    rows = np.arange(len(first))
    return EarlyLabels(traced.trace_label[rows, first], traced.steps[first])
