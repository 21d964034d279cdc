"""
Calibrate early decisions on held-out series
============================================

The probabilities of a model are right only if the model is right. ``calibrate`` uses series that
were not used for fitting. It chooses the lowest tau at which exact binomial bounds confirm the
wanted agreement.
"""

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat import plotting
from eigenfeat.demo.early import signals
from eigenfeat.incomplete import ReliableClassifier

rng = np.random.default_rng(0)
X, y = signals(200, rng)
held_out, _ = signals(400, rng)
rows, _ = signals(2000, rng)
model = ReliableClassifier(
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), correct=False
).fit(X, y)
model.calibrate(held_out, agreement=0.95, confidence=0.9)
print(model.calibration_)
display = plotting.EarlyCalibrationDisplay.from_estimator(model)

# %%
# The chosen tau on two thousand further series:

early = model.predict_early(rows)
print(f"agreement {np.mean(early.label == model.predict(rows)):.3f}")
print(f"after {early.time.mean():.1f} of {X.shape[1]} values")
