"""MaxMarginShift's own principal components are scikit-learn's; Ctrl-C waits for none."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from eigenfeat.maxmargin import MaxMarginShift, MulticlassSVM
from eigenfeat.maxmargin._components import fitted_components

SHAPES = [
    (2, 3),
    (60, 20),
    (2, 600),  # two rows
    (700, 1),
    (600, 80),
    (700, 700),
    (520, 700),
    (6000, 30),  # by the covariance
    (5010, 501),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_components_are_scikit_learns(shape, dtype):
    n, d = shape
    rng = np.random.default_rng(n + d)
    X = (rng.standard_normal(shape) * np.geomspace(1, 1e-2, d) + 3).astype(dtype)
    before = X.copy()
    expected, found = PCA().fit(X), fitted_components(X)
    assert np.array_equal(X, before)
    assert vars(found).keys() == vars(expected).keys()
    rounding = 400 * np.finfo(dtype).eps
    for name, value in vars(expected).items():
        ours = getattr(found, name)
        if isinstance(value, np.ndarray):
            assert (ours.dtype, ours.shape) == (value.dtype, value.shape)
            if name != "components_":
                assert_allclose(ours, value, rtol=rounding, atol=rounding * np.abs(value).max())
        else:
            assert ours == value
    # Directions whose variances are next to equal, or nothing, turn with the rounding.
    part = min(5, d, n - 1)
    atol = np.sqrt(d) * 2e4 * np.finfo(dtype).eps
    assert_allclose(found.components_[:part], expected.components_[:part], rtol=0, atol=atol)
    if d <= n:
        back = found.inverse_transform(found.transform(X))
        assert_allclose(back, X, rtol=0, atol=rounding * np.abs(X).max())
    assert np.array_equal(found.get_feature_names_out(), expected.get_feature_names_out())


def test_shifts_with_no_extractor_are_those_with_pca():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((530, 40)), np.arange(530) % 3
    X[:, 0] += 2 * y
    svm = MulticlassSVM(C=0.1, max_iter=50, tol=1e-2)
    ours = MaxMarginShift(sigma2=3.0, svm=svm).fit(X, y)
    theirs = MaxMarginShift(PCA(), sigma2=3.0, svm=svm).fit(X, y)
    assert type(ours.extractor_) is PCA
    assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-9, atol=1e-9)


CODE = """
import os, signal, threading, time
import numpy as np
from eigenfeat.maxmargin import _components
from eigenfeat.maxmargin._components import fitted_components
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
rng = np.random.default_rng(0)
waits, calls = [], []
def noting(module, name):
    call = getattr(module, name)
    def noted(matrix):
        calls.append(name)
        if threading.current_thread() is threading.main_thread():
            waits.append(name)
        return call(matrix)
    setattr(module, name, noted)
noting(_components, "_gesdd")
noting(np.linalg, "eigh")
fitted_components(rng.standard_normal((6000, 600)))
X = rng.standard_normal((1500, 1600))
fitted_components(X)
assert (calls, waits) == (["eigh", "_gesdd"], []), (calls, waits)
sent = []
def send():
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.1, send).start()
try:
    while True:
        fitted_components(X)
except KeyboardInterrupt:
    print(time.perf_counter() - sent[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as POSIX has them")
def test_ctrl_c_does_not_wait_for_the_default_extractor():
    """Without the lock: SciPy's own call of the same routine would hold it for a second."""
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=200, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) < 0.5
