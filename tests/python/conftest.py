"""Settings and fixtures of all test files."""

import os

# One thread for NumPy's BLAS, which computes references: further threads would compete with the
# tested threads for the cores. BLAS reads this variable when NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Idle threads sleep rather than spin. Beside other programs, spinning makes short parallel regions
# take several times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Commands wrap their output at the width of the terminal; tests need a fixed width.
os.environ["COLUMNS"] = "100"

import numpy as np
import pytest


@pytest.fixture
def rng():
    """Fixed random numbers, new for every test."""
    return np.random.default_rng(20140621)


@pytest.fixture
def undrawn(monkeypatch):
    """Make figures without drawing them, which takes most of the time of a page."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda _, file, **options: file.write(b"<svg/>"))
