"""The trust-region subproblem as a semidefinite program, run by the interpreter that has a solver.

    python bench/peers/conic_region.py TASK.npz SOLVER COUNT

TASK.npz holds A (n, d, d), g (n, d) and radius (n,). The relaxation is exact (the S-lemma):

    min tr(A X) + 2 g^T x,   tr X <= radius^2,   [X x; x^T 1] positive semidefinite.

The first COUNT problems are solved one after the other; out comes one line of JSON. Clarabel or SCS
are best kept in an environment of their own; this file needs NumPy and SciPy besides.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from scipy import sparse

SOLVERS = ("clarabel", "scs")


def program(
    A: Any, g: Any, radius: float, lower: bool
) -> tuple[Any, sparse.csc_matrix, np.ndarray, int]:
    """``q, G, h, m`` of: minimise ``q^T z``, ``h - G z`` in {0} x R+ x (triangles of order m).

    z is the triangle of [X x; x^T 1] by columns, off the diagonal times the root of 2.
    """
    m = len(g) + 1
    whole = np.zeros((m, m))
    whole[:-1, :-1], whole[-1, :-1], whole[:-1, -1] = A, g, g
    i, j = np.tril_indices(m) if lower else np.triu_indices(m)
    order = np.lexsort((i, j))
    i, j = i[order], j[order]
    scale = np.where(i == j, 1.0, np.sqrt(2.0))
    q = whole[i, j] * scale
    corner = ((i == m - 1) & (j == m - 1)).astype(float)
    trace = ((i == j) & (i < m - 1)).astype(float)
    rows = [sparse.csc_matrix(corner), sparse.csc_matrix(trace), -sparse.identity(len(q))]
    h = np.concatenate([[1.0, radius**2], np.zeros(len(q))])
    return q, sparse.csc_matrix(sparse.vstack(rows)), h, m


def by_clarabel(A: Any, g: Any, radius: float) -> float:
    """Upper triangles by columns."""
    import clarabel

    q, G, h, m = program(A, g, radius, lower=False)
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(1), clarabel.PSDTriangleConeT(m)]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    none = sparse.csc_matrix((len(q), len(q)))
    return float(clarabel.DefaultSolver(none, q, G, h, cones, settings).solve().obj_val)


def by_scs(A: Any, g: Any, radius: float) -> float:
    """Lower triangles by columns."""
    import scs

    q, G, h, m = program(A, g, radius, lower=True)
    data, cones = {"A": G, "b": h, "c": q}, {"z": 1, "l": 1, "s": [m]}
    settings = {"verbose": False, "eps_abs": 1e-7, "eps_rel": 1e-7}
    return float(scs.SCS(data, cones, **settings).solve()["info"]["pobj"])


def main() -> None:
    """See the module."""
    path, solver, count = sys.argv[1:]
    solve = {"clarabel": by_clarabel, "scs": by_scs}[solver]
    with np.load(path, allow_pickle=False) as task:
        A, g, radius = (task[name][: int(count)] for name in ("A", "g", "radius"))
    started = time.perf_counter()
    values = [solve(*one) for one in zip(A, g, radius, strict=True)]
    print(json.dumps({"seconds": (time.perf_counter() - started) / len(g), "values": values}))


if __name__ == "__main__":
    main()
