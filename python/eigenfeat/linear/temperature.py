r"""Temperature of probabilities, and the log loss of held-out logits.

Probabilities are the softmax of ``z / T`` (Guo, Pleiss, Sun and Weinberger, "On
calibration of modern neural networks", ICML 2017, section 4.2). T minimises the log loss of
held-out samples, which is convex in ``beta = 1 / T``:

    g(beta) = sum_i w_i (log sum_c exp(beta z_ic) - beta sum_c t_ic z_ic).

The targets t are smoothed as in J. Platt, "Probabilistic outputs for support vector machines",
1999: the label has ``(N + 1) / (N + 2)`` for N samples, so that T stays positive where all samples
are classified correctly.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from eigenfeat._base.types import Codes

__all__ = ["LOG_FLOOR", "Logits", "log_loss", "loss_at_best", "temperature"]

_Array = NDArray[np.float64]

_MAX_TEMPERATURE = 50.0  # the least temperature is its inverse
_TEMPERATURE_ERROR = 1e-6  # relative
LOG_FLOOR = -30.0  # least log probability, so that no single sample decides


Logits: TypeAlias = list[tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]]


def temperature(logits: Logits) -> float:
    """Temperature T of the least log loss of ``logits / T`` on smoothed targets.

    It lies between 1/50 and 50, and is 1 without logits.
    """
    if not logits:
        return 1.0
    z, codes, weight = _joined(logits)
    n, k = z.shape
    z -= z.max(axis=1, keepdims=True)
    wrong = 1.0 / ((n + 2.0) * (k - 1.0))  # the target of each other label
    aimed = (1.0 - k * wrong) * z[np.arange(n), codes] + wrong * z.sum(axis=1)
    low, high = 1.0 / _MAX_TEMPERATURE, _MAX_TEMPERATURE
    beta = 1.0
    for _ in range(100):  # Newton's method, bisecting where a step leaves the interval
        P = np.exp(beta * z)
        P /= P.sum(axis=1, keepdims=True)
        mean = np.einsum("ij,ij->i", P, z)
        slope = float(weight @ (mean - aimed))
        bend = float(weight @ (np.einsum("ij,ij,ij->i", P, z, z) - mean**2))
        low, high = (low, beta) if slope > 0 else (beta, high)
        if slope == 0 or high - low <= _TEMPERATURE_ERROR * high:
            break
        step = beta - slope / bend if bend > 0 else np.inf
        if not low < step < high:
            step = float(np.sqrt(low * high))
        done = abs(step - beta) <= _TEMPERATURE_ERROR * beta
        beta = step
        if done:
            break
    return 1.0 / float(beta)


def log_loss(logits: Logits, temperature: float) -> float:
    """Mean log loss of ``logits / T``, log probabilities being at least -30; inf if empty."""
    if not logits:
        return np.inf
    z, codes, weight = _joined(logits)
    logs = log_softmax(z / temperature, axis=1)[np.arange(len(z)), codes]
    return -float(weight @ np.maximum(logs, LOG_FLOOR))


def loss_at_best(logits: _Array, codes: Codes, weight: _Array | None) -> tuple[float, float]:
    """Log loss of logits (m, k) at their own temperature, and that temperature."""
    block = [(logits, codes, weight)]
    T = temperature(block)
    return log_loss(block, T), T


def _joined(logits: Logits) -> tuple[_Array, Codes, _Array]:
    """Concatenate logits (float64), indices of labels, and weights, scaled to the sum 1."""
    z = np.concatenate([part[0] for part in logits]).astype(np.float64)
    codes = np.concatenate([part[1] for part in logits]).astype(np.intp)
    weight = np.concatenate([np.ones(len(p[0])) if p[2] is None else p[2] for p in logits])
    return z, codes, weight / weight.sum()
