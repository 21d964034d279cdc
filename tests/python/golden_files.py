"""Write the files that later releases must be able to load.

Once a release, from its own commit:

    python tests/python/golden_files.py 0.2.0

writes `tests/python/golden/0.2.0/<case>.efm` and beside each what its model predicts, but for cases
that are there already: once a release is out, its files are never written again.
`test_golden_files.py` loads all of them. Those in `0.1.0` that end in ``.npz`` are of version 1 of
the format; those that have rows of their own in the JSON were written by the code before that.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from fitted_models import MODELS, outputs

import eigenfeat as ef

GOLDEN = Path(__file__).parent / "golden"

# scikit-learn's classes promise nothing between versions; one file shows how far that goes.
WITH_SCIKIT_LEARN = ("FixedTime", "Pipeline", "MaxMarginShift", "ReliableClassifier")
CASES = [
    name
    for name in MODELS
    if not name.startswith(WITH_SCIKIT_LEARN)
    or name in ("ReliableClassifier, LDA", "ReliableClassifier, local")
]


def slug(name):
    return name.lower().replace(",", "").replace(" ", "-")


def expected_of(path):
    """Where it says what a file's model predicted."""
    return path.with_suffix(".json") if path.suffix == ".npz" else path.with_suffix(".efm.json")


def write(release):
    folder = GOLDEN / release
    folder.mkdir(parents=True, exist_ok=True)
    for name in CASES:
        path = folder / f"{slug(name)}.efm"
        if path.exists():
            continue
        model = MODELS[name]()
        ef.save(model, path)
        expected = {key: value.tolist() for key, value in outputs(model).items()}
        text = json.dumps({"class": type(model).__name__, "expected": expected}, indent=None)
        expected_of(path).write_text(text + "\n")


def read(path):
    """The model of a golden file, what it predicts now, and what it predicted then."""
    model = ef.load(path)
    then = json.loads(expected_of(path).read_text())
    if "rows" not in then:
        return model, outputs(model), then
    rows = np.array(then["rows"])
    if hasattr(model, "feature_names_in_"):
        rows = pd.DataFrame(rows, columns=model.feature_names_in_)
    now = {}
    for key in then["expected"]:
        method, *label = key.split()
        now[key] = getattr(model, method)(*(label or [rows]))
    return model, now, then


if __name__ == "__main__":
    write(sys.argv[1])
