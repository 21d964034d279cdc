"""
Spatial filters of simulated EEG
================================

The eigenproblems of GEM, applied to band-passed signals of several channels, are those of common
spatial patterns (CSP). In this simulation four sources lie under a cap of electrodes. The power of
one source decreases with each imagined movement. The filters extract the sources, and their
patterns show the positions of the sources.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from eigenfeat import SpatialFilters

rng = np.random.default_rng(0)
ring = np.array([(r, a) for r in (0, 0.3, 0.6, 0.9) for a in np.linspace(0, 2 * np.pi, 12)[:-1]])
electrodes = np.c_[ring[:, 0] * np.cos(ring[:, 1]), ring[:, 0] * np.sin(ring[:, 1])]
electrodes = np.unique(electrodes.round(6), axis=0)
sources = np.array([[-0.5, 0.1], [0.5, 0.1], [0.0, 0.6], [0.0, -0.6]])
names = ["left hand", "right hand", "feet", "tongue"]
distance = np.linalg.norm(electrodes[:, None] - sources, axis=2)
mixing = np.exp(-((distance / 0.35) ** 2))  # how strongly each electrode sees each source

# %%
# In each epoch one source is weaker than the others (desynchronisation). Every channel also has
# noise of its own.

y = np.repeat(np.arange(4), 40)
power = np.ones((len(y), 4))
power[np.arange(len(y)), y] = 0.4
signals = rng.normal(size=(len(y), 4, 200)) * power[:, :, None]
noise = rng.normal(size=(len(y), len(electrodes), 200))
epochs = np.einsum("cs,nst->nct", mixing, signals) + 0.7 * noise

model = make_pipeline(SpatialFilters(2), LinearDiscriminantAnalysis())
print("accuracy in five folds", cross_val_score(model, epochs, np.array(names)[y], cv=5).mean())

# %%
# A row of ``patterns_`` contains the strength of a filter's source in each channel. MNE's
# topographic plots accept these patterns; here the cap is drawn with matplotlib.

filters = SpatialFilters(2, pairs="one_vs_rest").fit(epochs, np.array(names)[y])
fig, axes = plt.subplots(2, 2, figsize=(6, 6.4), layout="constrained")
for ax, source, name in zip(axes.flat, sources, names, strict=True):
    one = [row for row, pair in enumerate(filters.pairs_) if pair[0] == name]
    weakest = min(one, key=lambda row: filters.evals_[row])
    pattern = filters.patterns_[weakest]
    pattern = pattern * np.sign(pattern[np.abs(pattern).argmax()])
    size = np.abs(pattern).max()
    ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="gray"))
    ax.tricontourf(*electrodes.T, pattern, levels=14, cmap="RdBu_r", vmin=-size, vmax=size)
    ax.plot(*electrodes.T, "k.", ms=3)
    ax.plot(*source, "*", color="gold", ms=14, mec="k")
    ax.set(title=name, xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
    ax.axis("off")
fig.suptitle("Patterns; a star marks the true source")
plt.show()
