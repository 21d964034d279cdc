"""
Principal components of samples moved by a support vector machine
=================================================================

``MaxMarginShift`` moves each sample by the dual variables of a multiclass support vector machine.
Principal components of the moved samples separate the classes better. The components are applied
to the original samples, so that new samples need no label. Cross-validation chooses the length of
the moves, which is 0 unless cross-validation shows a gain.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat import MaxMarginShift

X, y = load_digits(return_X_y=True)
X = X / 16
curves = {"PCA": {}, "PCA of moved samples": {}}
for train, test in StratifiedShuffleSplit(2, test_size=0.5, random_state=0).split(X, y):
    for m in (2, 4, 6, 10):
        for name, extractor in (("PCA", PCA(m)), ("PCA of moved samples", MaxMarginShift(PCA(m)))):
            extractor.fit(X[train], y[train])
            neighbours = KNeighborsClassifier(5).fit(extractor.transform(X[train]), y[train])
            accuracy = neighbours.score(extractor.transform(X[test]), y[test])
            curves[name].setdefault(m, []).append(accuracy)
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for name, curve in curves.items():
    mean, spread = (f(list(curve.values()), axis=1) for f in (np.mean, np.std))
    ax.errorbar(list(curve), mean, yerr=spread, fmt="o-", capsize=3, label=name)
ax.set(xlabel="dimensions", ylabel="accuracy", title="digits, five nearest neighbours")
ax.legend(loc="lower right")
plt.show()
