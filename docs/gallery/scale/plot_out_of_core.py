"""
Rows that stay on the disk
==========================

``open_rows`` opens CSV, Parquet, Arrow, ``.npy`` and svmlight files as blocks of samples, and
``fit`` reads them block by block. The result is the same as in memory, to rounding.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from eigenfeat import TableClassifier, open_rows

# %%
# The samples have four classes with the same mean and different covariances. They are written to a
# file.

rng = np.random.default_rng(0)
mixing = rng.normal(size=(4, 16, 16)) * np.exp(-np.arange(16) / 5)
y = rng.integers(0, 4, 40_000)
X = np.einsum("nij,nj->ni", mixing[y], rng.normal(size=(40_000, 16)))
X += 0.6 * rng.normal(size=X.shape)
X_test, y_test = X[30_000:], y[30_000:]

folder = tempfile.TemporaryDirectory()
path = Path(folder.name)
np.save(path / "rows.npy", X[:30_000])
np.save(path / "labels.npy", y[:30_000])

# %%
# A fit to the file, in blocks of 5,000 samples, and a fit to the array.

rows = open_rows(path / "rows.npy", target=path / "labels.npy", block_rows=5000)
from_file = TableClassifier(random_state=0).fit(rows)
in_memory = TableClassifier(random_state=0).fit(X[:30_000], y[:30_000])
difference = np.abs(from_file.predict_proba(X_test) - in_memory.predict_proba(X_test)).max()
print(f"probabilities from the file and from memory differ by {difference:.1e} at most")
print(f"accuracy {from_file.score(X_test, y_test):.3f}")

# %%
# More samples make fewer errors. Each point is a fit to the first samples of the same file.

counts = (300, 1000, 3000, 10_000, 30_000)
errors = []
for count in counts:
    mapped = np.load(path / "rows.npy", mmap_mode="r")[:count]
    model = TableClassifier(random_state=0).fit(mapped, y[:count])
    errors.append(100 * (1 - model.score(X_test, y_test)))
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.semilogx(counts, errors, "o-")
ax.set(xlabel="samples", ylabel="errors in %", ylim=(0, None))
plt.show()
folder.cleanup()
