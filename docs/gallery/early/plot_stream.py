"""
Many streams at once
====================

Several sensors send values at different times. ``streams`` follows all of them and decides each
separately. A missing sample is NaN.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.demo.early import signals
from eigenfeat.early import ReliableClassifier

rng = np.random.default_rng(2)
X, y = signals(300, rng)
rows, _ = signals(150, rng)
rows[rng.random(rows.shape) < 0.05] = np.nan
lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
model = ReliableClassifier(lda, reliability=0.9).fit(X, y)

streams = model.streams(len(rows))
waiting = [len(rows)]
for values in rows.T:
    streams.push(values)
    waiting.append(sum(label is None for label in streams.labels))

fig, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
ax.fill_between(range(len(waiting)), waiting, step="post", alpha=0.3)
ax.step(range(len(waiting)), waiting, where="post")
ax.set(xlabel="values sent", ylabel="undecided streams", ylim=(0, None))
plt.show()
