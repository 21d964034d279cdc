"""Epochs of jointly trained layers beside scikit-learn's perceptron, PyTorch's layers, and BLAS.

    python bench/joint.py [--directions 900] [--layers 1|2] [--threads 2]

20,000 samples of 784 float32 columns, 10 classes, steps of 250 samples by Adam.
`JointGEMClassifier` and scikit-learn's perceptron (ReLU, as many units as half waves) are timed by
the difference of fits with one and five epochs. PyTorch, where it is installed, trains the same
layers, without shifted samples. "the products by NumPy" are the float32 products of an epoch alone,
with nothing between them; the BLAS rate is that of a product of order 2,048. All run in turn; the
least time of each in three rounds counts.
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
from threadpoolctl import threadpool_limits

from eigenfeat import GEM, MultinomialLogit, show_versions
from eigenfeat.gem import JointGEMClassifier

ROWS, COLUMNS, CLASSES, PAIRS = 20_000, 784, 10, 90
ROUNDS = 3
BATCH = 250
EPOCHS = 1, 5


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def blas_rate() -> float:
    """Gigaflops per second of float32 products."""
    a = np.random.default_rng(0).standard_normal((2048, 2048), dtype=np.float32)
    return 2 * 2048**3 / min(seconds(lambda: a @ a) for _ in range(5)) / 1e9


def shapes(count: int, layers: int) -> list[tuple[int, int]]:
    """Rows and columns of each layer's directions."""
    return [(COLUMNS, count), (2 * count, count)][:layers]


def products(X: Any, count: int, layers: int) -> Callable[[], None]:
    """An epoch's products: projections, gradients of directions, and slopes of later layers."""
    rng = np.random.default_rng(1)
    directions = [rng.standard_normal(s, dtype=np.float32) for s in shapes(count, layers)]
    inputs = [rng.standard_normal((BATCH, len(d)), dtype=np.float32) for d in directions]
    slopes = rng.standard_normal((BATCH, count), dtype=np.float32)

    def epoch() -> None:
        for begin in range(0, len(X), BATCH):
            inputs[0] = X[begin : begin + BATCH]
            for number, (rows, d) in enumerate(zip(inputs, directions, strict=True)):
                rows @ d
                rows.T @ slopes
                if number:
                    slopes @ d.T

    return epoch


def torch_epoch(X: Any, y: Any, count: int, layers: int, threads: int) -> Callable[[], None] | None:
    """An epoch of the same layers in PyTorch; None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    rows = torch.frombuffer(bytearray(X.tobytes()), dtype=torch.float32).reshape(X.shape)
    labels = torch.tensor(y.tolist())
    linear = [torch.nn.Linear(*s) for s in [*shapes(count, layers), (2 * count, CLASSES)]]
    adam = torch.optim.Adam([p for layer in linear for p in layer.parameters()], lr=1e-3)

    def epoch() -> None:
        order = torch.randperm(len(rows))
        for begin in range(0, len(rows), BATCH):
            batch = order[begin : begin + BATCH]
            h = rows[batch]
            for layer in linear[:-1]:
                p = layer(h)
                h = torch.sqrt(1 + torch.relu(torch.cat([p, -p], dim=1))) - 1
            adam.zero_grad()
            torch.nn.functional.cross_entropy(linear[-1](h), labels[batch]).backward()
            adam.step()

    return epoch


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--directions", type=int, default=900)
    parser.add_argument("--layers", type=int, choices=(1, 2), default=1)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    with threadpool_limits(chosen.threads):
        measure(chosen.directions, chosen.layers, chosen.threads)


def measure(n_directions: int, layers: int, threads: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, ROWS)
    spread = 0.5 + rng.random((CLASSES, COLUMNS), dtype=np.float32)
    X = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32) * spread[y]
    each = max(n_directions // PAIRS, 1)
    count, units = each * PAIRS, 2 * each * PAIRS

    def ours(epochs: int, perturbation: float) -> Any:
        return JointGEMClassifier(
            GEM(scale="none", threshold=None, n_directions=each, powers=(1,)),
            MultinomialLogit(penalty=1.0, tol=0.1),
            depth=layers,
            hidden_directions=each,
            epochs=epochs,
            perturbation=perturbation,
            n_threads=threads,
        ).fit(X, y)

    def perceptron(epochs: int, _: float) -> Any:
        hidden = [units] * layers
        return MLPClassifier(hidden, batch_size=BATCH, max_iter=epochs, tol=0).fit(X, y)

    warnings.simplefilter("ignore")  # that the perceptron has not converged
    fits = {
        "JointGEMClassifier, shifted samples": (ours, 0.15),
        "JointGEMClassifier": (ours, 0.0),
        "MLPClassifier": (perceptron, 0.0),
    }
    epochs = {
        "the products by NumPy": products(X, count, layers),
        "PyTorch": torch_epoch(X, y, count, layers, threads),
    }
    least = {name: dict.fromkeys(EPOCHS, np.inf) for name in fits}
    best = {name: np.inf for name, epoch in epochs.items() if epoch is not None}
    rate = 0.0
    for _ in range(ROUNDS):
        for name, (fit, perturbation) in fits.items():
            for number in EPOCHS:
                took = seconds(partial(fit, number, perturbation))
                least[name][number] = min(least[name][number], took)
        for name in best:
            best[name] = min(best[name], *(seconds(epochs[name]) for _ in range(3)))
        rate = max(rate, blas_rate())
    few, many = EPOCHS
    best |= {name: (took[many] - took[few]) / (many - few) for name, took in least.items()}
    show_versions()
    print(f"{threads} threads; BLAS rate, float32: {rate:.0f} Gflop/s")
    later = 2 * count * count if layers == 2 else 0
    flops = dict.fromkeys(best, ROWS * (4 * COLUMNS * count + 6 * later))
    flops["JointGEMClassifier, shifted samples"] = ROWS * (10 * COLUMNS * count + 12 * later)
    by_numpy = flops["the products by NumPy"] / best["the products by NumPy"]
    for name, took in sorted(best.items(), key=lambda item: item[1]):
        share = ""
        if not name.startswith("MLP"):
            own = flops[name] / took
            share = f", {own / rate / 1e7:.0f}% of it, {100 * own / by_numpy:.0f}% of the products'"
        print(f"{name:36} {took:6.2f} s an epoch{share}")


if __name__ == "__main__":
    main()
