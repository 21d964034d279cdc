"""Where no program counts the machine's cores, joblib's fallback is quiet and fits work."""

import sys

import pytest
from command_line import python

TWO_CLASSES = """
import numpy as np
X = np.random.default_rng(0).standard_normal((220, 4))
y = np.repeat(["a", "b"], 110)
X[y == "b"] += 1
"""
# joblib counts once in a process: whatever counts first would fail.
COUNTS_CORES = """
import eigenfeat as ef
import scipy.sparse as sp
from sklearn.decomposition import PCA
from eigenfeat.early import LocalQDA
from eigenfeat.ldg import KernelLDG

for kernel in ("rbf", "laplacian", "linear"):
    model = KernelLDG(kernel=kernel, n_components=1, gamma=1.0, n_neighbors=5)
    model.fit(sp.csr_matrix(X), y).transform(X)
ef.MaxMarginShift(PCA(2), scales=[0.5, 1.0], cv=2).fit(X, y).transform(X)
LocalQDA().fit(X, y).predict(X)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="processes on Windows need the search path")
def test_without_a_program_that_counts_cores(tmp_path):
    unset = ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    done = python(TWO_CLASSES + COUNTS_CORES, "-W", "error", unset=unset, PATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
