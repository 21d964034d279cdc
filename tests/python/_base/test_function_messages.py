"""Odd arguments of public functions raise an error that names the argument, also NaN."""

import os
import re
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef
from eigenfeat import early, io, pencils, regions
from eigenfeat.samples.targets import discretize_target, target_groups

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
X = RNG.standard_normal((60, 4)) + Y[:, None]
ODD = {
    **{"2**31": 2**31, "2**63": 2**63, "2**64": 2**64, "2**70": 2**70, "-2**70": -(2**70)},
    **{"1e300": 1e300, "NaN": np.nan, "inf": np.inf, "-1": -1, "half": 0.5, "None": None},
    **{"text": "xx", "nothing": [], "object": object(), "dict": {}, "array": np.array([1, 2])},
    **{"list of 2**70": [2**70], "list of text": ["a"], "list of NaN": [np.nan]},
    **{"cube": np.zeros((2, 2, 2)), "complex": 1j, "bool": True},
    **{"null": "a\0b", "class": ef.GEM, "unfitted": ef.GEM()},
}

MOMENTS = ef.ClassMoments().update(X, Y)
MODEL = ef.GEM().fit(X, Y)
RELIABLE = early.ReliableClassifier(LinearDiscriminantAnalysis(), reliability=0.9, correct=False)
EARLY = {"early": RELIABLE.fit(X, Y).predict_early(X), "n_samples": 4, "complete": Y, "y": Y}
CURVE = {"model": RELIABLE, "X": X, "y": Y, "tau": [0.5, 0.9]}
BALL = {"A": np.eye(2), "g": np.ones(2), "radius": 1.0}
PAIRS = "denominator ridge n_directions threshold n_threads constant solver"
NPY = "block_rows target columns drop labels format dtype skip_bad mark_bad"
# Functions, good arguments, arguments to replace, and odd values that are good for one of these.
CALLS = [
    (pencils.pair_directions, {"moments": MOMENTS}, PAIRS, "NaN, inf, 1e300, None, cube"),
    (ef.generalized_eigh, {"A": np.eye(3), "B": np.eye(3)}, "A B n_vectors threshold", "None"),
    (ef.generalized_eigh, {"A": np.eye(3), "B": np.eye(3)}, "solver n_threads", "None"),
    (pencils.class_pairs, {"classes": [0, 1, 2], "pairs": "hypercube"}, "random_state", "None"),
    (discretize_target, {"y": X[:, 0], "n_bins": 5}, "y n_bins sample_weight", "None"),
    (target_groups, {"y": X}, "n_bins n_contractions random_state", "None"),
    (regions.trust_region_minimum, BALL, "A g radius", ""),
    (early.early_scores, EARLY, "early n_samples complete y", ""),
    (early.reliability_curve, CURVE, "model X y tau", ""),
    (ef.open_rows, {"path": "rows.npy"}, NPY, "None, array, cube"),
    (ef.open_rows, {"path": "rows.svm"}, "n_features zero_based", "None, array, cube"),
    (ef.open_rows, {"path": "rows.csv"}, "delimiter header", "None, array, cube"),
    (ef.open_rows, {}, "path", "text, list of text, null"),
    (io.save, {"model": MODEL, "path": "x"}, "model path", ""),
    (io.load, {}, "path", "text"),
    (
        io.to_onnx,
        {"model": MODEL, "path": None, "dtype": "float32"},
        "model path dtype",
        "unfitted",
    ),
]
CASES = [
    pytest.param(function, given, name, left_out, id=f"{function.__name__}, {name}")
    for function, given, names, left_out in CALLS
    for name in names.split()
]


def unnamed(function, name, left_out):
    """Odd values that end in an error, a warning or NaN, and not in a message with the name."""
    found = {}
    for label in ODD.keys() - set(left_out.split(", ")):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error")
                made = function(**{name: ODD[label]})
        except (ValueError, TypeError, MemoryError) as error:
            if not re.search(rf"\b{name}\b", str(error)) or "incompatible" in str(error):
                found[label] = f"{type(error).__name__}: {error}"[:150]
        except Exception as error:
            found[label] = f"{type(error).__name__}: {error}"[:150]
        else:
            if isinstance(made, float | np.ndarray) and not np.isfinite(made).all():
                found[label] = "NaN"
    return found


@pytest.mark.parametrize(("function", "given", "name", "left_out"), CASES)
def test_odd_arguments_are_named(tmp_path, monkeypatch, function, given, name, left_out):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", X)
    (tmp_path / "rows.svm").write_text("1 1:2\n0 2:3\n")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    library = "onnx" if function is io.to_onnx else "pyarrow"
    if library == "onnx" or given.get("path") == "rows.csv":
        pytest.importorskip(library, reason=f"{library} is not installed")
    assert unnamed(partial(function, **given), name, left_out) == {}


def test_a_number_is_no_path():
    """`open` would read and close the file with this descriptor."""
    reading, writing = os.pipe()
    try:
        with pytest.raises(TypeError, match=rf"^path: expected a path, got {reading}$"):
            io.load(reading)
        os.fstat(reading)
    finally:
        os.close(reading)
        os.close(writing)
