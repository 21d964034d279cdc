"""
LDG beside PCA, LDA and neighbourhood components analysis
=========================================================

Four ways to two dimensions. ``LDG`` brings each row near to its own class's neighbours and away
from those of the other classes.
"""

from time import perf_counter

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat import LDG, plotting
from eigenfeat.ldg import NCA

X, y = load_digits(n_class=6, return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
methods = {
    "PCA": PCA(2),
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "NCA": NCA(2),
    "LDG": LDG(2, random_state=0),
}

# %%
# Accuracy is that of three nearest neighbours in the two dimensions, on rows that no method has
# seen.

fig, axes = plt.subplots(2, 2, figsize=(9, 8), layout="constrained")
for ax, (name, method) in zip(axes.flat, methods.items(), strict=True):
    start = perf_counter()
    Z_train = method.fit(X_train, y_train).transform(X_train)
    seconds = perf_counter() - start
    Z_test = method.transform(X_test)
    accuracy = KNeighborsClassifier(3).fit(Z_train, y_train).score(Z_test, y_test)
    plotting.plot_embedding(
        Z_test, y_test, ax=ax, title=f"{name}: {accuracy:.2f}, {seconds:.1f} s", legend=False
    )
axes[0, 0].legend(ncols=3, fontsize=8)
plt.show()
