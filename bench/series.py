"""Classifiers of complete series: accuracy and processor time on official test parts, and ranks.

    python bench/series.py --data DIR [--peers] [--sets A B]

DIR holds sets of the UCR archive as ``ucr/<set>.npz``. ``--peers`` adds Hydra and MultiRocketHydra
of aeon. Times are of one thread.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from eigenfeat.signals import ConvolutionClassifier


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    models = {"ConvolutionClassifier": ConvolutionClassifier(random_state=0, n_threads=1)}
    if options.peers:
        from aeon.classification import convolution_based as peers

        models["MultiRocketHydra"] = peers.MultiRocketHydraClassifier(random_state=0)
        models["Hydra"] = peers.HydraClassifier(random_state=0)
    names = options.sets or sorted(path.stem for path in (options.data / "ucr").glob("*.npz"))
    results = np.empty((len(names), len(models), 3))
    for name, row in zip(names, results, strict=True):
        with np.load(options.data / "ucr" / f"{name}.npz") as data:
            X, y, Z, z = (data[key] for key in ("X_train", "y_train", "X_test", "y_test"))
        for model, found in zip(models.values(), row, strict=True):
            start = time.process_time()
            model.fit(X[:, None], y)
            fitted = time.process_time()
            accuracy = np.mean(model.predict(Z[:, None]) == z)
            found[:] = accuracy, fitted - start, time.process_time() - fitted
        print(f"{name:24}", *(f"{one:.4f}" for one in row[:, 0]), flush=True)
    ranks = rankdata(-results[:, :, 0], axis=1).mean(axis=0)
    for model, rank, (accuracy, _, _), (_, fit, predict) in zip(
        models, ranks, results.mean(axis=0), results.sum(axis=0), strict=True
    ):
        print(f"{model}: accuracy {accuracy:.4f}, rank {rank:.2f}, fit {fit:.1f} s, ", end="")
        print(f"predict {predict:.1f} s")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
