"""Epochs of jointly trained layers: seconds beside scikit-learn's MLPClassifier, and the BLAS rate.

    python bench/joint.py [--directions 900] [--layers 1|2]

20,000 rows of 784 float32 columns, 10 classes. `JointGEMClassifier` is timed by the
difference of fits with one and five epochs, the perceptron (ReLU, as many units as half waves,
steps of 250 rows, Adam) likewise. The BLAS rate is that of a product of two float32 matrices of
order 2,048 with NumPy. Ours and the perceptron run in turn; the least time of each in three rounds
counts.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier

from eigenfeat import GEM, MultinomialLogit, show_versions
from eigenfeat.gem import JointGEMClassifier

ROWS, COLUMNS, CLASSES, PAIRS = 20_000, 784, 10, 90
ROUNDS = 3
EPOCHS = 1, 5


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def blas_rate() -> float:
    """Gigaflops per second of float32 products."""
    a = np.random.default_rng(0).standard_normal((2048, 2048), dtype=np.float32)
    return 2 * 2048**3 / min(seconds(lambda: a @ a) for _ in range(5)) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--directions", type=int, default=900)
    parser.add_argument("--layers", type=int, choices=(1, 2), default=1)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, ROWS)
    spread = 0.5 + rng.random((CLASSES, COLUMNS), dtype=np.float32)
    X = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32) * spread[y]
    each = max(chosen.directions // PAIRS, 1)
    count, units = each * PAIRS, 2 * each * PAIRS

    def ours(epochs: int, perturbation: float) -> Any:
        return JointGEMClassifier(
            GEM(scale="none", threshold=None, n_directions=each, powers=(1,)),
            MultinomialLogit(penalty=1.0, tol=0.1),
            depth=chosen.layers,
            hidden_directions=each,
            epochs=epochs,
            perturbation=perturbation,
        ).fit(X, y)

    def perceptron(epochs: int, _: float) -> Any:
        hidden = [units] * chosen.layers
        return MLPClassifier(hidden, batch_size=250, max_iter=epochs, tol=0).fit(X, y)

    warnings.simplefilter("ignore")  # that the perceptron has not converged
    contenders = {
        "JointGEMClassifier, shifted samples": (ours, 0.15),
        "JointGEMClassifier": (ours, 0.0),
        "MLPClassifier": (perceptron, 0.0),
    }
    least = {name: dict.fromkeys(EPOCHS, np.inf) for name in contenders}
    for _ in range(ROUNDS):
        for name, (fit, perturbation) in contenders.items():
            for epochs in EPOCHS:
                took = seconds(partial(fit, epochs, perturbation))
                least[name][epochs] = min(least[name][epochs], took)
    few, many = EPOCHS
    best = {name: (took[many] - took[few]) / (many - few) for name, took in least.items()}
    show_versions()
    rate = blas_rate()
    later = 2 * count * count if chosen.layers == 2 else 0
    print(f"BLAS rate, float32: {rate:.0f} Gflop/s")
    for name, (_, perturbation) in contenders.items():
        of_each = (10, 12) if perturbation else (4, 6)  # products: the first layer's, the second's
        flops = ROWS * (of_each[0] * COLUMNS * count + of_each[1] * later)
        share = "" if name.startswith("MLP") else f", {flops / best[name] / rate / 1e7:.0f}% of it"
        print(f"{name:28} {best[name]:6.2f} s an epoch{share}")


if __name__ == "__main__":
    main()
