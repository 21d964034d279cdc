"""Milliseconds a test row until it is decided at tau 0.9, beside Table 5.2 of Parrish's thesis.

    python bench/early_rows.py --data DIR [--rules TEXT] [--rows 30] [--first]

Models are fitted to the official training part of SyntheticControl, MedicalImages and TwoPatterns,
and decide rows of the official test part; CPU time, one thread. Chebyshev's set with quadratic
discriminants takes general regions, so that a tenth of the rows has to do. ``--first`` is Table 5.4
instead: milliseconds a row to decide with the first sample alone, by local QDA and its quadratic
set, on all samples and on features of LDG.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from eigenfeat import LDG
from eigenfeat.early import LocalQDA, MixtureCompletion, ReliableClassifier

SETS = ("SyntheticControl", "MedicalImages", "TwoPatterns")
# Seconds in the thesis.
RULES = {
    ("linear SVM", "chebyshev", False): (0.4, 1.9, 1.8),
    ("linear SVM", "quadratic", False): (0.3, 1.0, 0.5),
    ("linear SVM", "box", False): (0.3, 0.8, 0.3),
    ("linear SVM", "quadratic", True): (0.7, 2.7, 0.8),
    ("local QDA", "quadratic", False): (0.7, 2.7, 2.0),
    ("local QDA", "box", False): (0.4, 1.4, 1.0),
    ("local QDA", "quadratic", True): (0.9, 5.5, 3.4),
    ("local QDA", "chebyshev", False): (1.8, 27.1, 12.45),
}
# Table 5.4: how many features LDG has, and milliseconds with all samples and with them.
FIRST = {
    "ChlorineConcentration": (42, 76, 4),
    "ItalyPowerDemand": (2, 2, 1),
    "MedicalImages": (11, 18, 2),
    "SyntheticControl": (7, 9, 1),
    "TwoPatterns": (22, 31, 2),
    "Wafer": (17, 55, 2),
}


def main() -> None:
    """Time all rules on all sets, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rules", default="", help="part of a rule's name")
    parser.add_argument("--sets", nargs="+", default=(*SETS, *FIRST))
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--first", action="store_true", help="Table 5.4")
    options = parser.parse_args()
    if options.first:
        _first(options)
        return
    for (classifier, rule, mixture), thesis in RULES.items():
        name = f"{classifier}, {rule}{', mixture' if mixture else ''}"
        if options.rules not in name:
            continue
        for problem, seconds in zip(SETS, thesis, strict=True):
            if problem not in options.sets:
                continue
            data = np.load(options.data / "ucr" / f"{problem}.npz")
            slow = rule == "chebyshev" and classifier == "local QDA"
            rows = max(1, options.rows // 10) if slow else options.rows
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = ReliableClassifier(
                    LocalQDA(n_threads=1) if classifier == "local QDA" else LinearSVC(),
                    MixtureCompletion(n_threads=1) if mixture else None,
                    rule,
                    0.9,
                    correct=False,
                    n_threads=1,
                ).fit(np.asarray(data["X_train"], dtype=float), data["y_train"])
                some = np.random.default_rng(0).permutation(len(data["X_test"]))[:rows]
                X = np.asarray(data["X_test"], dtype=float)[some]
                begun = time.process_time()
                early = model.predict_early(X)
                spent = 1e3 * (time.process_time() - begun) / len(X)
            share = 100 * early.time.mean() / X.shape[1]
            print(
                f"{problem}, {name}: {spent:.3g} ms a row ({1e3 * seconds:,.0f} in the thesis), "
                f"{len(X)} rows, decided after {share:.0f}%",
                flush=True,
            )


def _first(options: argparse.Namespace) -> None:
    for problem, (count, whole, few) in FIRST.items():
        if problem not in options.sets:
            continue
        data = np.load(options.data / "ucr" / f"{problem}.npz")
        X, y = np.asarray(data["X_train"], dtype=float), data["y_train"]
        rows = np.asarray(data["X_test"], dtype=float)[: options.rows]
        rows[:, 1:] = np.nan
        told = []
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for features in (None, LDG(n_threads=1)):
                model = ReliableClassifier(
                    LocalQDA(n_threads=1),
                    None,
                    "quadratic",
                    0.9,
                    features=features,
                    correct=False,
                    n_threads=1,
                ).fit(X, y)
                model.decide(rows)  # factors of the pattern are kept
                begun = time.process_time()
                model.decide(rows)
                told.append(1e3 * (time.process_time() - begun) / len(rows))
        width = model.fitted_.affine.B.shape[1]
        print(
            f"{problem}, first sample: {told[0]:.3g} ms a row with all samples ({whole} in the "
            f"thesis), {told[1]:.3g} with {width} features ({few} with {count})",
            flush=True,
        )


if __name__ == "__main__":
    main()
