"""Many classes: `GEMClassifier()` beside scikit-learn's SVM, on three sets of 26 letters.

    python bench/classes.py --data DIR [--sets isolet ocr letter]

Defaults of both; the SVM has a Gaussian kernel and standardised columns. DIR has uci_isolet.npz and
ocr_letters.npz as `bench.papers` takes them and, for "letter", uci_letter.npz: X (20000, 16) and y
in UCI's order, of which the first 16,000 rows are for training. Sets without a file are left out.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from eigenfeat import GEMClassifier

FILES = {"isolet": "uci_isolet.npz", "ocr": "ocr_letters.npz", "letter": "uci_letter.npz"}
METHODS = {
    "GEM": lambda: GEMClassifier(),
    "SVM": lambda: make_pipeline(StandardScaler(), SVC()),
}


def split(name, path):
    """Training rows and labels, test rows and labels."""
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
        for method, make in METHODS.items():
            started = time.perf_counter()
            model = make().fit(X, y)
            fitted = time.perf_counter()
            error = 100 * np.mean(model.predict(X_test) != y_test)
            seconds = f"fit {fitted - started:.2f} s, predict {time.perf_counter() - fitted:.2f} s"
            print(f"{name}, {method}: {error:.2f}%, {seconds}", flush=True)


if __name__ == "__main__":
    main()
