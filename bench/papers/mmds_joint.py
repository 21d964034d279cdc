"""Joint shifts, corrupted copies and max-margin PCA beside the single shift, over random splits.

    python -m bench.papers.mmds_joint DIR MNIST 5

prints a line of JSON for each split: accuracies in percent and seconds by method.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from bench.papers import mmds_data
from bench.papers.mmds_data import Split
from bench.papers.mmds_shifting import EPOCHS, READ_C, TOLERANCE
from bench.papers.protocol import Rows, read_arrays, read_rows, subsample
from eigenfeat.maxmargin import MaxMarginPCA, MaxMarginShift, MulticlassSVM

SPLITS = 10
MOVE_C = 0.1  # of the SVMs that move rows
CHOICE = {"scales": (0.0, 0.3, 0.6, 1.0, 1.5, 2.0), "cv": 3}
TEST_ROWS = 10_000


def split_of(data: str, folder: Path, seed: int) -> Split:
    """Rows to train on, as many as in the paper, and rows to test on."""
    if data == "MNIST":
        train, test = (
            read_rows(folder / "mnist.npz", f"X_{p}", f"y_{p}") for p in ("train", "test")
        )
        train = subsample(train, mmds_data.MNIST_ROWS, seed)
        return Split(*(Rows(rows.X / np.float32(255), rows.y) for rows in (train, test)))
    if data == "Digits":
        given = mmds_data.load("Digits", folder, quick=False)
        X, y = np.vstack([given.train.X, given.test.X]), np.append(given.train.y, given.test.y)
        order = np.random.RandomState(100 + seed).permutation(len(y))
        half = len(y) // 2
        return Split(Rows(X[order[:half]], y[order[:half]]), Rows(X[order[half:]], y[order[half:]]))
    rows = read_rows(folder / "ocr_letters.npz", "X", "y")
    training = read_arrays(folder / "ocr_letters.npz", "fold")[0] == seed
    rest = np.random.RandomState(seed).permutation(np.flatnonzero(~training))[:TEST_ROWS]
    return Split(
        Rows(rows.X[training].astype(np.float32), rows.y[training]),
        Rows(rows.X[rest].astype(np.float32), rows.y[rest]),
    )


def methods(n_components: int) -> dict[str, Any]:
    """What is compared, by name."""
    pca = PCA(n_components, random_state=0)
    given = {"svm": MulticlassSVM(C=MOVE_C, tol=TOLERANCE, max_iter=EPOCHS), **CHOICE}
    return {
        "rows": pca,
        "once": MaxMarginShift(pca, **given),
        "joint": MaxMarginShift(pca, moves="joint", tol=1e-6, **given),
        "MaxMarginPCA": MaxMarginPCA(n_components, max_iter=30, **given),
        "corrupted": MaxMarginShift(pca, moves="corrupted", n_copies=5, **given),
    }


def accuracy(model: Any, train: Rows, test: Rows) -> float:
    """Of a linear SVM on standardised features, in percent."""
    known, new = model.transform(train.X), model.transform(test.X)
    mean, deviation = known.mean(axis=0), known.std(axis=0)
    deviation[deviation == 0] = 1
    reader = MulticlassSVM(C=READ_C, tol=TOLERANCE, max_iter=EPOCHS)
    reader.fit((known - mean) / deviation, train.y)
    return 100.0 * float(reader.score((new - mean) / deviation, test.y))


def main(folder: str, data: str, n_components: str) -> None:
    """Print a line for each split."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    for seed in range(SPLITS):
        split = split_of(data, Path(folder), seed)
        mean = split.train.X.mean(axis=0)
        train, test = (Rows(rows.X - mean, rows.y) for rows in (split.train, split.test))
        found: dict[str, float] = {"split": seed}
        for name, model in methods(int(n_components)).items():
            started = time.perf_counter()
            model.fit(train.X, train.y)
            found[f"{name} seconds"] = round(time.perf_counter() - started, 2)
            found[name] = round(accuracy(model, train, test), 3)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
