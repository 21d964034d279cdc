"""
Calibrate early decisions on held-out series
============================================

The probabilities of a model are right only if the model is right. ``calibrate`` uses series that
were not used for fitting. It chooses the lowest tau at which exact binomial bounds confirm the
wanted agreement.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.demo.early import signals
from eigenfeat.early import ReliableClassifier

rng = np.random.default_rng(0)
X, y = signals(200, rng)
held_out, _ = signals(400, rng)
rows, _ = signals(2000, rng)
model = ReliableClassifier(
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), correct=False
).fit(X, y)
model.calibrate(held_out, agreement=0.95, confidence=0.9)
found = model.calibration_
print(found)

fig, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
ax.plot(found.tau, found.held_out_agreement, label=f"on {found.n} held-out series")
ax.plot(found.tau, found.lower, "--", label=f"lower bound, confidence {found.confidence:g}")
ax.plot(found.reliability, found.lower[found.chosen], "o", label=f"tau = {found.reliability:.3f}")
ax.axhline(found.agreement, color="black", lw=0.9, label=f"wanted: {found.agreement:g}")
ax.set(xscale="logit", xlabel="tau", ylabel="share of final labels")
ax.legend(loc="lower right")
plt.show()

# %%
# The chosen tau on two thousand further series:

early = model.predict_early(rows)
print(f"agreement {np.mean(early.label == model.predict(rows)):.3f}")
print(f"after {early.time.mean():.1f} of {X.shape[1]} values")
