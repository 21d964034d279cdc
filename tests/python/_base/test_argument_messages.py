"""Arguments of functions that are of another kind, or beyond 31 bits: a message that names them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import eigenfeat as ef
from eigenfeat import incomplete
from eigenfeat.expansion import features as expansion
from eigenfeat.neighbours import local_means

X = np.random.default_rng(0).standard_normal((60, 4))
Y = np.arange(60) % 3
ODD = {
    **{"2**31": 2**31, "2**63": 2**63, "2**70": 2**70, "-2**70": -(2**70), "1e300": 1e300},
    **{"NaN": np.nan, "text": "xx", "nothing": [], "object": object(), "dict": {}},
    **{"array": np.array([1, 2]), "list of 2**70": [2**70]},
}
FILES = {
    "rows.npy": ("block_rows", "target", "columns", "drop", "labels", "format"),
    "rows.svm": ("block_rows", "target", "labels", "n_features", "zero_based"),
    "rows.csv": ("block_rows", "target", "columns", "drop", "labels", "delimiter", "header"),
}


def unnamed(call, name):
    """Odd values that end in an error that does not name the argument."""
    found = {}
    for label, value in ODD.items():
        try:
            call(value)
        except (ValueError, TypeError, MemoryError) as error:
            if not re.search(rf"\b{name}\b", str(error)) or "incompatible" in str(error):
                found[label] = f"{type(error).__name__}: {error}"[:150]
    return found


@pytest.mark.parametrize(("file", "name"), [(f, name) for f in FILES for name in FILES[f]])
def test_open_rows(tmp_path, file, name):
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "rows.svm").write_text("1 1:2\n0 2:3\n")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    if file == "rows.csv":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / file
    assert unnamed(lambda value: ef.open_rows(path, **{name: value}), name) == {}


@pytest.mark.parametrize("name", ["x_name", "y_name", "dtype", "skip_bad", "mark_bad"])
def test_open_arrays(tmp_path, name):
    np.savez(tmp_path / "rows.npz", X=X, y=Y)
    assert unnamed(lambda value: ef.open_rows(tmp_path / "rows.npz", **{name: value}), name) == {}


@pytest.mark.parametrize("label", sorted(set(ODD) - {"text"}))
def test_paths_of_rows(label):
    """A text is the name of a file, and an error about that file."""
    with pytest.raises((TypeError, ValueError), match=r"^path: expected"):
        ef.open_rows(ODD[label])


@pytest.mark.parametrize("name", ["offset", "expansion", "powers", "include_input", "n_threads"])
def test_expand(name):
    assert unnamed(lambda value: expansion.expand(X, np.eye(4), **{name: value}), name) == {}


NAMES = ["denominator", "ridge", "n_directions", "threshold", "n_threads", "constant", "solve_with"]


@pytest.mark.parametrize("name", NAMES)
def test_pair_directions(name):
    moments = ef.ClassMoments().update(X, Y)
    assert unnamed(lambda value: ef.pencils.pair_directions(moments, **{name: value}), name) == {}


def test_blocks_and_neighbours():
    assert unnamed(lambda value: ef.rows.ArrayBlocks(X, Y, block_rows=value), "block_rows") == {}
    call = lambda value: local_means.local_neighbours(X, Y, 3, value)  # noqa: E731
    assert unnamed(call, "n_neighbors") == {}


@pytest.mark.parametrize("name", ["A", "g", "constant", "radius", "diagonal", "n_threads"])
def test_certified_sign(name):
    given = {"A": np.eye(4), "g": np.ones(4), "constant": 1.0, "radius": 1.0}
    assert unnamed(lambda value: ef.regions.certified_sign(**{**given, name: value}), name) == {}
    given.pop("constant")
    if name != "constant":
        assert (
            unnamed(lambda value: ef.regions.trust_region_minimum(**{**given, name: value}), name)
            == {}
        )


@pytest.mark.parametrize("name", ["kind", "n_pairs", "random_state"])
def test_class_pairs(name):
    assert unnamed(lambda value: ef.pencils.class_pairs([0, 1, 2], **{name: value}), name) == {}


def test_estimators_call_them_pairs():
    with pytest.raises(ValueError, match=r"^pairs: expected"):
        ef.pencils.pair_directions(ef.ClassMoments().update(X, Y), "xx")


@pytest.mark.parametrize("name", ["y_true", "y_pred", "n_pairs"])
def test_confusion_pairs_from(name):
    given = {"y_true": Y, "y_pred": Y[::-1]}
    assert (
        unnamed(lambda value: ef.pencils.confusion_pairs_from(**{**given, name: value}), name) == {}
    )


@pytest.mark.parametrize("name", ["n_bins", "n_contractions", "random_state", "sample_weight"])
def test_target_groups(name):
    assert unnamed(lambda value: ef.rows.target_groups(X, **{name: value}), name) == {}


@pytest.mark.parametrize("name", ["model", "agreement", "confidence", "tau", "steps"])
def test_calibrate(name):
    model = incomplete.LocalQDA().fit(X, Y)
    classifier = incomplete.ReliableClassifier(model, reliability=0.9, correct=False).fit(X, Y)
    given = {"model": classifier, "X": X, "y": Y}
    assert unnamed(lambda value: incomplete.calibrate(**{**given, name: value}), name) == {}
