"""
Reliability diagrams of predicted probabilities
===============================================

This example draws reliability diagrams of ``TableClassifier`` and of logistic regression on one
split. The ``penalty`` of the logit shrinks the probabilities long before it changes the predicted
class. If you need probabilities, choose the penalty by the log loss.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from eigenfeat import GEMClassifier, GEMClassifierCV, MultinomialLogit, TableClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.5, stratify=y, random_state=0
)
grid = {"logit__penalty": [0.3, 0.1, 0.03, 0.01, 0.003]}
search = GEMClassifierCV(grid=grid, scoring="log_loss")
models = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "GEMClassifier, penalty=0.3": GEMClassifier(logit=MultinomialLogit(penalty=0.3)),
    "TableClassifier()": TableClassifier(random_state=0),
    "GEMClassifierCV": search,
}

# %%
# scikit-learn's ``CalibrationDisplay`` is for two classes. Here the two classes are "predicted
# correctly" and "predicted wrongly", and the probability is that of the predicted class. The
# histograms show how many samples have each probability.

fig, axes = plt.subplots(
    4, 2, figsize=(7, 9), sharex=True, sharey="row", height_ratios=[3, 1] * 2, layout="constrained"
)
pairs = [axes[row : row + 2, column] for row in (0, 2) for column in (0, 1)]
for (above, below), (name, model) in zip(pairs, models.items(), strict=True):
    proba = model.fit(X_train, y_train).predict_proba(X_test)
    correct = model.predict(X_test) == y_test
    CalibrationDisplay.from_predictions(correct, proba.max(axis=1), n_bins=8, ax=above)
    below.hist(proba.max(axis=1), bins=8, range=(0, 1), rwidth=0.9, color="0.7", log=True)
    above.set(title=f"{name}\nlog loss {log_loss(y_test, proba):.3f}", xlabel="", ylabel="")
    above.get_legend().remove()
    below.set(xlabel="probability of the predicted class")
for row in (0, 2):
    axes[row, 0].set_ylabel("accuracy")
    axes[row + 1, 0].set_ylabel("samples")
plt.show()
print("chosen:", search.best_params_)
