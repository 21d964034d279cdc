"""The multiclass SVM by slow and plain means, for its tests."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def objective(X, codes, costs, W, b, margin=1.0):
    """Primal objective in float64, intercepts penalised."""
    scores = np.asarray(X, dtype=np.float64) @ W.T + b
    own = np.arange(len(codes))
    margins = scores + margin
    margins[own, codes] -= margin
    loss = margins.max(axis=1) - scores[own, codes]
    return 0.5 * ((W**2).sum() + (b**2).sum()) + float(costs @ loss)


def dual_objective(X, codes, duals, margin=1.0, intercept=True):
    """Dual objective at a (n, k)."""
    W = duals.T @ np.asarray(X, dtype=np.float64)
    b = duals.sum(axis=0) if intercept else np.zeros(duals.shape[1])
    own = duals[np.arange(len(codes)), codes]
    return margin * own.sum() - 0.5 * ((W**2).sum() + (b**2).sum())


def class_weights(model):
    """Weights (k, d) and intercepts (k,), also with two classes."""
    if len(model.classes_) > 2:
        return model.coef_, np.zeros(len(model.classes_)) + model.intercept_
    half = np.ravel(model.intercept_)[0] / 2
    return np.vstack([-model.coef_, model.coef_]) / 2, np.array([-half, half])


def quadratic_program(X, codes, costs, k, margin=1.0):
    """Weights (k, d + 1) with the intercept last, by SLSQP on the primal with slack variables."""
    n, d = X.shape
    phi = np.hstack([X, np.ones((n, 1))])
    size = k * (d + 1)

    def split(v):
        return v[:size].reshape(k, d + 1), v[size:]

    def value(v):
        W, slack = split(v)
        return 0.5 * (W**2).sum() + costs @ slack

    def gradient(v):
        return np.concatenate([v[:size], costs])

    rows, offsets = [], []
    for i in range(n):
        for c in range(k):
            row = np.zeros((k, d + 1))
            row[codes[i]] += phi[i]
            row[c] -= phi[i]
            slack = np.zeros(n)
            slack[i] = 1.0
            rows.append(np.concatenate([row.ravel(), slack]))
            offsets.append(-margin if c != codes[i] else 0.0)
    A, b = np.array(rows), np.array(offsets)
    start = np.concatenate([np.zeros(size), np.full(n, margin)])
    constraint = {"type": "ineq", "fun": lambda v: A @ v + b, "jac": lambda v: A}
    found = minimize(
        value,
        start,
        jac=gradient,
        constraints=[constraint],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    return split(found.x)[0], found.fun
