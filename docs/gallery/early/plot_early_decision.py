"""
A series while it is being decided
==================================

A signal arrives sample by sample. After each sample, the classifier estimates the probability that
the complete series gets the current label. At a probability of 0.95 the series is decided.
"""

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat import plotting
from eigenfeat.demo.early import signals
from eigenfeat.early import ReliableClassifier

rng = np.random.default_rng(1)
X, y = signals(300, rng)
rows, truth = signals(200, rng)
model = ReliableClassifier(
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), reliability=0.95
).fit(X, y)
display = plotting.EarlyDecisionDisplay.from_estimator(model, rows[3])

# %%
# Each line is a series; lines are sorted by class and by the time of decision. A line is grey
# before the decision, and then has the colour of the early label. A cross marks an early label that
# is not final, because the complete series has another label. The required reliability is 0.95, so
# at most about one label in twenty should have a cross.

display = plotting.EarlyTimesDisplay.from_estimator(model, rows, truth)

early = model.predict_early(rows)
print(f"decided after {early.time.mean():.1f} of {X.shape[1]} values on average")
print(f"final labels: {np.mean(early.label == model.predict(rows)):.3f}")
