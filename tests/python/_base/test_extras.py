"""Without matplotlib and rich: fits work, and what needs them says how they are installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
START = "import sys; sys.modules['matplotlib'] = sys.modules['rich'] = None\n"
FIT = """
from sklearn.datasets import load_iris
from eigenfeat import GEMClassifierCV
X, y = load_iris(return_X_y=True)
search = GEMClassifierCV(grid={"logit__penalty": [0.1, 1.0]}, verbose=1).fit(X, y)
"""
PLOT = """
from eigenfeat import GEM, plotting
plotting.SpectrumDisplay.from_estimator(GEM(threshold=0).fit(X, y))
"""


def python(code):
    command = [sys.executable, "-c", START + code]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT
    )


def test_fits_need_neither_and_say_how_far_they_are():
    done = python(FIT)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert all(
        line.startswith("[GEMClassifierCV] logit__penalty=") and line.endswith("%")
        for line in lines
    )


def test_pictures_name_the_extra():
    done = python(FIT + PLOT)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "eigenfeat._base.extras.MissingExtraError: matplotlib: expected to be installed for "
        'pictures, as by pip install "eigenfeat[plot]"'
    )


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("eigenfeat.cli.main", ["demo", "--quick"]),
        ("bench.papers.__main__", ["mnist", "--data", "x"]),
    ],
)
def test_commands_name_the_extra_before_any_work(module, command):
    done = python(f"from {module} import main; sys.exit(main({command}))")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("eigenfeat: matplotlib: expected to be installed for ")
    assert done.stderr.endswith('as by pip install "eigenfeat[plot]"\n')
