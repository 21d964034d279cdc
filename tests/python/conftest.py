"""What several test files share: fixed random numbers, and slow and obvious references."""

import os

# The references' BLAS, before NumPy starts it: its threads would fight those under test for the
# cores. The package's own copy has one thread anyway.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Idle threads sleep rather than spin. Beside other programs, spinning makes short parallel regions
# take several times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Commands wrap their output at the width of the terminal, which tests do not depend on.
os.environ["COLUMNS"] = "100"

import numpy as np
import pytest


@pytest.fixture
def rng():
    """Fixed random numbers, new for every test."""
    return np.random.default_rng(20140621)
