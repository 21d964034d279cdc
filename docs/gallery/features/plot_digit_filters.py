"""
Directions of digits as images
==============================

``GEM`` solves a generalized eigenvalue problem for each ordered pair of classes. On images of
digits, a direction is itself an image. Its projections are large on the first digit of the pair and
small on the second.
"""

# %%
# Red and blue strokes lie where the first digit has ink and the second has none, or cancel on the
# second.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from eigenfeat import GEM, plotting

X, y = load_digits(return_X_y=True)
gem = GEM(random_state=0).fit(X / 16, y)
pairs = [(3, 8), (4, 9)]
display = plotting.FiltersDisplay.from_estimator(gem, X / 16, y, pairs=pairs, n_filters=3)

# %%
# An eigenvalue is the ratio of the mean squares over the two classes. The pairs with the largest
# eigenvalues are the easiest to tell apart.

display = plotting.SpectrumDisplay.from_estimator(gem)

# %%
# The picture shows projections of all digits on the leading direction of one pair. The classes
# differ in the size of the projection and not in its sign. A linear classifier on the pixels cannot
# use the size.

leading = (gem.pairs_ == (0, 1)).all(axis=1) & (gem.ranks_ == 0)
projections = X / 16 @ gem.directions_[:, leading] + gem.offset_[leading]
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.boxplot([projections[y == digit].ravel() for digit in range(10)])
ax.set_xticks(range(1, 11), range(10))
ax.set(xlabel="digit", ylabel="projection on the direction of 0 against 1")
plt.show()
