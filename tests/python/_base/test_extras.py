"""Without matplotlib, or a program that counts cores: fits work, and what needs one says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import python

ROOT = Path(__file__).resolve().parents[3]
USES = """
import sys
sys.modules["matplotlib"] = None
from sklearn.datasets import load_iris
from eigenfeat import GEM, GEMClassifier, GEMClassifierCV

X, y = load_iris(return_X_y=True)
grid = {"logit__penalty": [0.1, 1.0]}
GEMClassifierCV(GEMClassifier(views="gem"), grid).fit(X, y)
print("fitted", file=sys.stderr)
from eigenfeat import plotting
try:
    plotting.SpectrumDisplay.from_estimator(GEM(threshold=0).fit(X, y))
except ImportError as error:
    print(f"{type(error).__module__}.{type(error).__name__}: {error}", file=sys.stderr)
import bench.papers.__main__, eigenfeat.cli.main
print(eigenfeat.cli.main.main(["demo", "--quick"]))
print(bench.papers.__main__.main(["mnist", "--data", "x"]))
"""
NEEDED = "matplotlib: expected to be installed for "


def test_fits_do_without_and_what_needs_it_names_the_extra_before_any_work():
    done = python(USES, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "1\n1\n"), done.stderr
    fitted, picture, demonstration, papers = done.stderr.splitlines()
    assert fitted == "fitted"
    extra = 'pip install "eigenfeat[plot]"'
    expected = f"eigenfeat._base.extras.MissingExtraError: {NEEDED}pictures, as by {extra}"
    assert picture == expected
    for line in (demonstration, papers):
        assert line.startswith(f"eigenfeat: {NEEDED}")
        assert line.endswith(f"as by {extra}")


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
from eigenfeat.gem.clusters import class_clusters
from eigenfeat.early import ECTS, FixedTime, LocalQDA
from eigenfeat.ldg import KernelLDG

class_clusters(X, y, 2)
ef.GEMClassifier(gem=ef.GEM(n_directions=1), n_clusters=2).fit(X, y).predict(X)
wide = np.tile(X, 5)  # so many columns that neighbours are found by brute force
FixedTime(time=20).fit(wide, y).predict_early(wide)
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
    unset = ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    done = python(TWO_CLASSES + COUNTS_CORES, "-W", "error", unset=unset, PATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
