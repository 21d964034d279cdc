"""
Decision boundaries of GEM, LDA and a support vector machine
============================================================

In the first two data sets the classes have the same mean and different second moments: a cross of
two Gaussians, and a ring around a disc. The third data set has two moons.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from eigenfeat import GEMClassifier, TableClassifier

rng = np.random.default_rng(0)
n = 300
cross = np.concatenate([rng.normal(size=(n, 2)) * [2, 0.3], rng.normal(size=(n, 2)) * [0.3, 2]])
sets = {
    "a cross": (cross, np.repeat([0, 1], n)),
    "circles": make_circles(2 * n, noise=0.12, factor=0.5, random_state=0),
    "moons": make_moons(2 * n, noise=0.2, random_state=0),
}
models = {
    "LDA": LinearDiscriminantAnalysis(),
    "SVM, Gaussian kernel": SVC(),
    "GEMClassifier": GEMClassifier(random_state=0),
}

# %%
# The moons show the limit of GEM alone, because they differ in shape more than in second moments.
# The pool of ``TableClassifier`` has a kernel and trees, too. The titles have the accuracy on test
# samples.

models["TableClassifier"] = TableClassifier(random_state=0)

fig, axes = plt.subplots(
    len(sets), len(models), figsize=(9, 7), sharex="row", sharey="row", layout="constrained"
)
for row, (name, (X, y)) in zip(axes, sets.items(), strict=True):
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    row[0].set_ylabel(name)
    for ax, (title, model) in zip(row, models.items(), strict=True):
        model.fit(X_train, y_train)
        DecisionBoundaryDisplay.from_estimator(
            model, X, response_method="predict", cmap="RdBu", alpha=0.3, ax=ax, grid_resolution=150
        )
        ax.scatter(*X_test.T, c=y_test, cmap="RdBu", s=8, edgecolors="none")
        ax.set(title=f"{title}: {model.score(X_test, y_test):.2f}", xticks=[], yticks=[])
plt.show()
