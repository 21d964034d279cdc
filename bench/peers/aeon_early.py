"""Run an early classifier of aeon on one task, and print its scores as a line of JSON.

    python bench/peers/aeon_early.py TASK.npz PEER SEED

TASK.npz holds X_train, y_train, X_test and y_test. Run this file with the Python of an environment
for aeon; it needs nothing else.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np

PEERS = ("ProbabilityThreshold", "TEASER on forests", "CALIMERA", "TEASER")


def built(peer: str, seed: int) -> Any:
    """A peer on one thread, with its defaults except for the classifier.

    The default classifier of ProbabilityThreshold, DrCIF, divides by zero after three samples (aeon
    1.6). That of TEASER, WEASEL, takes minutes to hours; forests of 30 trees are fast enough for
    every set.
    """
    from aeon.classification import early_classification as early
    from aeon.classification.interval_based import TimeSeriesForestClassifier

    if peer == "CALIMERA":
        from calimera import Calimera

        return Calimera(seed)
    if peer == "TEASER":
        return early.TEASER(n_jobs=1, random_state=seed)
    if peer == "TEASER on forests":
        forest = TimeSeriesForestClassifier(n_estimators=30, n_jobs=1, random_state=seed)
        return early.TEASER(forest, n_jobs=1, random_state=seed)
    forest = TimeSeriesForestClassifier(n_jobs=1, random_state=seed)
    return early.ProbabilityThresholdEarlyClassifier(forest, n_jobs=1, random_state=seed)


def measured(peer: str, data: Any, seed: int) -> dict[str, float]:
    """Harmonic mean, accuracy and earliness by aeon, and seconds of the fit and for a row."""
    model = built(peer, seed)
    X, rows = (data[name].astype(np.float64)[:, None] for name in ("X_train", "X_test"))
    labels = data["y_test"].astype(str)
    started = time.process_time()
    model.fit(X, data["y_train"].astype(str))
    fitted = time.process_time()
    harmonic_mean, accuracy, earliness = model.score(rows, labels)
    return {
        "harmonic_mean": float(harmonic_mean),
        "accuracy": float(accuracy),
        "earliness": float(earliness),
        "fit_seconds": fitted - started,
        "row_seconds": (time.process_time() - fitted) / len(labels),
    }


def main() -> None:
    """Run the task, the peer and the seed of the command line."""
    path, peer, seed = sys.argv[1:]
    warnings.simplefilter("ignore")
    with np.load(path, allow_pickle=False) as data:
        print(json.dumps(measured(peer, data, int(seed))))


if __name__ == "__main__":
    main()
