"""Which completion decides reliably and early: one Gaussian, or one for each class.

    python bench/completions.py --data DIR [--sets A B] [--tau 0.9]

DIR holds the archive's sets as ``ucr/<set>.npz``; models are fitted to the official training part
and tried on the official test part (at most ``--rows`` of it). A line has, for one Gaussian and a
mixture, the agreement of early labels with those of complete series, the share of the series after
which they come, and the mean squared error on test rows of which the first half is known, over the
variance. Thesis, section 6.2: is the estimate of least squared error the best one for decisions?
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.early import GaussianCompletion, MixtureCompletion, ReliableClassifier

COMPLETIONS = {"Gaussian": GaussianCompletion(), "mixture": MixtureCompletion()}


def squared_error(completion: object, X: np.ndarray, y: np.ndarray, T: np.ndarray) -> float:
    """Of the second half of rows, given the first one, over its variance about the mean."""
    half = T.shape[1] // 2
    seen = T.copy()
    seen[:, half:] = np.nan
    found = completion.fit(X, y).transform(seen)[:, half:]
    return float(((found - T[:, half:]) ** 2).mean() / T[:, half:].var(axis=0).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--tau", type=float, default=0.9)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    paths = sorted((options.data / "ucr").glob("*.npz"))
    for path in paths:
        if options.sets and path.stem not in options.sets:
            continue
        data = np.load(path)
        X, y = np.asarray(data["X_train"], dtype=float), data["y_train"]
        order = np.random.default_rng(0).permutation(len(data["X_test"]))[: options.rows]
        T = np.asarray(data["X_test"], dtype=float)[order]
        cells = []
        for name, completion in COMPLETIONS.items():
            lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
            begun = time.process_time()
            model = ReliableClassifier(lda, completion, reliability=options.tau).fit(X, y)
            seconds = time.process_time() - begun
            early = model.predict_early(T)
            agreed = np.mean(early.label == model.predict(T))
            cell = f"{name} {agreed:.3f} {early.time.mean() / T.shape[1]:.0%}, {seconds:.1f} s"
            cells.append(cell + f", error {squared_error(completion, X, y, T):.3f}")
        print(f"{path.stem} ({len(X)}): " + "; ".join(cells), flush=True)


if __name__ == "__main__":
    main()
