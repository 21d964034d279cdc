"""
Time and reliability of early classifiers
=========================================

The curves show how early series are decided, and how often the early label is the final label: for
``ReliableClassifier`` at several reliabilities tau, and for ``MinimumCostClassifier`` at several
costs of waiting.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.demo.early import signals
from eigenfeat.early import (
    MinimumCostClassifier,
    ReliableClassifier,
    early_scores,
    reliability_curve,
)

rng = np.random.default_rng(0)
X, y = signals(200, rng)
rows, truth = signals(400, rng)
length = X.shape[1]


def point(model):
    early = model.fit(X, y).predict_early(rows)
    scores = early_scores(early, length, complete=model.predict(rows), y=truth)
    return scores.mean_time, scores.reliability


lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
model = ReliableClassifier(lda, correct=False).fit(X, y)
taus = [0.3, 0.5, 0.7, 0.9, 0.95, 0.99]
curve = reliability_curve(model, rows, truth, taus)
points = [(scores.mean_time, scores.reliability) for scores in curve]
curves = {
    "ReliableClassifier": np.transpose(points),
    "MinimumCostClassifier": np.transpose(
        [point(MinimumCostClassifier(lda, cost)) for cost in (3.0, 1.0, 0.5, 0.2, 0.05)]
    ),
}

fig, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for name, (times, reliabilities) in curves.items():
    ax.plot(times, reliabilities, "o-", label=name)
for tau, point in zip(taus, points, strict=True):
    ax.annotate(f"{tau:g}", point, (4, -11), textcoords="offset points", fontsize=8)
ax.set(xlabel="average time of decision (values)", ylabel="share of final labels", xlim=(0, length))
ax.legend(loc="lower right")
plt.show()
