"""
Digits with most of their pixels missing
========================================

A sample is decided as soon as, with the chosen probability, its missing entries cannot change
the label. In this example the entries are pixels, and most of them are missing at random.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

from eigenfeat.early import MixtureCompletion, ReliableClassifier

X, y = load_digits(return_X_y=True)
chosen = np.isin(y, [3, 8])
X_train, X_test, y_train, y_test = train_test_split(
    X[chosen], y[chosen], test_size=0.5, random_state=0
)
lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
model = ReliableClassifier(lda, MixtureCompletion(), correct=False).fit(X_train, y_train)
complete = model.predict(X_test)

# %%
# Sixteen known pixels of 64 are enough for most digits. Missing pixels are white. The title is the
# label, or "?" if it is undecided.

rng = np.random.default_rng(0)
order = rng.random(X_test.shape).argsort(axis=1).argsort(axis=1)
seen = np.where(order < 16, X_test, np.nan)
decisions = model.decide(seen, reliability=0.95)
fig, axes = plt.subplots(2, 6, figsize=(7, 2.8), layout="constrained")
for column in range(6):
    for ax, image in zip(axes[:, column], (seen, X_test), strict=True):
        ax.imshow(image[column].reshape(8, 8), cmap="Blues", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
    axes[0, column].set_title(decisions.label[column] if decisions.decided[column] else "?")
axes[0, 0].set_ylabel("known")
axes[1, 0].set_ylabel("complete")
plt.show()

# %%
# The curves show, for each number of known pixels, the share of samples that are decided, and the
# share of these that have the label of the complete sample. Dotted lines are the chosen
# reliabilities. They are reached if the completion's model is right. For series, ``correct=True``
# corrects the rule by held-out samples.

known = np.arange(4, 65, 6)
fig, axes = plt.subplots(1, 2, figsize=(7.5, 3.4), layout="constrained")
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
axes[0].set(xlabel="known pixels of 64", ylabel="share of samples decided")
axes[1].set(xlabel="known pixels of 64", ylabel="share with the final label", ylim=(0.85, 1.005))
axes[0].legend()
plt.show()
