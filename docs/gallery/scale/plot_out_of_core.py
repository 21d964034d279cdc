"""
Rows that stay on the disk
==========================

``open_rows`` opens CSV, Parquet, Arrow, ``.npy`` and svmlight files as blocks of rows, and
``fit`` goes through them block by block. The result is that of the same rows in memory, to
rounding.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_gaussian_quantiles
from sklearn.model_selection import train_test_split

from eigenfeat import GEMClassifier, open_rows

X, y = make_gaussian_quantiles(n_samples=30_000, n_features=16, n_classes=4, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(
    X.astype(np.float32), y, test_size=5000, random_state=0
)

folder = tempfile.TemporaryDirectory()
np.save(Path(folder.name) / "rows.npy", X_train)
np.save(Path(folder.name) / "labels.npy", y_train)
rows = open_rows(
    Path(folder.name) / "rows.npy", target=Path(folder.name) / "labels.npy", block_rows=5000
)
from_file = GEMClassifier(random_state=0).fit(rows)
in_memory = GEMClassifier(random_state=0).fit(X_train, y_train)
difference = np.abs(from_file.predict_proba(X_test) - in_memory.predict_proba(X_test)).max()
print(f"probabilities from the file and from memory differ by {difference:.1e} at most")

# %%
# Shells of a Gaussian have the same mean: second moments tell the inner ones from the outer ones.

scores = from_file.predict_proba(X_test)
radius = np.linalg.norm(X_test, axis=1)
order = np.argsort(radius)
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for label in range(4):
    smooth = np.convolve(scores[order, label], np.ones(200) / 200, mode="valid")
    ax.plot(radius[order][100:-99], smooth, label=f"class {label}")
for edge in [radius[y_test == label].max() for label in range(3)]:
    ax.axvline(edge, color="0.7", lw=1, zorder=0)
ax.set(xlabel="distance from the centre", ylabel="mean probability")
ax.set_title(f"accuracy {from_file.score(X_test, y_test):.3f}")
ax.legend()
plt.show()
folder.cleanup()
