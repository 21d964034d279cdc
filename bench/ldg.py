"""LDG beside NumPy, and beside scikit-learn's NCA: tasks of bench/run.py.

Full selection on MNIST (3,000 rows), Dexter (210 sparse rows of 20,000 columns) and Arcene (70 rows
of 10,000); a fit without selection against an LDG in NumPy; a fit against scikit-learn's
neighbourhood components analysis, with the 3-NN accuracy of both.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat.ldg import LDG
from peers import sklearn_ldg
from problems import digits
from timing import Contender, Measurement, alternate

OURS = "eigenfeat"


def pixels(data: Path, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return `n` random training rows of MNIST, (n, 784) float32."""
    rows = digits(data)
    some = np.random.default_rng(seed).permutation(len(rows.y))[:n]
    return np.ascontiguousarray(rows.X[some]), rows.y[some]


def dexter(data: Path) -> tuple[Any, np.ndarray]:
    """Return 210 of the 300 training rows of Dexter, sparse."""
    with np.load(data / "uci_dexter_train.npz") as archive:
        values = archive["csr_data"].astype(np.float64)
        parts = (values, archive["csr_indices"].astype(np.int32), archive["csr_indptr"])
        X = sparse.csr_matrix(parts, shape=tuple(archive["csr_shape"]))
        return X[:210], archive["y"][:210]


def arcene(data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return 70 of the 100 training rows of Arcene."""
    with np.load(data / "uci_arcene.npz") as archive:
        return archive["X"][:70].astype(np.float64), archive["y"][:70]


def ldg_selection(options: argparse.Namespace, threads: int, rounds: int) -> list[Measurement]:
    """Time fits that choose neighbours, gamma and dimension; no other package does."""
    table: list[Measurement] = []
    problems: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
        "MNIST 3,000 x 784": lambda: pixels(options.data, 3000)
    }
    if options.data is not None:
        problems["Dexter 210 x 20,000"] = lambda: dexter(options.data)
        problems["Arcene 70 x 10,000"] = lambda: arcene(options.data)
    for name, load in problems.items():
        X, y = load()
        model = LDG(random_state=0, n_threads=threads)
        ours = Contender(OURS, lambda model=model, X=X, y=y: model.fit(X, y))
        task = f"LDG with full selection, {name}"
        table += alternate(task, [ours], threads, rounds, memory=True)
        chosen = (model.n_neighbors_, model.gamma_, model.n_components_)
        table[-1].note = f"neighbours, gamma, dimension: {chosen}"
    return table


def ldg_by_hand(options: argparse.Namespace, threads: int, rounds: int) -> list[Measurement]:
    """n rows of MNIST, k = 10, gamma 0.6, 15 components."""
    n = options.rows or 20_000
    X, y = pixels(options.data, n)
    ours = LDG(15, gamma=0.6, n_neighbors=10, n_threads=threads)
    contenders = [
        Contender(OURS, lambda: ours.fit(X, y)),
        Contender("NumPy, sklearn", lambda: sklearn_ldg.fitted(X, y, 10, 0.6, 15), rounds=1),
    ]
    task = f"LDG without selection, {n:,} x 784 float32, 10 neighbours"
    table = alternate(task, contenders, threads, rounds, memory=True)
    theirs = sklearn_ldg.fitted(X, y, 10, 0.6, 15).astype(np.float64)
    cosines = np.linalg.svd(ours.components_ @ theirs.T)[1]
    table[-1].note = f"least cosine of the subspaces: {cosines.min():.7f}"
    return table


def ldg_nca(options: argparse.Namespace, threads: int, rounds: int) -> list[Measurement]:
    """5,000 rows of MNIST's 100 leading principal components, to 15 dimensions."""
    X, y = pixels(options.data, 7000)
    centred = X[:5000] - X[:5000].mean(axis=0)
    leading = np.linalg.svd(centred, full_matrices=False)[2][:100]
    Z = np.ascontiguousarray((X - X[:5000].mean(axis=0)) @ leading.T, dtype=np.float64)
    models: dict[str, Any] = {
        OURS: LDG(15, gamma=0.6, n_neighbors=8, standardize=False, n_threads=threads)
    }

    def fit_nca() -> None:
        models["sklearn NCA"] = sklearn_ldg.nca(Z[:5000], y[:5000], 15)

    contenders = [
        Contender(OURS, lambda: models[OURS].fit(Z[:5000], y[:5000])),
        Contender("sklearn NCA", fit_nca, rounds=1),
    ]
    table = alternate("5,000 x 100 to 15 dimensions", contenders, threads, rounds)
    for row in table:
        model = models[row.implementation]
        classifier = KNeighborsClassifier(3).fit(model.transform(Z[:5000]), y[:5000])
        accuracy = classifier.score(model.transform(Z[5000:]), y[5000:])
        row.note = f"3-NN accuracy on 2,000 others: {accuracy:.3f}"
    return table
