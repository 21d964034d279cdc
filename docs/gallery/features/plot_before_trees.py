"""
GEM projections as further columns for boosted trees
====================================================

Trees split one column at a time. If classes differ along oblique directions, projections on GEM's
directions save many splits. If classes are boxes, the projections do not help.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline, make_union

from eigenfeat import GEM

rng = np.random.default_rng(0)
rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0]
spread = np.where(np.arange(12) < 2, 3.0, 0.7)
A = rng.normal(size=(400, 12)) * spread
B = rng.normal(size=(400, 12)) * spread[::-1]
boxes = rng.random((800, 12))
inside = ((boxes[:, 0] > 0.3) & (boxes[:, 1] < 0.6)) | (boxes[:, 2] > 0.85)
sets = {
    "rotated Gaussians": (np.concatenate([A, B]) @ rotation, np.repeat([0, 1], 400)),
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "boxes": (boxes, inside),
}
trees = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, random_state=0)
gem = GEM(n_directions=2, powers=(1,), random_state=0)
with_gem = make_pipeline(make_union("passthrough", gem), trees)

# %%
# Accuracy in three folds, of the trees alone and with the half waves of two directions per pair.

found = {
    name: [cross_val_score(model, X, y, cv=3).mean() for model in (trees, with_gem)]
    for name, (X, y) in sets.items()
}
for name, (alone, together) in found.items():
    print(f"{name:20} {alone:.3f} -> {together:.3f}")

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for place, (alone, together) in enumerate(found.values()):
    ax.annotate("", (together, place), (alone, place), arrowprops={"arrowstyle": "->", "lw": 2})
    ax.plot(alone, place, "o", color="tab:gray")
    ax.plot(together, place, "o", color="tab:blue")
ax.set(yticks=range(len(found)), yticklabels=list(found), xlabel="accuracy in three folds")
ax.plot([], [], "o", color="tab:gray", label="boosted trees")
ax.plot([], [], "o", color="tab:blue", label="with GEM projections")
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
ax.margins(y=0.2)
plt.show()
