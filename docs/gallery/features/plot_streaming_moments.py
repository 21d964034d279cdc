"""
Moments of a stream
===================

``GEM`` keeps only the moments of each class, and moments of batches, machines and days can be
added. This example measures the accuracy while samples arrive, each of which is added once.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split

from eigenfeat import GEM, ClassMoments

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=0)

moments = ClassMoments(classes=range(10))
seen, accuracies, leading = [], [], []
for start in range(0, len(X_train), 150):
    part = slice(start, start + 150)
    moments.update(X_train[part], y_train[part])
    if start == 0:
        continue
    gem = GEM(n_directions=5, random_state=0).fit_moments(moments)
    known = slice(0, start + 150)
    linear = RidgeClassifier(10.0).fit(gem.transform(X_train[known]), y_train[known])
    seen.append(min(start + 150, len(X_train)))
    accuracies.append(linear.score(gem.transform(X_test), y_test))
    leading.append(gem.directions_[:, 0].reshape(8, 8))

fig, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
ax.plot(seen, accuracies, "o-")
ax.set(xlabel="samples seen", ylabel="accuracy on other samples")
plt.show()

# %%
# The leading direction of the digits 0 and 1 changes little after the first batches.

fig, axes = plt.subplots(2, -(-len(leading) // 2), figsize=(6.5, 3.8), layout="constrained")
for ax, count, image in zip(axes.flat, seen, leading, strict=False):
    ax.imshow(image, cmap="RdBu", vmin=-abs(image).max(), vmax=abs(image).max())
    ax.set_title(f"{count} samples", fontsize=11)
for ax in axes.flat:
    ax.axis("off")
plt.show()

# %%
# The moments of two halves add up to the moments of the whole, to rounding.

half = len(X_train) // 2
first = ClassMoments().update(X_train[:half], y_train[:half])
second = ClassMoments().update(X_train[half:], y_train[half:])
whole = ClassMoments().update(X_train, y_train)
print(abs((first + second).covariance(3) - whole.covariance(3)).max())
