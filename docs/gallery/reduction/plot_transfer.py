"""
Two domains: what gamma does in TransferLDG
===========================================

``TransferLDG`` brings target samples near to source samples of their class, and far from source
samples of other classes; `gamma` weighs the distance from other classes. This is the simulation of
section 4.4 of Parrish's thesis, Figure 4.3: thirty samples of each class and domain, with variances
0.2 and 0.3.
"""

import matplotlib.pyplot as plt
import numpy as np

from eigenfeat.ldg import TransferLDG

rng = np.random.default_rng(0)
means = {"source": ([-1, -2], [1, 2]), "target": ([-1.2, 2], [0.5, 2])}
labels = np.repeat([0, 1], 30)
X = {
    domain: rng.standard_normal((60, 2)) * np.sqrt([0.2, 0.3]) + np.repeat(both, 30, axis=0)
    for domain, both in means.items()
}
colours, markers = ("#0072B2", "#D55E00"), {"source": "o", "target": "^"}


def draw(ax, rows):
    """Scatter both domains: their first columns, and the second or a line for each domain."""
    for line, (domain, points) in enumerate(rows.items()):
        for label in (0, 1):
            some = points[labels == label]
            y = some[:, 1] if some.shape[1] > 1 else np.full(len(some), line)
            told = {"label": f"{domain}, class {label + 1}", "edgecolors": colours[label]}
            ax.scatter(some[:, 0], y, 16, facecolors="none", marker=markers[domain], **told)


fig, axes = plt.subplots(1, 4, figsize=(14, 3.8), layout="constrained", width_ratios=[2, 1, 1, 1])
draw(axes[0], X)
for ax, (gamma, style) in zip(axes[1:], ((0.0, "-"), (0.5, "--"), (1.0, ":")), strict=True):
    model = TransferLDG(1, n_neighbors=30, alpha=0.0, gamma=gamma, standardize=False)
    model.fit(np.vstack(list(X.values())), np.tile(labels, 2), np.repeat([1, -1], 60))
    axes[0].axline((0, 0), model.components_[0], color="black", ls=style, label=f"gamma {gamma:g}")
    draw(ax, {domain: rows @ model.components_.T for domain, rows in X.items()})
    ax.set(title=f"gamma {gamma:g}", yticks=[0, 1], yticklabels=list(X), ylim=(-0.5, 1.5))
axes[0].set(aspect="equal")
axes[0].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %%
# With `gamma` 0 the domains' samples of one class overlap and target samples have a small variance;
# with `gamma` 1 target samples are far from source samples of the other class; 0.5 is
# between the two.
