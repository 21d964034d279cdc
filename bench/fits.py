"""Whole fits by defaults, single predictions, imports and trust regions: tasks of bench/run.py."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression

import eigenfeat as ef
from eigenfeat.regions import trust_region_minimum
from problems import digits
from timing import Contender, Measurement, alternate

OURS = "eigenfeat"
IMPORTS = {
    OURS: "from eigenfeat.ldg import LDG; LDG",
    "scikit-learn": "from sklearn.linear_model import LogisticRegression",
}


def mnist(options: argparse.Namespace, threads: int, rounds: int) -> list[Measurement]:
    """`GEMClassifier()` on MNIST, without any other parameter than the number of threads."""
    train, test = digits(options.data).first(options.rows), digits(options.data, "test")
    model = ef.GEMClassifier(n_threads=threads)
    contender = Contender(OURS, lambda: model.fit(train.X, train.y))
    table = alternate(
        f"GEMClassifier by defaults, {train.source}", [contender], threads, rounds, memory=True
    )
    table[0].note = f"{np.sum(model.predict(test.X) != test.y)} errors of {len(test.y):,}"
    return table


def large_table(_options: argparse.Namespace, threads: int, rounds: int) -> list[Measurement]:
    """`TableClassifier()` and LightGBM on many samples of a table, both by defaults."""
    from lightgbm import LGBMClassifier

    n, d = 100_000, 30
    X, y = make_classification(
        n, d, n_informative=15, n_redundant=5, n_clusters_per_class=4, flip_y=0.02, random_state=0
    )
    ours = ef.TableClassifier(n_threads=threads)
    theirs = LGBMClassifier(n_jobs=threads, verbose=-1)
    contenders = [
        Contender(OURS, lambda: ours.fit(X, y)),
        Contender("LightGBM", lambda: theirs.fit(X, y)),
    ]
    return alternate(f"TableClassifier by defaults, {n:,} x {d}", contenders, threads, rounds)


def one_prediction(_options: argparse.Namespace, threads: int, rounds: int) -> list[Measurement]:
    """Probabilities of one sample, by a pool of views and by a logit."""
    X, y = load_digits(return_X_y=True)
    views = ("columns", "splines", "kernel", "gem")
    models = {
        "TableClassifier, four views": ef.TableClassifier(views, n_threads=threads).fit(X, y),
        "GEMClassifier": ef.GEMClassifier(n_threads=threads).fit(X, y),
        "scikit-learn's LogisticRegression": LogisticRegression(max_iter=3000).fit(X, y),
    }

    def calls(model: object) -> Callable[[], None]:
        return lambda: [model.predict_proba(X[i : i + 1]) for i in range(200)] and None

    contenders = [Contender(name, calls(model), 200) for name, model in models.items()]
    return alternate(
        "one prediction, digits 1,797 x 64", contenders, threads, rounds, unit="sample"
    )


def imports(_options: argparse.Namespace, threads: int, rounds: int) -> list[Measurement]:
    """A new process that imports an estimator, beside a process that imports scikit-learn's."""

    def run(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    contenders = [Contender(name, run(code)) for name, code in IMPORTS.items()]
    return alternate("import of an estimator, new process", contenders, threads, rounds)


def trust_regions(_options: argparse.Namespace, threads: int, rounds: int) -> list[Measurement]:
    """Minima of 1,000 indefinite quadratic functions of 100 variables over the unit ball."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1000, 100, 100))
    A, g = A + A.transpose(0, 2, 1), rng.standard_normal((1000, 100))
    some = 100
    contenders = [
        Contender(OURS, lambda: trust_region_minimum(A, g, 1.0, n_threads=threads), len(A)),
        Contender(
            "eigh and brentq",
            lambda: [secular(A[i], g[i]) for i in range(some)],
            some,
            note=f"{some} of {len(A):,}",
        ),
    ]
    table = alternate("trust regions, d=100", contenders, threads, rounds, unit="problem")
    ours = trust_region_minimum(A[:some], g[:some], 1.0).value
    theirs = np.array([secular(A[i], g[i]) for i in range(some)])
    table[0].note = f"values to {np.max(np.abs(ours / theirs - 1)):.0e}"
    return table


def secular(A: np.ndarray, g: np.ndarray) -> float:
    """Minimum of x' A x + 2 g' x over |x| <= 1, by eigenvalues and the secular equation.

    `A` has a negative eigenvalue, and `g` a part along its eigenvector.
    """
    values, Q = eigh(A, check_finite=False)
    b = Q.T @ g
    low = -values[0]
    shift = brentq(
        lambda mu: 1 - 1 / np.linalg.norm(b / (values + mu)),
        low + abs(b[0]) / 2,
        low + np.linalg.norm(b),
        xtol=1e-14 * low,
    )
    x = -b / (values + shift)
    return float(values @ x**2 + 2 * b @ x)
