"""
LDG beside PCA, LDA and neighbourhood components analysis
=========================================================

Five methods reduce digits to two dimensions. ``LDG`` brings each row near to the neighbours of its
own class and away from those of other classes, by one eigenproblem. ``DiscriminativeGaussian``
minimises the error of local Gaussians by gradients, and NCA that of nearest neighbours.
"""

from time import perf_counter

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat import LDG, plotting
from eigenfeat.ldg import NCA, DiscriminativeGaussian

X, y = load_digits(n_class=6, return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
methods = {
    "PCA": PCA(2),
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "NCA": NCA(2),
    "LDG": LDG(2, random_state=0),
    "DiscriminativeGaussian": DiscriminativeGaussian(2, gamma=0.6, n_neighbors=16, random_state=0),
}

# %%
# The accuracy is that of three nearest neighbours in the two dimensions, on rows that no method has
# seen. With six classes and two dimensions the gradient methods are more accurate. With more
# dimensions LDG is about as accurate, as the second picture shows.

fig, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
for ax, (name, method) in zip(axes.flat, methods.items(), strict=False):
    start = perf_counter()
    Z_train = method.fit(X_train, y_train).transform(X_train)
    seconds = perf_counter() - start
    Z_test = method.transform(X_test)
    accuracy = KNeighborsClassifier(3).fit(Z_train, y_train).score(Z_test, y_test)
    title = f"{name}: {accuracy:.2f}, {seconds:.1f} s"
    plotting.EmbeddingDisplay(Z_test, y_test).plot(ax, title=title, legend=False)
axes[1, 2].axis("off")
axes[1, 2].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", fontsize=12)
plt.show()

# %%
# Accuracy by dimension. LDA has at most one dimension fewer than classes.

curves = {name: {} for name in ("PCA", "LDA", "NCA", "LDG")}
for m in range(1, 11):
    for name, method in (
        ("PCA", PCA(m)),
        ("NCA", NCA(m)),
        ("LDG", LDG(m, gamma=0.6, n_neighbors=16)),
    ):
        method.fit(X_train, y_train)
        train, test = method.transform(X_train), method.transform(X_test)
        curves[name][m] = KNeighborsClassifier(3).fit(train, y_train).score(test, y_test)
    if m <= 5:
        lda = LinearDiscriminantAnalysis(n_components=m).fit(X_train, y_train)
        train, test = lda.transform(X_train), lda.transform(X_test)
        curves["LDA"][m] = KNeighborsClassifier(3).fit(train, y_train).score(test, y_test)

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for name, curve in curves.items():
    ax.plot(list(curve), list(curve.values()), "o-", label=name)
ax.set(xlabel="dimensions", ylabel="accuracy", title="digits 0 to 5, three nearest neighbours")
ax.legend(loc="lower right")
plt.show()
