"""State of linear models on features in files."""

from __future__ import annotations

from typing import Any

from eigenfeat._base.files.stored import Stored, fits
from eigenfeat.linear.calibrated import CalibratedLeastSquares, ScoreMap
from eigenfeat.linear.linear import LinearModel
from eigenfeat.linear.logistic import MultinomialLogit

__all__ = ["LOGIT", "STORED", "check_linear"]


def check_linear(value: LinearModel) -> None:
    """One row of weights for each class, or one for two of them."""
    k = len(value.classes_)
    fits(k >= 2 and len(value.coef_) == (1 if k == 2 else k), f"{type(value).__name__}.coef_")


def _check_calibrated(value: CalibratedLeastSquares) -> None:
    check_linear(value)
    k, weights = len(value.classes_), value.calibration_.weights
    sound = len(value.calibration_.low) == k == weights.shape[1] and len(weights) % k == 1 % k
    fits(sound, "CalibratedLeastSquares.calibration_")


LOGIT = {"classes_": "labels k", "coef_": "numbers q d", "intercept_": "numbers q"}
_CALIBRATION = {
    "low": "numbers k",
    "high": "numbers k",
    "weights": "numbers * k",
    "middle": "numbers k",
    "slope": "numbers k",
}


def _with_temperature(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a logit that may have been written before there were temperatures."""
    if "coef_" not in state or "penalty_" in state:
        return state
    return {"temperature_": 1.0, "penalty_": float(state.get("penalty", 0.03))} | state


STORED = (
    Stored(
        "MultinomialLogit",
        MultinomialLogit,
        LOGIT | {"penalty_": "number", "temperature_": "number"},
        check_linear,
        upgrade=_with_temperature,
    ),
    Stored(
        "CalibratedLeastSquares",
        CalibratedLeastSquares,
        LOGIT | {"calibration_": "of ScoreMap"},
        _check_calibrated,
    ),
    Stored("Calibration", ScoreMap, _CALIBRATION),
)
