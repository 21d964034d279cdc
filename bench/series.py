"""Classifiers of complete series: accuracy and processor time on official test parts, and ranks.

    python bench/series.py --data DIR --output FILE [--peers] [--rows N] [--sets A B]

DIR holds sets of the UCR archive as ``ucr/<set>.npz``. ``--peers`` adds Hydra and MultiRocketHydra
of aeon. ``--rows`` draws at most N test series of each set. Times are of one thread. series.csv has
the results of 21 sets, and series_archive.csv those of 45 others with ``--rows 500``.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from eigenfeat.signals import ConvolutionClassifier
from results import read_set, set_names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    models = {"ConvolutionClassifier": ConvolutionClassifier(random_state=0, n_threads=1)}
    if options.peers:
        from aeon.classification import convolution_based as peers

        models["MultiRocketHydra"] = peers.MultiRocketHydraClassifier(random_state=0)
        models["Hydra"] = peers.HydraClassifier(random_state=0)
    rows = []
    for name in set_names(options.data, options.sets):
        X, y, Z, z = read_set(options.data, name, options.rows).values()
        for kind, model in models.items():
            start = time.process_time()
            model.fit(X[:, None], y)
            fitted = time.process_time()
            accuracy = np.mean(model.predict(Z[:, None]) == z)
            took = time.process_time() - fitted
            rows.append((name, kind, accuracy.round(4), fitted - start, took))
            print(*rows[-1], flush=True)
    columns = ["set", "classifier", "accuracy", "fit_seconds", "predict_seconds"]
    found = pd.DataFrame(rows, columns=columns)
    found.to_csv(options.output, index=False, float_format="%.4g")
    ranks = found.pivot(index="set", columns="classifier", values="accuracy").rank(1)
    print(len(models) + 1 - ranks.mean())
    totals = {"accuracy": "mean", "fit_seconds": "sum", "predict_seconds": "sum"}
    print(found.groupby("classifier").agg(totals))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
