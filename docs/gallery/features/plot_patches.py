"""
Patches of images
=================

``GEMPatches`` fits GEM on the patches of all images, computes its features at each place, and
pools them over the cells of a coarse grid, so that small shifts matter less. In this example the
images are shifted at random.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eigenfeat import MultinomialLogit, TableClassifier
from eigenfeat.gem import GEMPatches

rng = np.random.default_rng(0)
small, y = load_digits(return_X_y=True)
images = np.zeros((len(small), 12, 12))
for image, digit, (down, right) in zip(
    images, small.reshape(-1, 8, 8) / 16, rng.integers(0, 5, (len(small), 2)), strict=True
):
    image[down : down + 8, right : right + 8] = digit
fig, axes = plt.subplots(2, 8, figsize=(8, 2.2), layout="constrained")
for ax, image, label in zip(axes.flat, images, y, strict=False):
    ax.imshow(image, cmap="gray_r")
    ax.set_title(label, fontsize=9)
    ax.axis("off")
plt.show()

# %%
# Patches respond to a stroke at any place, and the grid keeps its approximate position.

train, test = train_test_split(np.arange(len(y)), test_size=0.4, stratify=y, random_state=0)
whole = TableClassifier(random_state=0).fit(images[train].reshape(len(train), -1), y[train])
print("whole images", f"{whole.score(images[test].reshape(len(test), -1), y[test]):.3f}")
accuracies = {}
for size in (4, 6, 8, 10):
    patches = make_pipeline(
        GEMPatches(patch_size=size, pool=2), StandardScaler(), MultinomialLogit(penalty=0.01)
    )
    accuracies[size] = patches.fit(images[train], y[train]).score(images[test], y[test])
    print(f"patches of {size} x {size}", f"{accuracies[size]:.3f}")

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(list(accuracies), list(accuracies.values()), "o-", label="GEMPatches")
ax.axhline(
    whole.score(images[test].reshape(len(test), -1), y[test]),
    color="tab:gray",
    label="TableClassifier on whole images",
)
ax.set(xlabel="width of a patch", ylabel="accuracy", xticks=list(accuracies))
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
plt.show()
