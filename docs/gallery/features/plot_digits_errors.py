"""
Logistic regression on pixels and on GEM features
=================================================

This example fits the same linear classifier to three representations of handwritten digits. ``GEM``
is a scikit-learn transformer and works in pipelines and grid searches.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eigenfeat import GEM

X, y = load_digits(return_X_y=True)
X = X / 16


def classifier(C):
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=2000))


methods = {
    "pixels": classifier(0.3),
    "random Fourier features": make_pipeline(
        RBFSampler(gamma=0.1, n_components=1000, random_state=0), classifier(0.3)
    ),
    "GEM features": make_pipeline(GEM(n_directions=5, random_state=0), classifier(0.3)),
}

# %%
# Three random splits with 1,078 images to train on, and one penalty for all three. Random Fourier
# features are an approximation of a Gaussian kernel.

splits = StratifiedShuffleSplit(3, test_size=0.4, random_state=0)
errors = {name: [] for name in methods}
for train, test in splits.split(X, y):
    for name, model in methods.items():
        errors[name].append(1 - model.fit(X[train], y[train]).score(X[test], y[test]))
for name, some in errors.items():
    print(f"{name:24} {100 * np.mean(some):.2f} % errors")

fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for name, some in reversed(errors.items()):
    ax.barh(name, 100 * np.mean(some), color="C0" if name == "GEM features" else "0.75")
    ax.plot(100 * np.array(some), [name] * len(some), "ko", ms=4, mfc="white")
ax.set(xlabel="test error in % (bars: mean, circles: single splits)")
plt.show()
