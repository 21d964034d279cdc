"""Problems for tests of the logistic regressions, and the objective as documented."""

import numpy as np
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine


def objective(model, X, y, weight=None):
    """The objective of MultinomialLogit's docstring at its weights, in float64."""
    X = np.asarray(X, dtype=float)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    codes = np.searchsorted(model.classes_, y)
    binary = len(model.classes_) == 2
    W = np.vstack([-model.coef_, model.coef_]) / 2 if binary else model.coef_
    b = np.concatenate([-model.intercept_, model.intercept_]) / 2 if binary else model.intercept_
    Z = X @ W.T + b
    loss = -log_softmax(Z, axis=1)[np.arange(len(y)), codes] @ weight
    total = weight.sum()
    squares = weight @ X**2 / total
    if model.ridge_scale == "common":
        squares = np.full_like(squares, squares.mean())
    energy = 0.5 * (weight @ (Z**2).sum(axis=1))
    energy += model.ridge * np.sqrt(total) * (squares @ (W**2).sum(axis=0))
    return loss + model.penalty / 2 * energy + model.l2 / 2 * (model.coef_**2).sum()


def held_out_logits(model, X, y, folds, weight=None):
    """Logits, labels and weights of the held-out samples of each fold, by fits to the others."""
    parts = []
    for train, test in folds:
        given, held = (None, None) if weight is None else (weight[train], weight[test])
        model.fit(X[train], y[train], given)
        parts.append((model.decision_function(X[test]), y[test], held))
    return parts


def standardised(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9), y


def problem(name):
    """A few hundred rows of standardised columns; of the digits, pixels from 0 to 1."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[:600] / 16, y[:600]
    loaders = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
    return standardised(loaders[name])


def wide_problem(seed):
    """200 samples of three classes; each of 5,000 columns separates the classes a little."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=200)
    return rng.normal(size=(200, 5000)) + 0.06 * rng.normal(size=(3, 5000))[y], y
