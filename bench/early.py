"""Early classifiers side by side: harmonic means of accuracy and 1 - earliness, and seconds.

    python bench/early.py --data DIR --aeon PYTHON

DIR holds the archive's sets as ``ucr/<set>.npz``. PYTHON is an interpreter with aeon, whose
classifiers run in their own processes; the note of a line says why a result is missing. All
classifiers get the same series, and run on one thread; seconds are processor time. Runs whose lines
are already in the CSV file are skipped.

`ReliableClassifierCV` chooses its parameters as TEASER does: by the harmonic mean on held-out folds
of the training series. "LDA, pairwise, tau 0.95" has fixed parameters.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from threadpoolctl import threadpool_limits

from eigenfeat.early import (
    GaussianCompletion,
    LocalQDA,
    MinimumCostClassifier,
    ReliableClassifier,
    ReliableClassifierCV,
    early_scores,
)
from papers.baselines.early import ECTS, FixedTime
from peers.aeon_early import PEERS
from results import add_lines, finished, read_set, set_names


def main() -> None:
    """Run every classifier on every set, and add a line for each to a CSV file."""
    options = _options()
    done = finished(options.output, "problem", "classifier")
    for peer in options.classifiers:
        for name in set_names(options.data, options.sets):
            if (name, peer) in done:
                continue
            data = read_set(options.data, name, options.rows, options.seed)
            if peer in OURS:
                found = _measured(data, clone(OURS[peer]))
            else:
                found = _peer(peer.removeprefix("aeon "), data, options)
            line = pd.DataFrame([{"problem": name, "classifier": peer} | found])
            add_lines(options.output, line.reindex(columns=COLUMNS))


LDA = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
COMPLETION = GaussianCompletion(n_threads=1)
LOCAL = ReliableClassifier(LocalQDA(n_threads=1), rule="quadratic", correct=False, n_threads=1)
TREES = ExtraTreesClassifier(50, random_state=0)
OURS = {
    "LDA, pairwise, tau 0.95": ReliableClassifier(LDA, COMPLETION, correct=False, n_threads=1),
    "ReliableClassifierCV": ReliableClassifierCV(n_threads=1),
    "minimum cost, LDA": MinimumCostClassifier(LDA),
    "minimum cost, convolutions": MinimumCostClassifier(),
    "minimum cost, trees": MinimumCostClassifier(TREES),
    "ECTS": ECTS(),
    "fixed time, 1-NN": FixedTime(),
    "local QDA, quadratic, chosen tau": ReliableClassifierCV({"local QDA": LOCAL}),
}
FIGURES = ("harmonic_mean", "accuracy", "earliness", "fit_seconds", "row_seconds")
COLUMNS = ["problem", "classifier", *FIGURES, "note"]


def _measured(data: dict[str, Any], model: Any) -> dict[str, Any]:
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignore warnings about folds that lack a class
        started = time.process_time()
        model.fit(data["X_train"], data["y_train"])
        done = time.process_time()
        early = model.predict_early(data["X_test"])
        row_seconds = (time.process_time() - done) / len(early.time)
    found = early_scores(early, data["X_test"].shape[1], y=data["y_test"])
    values = (found.harmonic_mean, found.accuracy, found.earliness, done - started, row_seconds)
    return dict(zip(FIGURES, values, strict=True)) | {"note": _note(model)}


def _note(model: Any) -> str:
    if isinstance(model, FixedTime):
        return f"after {model.time_} samples"
    if isinstance(model, ReliableClassifierCV):
        return f"{model.best_candidate_}, tau {model.reliability_:g}"
    return ""


def _peer(peer: str, data: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    script = Path(__file__).parent / "peers" / "aeon_early.py"
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    hidden = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.npz"
        np.savez(task, **data)
        command = [options.aeon, str(script), str(task), peer, str(options.seed)]
        given = {"capture_output": True, "text": True, "env": hidden | alone, "check": False}
        try:
            done = subprocess.run(command, timeout=options.seconds, **given)
        except subprocess.TimeoutExpired:
            return {"note": f"skipped: more than {options.seconds:.0f} s"}
    if done.returncode:
        return {"note": f"skipped: {done.stderr.strip().splitlines()[-1]}"}
    return json.loads(done.stdout.splitlines()[-1])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", help="default: all sets in DIR")
    parser.add_argument("--aeon", default=sys.executable, help="an interpreter that has aeon")
    known = [*OURS, *(f"aeon {peer}" for peer in PEERS)]
    parser.add_argument("--classifiers", nargs="+", default=known, choices=known)
    parser.add_argument("--rows", type=int, default=300, help="most test rows of each set")
    parser.add_argument("--seconds", type=float, default=3600.0, help="time for one peer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("early.csv"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
