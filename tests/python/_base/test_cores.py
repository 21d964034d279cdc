"""No estimator needs the program by which joblib counts physical cores."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ROWS = """
import numpy as np
X = np.random.default_rng(0).standard_normal((220, 4))
y = np.repeat(["a", "b"], 110)
X[y == "b"] += 1
"""
# joblib counts once in a process: whatever counts first would fail.
USES = """
import eigenfeat as ef
import scipy.sparse as sp
from sklearn.decomposition import PCA
from eigenfeat.gem.clusters import class_clusters
from eigenfeat.incomplete import ECTS, FixedTime, LocalQDA
from eigenfeat.ldg import KernelLDG

class_clusters(X, y, 2)
ef.GEMClassifier(gem=ef.GEM(n_directions=1), n_clusters=2).fit(X, y).predict(X)
wide = np.tile(X, 5)  # so many columns that neighbours are found by brute force
FixedTime(20).fit(wide, y).predict_early(wide)
ECTS().fit(X[::9], y[::9]).predict_early(X)
for kernel in ("rbf", "laplacian", "linear"):
    model = KernelLDG(kernel=kernel, n_components=1, gamma=1.0, n_neighbors=5)
    model.fit(sp.csr_matrix(X), y).transform(X)
ef.MaxMarginShift(PCA(2), scales=[0.5, 1.0], cv=2).fit(X, y).transform(X)
LocalQDA().fit(X, y).predict(X)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="it takes the search path from a child")
def test_without_a_program_that_counts_cores(tmp_path):
    kept = {
        k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ROWS + USES],
        env={**kept, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
