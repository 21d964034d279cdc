"""Odd arguments of public functions: a message that names them, and no NaN that passes."""

import re
import warnings

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef
from eigenfeat import early, io

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
X = RNG.standard_normal((60, 4)) + Y[:, None]
ODD = {
    **{"2**31": 2**31, "2**63": 2**63, "2**64": 2**64, "2**70": 2**70, "-2**70": -(2**70)},
    **{"1e300": 1e300, "NaN": np.nan, "inf": np.inf, "-1": -1, "half": 0.5, "None": None},
    **{"text": "xx", "nothing": [], "object": object(), "dict": {}, "array": np.array([1, 2])},
    **{"list of 2**70": [2**70], "list of text": ["a"], "list of NaN": [np.nan]},
    **{"cube": np.zeros((2, 2, 2)), "complex": 1j, "bool": True},
}


def unnamed(call, name, values=ODD):
    """Odd values that end in an error, a warning or NaN, and not in a message with the name."""
    found = {}
    for label, value in values.items():
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error")
                made = call(value)
        except (ValueError, TypeError, MemoryError) as error:
            if not re.search(rf"\b{name}\b", str(error)) or "incompatible" in str(error):
                found[label] = f"{type(error).__name__}: {error}"[:150]
        except Exception as error:
            found[label] = f"{type(error).__name__}: {error}"[:150]
        else:
            if isinstance(made, float | np.ndarray) and not np.isfinite(made).all():
                found[label] = "NaN"
    return found


# Some of these are good values of one argument or the other.
TAKEN = {"NaN", "inf", "1e300", "None", "cube"}


@pytest.mark.parametrize(
    "name",
    ["denominator", "ridge", "n_directions", "threshold", "n_threads", "constant", "solver"],
)
def test_pair_directions(name):
    moments = ef.ClassMoments().update(X, Y)
    values = {label: value for label, value in ODD.items() if label not in TAKEN}
    call = lambda value: ef.pencils.pair_directions(moments, **{name: value})  # noqa: E731
    assert unnamed(call, name, values) == {}


FILES = {
    "rows.npy": (
        *("block_rows", "target", "columns", "drop", "labels", "format"),
        *("dtype", "skip_bad", "mark_bad"),
    ),
    "rows.svm": ("n_features", "zero_based"),
    "rows.csv": ("delimiter", "header"),
}


@pytest.mark.parametrize(("file", "name"), [(f, name) for f in FILES for name in FILES[f]])
def test_open_rows(tmp_path, file, name):
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "rows.svm").write_text("1 1:2\n0 2:3\n")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    if file == "rows.csv":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    values = {
        label: value for label, value in ODD.items() if label not in ("None", "array", "cube")
    }
    assert unnamed(lambda value: ef.open_rows(tmp_path / file, **{name: value}), name, values) == {}


def test_paths_of_rows():
    """A text is the name of a file, and an error about that file."""
    values = {label: value for label, value in ODD.items() if "text" not in label}
    assert unnamed(ef.open_rows, "path", values) == {}


@pytest.fixture(scope="module")
def reliable():
    model = early.ReliableClassifier(LinearDiscriminantAnalysis(), reliability=0.9, correct=False)
    return model.fit(X, Y)


@pytest.mark.parametrize("name", ["early", "n_samples", "complete", "y"])
def test_early_scores(reliable, name):
    given = {"early": reliable.predict_early(X), "n_samples": 4, "complete": Y, "y": Y}
    call = lambda value: early.early_scores(**{**given, name: value})  # noqa: E731
    assert unnamed(call, name) == {}


@pytest.mark.parametrize("name", ["model", "X", "y", "tau"])
def test_reliability_curve(reliable, name):
    given = {"model": reliable, "X": X, "y": Y, "tau": [0.5, 0.9]}
    call = lambda value: early.reliability_curve(**{**given, name: value})  # noqa: E731
    assert unnamed(call, name) == {}


@pytest.mark.parametrize("name", ["model", "path"])
def test_save(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"model": ef.GEM().fit(X, Y), "path": tmp_path / "x"}
    values = {**ODD, "null": "a\0b", "class": ef.GEM, "unfitted": ef.GEM(), "empty": ""}
    assert unnamed(lambda value: io.save(**{**given, name: value}), name, values) == {}


def test_load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = {label: value for label, value in ODD.items() if label != "text"}
    assert unnamed(io.load, "path", {**values, "null": "a\0b", "empty": ""}) == {}
    with pytest.raises(FileNotFoundError, match="xx"):
        io.load("xx")


@pytest.mark.parametrize("name", ["model", "path", "dtype"])
def test_to_onnx(tmp_path, name, monkeypatch):
    pytest.importorskip("onnx", reason="onnx is not installed")
    monkeypatch.chdir(tmp_path)
    given = {"model": ef.GEM().fit(X, Y), "path": None, "dtype": "float32"}
    call = lambda value: io.to_onnx(**{**given, name: value})  # noqa: E731
    values = {**ODD, "null": "a\0b"}
    assert unnamed(call, name, values) == {}


def test_a_number_is_no_path():
    """An open file of that number would be read, and closed."""
    import os

    reading, writing = os.pipe()
    try:
        with pytest.raises(TypeError, match=rf"^path: expected a path, got {reading}$"):
            io.load(reading)
        os.fstat(reading)
    finally:
        os.close(reading)
        os.close(writing)
