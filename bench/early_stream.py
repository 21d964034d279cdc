"""What a step of a stream takes: milliseconds of each rule, while a series waits and at its end.

    python bench/early_stream.py [--rules TEXT] [--series 12] [--rounds 3]

Series are random walks of 150 samples in three classes. Every series is pushed `--rounds` times;
the first round, in which a fresh model computes what its streams share, is not counted. Told are
the median and the 95 per cent quantile of steps after which the series waits, and the mean of the
steps that decide.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from eigenfeat import GEMClassifier
from eigenfeat.early import MixtureCompletion, ReliableClassifier, Sampled

SAMPLES, TRAINING, CLASSES = 150, 300, 3


def rules() -> dict[str, Callable[[], ReliableClassifier]]:
    """By name."""

    def rule(make: Callable[[], Any], kind: str | Sampled, **options: Any) -> Callable[[], Any]:
        chosen = {"correct": False, "reliability": 0.99} | options
        return lambda: ReliableClassifier(make(), rule=kind, n_threads=1, **chosen)

    mixture = MixtureCompletion(n_threads=1)
    sampled = {"reliability": 0.95}
    return {
        "LDA, pairwise, raw": rule(_lda, "pairwise"),
        "LDA, pairwise, corrected": rule(_lda, "pairwise", correct=True, reliability=0.95),
        "LDA, pairwise, mixture": rule(_lda, "pairwise", completion=mixture),
        "LDA, mahalanobis": rule(_lda, "mahalanobis"),
        "LDA, chebyshev": rule(_lda, "chebyshev"),
        "LDA, quadratic": rule(_lda, "quadratic"),
        "LDA, box": rule(_lda, "box"),
        "naive Bayes, quadratic": rule(GaussianNB, "quadratic"),
        "naive Bayes, box": rule(GaussianNB, "box"),
        "LDA, sampled": rule(_lda, Sampled(1024), **sampled),
        "GEM, sampled": rule(
            lambda: GEMClassifier(views="gem", n_threads=1), Sampled(1024), **sampled
        ),
    }


def _lda() -> LinearDiscriminantAnalysis:
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def series(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Random walks with a drift by class."""
    y = random.integers(0, CLASSES, n)
    walks = random.standard_normal((n, SAMPLES)).cumsum(axis=1) / 3
    return walks + 0.6 * y[:, None] * np.linspace(0, 3, SAMPLES), y


def steps(model: ReliableClassifier, rows: np.ndarray) -> tuple[list[float], list[float]]:
    """Milliseconds of the steps that wait, and of those that decide before the last sample."""
    waiting, deciding = [], []
    for row in rows:
        stream = model.stream()
        for sample in row[:-1]:
            begun = time.perf_counter()
            decision = stream.push(sample)
            taken = 1e3 * (time.perf_counter() - begun)
            (waiting if decision is None else deciding).append(taken)
            if decision is not None:
                break
    return waiting, deciding


def main() -> None:
    """Time the rules, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rules", default="", help="part of a rule's name")
    parser.add_argument("--series", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    X, y = series(random, TRAINING)
    rows, _ = series(random, options.series)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in rules().items():
            if options.rules not in name:
                continue
            model = make().fit(X, y)
            steps(model, rows)
            found = [steps(model, rows) for _ in range(options.rounds - 1)]
            waiting = np.concatenate([one[0] for one in found])
            deciding = np.concatenate([one[1] for one in found])
            last = f"{deciding.mean():.3f}" if len(deciding) else "-"
            print(
                f"{name}: waits {np.median(waiting):.3f}, 95% {np.quantile(waiting, 0.95):.3f}, "
                f"decides {last} ms ({len(waiting)} and {len(deciding)} steps)",
                flush=True,
            )


if __name__ == "__main__":
    main()
