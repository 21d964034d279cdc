"""
LDG, PCA, LDA and other methods in two dimensions
=================================================

Five methods reduce spoken letters (Isolet, 617 columns) to two dimensions. ``LDG`` brings each
sample near to the neighbours of its own class and away from the other classes, by one eigenproblem.
``DiscriminativeGaussian`` minimises the error of local Gaussians by gradients, and ``NCA`` the
error of nearest neighbours. Without the file of Isolet the example uses handwritten digits.
"""

import os
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from eigenfeat import LDG
from eigenfeat.ldg import DiscriminativeGaussian

file = Path(os.environ.get("ISOLET", "../../../../shared/data/uci_isolet.npz"))
if file.is_file():
    with np.load(file) as isolet:
        X, y = isolet["X"], isolet["y"]
        X_test, y_test = isolet["X_test"], isolet["y_test"]
    six = [1, 3, 8, 9, 13, 18]
    X, y = X[np.isin(y, six)], y[np.isin(y, six)]
    X_test, y_test = X_test[np.isin(y_test, six)], y_test[np.isin(y_test, six)]
    X_train, _, y_train, _ = train_test_split(X, y, train_size=600, stratify=y, random_state=0)
    y_train, y_test = (np.array([chr(64 + c) for c in codes]) for codes in (y_train, y_test))
else:
    X, y = load_digits(n_class=6, return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=0
    )
methods = {
    "PCA": PCA(2),
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "NCA": NeighborhoodComponentsAnalysis(2, random_state=0),
    "LDG": LDG(2, random_state=0),
    "DiscriminativeGaussian": DiscriminativeGaussian(2, gamma=0.6, n_neighbors=16, random_state=0),
}

# %%
# The titles have the accuracy of three nearest neighbours in the two dimensions on test samples,
# and the time of the fit. There are about as many training samples as columns: LDA without a ridge
# and NCA separate the training samples, but not the test samples.

fig, axes = plt.subplots(2, 3, figsize=(9, 6.5), layout="constrained")
for ax, (name, method) in zip(axes.flat, methods.items(), strict=False):
    start = perf_counter()
    Z_train = method.fit(X_train, y_train).transform(X_train)
    seconds = perf_counter() - start
    Z_test = method.transform(X_test)
    accuracy = KNeighborsClassifier(3).fit(Z_train, y_train).score(Z_test, y_test)
    title = f"{name}: {accuracy:.2f}, {seconds:.1f} s"
    print(title)
    for label in np.unique(y_test):
        ax.scatter(*Z_test[y_test == label].T, s=8, alpha=0.75, label=str(label))
    ax.set(title=title, xticks=[], yticks=[])
axes[1, 2].axis("off")
axes[1, 2].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", fontsize=14)
plt.show()
