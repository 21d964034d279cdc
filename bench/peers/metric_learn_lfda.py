"""metric-learn's local Fisher discriminant analysis, in a process of its own.

metric-learn 0.7 needs scikit-learn below 1.8, so that it often lives in another environment:

    python bench/peers/metric_learn_lfda.py ROWS.npz COMPONENTS.npy N_COMPONENTS THREADS

fits to X, y of the first file once for each line "fit" that it reads, writes its components to the
second, and answers "done". It says "ready" first, or why it cannot.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np


class SortedAlongRows:
    """NumPy for metric-learn, but that ``partition(a, k, axis=0)[:, k]`` is what it means there.

    ``metric_learn.lfda`` sorts the symmetric matrix of distances along columns and then reads one
    column: distances from a single row instead of every row's k-th. Transposed it reads the latter.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def partition(self, a: np.ndarray, k: int, axis: int) -> np.ndarray:
        return np.partition(a, k, axis=axis).T


def main(rows: str, target: str, n_components: str, threads: str) -> None:
    try:
        from metric_learn import LFDA, lfda
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        print(f"metric-learn cannot be imported: {error}", flush=True)
        return
    lfda.np = SortedAlongRows()
    warnings.simplefilter("ignore", FutureWarning)  # that scikit-learn 1.8 will refuse it
    data = np.load(rows)
    print("ready", flush=True)
    with threadpool_limits(limits=int(threads)):
        for line in sys.stdin:
            if line.strip() == "fit":
                model = LFDA(n_components=int(n_components), k=7).fit(data["X"], data["y"])
                print("done", flush=True)
        np.save(target, model.components_)


if __name__ == "__main__":
    main(*sys.argv[1:])
