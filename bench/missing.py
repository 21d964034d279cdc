"""Held-out accuracy with missing entries: completion while fitting, imputation before, trees.

    python bench/missing.py [--data DIR] [--splits 5] [--csv FILE]

Entries of training and test rows are missing completely at random. `GEMClassifier` and `FisherLDA`
take the rows as they are, or after scikit-learn's imputation by means or by regressions on the
other columns (`IterativeImputer`); HistGradientBoosting takes them as they are. All parameters are
the defaults. Sets of scikit-learn's, and with DIR those of UCI in it.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401, makes the import work
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eigenfeat import FisherLDA, GEMClassifier

UCI = ("satimage", "ionosphere", "dermatology", "pima", "german_numeric", "ringnorm_standardized")
MOST_ROWS = 3000
METHODS = {
    "GEM": lambda: GEMClassifier(views="gem"),
    "GEM, means": lambda: make_pipeline(SimpleImputer(), GEMClassifier(views="gem")),
    "GEM, regressions": lambda: make_pipeline(
        IterativeImputer(max_iter=5, n_nearest_features=20, random_state=0),
        GEMClassifier(views="gem"),
    ),
    "Fisher": lambda: FisherLDA(),
    "Fisher, means": lambda: make_pipeline(SimpleImputer(), FisherLDA()),
    "trees": lambda: HistGradientBoostingClassifier(random_state=0),
}


def sets(data):
    """Name, rows and labels of each set."""
    yield "digits", *load_digits(return_X_y=True)
    yield "wine", *load_wine(return_X_y=True)
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    for name in UCI if data is not None else ():
        with np.load(Path(data) / f"uci_{name}.npz", allow_pickle=True) as file:
            parts = ("X", "y") if "X" in file else ("X_train", "y_train")
            X, y = (file[part] for part in parts)
            if parts[0] == "X_train" and "X_test" in file:
                X, y = np.vstack([X, file["X_test"]]), np.concatenate([y, file["y_test"]])
        whole = np.isfinite(X).all(axis=1)
        yield name, X[whole].astype(np.float64), y[whole]


def split(X, y, share, seed):
    """Training and test rows with a share of missing entries, standardised by the training rows."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[:MOST_ROWS]
    X, y = X[rows].copy(), y[rows]
    X[rng.random(X.shape) < share] = np.nan
    train, test, a, b = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    varies = np.fmax.reduce(train, axis=0) > np.fmin.reduce(train, axis=0)
    scaler = StandardScaler().fit(train[:, varies])
    return scaler.transform(train[:, varies]), scaler.transform(test[:, varies]), a, b


def main():
    """Print mean accuracies, and their standard errors, for each set and share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--csv")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    table = []
    print("set, missing:", *METHODS, sep=" | ")
    for name, X, y in sets(given.data):
        for share in (0.1, 0.3, 0.5):
            found = {method: [] for method in METHODS}
            for seed in range(given.splits):
                train, test, a, b = split(X, y, share, seed)
                for method, make in METHODS.items():
                    found[method].append(100 * make().fit(train, a).score(test, b))
            means = {method: np.mean(scores) for method, scores in found.items()}
            errors = {m: np.std(s, ddof=1) / np.sqrt(len(s)) for m, s in found.items()}
            cells = [f"{means[m]:.1f} +- {errors[m]:.1f}" for m in METHODS]
            print(f"{name}, {share:.0%}:", *cells, sep=" | ", flush=True)
            table += [(name, share, m, means[m], errors[m], given.splits) for m in METHODS]
    if given.csv:
        with open(given.csv, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("set", "missing", "method", "accuracy", "standard_error", "splits"))
            writer.writerows(table)


if __name__ == "__main__":
    main()
