"""
Quadratic discriminants compared with LDA and QDA
=================================================

:class:`~eigenfeat.QuadraticDiscriminant` models each class as a Gaussian, as quadratic
discriminant analysis does. It shrinks each covariance towards the pooled covariance, by an amount
that the sampling error of the covariance determines. This example compares its boundaries and
errors with scikit-learn's linear and quadratic discriminant analysis.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.inspection import DecisionBoundaryDisplay

from eigenfeat.rayleigh import QuadraticDiscriminant

models = {
    "LDA": LinearDiscriminantAnalysis(),
    "QDA": QuadraticDiscriminantAnalysis(),
    "QuadraticDiscriminant": QuadraticDiscriminant(),
}


def draw(n_rows, n_columns, n_different, rng):
    """Return samples of two Gaussian classes whose deviations differ in the first columns."""
    y = np.repeat([0, 1], n_rows // 2)
    deviations = np.ones((2, n_columns))
    deviations[0, :n_different:2] = deviations[1, 1:n_different:2] = 2.0
    deviations[0, 1:n_different:2] = deviations[1, :n_different:2] = 0.5
    X = rng.normal(size=(n_rows, n_columns)) * deviations[y]
    X[:, :2] += np.where(y[:, None] == 1, 0.8, -0.8)
    return X, y


# %%
# Decision boundaries
# -------------------
# Each class has twelve training samples (large circles). If the classes have equal covariances,
# QDA bends the boundary only because of the sampling error of its covariances. If they have
# different covariances, LDA cannot bend the boundary. The titles have the accuracy on 4,000 new
# samples.

rng = np.random.default_rng(0)
fig, axes = plt.subplots(2, 3, figsize=(8, 5.6), sharex=True, sharey=True, layout="constrained")
for row, n_different in zip(axes, (0, 2), strict=True):
    X, y = draw(24, 2, n_different, rng)
    X_new, y_new = draw(4000, 2, n_different, rng)
    row[0].set_ylabel("different covariances" if n_different else "equal covariances")
    for ax, (title, model) in zip(row, models.items(), strict=True):
        model.fit(X, y)
        DecisionBoundaryDisplay.from_estimator(
            model, X_new, response_method="predict", cmap="RdBu", alpha=0.3, ax=ax
        )
        ax.scatter(*X_new[::20].T, c=y_new[::20], cmap="RdBu", s=5, edgecolors="none")
        ax.scatter(*X.T, c=y, cmap="RdBu", s=50, edgecolors="k")
        ax.set(title=f"{title}: {model.score(X_new, y_new):.2f}", xticks=[], yticks=[])
        ax.set(xlim=(-5, 5), ylim=(-4.5, 4.5))
plt.show()

# %%
# How many samples does a covariance need?
# ----------------------------------------
# A covariance of 16 columns has 136 entries to estimate. The errors are means over five draws of
# the training samples. From 80 samples on, the automatic shrinkage is as accurate as LDA with equal
# covariances, and as QDA with covariances that differ in all columns. If the covariances differ in
# only two columns, the sampling error of the other entries hides the difference. The
# shrinkage is then too strong at all of these sizes, and plain QDA (``shrinkage=0``) makes fewer
# errors.

sizes = [16, 24, 40, 80, 160, 320, 640, 1280]
fig, axes = plt.subplots(1, 3, figsize=(8, 3.6), sharey=True, layout="constrained")
for ax, n_different in zip(axes, (0, 2, 16), strict=True):
    X_new, y_new = draw(2000, 16, n_different, np.random.default_rng(0))
    for title, model in models.items():
        # Plain QDA needs more samples than columns in each class.
        tried = [n for n in sizes if n >= 40 or title != "QDA"]
        errors = np.empty((len(tried), 5))
        for i, n_rows in enumerate(tried):
            for j in range(5):
                model.fit(*draw(n_rows, 16, n_different, np.random.default_rng([n_rows, j])))
                errors[i, j] = 1 - model.score(X_new, y_new)
        ax.plot(tried, 100 * errors.mean(axis=1), "o-", label=title)
    ax.set(xscale="log", xlabel="training samples", title=f"{n_different} of 16 columns differ")
axes[0].set_ylabel("test error in %")
axes[0].legend()
plt.show()
