"""
Curved classes: LDG in a kernel's feature space
===============================================

No linear reduction can separate two spirals. ``KernelLDG`` separates them in one dimension.
"""

import matplotlib.pyplot as plt
import numpy as np

from eigenfeat import LDG
from eigenfeat.ldg import KernelLDG

rng = np.random.default_rng(0)
t = np.sqrt(rng.uniform(0.1, 1, 300)) * 2.2 * np.pi
arm = np.c_[t * np.cos(t), t * np.sin(t)]
X = np.concatenate([arm, -arm]) + 0.25 * rng.normal(size=(600, 2))
y = np.repeat([0, 1], 300)

linear = LDG(1, random_state=0).fit(X, y)
kernel = KernelLDG(1, kernel="rbf", kernel_gamma=4, gamma=0.5, n_neighbors=8).fit(X, y)

fig, axes = plt.subplots(1, 3, figsize=(8, 3.2), layout="constrained")
axes[0].scatter(*X.T, c=y, s=6, cmap="RdBu_r")
axes[0].set(title="samples", xticks=[], yticks=[])
for ax, model in zip(axes[1:], (linear, kernel), strict=True):
    heights = y + rng.uniform(-0.3, 0.3, 600)
    ax.scatter(model.transform(X), heights, c=y, s=6, cmap="RdBu_r")
    ax.set(title=f"{type(model).__name__}(1)", xlabel="component", yticks=[0, 1], ylabel="class")
plt.show()

# %%
# The component at each point of the plane.

grid = np.stack(np.meshgrid(*[np.linspace(-8, 8, 120)] * 2), axis=-1).reshape(-1, 2)
fig, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
values = kernel.transform(grid)[:, 0].reshape(120, 120)
size = np.abs(values).max()
ax.contourf(
    np.linspace(-8, 8, 120), np.linspace(-8, 8, 120), values, 20, cmap="RdBu", vmin=-size, vmax=size
)
ax.scatter(*X.T, c=y, cmap="RdBu_r", s=8, edgecolors="k", linewidths=0.3)
ax.set(aspect="equal", xticks=[], yticks=[])
plt.show()
