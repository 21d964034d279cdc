"""LDG of all columns at once, and a part at a time: accuracy, seconds, memory.

    python bench/partition.py --data DIR [--rows 4000] [--columns 8000] [--part-size 1000]

The columns are products of random pairs of MNIST's pixels, so that rows and columns are both many;
DIR holds ``mnist.npz``. Accuracy is that of 3-NN on 10,000 test rows; each way runs in a process of
its own, whose peak memory is printed with what the rows alone take.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from eigenfeat.ldg import LDG, PartitionedReducer

WAYS = ("all columns", "contiguous", "random", "random, then LDG", "pixels")


def products(options: argparse.Namespace) -> tuple[Any, Any, Any, Any]:
    """Training and test rows of products of pixels, and their labels."""
    with np.load(options.data / "mnist.npz") as file:
        X, y, T, t = (file[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    kept = np.random.RandomState(0).permutation(len(X))[: options.rows]
    varying = np.flatnonzero(X.std(axis=0) > 16)
    first, second = np.random.RandomState(1).choice(varying, (2, options.columns))

    def of(pixels: Any) -> Any:
        pixels = pixels.astype(np.float32) / 255
        return pixels if options.way == "pixels" else pixels[:, first] * pixels[:, second]

    return of(X[kept]), y[kept], of(T), t


def kilobytes(name: str) -> int:
    """One of Linux's figures of this process's memory."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def measure(options: argparse.Namespace) -> None:
    X, y, T, t = products(options)
    one = LDG(20, gamma=0.3, n_neighbors=8)
    size = options.part_size
    models = {
        "all columns": one,
        "pixels": one,
        "contiguous": PartitionedReducer(one, part_size=size),
        "random": PartitionedReducer(one, part_size=size, partition="random"),
    }
    models["random, then LDG"] = make_pipeline(models["random"], LDG(20, gamma=0.3, n_neighbors=8))
    model = models[options.way]
    Path("/proc/self/clear_refs").write_text("5")  # the most memory so far is forgotten
    before = kilobytes("VmRSS")
    begun, own = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, processor = time.perf_counter() - begun, time.process_time() - own
    peak = kilobytes("VmHWM") - before
    right = KNeighborsClassifier(3).fit(model.transform(X), y).score(model.transform(T), t)
    print(
        f"{options.way}: {X.shape}, {100 * right:.1f}%, {seconds:.1f} s ({processor:.1f} s of "
        f"processor time), {peak / 1024:.0f} MB more than the {X.nbytes / 2**20:.0f} MB of rows",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--columns", type=int, default=8000)
    parser.add_argument("--part-size", type=int, default=1000)
    options = parser.parse_args()
    for way in options.ways:
        options.way = way
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(options,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
