"""Log losses: `GEMClassifier` by its temperature and penalty, and logistic regression.

    python bench/probabilities.py --data DIR [--sets digits wine ...] [--splits 3]

Logistic regression is scikit-learn's with C = 1, on standardised columns whose missing entries are
means. A set has its own test rows or a third of its rows, drawn with each seed. Seconds are those
of the fits.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eigenfeat import GEMClassifier, MultinomialLogit

FILES = {
    "opencv": "opencv_digits",
    "mnist": "mnist",
    "isolet": "uci_isolet",
    "ocr": "ocr_letters",
    "satimage": "uci_satimage",
    "yaleb": "faces_yaleb",
    "covertype": "covtype_subset",
    "ringnorm": "uci_ringnorm_standardized",
    "twonorm": "uci_twonorm_standardized",
    "dermatology": "uci_dermatology",
    "ionosphere": "uci_ionosphere",
    "wine": "uci_wine",
    "german": "uci_german_numeric",
    "pima": "uci_pima",
}
BUNDLED = {"digits": load_digits, "cancer": load_breast_cancer}
METHODS = {
    "T = 1": lambda: GEMClassifier(views="gem", logit=MultinomialLogit(tol=1e-3, solver="auto")),
    "default": lambda: GEMClassifier(views="gem"),
    "penalty auto": lambda: GEMClassifier(
        views="gem",
        logit=MultinomialLogit("auto", tol=1e-3, temperature="auto", solver="auto"),
    ),
    "logistic": lambda: make_pipeline(
        SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000)
    ),
}


def split(name, folder, seed):
    """Training rows, test rows, their labels; None where there is no such split."""
    if name in BUNDLED:
        return train_test_split(*BUNDLED[name](return_X_y=True), test_size=1 / 3, random_state=seed)
    with np.load(folder / f"{FILES[name]}.npz") as file:
        if name == "mnist":
            rows = np.random.default_rng(seed).choice(60_000, 6_000, replace=False)
            return file["X_train"][rows], file["X_test"], file["y_train"][rows], file["y_test"]
        if name == "covertype":
            return file["X_first20k"], file["X_random50k"], file["y_first20k"], file["y_random50k"]
        X, y = file["X"], file["y"]
        if name == "ocr":
            train = file["fold"] == seed
            return X[train], X[~train], y[train], y[~train]
        if "X_test" in file:
            return X, file["X_test"], y, file["y_test"]
    return train_test_split(X, y, test_size=1 / 3, random_state=seed, stratify=y)


def measured(name, folder, seed):
    X, X_test, y, y_test = split(name, folder, seed)
    losses, errors, seconds = [], [], []
    for make in METHODS.values():
        model = make()
        started = time.perf_counter()
        model.fit(X.astype(np.float32), y)
        seconds.append(time.perf_counter() - started)
        P = model.predict_proba(X_test.astype(np.float32)).astype(np.float64)
        losses.append(log_loss(y_test, P, labels=model.classes_))
        errors.append(100 * np.mean(model.classes_[P.argmax(axis=1)] != y_test))
    return losses, errors, seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=[*BUNDLED, *FILES])
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # that logistic regression has not converged
    print("| set | log loss: " + ", ".join(METHODS) + " | errors, % | seconds | times T = 1 |")
    print("|---|---|---|---|---|")
    for name in options.sets:
        found = [measured(name, options.data, seed) for seed in range(options.splits)]
        losses, errors, seconds = (np.mean([f[i] for f in found], axis=0) for i in range(3))
        row = [
            ", ".join(f"{x:.3f}" for x in losses),
            ", ".join(f"{x:.2f}" for x in errors),
            ", ".join(f"{x:.2f}" for x in seconds),
            ", ".join(f"{x / seconds[0]:.2f}" for x in seconds[1:3]),
        ]
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
