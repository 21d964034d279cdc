"""
Sparse directions
=================

Each direction of ``SparseLDG`` has weights on few columns, which are the measurements that the
direction uses.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from eigenfeat.ldg import LDG, SparseLDG

data = load_wine()
common = {"n_components": 3, "gamma": 0.6, "n_neighbors": 8}
dense = LDG(**common).fit(data.data, data.target)
sparse = SparseLDG(**common, sparsity=3).fit(data.data, data.target)

fig, axes = plt.subplots(1, 2, figsize=(9, 4.5), sharey=True, layout="constrained")
for ax, name, model in ((axes[0], "LDG", dense), (axes[1], "SparseLDG, sparsity 3", sparse)):
    weights = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    ax.imshow(weights.T, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    for (direction, column), weight in np.ndenumerate(weights):
        if abs(weight) > 1e-3:
            ax.text(direction, column, f"{weight:.2f}", ha="center", va="center", fontsize=8)
    ax.set(title=name, xlabel="direction", xticks=range(3))
axes[0].set_yticks(range(len(data.feature_names)), data.feature_names)
plt.show()
print("columns of each direction:", sparse.sparsity_)
