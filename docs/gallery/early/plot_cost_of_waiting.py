"""
The cost of waiting
===================

``MinimumCostClassifier`` decides at the first time at which waiting is expected to cost more than
it saves. The higher the cost of a delay, the earlier it decides and the more errors it makes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.demo.early import signals
from eigenfeat.early import MinimumCostClassifier

rng = np.random.default_rng(0)
X, y = signals(200, rng)
rows, truth = signals(500, rng)
lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")

costs = [0.1, 0.7, 1.4, 2.2]
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
times, errors = [], []
for cost in costs:
    early = MinimumCostClassifier(lda, delay_cost=cost).fit(X, y).predict_early(rows)
    times.append(early.time.mean())
    errors.append(100 * np.mean(early.label != truth))
    ax.annotate(
        f"delay costs {cost:g}", (times[-1], errors[-1]), (6, 6), textcoords="offset points"
    )
ax.plot(times, errors, "o-")
ax.set(
    xlabel="mean number of values before the decision",
    ylabel="errors in %",
    xlim=(0, 68),
    ylim=(0, 75),
)
plt.show()
