"""
Accuracy by number of dimensions
================================

The number of Fisher's discriminants is less than the number of classes. ``LDG`` can have as many
components as columns. They are nested: a fit with ten components contains the fits with fewer.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from eigenfeat import LDG
from eigenfeat.ldg import LocalFisher, RegularizedFisher

X, y = load_wine(return_X_y=True)
methods = {
    "LDG": (LDG(8, random_state=0), 8),
    "PCA": (PCA(8), 8),
    "RegularizedFisher": (RegularizedFisher(), 2),
    "LocalFisher": (LocalFisher(8), 8),
}
curves = {name: {m: [] for m in range(1, most + 1)} for name, (_, most) in methods.items()}
for train, test in StratifiedShuffleSplit(8, test_size=0.5, random_state=0).split(X, y):
    scaler = StandardScaler().fit(X[train])
    for name, (method, most) in methods.items():
        Z = method.fit(scaler.transform(X[train]), y[train]).transform(scaler.transform(X))
        for m in range(1, most + 1):
            neighbours = KNeighborsClassifier(3).fit(Z[train, :m], y[train])
            curves[name][m].append(neighbours.score(Z[test, :m], y[test]))
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for name, curve in curves.items():
    mean, spread = (f(list(curve.values()), axis=1) for f in (np.mean, np.std))
    (line,) = ax.plot(list(curve), mean, "o-", label=name)
    ax.fill_between(list(curve), mean - spread, mean + spread, color=line.get_color(), alpha=0.15)
ax.set(xlabel="dimensions", ylabel="accuracy", title="wine, three nearest neighbours, eight splits")
ax.legend(loc="lower right")
plt.show()
