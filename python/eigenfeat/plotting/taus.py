"""What pictures take from a `ReliableClassifier`, and how they write tau."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import show

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat.incomplete import ReliableClassifier

__all__ = ["fitted_reliable", "short_tau"]


def fitted_reliable(model: BaseEstimator, name: str) -> ReliableClassifier:
    """A fitted `ReliableClassifier`, which may be the best of a search."""
    from eigenfeat.incomplete import ReliableClassifier

    found = getattr(model, "best_estimator_", model)
    if not isinstance(found, ReliableClassifier):
        raise ValueError(f"{name}: expected a fitted ReliableClassifier, got {show(model)}")
    check_is_fitted(found)
    return found


def short_tau(tau: float) -> str:
    """As many digits as it takes to tell it from 0 and 1."""
    if tau > 0.5:
        digits = max(2, int(np.ceil(-np.log10(1 - tau) - 1e-6)) + 1)
        return f"{tau:.{digits}f}".rstrip("0")
    return f"{tau:.2g}"
