"""Table 2: handwritten digits, permutation invariant, without further training images.

GEM expands its projections by shifted waves, which held-out rows favour; the random directions
have the half waves of the paper's Algorithm 1. The two rows differ by more than their directions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.papers import builders, settings
from bench.papers.protocol import (
    Context,
    Data,
    Method,
    Paper,
    Problem,
    Protocol,
    Rows,
    read_arrays,
    subsample,
)

__all__ = ["PROTOCOL", "load"]


def load(path: Path, context: Context) -> Data:
    """Return the official split, pixels in 0..1; a quick run trains on fewer rows."""
    limit = settings.MNIST_QUICK_ROWS if context.quick else None

    def part(name: str) -> Rows:
        rows = Rows(*read_arrays(path, f"X_{name}", f"y_{name}"))
        kept = subsample(rows, limit if name == "train" else None, context.seed)
        X = kept.X.astype(np.float32)
        X /= 255
        return Rows(X, kept.y.astype(np.int64))

    # Digits of one writer stand together (3.7% have the nearest other one of their class within a
    # hundred rows, eleven times chance), and the test set is of other writers.
    return Data(part("train"), lambda: part("test"), by_source=not context.quick)


METHODS = (
    Method("GEM", builders.gem, settings.MNIST_GEM, Paper(error="1.08")),
    Method("deep GEM", builders.gem, settings.MNIST_DEEP, Paper(error="0.96")),
    Method(
        "random directions",
        builders.random_directions,
        settings.MNIST_RANDOM,
        Paper(error="2.83"),
        directions_of="GEM",
    ),
    Method("SVM, Gaussian kernel", builders.svc, settings.SVC_ON_PIXELS, peer=True),
    Method("multilayer perceptron", builders.perceptron, settings.PERCEPTRON, peer=True),
    Method("boosted trees", builders.boosting, settings.BOOSTING, peer=True),
)

PROTOCOL = Protocol(
    "mnist",
    "handwritten digits, Table 2 of the paper",
    (
        Problem(
            name="mnist",
            title="MNIST",
            split="official split; chosen on the last sixth of the training rows, which is of "
            "other writers, then trained on all\n"
            "waves: GEM's are shifted, (sqrt(1 + max(0, s p)) - 1)^a, random directions' are the "
            "paper's half waves, max(0, s p)^(a/2)",
            file="mnist.npz",
            arrays={
                "X_train": "(60000, 784) pixels 0..255",
                "y_train": "(60000,) digits",
                "X_test": "(10000, 784) pixels",
                "y_test": "(10000,) digits",
            },
            load=load,
            methods=METHODS,
            quoted=(
                Paper("Maxout", error="0.94"),
                Paper("DropConnect", error="1.12"),
                Paper("Dropout", error="1.20"),
            ),
        ),
    ),
)
