"""Slow, plain objectives and weights of the multiclass SVM, for its tests."""

import numpy as np


def objective(X, codes, costs, W, b, margin=1.0):
    """Primal objective in float64, intercepts penalised."""
    scores = np.asarray(X, dtype=np.float64) @ W.T + b
    own = np.arange(len(codes))
    margins = scores + margin
    margins[own, codes] -= margin
    loss = margins.max(axis=1) - scores[own, codes]
    return 0.5 * ((W**2).sum() + (b**2).sum()) + float(costs @ loss)


def dual_objective(X, codes, duals, margin=1.0, intercept=True):
    """Dual objective at duals (n, k)."""
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
