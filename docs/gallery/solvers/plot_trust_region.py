"""
The minimum of a quadratic over a ball
======================================

The rules for incomplete samples ask whether one class has the highest score for all completions
of a sample. The sign of such a minimum answers this. ``trust_region_minimum`` also estimates the
error of its value, for indefinite and singular matrices, too.
"""

import matplotlib.pyplot as plt
import numpy as np

from eigenfeat.regions import certified_sign, trust_region_minimum

problems = {
    "convex, inside": (np.diag([2.0, 1.0]), np.array([0.6, -0.3])),
    "convex, on the sphere": (np.diag([2.0, 0.3]), np.array([1.5, -1.0])),
    "indefinite": (np.array([[1.0, 0.4], [0.4, -1.0]]), np.array([0.3, 0.2])),
    "hard case": (np.diag([1.0, -1.0]), np.array([0.5, 0.0])),
}
grid = np.linspace(-1.3, 1.3, 200)
points = np.stack(np.meshgrid(grid, grid), axis=-1)
fig, axes = plt.subplots(2, 2, figsize=(6, 6.6), layout="constrained")
for ax, (name, (A, g)) in zip(axes.flat, problems.items(), strict=True):
    found = trust_region_minimum(A, g, 1.0)
    sign = certified_sign(A, g, 1.0, 1.0).sign  # of 1 + the minimum
    values = np.einsum("...i,ij,...j", points, A, points) + 2 * points @ g
    ax.contourf(grid, grid, values, 25, cmap="viridis")
    ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="w", lw=2))
    ax.plot(*found.x, "r*", ms=14, mec="w")
    ax.set(title=f"{name}\n{float(found.value):.3f}, gap {float(found.gap):.0e}", aspect="equal")
    ax.axis("off")
    print(f"{name}: 1 + minimum has the sign {int(sign)}")
plt.show()
