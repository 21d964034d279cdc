"""Many classes: `GEMClassifier()` beside the SVM on three sets of 26 letters, and on up to 1,000.

    python bench/classes.py --data DIR [--sets isolet ocr letter bigrams digits made]

Defaults of both; the SVM has a Gaussian kernel and standardised columns. DIR has uci_isolet.npz and
ocr_letters.npz as `bench.papers` takes them and, for "letter", uci_letter.npz: X (20000, 16) and y
in UCI's order, of which the first 16,000 rows are for training. Sets without a file are left out.

Of the last three sets, with 191, 1,000 and 1,000 classes, GEM's default is compared with others of
its settings and with Fisher's discriminants: pairs of successive OCR letters, triples of MNIST
digits (mnist.npz), and simulated Gaussian classes.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from eigenfeat import GEM, FisherLDA, GEMClassifier, MultinomialLogit

FILES = {
    **{"isolet": "uci_isolet.npz", "ocr": "ocr_letters.npz", "letter": "uci_letter.npz"},
    **{"bigrams": "ocr_letters.npz", "digits": "mnist.npz", "made": ""},
}
METHODS = {
    "GEM": lambda: GEMClassifier(views="gem"),
    "SVM": lambda: make_pipeline(StandardScaler(), SVC()),
}

FEW = {"pairs": ("random_groups", 150)}
OF_MANY = {
    "GEM": lambda: GEMClassifier(views="gem"),
    "GEM, L-BFGS": lambda: GEMClassifier(
        views="gem", logit=MultinomialLogit(tol=1e-3, temperature="auto")
    ),
    "GEM, 150 groups": lambda: GEMClassifier(views="gem", gem=GEM(**FEW)),
    "GEM, 150 groups and columns": lambda: GEMClassifier(gem=GEM(**FEW, include_input=True)),
    "GEM, 600 nearest": lambda: GEMClassifier(
        views="gem", gem=GEM(pairs=("confusion", 600), n_directions=1)
    ),
    "Fisher": lambda: FisherLDA(),
}


def bigrams(path, least=20):
    """Successive letters beside each other, classes with enough rows in half of the folds."""
    with np.load(path) as file:
        X, y, fold = file["X"].astype(np.float32), file["y"].astype(int), file["fold"]
        word, place = file["word_id"], file["position"]
    at = np.flatnonzero((word[1:] == word[:-1]) & (place[1:] == place[:-1] + 1))
    rows, labels, train = np.hstack([X[at], X[at + 1]]), 26 * y[at] + y[at + 1], fold[at] < 5
    kept = (np.bincount(labels[train], minlength=26**2) >= least)[labels]
    some, others = kept & train, kept & ~train
    return rows[some], labels[some], rows[others], labels[others]


def triples(path, columns=66, seed=0):
    """Three digits of 66 principal components beside each other."""
    rng = np.random.default_rng(seed)
    with np.load(path) as file:
        parts = [file[name] for name in ("X_train", "y_train", "X_test", "y_test")]
    mean = parts[0].mean(axis=0) / 255
    covariance = np.cov(parts[0].T / 255)
    axes = np.linalg.eigh(covariance)[1][:, : -columns - 1 : -1]
    found = []
    for X, y in (parts[:2], parts[2:]):
        order = rng.permutation(len(y))[: len(y) // 3 * 3].reshape(-1, 3)
        rows = ((X / 255 - mean) @ axes).astype(np.float32)
        found += [rows[order].reshape(len(order), -1), y[order].astype(int) @ [1, 10, 100]]
    return tuple(found)


def made(k=1000, d=200, n=20, clusters=50, factors=40, seed=0):
    """Gaussian classes in clusters of means, with variances of their own along some directions."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, clusters, k)
    means = 0.5 * rng.standard_normal((clusters, d))[of] + 0.35 * rng.standard_normal((k, d))
    shared = 2 * rng.standard_normal((factors, d)) / np.sqrt(factors)
    sizes = np.exp(rng.standard_normal((k, factors)) / 2)
    found = []
    for count in (n, n // 2):
        y = np.repeat(np.arange(k), count)
        rows = means[y] + (rng.standard_normal((len(y), factors)) * sizes[y]) @ shared
        found += [(rows + 0.7 * rng.standard_normal((len(y), d))).astype(np.float32), y]
    return tuple(found)


def split(name, path):
    """Training rows and labels, test rows and labels."""
    if name in ("bigrams", "digits", "made"):
        return {"bigrams": bigrams, "digits": triples, "made": lambda _: made()}[name](path)
    with np.load(path) as file:
        X, y = file["X"].astype(np.float32), file["y"]
        if name == "isolet":
            return X, y, file["X_test"], file["y_test"]
        train = file["fold"] == 0 if name == "ocr" else np.arange(len(y)) < 16_000
    return X[train], y[train], X[~train], y[~train]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=FILES, default=list(FILES))
    options = parser.parse_args()
    for name in options.sets:
        if not (options.data / FILES[name]).exists():
            print(f"{name}: no {FILES[name]}")
            continue
        X, y, X_test, y_test = split(name, options.data / FILES[name])
        many = name in ("bigrams", "digits", "made")
        for method, make in (OF_MANY if many else METHODS).items():
            started = time.perf_counter()
            model = make().fit(X, y)
            fitted = time.perf_counter()
            error = 100 * np.mean(model.predict(X_test) != y_test)
            seconds = f"fit {fitted - started:.2f} s, predict {time.perf_counter() - fitted:.2f} s"
            loss = ""
            if isinstance(model, GEMClassifier):
                P = model.predict_proba(X_test).astype(float)
                loss = f", log loss {log_loss(y_test, P, labels=model.classes_):.3f}"
            print(f"{name}, {method}: {error:.2f}%{loss}, {seconds}", flush=True)


if __name__ == "__main__":
    main()
