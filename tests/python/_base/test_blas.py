"""Our copy of BLAS: found wherever it lies, and at one thread whatever others ask for."""

import importlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scipy import optimize
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_info, threadpool_limits

import eigenfeat
from eigenfeat import MaxMarginShift
from eigenfeat.maxmargin import Autoencoder, MaxMarginPCA

SCRIPT = """
import numpy as np
from threadpoolctl import threadpool_limits
from eigenfeat import ClassMoments, generalized_eigh
rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 300))
y = rng.integers(3, size=1500)
moments = ClassMoments().update(X, y)
A = np.array([moments.second_moment(c) for c in range(3)])
with threadpool_limits(limits=4):
    again = ClassMoments().update(X, y)
    for solver in ("full", "subset", "krylov"):
        result = generalized_eigh(A, A[0] + np.eye(300), n_vectors=5, solver=solver)
        assert (result.status == 0).all()
assert again == moments
"""


def test_threadpool_limits_do_not_reach_into_our_regions():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_core_finds_a_blas_that_lies_elsewhere(tmp_path):
    if importlib.util.find_spec("scipy_openblas32") is None:
        pytest.skip("this installation carries its BLAS inside")
    package = Path(eigenfeat.__file__).parent
    if not any(path.suffix != ".pyi" for path in package.glob("_core*")):
        pytest.skip("an editable installation keeps its core apart")
    shutil.copytree(package, tmp_path / "eigenfeat")
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import eigenfeat; "
    script += "eigenfeat.ClassMoments(); print(eigenfeat.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


OF_SCIPY = {
    "eigenfeat.maxmargin._joint": (
        lambda: MaxMarginShift(PCA(2), sigma2=0.5, moves="joint"),
        lambda: MaxMarginPCA(2, sigma2=0.5, max_iter=2),
    ),
    "eigenfeat.maxmargin.autoencoder": (lambda: Autoencoder(2, max_iter=2),),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("module", OF_SCIPY)
def test_minimisations_of_scipy_use_one_blas_thread(module, monkeypatch):
    """Its steps are too small for threads, which wait for each other on a busy machine."""
    seen = set()

    def minimize(*args, **options):
        seen.update(blas_threads())
        return optimize.minimize(*args, **options)

    monkeypatch.setattr(importlib.import_module(module), "minimize", minimize)
    X, y = load_wine(return_X_y=True)
    with threadpool_limits(limits=2, user_api="blas"):
        for make in OF_SCIPY[module]:
            seen.clear()
            make().fit(scale(X), y)
            assert seen == {1}
        assert 2 in blas_threads()
