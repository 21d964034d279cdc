"""
A series while it is being decided
==================================

A signal arrives sample by sample. After each sample, the classifier estimates the probability that
the complete series gets the label that it has now. At a probability of 0.95 it decides.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat import plotting
from eigenfeat.demo.early import signals
from eigenfeat.incomplete import ReliableClassifier

rng = np.random.default_rng(1)
X, y = signals(300, rng)
rows, truth = signals(200, rng)
model = ReliableClassifier(
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), reliability=0.95
).fit(X, y)
display = plotting.EarlyDecisionDisplay.from_estimator(model, rows[3])

# %%
# Each line is a series, sorted by the time of decision. It is grey while the series waits, and then
# has the colour of its label. A cross marks an early label that differs from the final one.

early = model.predict_early(rows)
final = model.predict(rows)
order = np.argsort(early.time, kind="stable")
kinds = list(np.unique(y))
fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for place, row in enumerate(order):
    time = early.time[row]
    ax.plot([0, time], [place, place], color="0.88", lw=1.5)
    colour = f"C{kinds.index(early.label[row])}"
    ax.plot([time, X.shape[1]], [place, place], color=colour, lw=1.5)
    if early.label[row] != final[row]:
        ax.plot(time, place, "kx", ms=6)
for number, kind in enumerate(kinds):
    ax.plot([], [], color=f"C{number}", lw=3, label=kind)
ax.set(xlabel="samples seen", ylabel="series", xlim=(0, X.shape[1]))
ax.legend(loc="lower right")
plt.show()
print(f"decided after {early.time.mean():.1f} of {X.shape[1]} samples on average")
print(f"final labels: {np.mean(early.label == final):.3f}")
