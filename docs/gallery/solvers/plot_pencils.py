"""
Pencils of matrices
===================

``generalized_eigh`` solves ``A v = lambda B v`` for stacks of symmetric matrices. It computes
residuals from the original matrices.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from eigenfeat import generalized_eigh

rng = np.random.default_rng(0)


def moment(d, decay):
    rows = rng.normal(size=(2 * d, d)) * np.exp(-decay * np.arange(d) / d)
    return rows.T @ rows / len(rows)


sizes = (50, 100, 200, 400)
seconds = {"scipy.linalg.eigh": [], "generalized_eigh": []}
worst = []
for d in sizes:
    A = np.stack([moment(d, 3) for _ in range(4)])
    B = moment(d, 1) + 0.1 * np.eye(d)
    start = perf_counter()
    with threadpool_limits(1):
        for one in A:
            eigh(one, B, subset_by_index=[d - 5, d - 1])
    seconds["scipy.linalg.eigh"].append(perf_counter() - start)
    start = perf_counter()
    found = generalized_eigh(A, B, n_vectors=5, n_threads=1)
    seconds["generalized_eigh"].append(perf_counter() - start)
    worst.append(found.residuals.max())

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for name, times in seconds.items():
    axes[0].loglog(sizes, times, "o-", label=name)
axes[0].set(xlabel="size of a matrix", ylabel="seconds for four pencils", xticks=sizes)
axes[0].set_xticklabels(sizes)
axes[0].minorticks_off()
axes[0].legend()
axes[1].semilogy(sizes, worst, "o-")
axes[1].set(xlabel="size of a matrix", ylabel="largest relative residual")
plt.show()
