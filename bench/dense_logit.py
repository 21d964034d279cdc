"""Multinomial logit on dense normal columns: ours beside scikit-learn's solvers, by tolerance.

    python bench/dense_logit.py [--labels drawn|random|separable]

6,000 rows of 1,000 independent normal columns in float64, 10 classes, plain penalty with C = 1.
Labels are drawn from a logit, at random, or its likeliest class. It prints seconds and the
objective that was reached, so that solvers can be compared at equal objectives.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from eigenfeat import MultinomialLogit, show_versions

ROWS, COLUMNS, CLASSES = 6000, 1000, 10
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5)


def problem(labels: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    scores = X @ rng.normal(size=(COLUMNS, CLASSES)) / 30
    if labels == "random":
        return X, rng.integers(0, CLASSES, ROWS)
    noise = rng.gumbel(size=scores.shape) if labels == "drawn" else 0.0
    return X, np.argmax(scores + noise, axis=1)


def objective(model: Any, X: Any, y: Any) -> float:
    scores = X @ model.coef_.T + model.intercept_
    loss = logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]
    return float(loss.sum() + 0.5 * np.square(model.coef_).sum())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--labels", choices=("drawn", "random", "separable"), default="drawn")
    X, y = problem(parser.parse_args().labels)
    warnings.simplefilter("ignore")  # that a solver has not converged at a loose tolerance
    show_versions()
    solvers = {
        "MultinomialLogit": lambda tol: MultinomialLogit(penalty=0, l2=1.0, tol=tol),
        "newton-cg": lambda tol: LogisticRegression(solver="newton-cg", tol=tol, max_iter=1000),
        "lbfgs": lambda tol: LogisticRegression(solver="lbfgs", tol=tol, max_iter=1000),
    }
    for name, make in solvers.items():
        for tol in TOLERANCES:
            start = time.perf_counter()
            model = make(tol).fit(X, y)
            seconds = time.perf_counter() - start
            print(
                f"{name:17} tol {tol:.0e} {seconds:6.2f} s  objective {objective(model, X, y):.3f}"
            )


if __name__ == "__main__":
    main()
