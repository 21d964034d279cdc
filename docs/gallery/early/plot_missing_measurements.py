"""
A table with measurements that are missing
==========================================

Blood values come back from the laboratory one after another. A row may be decided as soon as the
missing ones can no longer change the label, with a wanted probability.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

from eigenfeat.incomplete import ReliableClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
model = ReliableClassifier(LinearDiscriminantAnalysis(), correct=False).fit(X_train, y_train)
complete = model.predict(X_test)

# %%
# For each number of known entries, chosen at random in each row: which share of rows is decided,
# and how many of these have the label of the complete row.

rng = np.random.default_rng(0)
order = rng.random(X_test.shape).argsort(axis=1).argsort(axis=1)
known = np.arange(2, 31, 2)
fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for tau in (0.9, 0.95, 0.99):
    shares, agreements = [], []
    for count in known:
        decisions = model.decide(np.where(order < count, X_test, np.nan), reliability=tau)
        decided = decisions.decided
        shares.append(decided.mean())
        agreements.append((decisions.label[decided] == complete[decided]).mean())
    (line,) = axes[0].plot(known, shares, "o-", label=f"tau {tau}")
    axes[1].plot(known, agreements, "o-", color=line.get_color())
    axes[1].axhline(tau, color=line.get_color(), ls=":", lw=1)
axes[0].set(xlabel="known entries of 30", ylabel="share of rows decided")
axes[1].set(xlabel="known entries of 30", ylabel="share with the final label", ylim=(0.85, 1.005))
axes[0].legend()
plt.show()
