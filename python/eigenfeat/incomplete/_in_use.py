"""What a fitted classifier of incomplete rows offers in use: calibration and streams."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Labels
from eigenfeat._base.validation import show
from eigenfeat.incomplete._rules.calibration import Calibration, NotCertifiedError, calibrate
from eigenfeat.incomplete._series.layout import known_rows
from eigenfeat.incomplete.stream import Stream
from eigenfeat.incomplete.streams import Streams
from eigenfeat.rows.estimator import validate_data

if TYPE_CHECKING:
    from eigenfeat.incomplete._rules.fitted import Fitted

__all__ = ["InUse"]

_Model = TypeVar("_Model", bound="InUse")

_LEARNED = (
    "reliability_",
    "calibration_",
    "correction_",
    "held_out_agreement_",
    "held_out_agreement_bound_",
    "decision_times_",
)


class InUse:
    """Methods of `ReliableClassifier` that rest on its others."""

    classes_: Labels
    n_threads: int | None
    reliability: float
    reliability_: float
    calibration_: Calibration
    fitted_: Fitted

    def calibrate(self: _Model, X: ArrayLike, y: ArrayLike | None = None, **options: Any) -> _Model:
        """Set the default tau to the loosest one whose agreement held-out rows certify.

        Sets `reliability_` and `calibration_`, which the next fit removes. It replaces the
        correction that `fit` learns out of folds.

        Parameters
        ----------
        X : (n, d) array-like
            Complete rows that were not used for fitting.
        y : (n,) array-like, optional
            Labels, for the accuracy in the result.
        **options
            Further arguments of the function `calibrate`, such as
            ``agreement=0.95, confidence=0.9``.

        Returns
        -------
        ReliableClassifier
            The estimator itself.

        Raises
        ------
        NotCertifiedError
            If no tau is certified; the estimator is then unchanged.
        ValueError
            If parameters are invalid, or rows and labels do not match.
        """
        check_is_fitted(self)
        found = calibrate(self, X, y, **options)
        if found.chosen < 0:
            raise NotCertifiedError(found)
        self.__dict__ = dict(vars(self.uncorrected()))
        self.reliability_, self.calibration_ = found.reliability, found
        return self

    def uncorrected(self: _Model) -> _Model:
        """Return a copy that uses the rule alone, without the correction of `fit`.

        Returns
        -------
        ReliableClassifier
            Copy that shares the fitted parts; its default tau is `reliability`.
        """
        check_is_fitted(self)
        plain = copy.copy(self)
        for name in _LEARNED:
            plain.__dict__.pop(name, None)
        rule = self.fitted_.rule
        plain.fitted_ = replace(self.fitted_, rule=getattr(rule, "rule", rule))
        return plain

    def stream(self, reliability: float | None = None, *, steps: ArrayLike | None = None) -> Stream:
        """Open a stream for one series that arrives sample by sample.

        Parameters
        ----------
        reliability : float, optional
            tau; that of the estimator by default.
        steps : ascending integers in 1..d, optional
            Numbers of samples after which the series may be decided; by default as in
            `predict_early`.

        Returns
        -------
        Stream
            Its `push` returns None until there is a decision.
        """
        return Stream(self, reliability, steps=steps)

    def streams(
        self, n_series: int, reliability: ArrayLike | None = None, *, steps: ArrayLike | None = None
    ) -> Streams:
        """Open streams for many series that arrive sample by sample.

        Parameters
        ----------
        n_series : int
            Number of series.
        reliability : float or (n_series,) array-like, optional
            tau; that of the estimator by default.
        steps : ascending integers in 1..d, optional
            As in `stream`.

        Returns
        -------
        Streams
            Their `push` returns the indices of the series that it decides.
        """
        return Streams(self, n_series, reliability, steps=steps)

    def _forget_calibration(self) -> None:
        for name in _LEARNED:
            self.__dict__.pop(name, None)

    def _rows(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        if (rows := known_rows(X, self.fitted_.layout)) is not None:
            return rows
        options = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(self, X, reset=False, **options))

    def _core(self) -> Fitted:
        """What was fitted, with the threads of today."""
        check_is_fitted(self)
        return replace(self.fitted_, n_threads=self.n_threads)

    def _target(self, target: Any) -> int | None:
        found = None if target is None else np.flatnonzero(self.classes_ == target)
        if found is None:
            return None
        if not len(found):
            expected = f"expected one of {show(self.classes_.tolist())}"
            raise ValueError(f"target: {expected}, got {show(target)}")
        return int(found[0])
