"""Steps of jointly trained layers beside PyTorch's layers, scikit-learn's perceptron, and BLAS.

    python bench/joint.py [--layers 1|2|3] [--threads 2]

Steps of 250 samples of 784 float32 columns, 10 classes, by Adam; layers of 900, 900 and 450
directions. `JointGEMClassifier` is timed by the step, with shifted samples and without. PyTorch,
where it is installed, trains the same layers without shifted samples; scikit-learn's perceptron has
as many units (ReLU) as they have half waves. "the products by NumPy" are the float32 products of a
step alone, with nothing between them; the BLAS rate is that of a product of order 2,048. All run in
turn.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from eigenfeat import GEM, MultinomialLogit, show_versions
from eigenfeat.gem import JointGEMClassifier, joint

ROWS, COLUMNS, CLASSES, PAIRS = 12_500, 784, 10, 90
DIRECTIONS = 900, 900, 450
ROUNDS = 3
BATCH = 250


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def blas_rate() -> float:
    """Gigaflops per second of float32 products."""
    a = np.random.default_rng(0).standard_normal((2048, 2048), dtype=np.float32)
    return 2 * 2048**3 / min(seconds(lambda: a @ a) for _ in range(5)) / 1e9


def shapes(layers: int) -> list[tuple[int, int]]:
    """Rows and columns of each layer's directions."""
    counts = DIRECTIONS[:layers]
    return list(zip([COLUMNS, *(2 * c for c in counts)], counts, strict=False))


def own_steps(X: Any, y: Any, layers: int, perturbation: float, threads: int) -> list[float]:
    """Seconds of each step of an epoch."""
    took: list[float] = []
    take = joint._Steps.take

    def timed(*arguments: Any) -> tuple[float, float]:
        start = time.perf_counter()
        losses = take(*arguments)
        if len(arguments[2]) == BATCH:
            took.append(time.perf_counter() - start)
        return losses

    with patch.object(joint._Steps, "take", timed):
        JointGEMClassifier(
            GEM(
                scale="none",
                threshold=None,
                n_directions=shapes(layers)[-1][1] // PAIRS,
                powers=(1,),
            ),
            MultinomialLogit(penalty=1.0, tol=0.1),
            depth=layers,
            hidden_directions=DIRECTIONS[0] // PAIRS,
            epochs=1,
            perturbation=perturbation,
            n_threads=threads,
        ).fit(X, y)
    return took


def products(X: Any, layers: int) -> list[float]:
    """The products of steps: projections, gradients of directions, and slopes of later layers."""
    rng = np.random.default_rng(1)
    directions = [rng.standard_normal(s, dtype=np.float32) for s in shapes(layers)]
    inputs = [rng.standard_normal((BATCH, len(d)), dtype=np.float32) for d in directions]
    slopes = [rng.standard_normal((BATCH, d.shape[1]), dtype=np.float32) for d in directions]

    def step() -> None:
        for number, (rows, d, slope) in enumerate(zip(inputs, directions, slopes, strict=True)):
            rows @ d
            rows.T @ slope
            if number:
                slope @ d.T

    took = []
    for begin in range(0, len(X), BATCH):
        inputs[0] = X[begin : begin + BATCH]
        took.append(seconds(step))
    return took


def torch_steps(X: Any, y: Any, layers: int, threads: int) -> list[float]:
    """Steps of the same layers in PyTorch; none where it is not installed."""
    try:
        import torch
    except ImportError:
        return []
    torch.set_num_threads(threads)
    rows = torch.frombuffer(bytearray(X.tobytes()), dtype=torch.float32).reshape(X.shape)
    labels = torch.tensor(y.tolist())
    sizes = shapes(layers)
    linear = [torch.nn.Linear(*s) for s in [*sizes, (2 * sizes[-1][1], CLASSES)]]
    adam = torch.optim.Adam([p for layer in linear for p in layer.parameters()], lr=1e-3)
    order = torch.randperm(len(rows))

    def step(batch: Any) -> None:
        h = rows[batch]
        for layer in linear[:-1]:
            p = layer(h)
            h = torch.sqrt(1 + torch.relu(torch.cat([p, -p], dim=1))) - 1
        adam.zero_grad()
        torch.nn.functional.cross_entropy(linear[-1](h), labels[batch]).backward()
        adam.step()

    return [
        seconds(lambda: step(order[begin : begin + BATCH]))  # noqa: B023
        for begin in range(0, len(rows), BATCH)
    ]


def perceptron_steps(X: Any, y: Any, layers: int) -> list[float]:
    """A step's share of an epoch."""
    model = MLPClassifier([2 * count for _, count in shapes(layers)], batch_size=BATCH)
    model.partial_fit(X[:BATCH], y[:BATCH], classes=np.arange(CLASSES))
    return [seconds(lambda: model.partial_fit(X, y)) / (len(X) / BATCH)]


def measure(layers: int, threads: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, ROWS)
    spread = 0.5 + rng.random((CLASSES, COLUMNS), dtype=np.float32)
    X = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32) * spread[y]
    warnings.simplefilter("ignore")  # that an epoch is too few
    contenders: dict[str, Callable[[], list[float]]] = {
        "JointGEMClassifier, shifted samples": lambda: own_steps(X, y, layers, 0.15, threads),
        "JointGEMClassifier": lambda: own_steps(X, y, layers, 0.0, threads),
        "the products by NumPy": lambda: products(X, layers),
        "PyTorch": lambda: torch_steps(X, y, layers, threads),
        "MLPClassifier": lambda: perceptron_steps(X, y, layers),
    }
    took: dict[str, list[float]] = {name: [] for name in contenders}
    rate = 0.0
    for _ in range(ROUNDS):
        for name, steps in contenders.items():
            took[name] += steps()
        rate = max(rate, blas_rate())
    show_versions()
    print(f"{threads} threads; BLAS rate, float32: {rate:.0f} Gflop/s")
    (d, f), *later = shapes(layers)
    of_later = sum(rows * cols for rows, cols in later)
    flops = dict.fromkeys(took, BATCH * (4 * d * f + 6 * of_later))
    flops["JointGEMClassifier, shifted samples"] = BATCH * (10 * d * f + 12 * of_later)
    by_numpy = flops["the products by NumPy"] / min(took["the products by NumPy"])
    for name, each in took.items():
        if each:
            own = flops[name] / min(each)
            share = f"{own / rate / 1e7:4.0f}% of it, {100 * own / by_numpy:4.0f}% of the products'"
            print(
                f"{name:36} best {1e3 * min(each):7.2f} median {1e3 * np.median(each):7.2f} ms "
                f"a step{'' if name.startswith('MLP') else ', ' + share}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--layers", type=int, choices=(1, 2, 3), default=3)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    with threadpool_limits(chosen.threads):
        measure(chosen.layers, chosen.threads)


if __name__ == "__main__":
    main()
