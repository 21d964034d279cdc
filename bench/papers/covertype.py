"""Table 3: forest cover types from cartographic variables.

The file holds 102,821 distinct rows of 581,012. 15,120 of them, the first of X_first20k, are the
balanced sample of the data's own study, 2,160 rows of each class; so rare classes are more frequent
than in the paper's random split of all rows, and its figures are not of the same problem.
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
)

__all__ = ["PROTOCOL", "load"]

N_NUMERIC = 10  # columns before the indicators of wilderness and soil
N_REPEATED = 1_720  # first rows of X_random50k, which X_first20k holds, too
PARTS = (("extra", 0), ("random50k", N_REPEATED), ("first20k", 0))


def load(path: Path, context: Context) -> Data:
    """Return distinct rows in random order, the last tenth for testing.

    Numeric columns are standardised by the training rows' means and deviations.
    """
    X = np.concatenate([read_arrays(path, f"X_{part}")[0][skip:] for part, skip in PARTS])
    y = np.concatenate([read_arrays(path, f"y_{part}")[0][skip:] for part, skip in PARTS])
    order = np.random.RandomState(context.seed).permutation(len(y))
    order = order[: settings.COVERTYPE_QUICK_ROWS] if context.quick else order
    n_train = len(order) - round(settings.COVERTYPE_TEST_SHARE * len(order))
    numeric = X[order[:n_train], :N_NUMERIC].astype(np.float64)
    mean, deviation = numeric.mean(axis=0), numeric.std(axis=0)

    def part(chosen: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Rows:
        rows = X[chosen].astype(np.float32)
        rows[:, :N_NUMERIC] = (rows[:, :N_NUMERIC] - mean) / deviation
        return Rows(rows, y[chosen].astype(np.int64))

    return Data(part(order[:n_train]), lambda: part(order[n_train:]))


METHODS = (
    Method("GEM", builders.gem, settings.COVERTYPE_GEM, Paper(error="12.9")),
    Method("RFF", builders.fourier, settings.COVERTYPE_RFF, Paper(error="12.7")),
    Method("deep GEM", builders.gem, settings.COVERTYPE_DEEP, Paper(error="9.8")),
    Method(
        "GEM + RFF (ensemble)",
        builders.gem_on_fourier,
        settings.COVERTYPE_GEM_ON_RFF,
        ensemble=builders.fourier_draws,
        members=Paper("GEM + RFF", error="8.4"),
    ),
    Method(
        "SVM, Gaussian kernel",
        builders.svc,
        settings.SVC_ON_COVERTYPE,
        Paper(error="8.8"),
        peer=True,
    ),
)

PROTOCOL = Protocol(
    "covertype",
    "forest cover types, Table 3 of the paper",
    (
        Problem(
            name="covertype",
            title="Covertype, 102,821 distinct rows, of which 15,120 are a sample of equal classes "
            "(the paper has all 581,012)",
            split="random order, last tenth for testing; chosen on a sixth of the training rows",
            file="covtype_subset.npz",
            arrays={
                f"{letter}_{part}": f"{shape} {what}"
                for part, n in (("extra", 34541), ("random50k", 50000), ("first20k", 20000))
                for letter, shape, what in (
                    ("X", f"({n}, 54)", "columns in the official order"),
                    ("y", f"({n},)", "types 1..7"),
                )
            },
            load=load,
            methods=METHODS,
        ),
    ),
)
