"""
Regression with directions between bins of the target
=====================================================

The target is the square of a projection: ridge regression cannot fit it, and it is hard for trees.
``TableRegressor`` has views with directions between bins of the target and kernels, and finds it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split

from eigenfeat import TableRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 30))
direction = rng.normal(size=30) / np.sqrt(30)
y = (X @ direction) ** 2 + 0.1 * rng.normal(size=len(X))
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0)

fig, axes = plt.subplots(1, 3, figsize=(8, 3.2), sharex=True, sharey=True, layout="constrained")
models = {
    "RidgeCV": RidgeCV(),
    "HistGradientBoostingRegressor": HistGradientBoostingRegressor(random_state=0),
    "TableRegressor": TableRegressor(random_state=0),
}
for ax, (name, model) in zip(axes, models.items(), strict=True):
    predicted = model.fit(X_train, y_train).predict(X_test)
    ax.plot([0, y.max()], [0, y.max()], color="gray", lw=1)
    ax.plot(y_test, predicted, ".", ms=4)
    score = model.score(X_test, y_test)
    ax.set(title=f"{name}\n$R^2$ = {score:.2f}", xlabel="true")
axes[0].set_ylabel("predicted")
plt.show()
