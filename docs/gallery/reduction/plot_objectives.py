"""
What LDG minimises
==================

LDG looks for directions in which a Gaussian classifier makes few errors. The number of errors is
not a smooth function of the directions. The thesis therefore smooths it, (3.2), and bounds the
result from below, (3.7); `gamma` is the weight of all classes, (3.13). The panels show the
contribution of one sample to each objective, for two equally frequent classes, as a function of the
sample's likelihoods under the wrong class and under its own class: Figures 3.1 and 3.2 of Parrish's
thesis. The last picture is Figure 3.3 of the thesis, which shows how the direction depends on
`gamma`.
"""

# %%
# The objectives
# --------------

import matplotlib.pyplot as plt
import numpy as np

from eigenfeat.ldg import LDG

wrong, own = np.meshgrid(np.linspace(0.01, 1, 100), np.linspace(0.01, 1, 100))


def bound(gamma):
    """One sample's part in (3.13); with gamma 1 it is (3.7)."""
    return gamma * 0.5 * (np.log(own) + np.log(wrong)) - np.log(own)


panels = {
    "errors (3.1)": (own < wrong).astype(float),
    "smooth (3.2)": np.log(own + wrong) - np.log(own),
    "bound (3.7)": bound(1.0),
    "gamma 0.5 (3.13)": bound(0.5),
}
fig, axes = plt.subplots(2, 2, figsize=(7.5, 6.5), layout="constrained")
for ax, (title, values) in zip(axes.flat, panels.items(), strict=True):
    drawn = ax.contourf(wrong, own, values, levels=20)
    ax.set(title=title, xlabel="wrong class", ylabel="own class", aspect="equal")
    fig.colorbar(drawn, ax=ax, shrink=0.8)

# %%
# The bound has no minimum as the likelihood of the wrong class goes to 0. A smaller `gamma` rewards
# this less, and penalises samples on the wrong side more.
#
# What gamma does
# ---------------
#
# Section 3.2.1 of the thesis: two classes of thirty samples with means (-0.1, -1) and (0.1, 1) and
# the variances 0.01 and 1 of both columns. With `gamma` 0 the direction of LDG has the least
# variance within classes, (1, 0); with `gamma` 1 it is the direction of the difference of the
# means, (0.0995, 0.995); with 0.5 it lies between these directions. All samples of a class are
# neighbours, so that each class has one Gaussian.

rng = np.random.default_rng(0)
labels = np.repeat([0, 1], 30)
rows = rng.standard_normal((60, 2)) * [0.1, 1.0] + np.where(labels[:, None], 1, -1) * [0.1, 1.0]
fig, axes = plt.subplots(1, 3, figsize=(8, 3.4), layout="constrained", sharey=True)
for ax, gamma in zip(axes, (0.0, 0.5, 1.0), strict=True):
    for label, colour in ((0, "#0072B2"), (1, "#D55E00")):
        ax.scatter(*rows[labels == label].T, s=14, facecolors="none", edgecolors=colour)
    model = LDG(1, gamma=gamma, n_neighbors=29, standardize=False).fit(rows, labels)
    ax.axline((0, 0), model.components_[0], color="black")
    ax.set(title=f"gamma {gamma:g}", aspect="equal", xlim=(-3, 3), ylim=(-3, 3))
plt.show()
