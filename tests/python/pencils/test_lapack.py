"""The core calls LAPACK's own routines, and its pencils are those of SciPy's."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from eigenfeat import _core


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
