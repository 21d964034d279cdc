"""The core calls LAPACK's own routines, and its pencils are those of SciPy's."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from eigenfeat import _core, generalized_eigh
from eigenfeat.pencils import Status


def symbols() -> str:
    """What the extension module takes from other libraries."""
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm is not installed")
    done = subprocess.run(
        [nm, "-D", "--undefined-only", _core.__file__], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or not done.stdout:
        pytest.skip("nm does not read the symbols of this system's modules")
    return done.stdout


@pytest.mark.parametrize(
    "routine", ["dsygvd", "ssygvd", "dsygst", "ssygst", "dsyevr", "ssyevr", "dpotrf", "spotrf"]
)
def test_the_module_calls(routine):
    assert re.search(rf"\b(?:scipy_)?{routine}_\b", symbols())


@pytest.mark.parametrize("solver", ["full", "subset"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 33, 300])
def test_every_pair_is_that_of_scipys_gvd(solver, dtype, d):
    """Eigenvalues to rounding; residuals and v^T B v of the same size as SciPy's."""
    rng = np.random.default_rng(d)
    root, noise = rng.standard_normal((2, d, d + 5)) / np.sqrt(d)
    A = (root @ root.T).astype(dtype)
    B = (noise @ noise.T + 0.1 * np.eye(d)).astype(dtype)
    A, B = (A + A.T) / 2, (B + B.T) / 2
    found = generalized_eigh(A, B, n_vectors=d, solver=solver)
    assert found.status is Status.OK
    assert found.solver == solver
    a, b = A.astype(np.float64), B.astype(np.float64)
    values, vectors = scipy.linalg.eigh(A, B, driver="gvd")
    rounding = 20 * d * np.finfo(dtype).eps * np.linalg.cond(b)
    expected = scipy.linalg.eigh(a, b, driver="gvd", eigvals_only=True)[::-1]
    assert_allclose(found.eigenvalues, expected, rtol=0, atol=rounding * expected[0])

    def errors(values, V):
        V = V.astype(np.float64)
        residuals = np.linalg.norm(a @ V - b @ V * values, axis=0)
        size = np.linalg.norm(a, 2) * np.linalg.norm(V, axis=0)
        return residuals / size, np.abs(V.T @ b @ V - np.eye(d))

    ours, theirs = errors(found.eigenvalues, found.vectors), errors(values, vectors)
    for mine, scipys in zip(ours, theirs, strict=True):
        assert mine.max() <= max(8 * scipys.max(), rounding)
