"""
Reliability diagrams of predicted probabilities
===============================================

This example draws reliability diagrams of ``GEMClassifier`` and of logistic regression on the same
split. ``penalty`` shrinks the probabilities long before it changes the predicted class. If you need
probabilities, choose it by the log loss.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from eigenfeat import GEMClassifier, GEMClassifierCV

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.5, stratify=y, random_state=0
)
search = GEMClassifierCV(
    GEMClassifier(random_state=0), {"penalty": [0.3, 0.1, 0.03, 0.01, 0.003]}, scoring="log_loss"
)
models = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "GEMClassifier, penalty=0.3": GEMClassifier(penalty=0.3, random_state=0),
    "GEMClassifier()": GEMClassifier(random_state=0),
    "GEMClassifierCV": search,
}

fig, ax = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
ax.plot([0, 1], [0, 1], color="gray", lw=1)
for name, model in models.items():
    proba = model.fit(X_train, y_train).predict_proba(X_test)
    loss = log_loss(y_test, proba)
    true, said = calibration_curve(
        np.repeat(y_test, 10) == np.tile(np.arange(10), len(y_test)), proba.ravel(), n_bins=8
    )
    ax.plot(said, true, "o-", label=f"{name}: log loss {loss:.3f}")
ax.set(xlabel="probability that the model gives", ylabel="share of rows of that class")
ax.legend()
plt.show()
print("chosen:", search.best_params_)
