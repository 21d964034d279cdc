"""What an ensemble of classifiers should predict, by its definition."""

from __future__ import annotations

import numpy as np


def geometric_mean(members, X):
    """Probabilities from the product of the members', in float64."""
    product = np.prod([m.predict_proba(X).astype(float) for m in members], axis=0)
    mean = product ** (1 / len(members))
    return mean / mean.sum(axis=1, keepdims=True)
