"""Without matplotlib: fits work, and what needs it says how it is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
    done = subprocess.run(
        [sys.executable, "-c", USES],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout) == (0, "1\n1\n"), done.stderr
    fitted, picture, demonstration, papers = done.stderr.splitlines()
    assert fitted == "fitted"
    extra = 'pip install "eigenfeat[plot]"'
    expected = f"eigenfeat._base.extras.MissingExtraError: {NEEDED}pictures, as by {extra}"
    assert picture == expected
    for line in (demonstration, papers):
        assert line.startswith(f"eigenfeat: {NEEDED}")
        assert line.endswith(f"as by {extra}")
