"""
Time and reliability of early classifiers
=========================================

For each tau the curves show how early series are decided, and how often the early label is the
final one. The example compares with ``ECTS`` (nearest neighbours with minimum prediction lengths)
and with a fixed number of values.
"""

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat import plotting
from eigenfeat.demo.early import signals
from eigenfeat.incomplete import (
    ECTS,
    FixedTime,
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
curves = {
    "ReliableClassifier": reliability_curve(model, rows, truth, [0.3, 0.5, 0.7, 0.9, 0.95, 0.99]),
    "ECTS": np.transpose([point(ECTS(support)) for support in (0.0, 0.2, 0.8)]),
    "fixed time, nearest neighbour": np.transpose(
        [point(FixedTime(time)) for time in (6, 12, 18, 24, 36, 48, 60)]
    ),
}
display = plotting.EarlyCurvesDisplay(curves, n_samples=length).plot()
