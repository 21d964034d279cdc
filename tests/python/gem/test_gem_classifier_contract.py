"""GEMClassifier's contract: scikit-learn's checks, files, pickles, threads and errors."""

from __future__ import annotations

import operator
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from flat_gem import gem_classifier, plain_params
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import NotFittedError

import eigenfeat
from eigenfeat import GEMClassifier
from eigenfeat.exceptions import SingularDenominatorError
from eigenfeat.pencils import one_vs_rest

SMALL = {"n_directions": 2, "pairs": "hypercube"}


# Two ways to the same numbers agree to float32's rounding and the search's tolerance, not to 1e-7.
@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500], y[:500]


def fitted(name):
    """Classifiers of several kinds, with rows that they can predict."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    wine, kinds = load_wine(return_X_y=True)
    names = np.array(["red", "white", "rosé"])
    return {
        "digits": lambda: (gem_classifier(views="gem", **SMALL).fit(X, y), X),
        "float32": lambda: (
            gem_classifier(views="gem", **SMALL).fit(X.astype("f4"), y),
            X.astype("f4"),
        ),
        "sparse": lambda: (
            gem_classifier(views="gem", **SMALL, include_input=True).fit(sp.csr_array(X), y),
            sp.csr_array(X),
        ),
        "strings": lambda: (
            gem_classifier(views="gem", scale="columns").fit(wine, names[kinds]),
            wine,
        ),
        "objects": lambda: (
            gem_classifier(views="gem", **SMALL).fit(wine, names[kinds].astype(object)),
            wine,
        ),
        "two": lambda: (
            GEMClassifier(views="gem").fit(wine[kinds < 2], names[kinds[kinds < 2]]),
            wine,
        ),
        "booleans": lambda: (GEMClassifier(views="gem").fit(wine, kinds == 1), wine),
        "deep": lambda: (
            gem_classifier(views="gem", **SMALL, depth=2, hidden_directions=2).fit(X, y),
            X,
        ),
        "tree": lambda: (
            gem_classifier(views="gem", pairs="class_tree", n_directions=2).fit(X, y),
            X,
        ),
        "none": lambda: (gem_classifier(views="gem", threshold=1e9).fit(X, y), X),
        "events": lambda: (gem_classifier(views="gem", n_directions=3).fit(X, y, events=y % 3), X),
        "columns": lambda: (
            GEMClassifier(views="gem").fit(pd.DataFrame(wine).add_prefix("c"), kinds),
            pd.DataFrame(wine).add_prefix("c"),
        ),
    }[name]()


KINDS = ["digits", "float32", "sparse", "strings", "objects", "two"]
KINDS += ["booleans", "deep", "tree", "none", "events", "columns"]


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_pickles_hold_every_bit(tmp_path, kind):
    model, X = fitted(kind)
    path = tmp_path / "model"
    eigenfeat.save(model, path)
    loaded = eigenfeat.load(str(path))
    for twin in (loaded, pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(loaded))):
        for method in ("decision_function", "predict_proba", "predict_log_proba", "predict"):
            ours, theirs = getattr(twin, method)(X), getattr(model, method)(X)
            assert ours.dtype == theirs.dtype
            assert_array_equal(ours, theirs, strict=True)
        assert twin.classes_.dtype == model.classes_.dtype
        assert twin.n_features_in_ == model.n_features_in_
        assert plain_params(twin) == plain_params(model)
        for layer, other in zip(twin.layers_, model.layers_, strict=True):
            assert layer.pairs.tolist() == other.pairs.tolist()
            assert_array_equal(layer.eigenvalues, other.eigenvalues)
            assert_array_equal(layer.ranks, other.ranks)
    again = tmp_path / "again"
    eigenfeat.save(loaded, again)
    assert again.read_bytes() == path.read_bytes()


def test_files_hold_the_columns_names(tmp_path):
    model, frame = fitted("columns")
    eigenfeat.save(model, tmp_path / "model")
    loaded = eigenfeat.load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == frame.columns.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize(
    "changed",
    [
        {"pairs": [(0, 1), (1, 2), (2, 0)]},
        {"pairs": ("random", 4)},
        {"powers": [1, 2]},
        {"powers": np.array([2, 1]), "n_directions": np.int64(3), "ridge": np.float32(0.5)},
        {"threshold": None, "constant": np.bool_(False), "random_state": 7},
    ],
    ids=str,
)
def test_files_hold_parameters_as_they_are(tmp_path, changed):
    X, y = load_wine(return_X_y=True)
    model = gem_classifier(views="gem", **changed).fit(X, y)
    eigenfeat.save(model, tmp_path / "model")
    loaded = eigenfeat.load(tmp_path / "model")
    read = plain_params(loaded)
    for name, value in plain_params(model).items():
        equal = np.array_equal if name == "gem__powers" else operator.eq
        assert equal(read[name], value)
    assert type(loaded.gem.pairs) is type(model.gem.pairs)
    assert_array_equal(clone(loaded).fit(X, y).predict_proba(X), model.predict_proba(X))


def test_files_hold_contrasts_and_generators(tmp_path, digits):
    X, y = digits
    model = gem_classifier(
        views="gem", pairs=one_vs_rest(range(10)), random_state=np.random.RandomState(3)
    )
    model.fit(X, y)
    eigenfeat.save(model, tmp_path / "model")
    loaded = eigenfeat.load(tmp_path / "model")
    assert loaded.gem.pairs.names.tolist() == model.gem.pairs.names.tolist()
    state = model.random_state.get_state()[1]
    assert_array_equal(loaded.random_state.get_state()[1], state)
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


# ---- threads, randomness, state ------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"include_input": True}, {"depth": 2, "hidden_directions": 2, "include_input": True}],
    ids=str,
)
def test_threads_do_not_matter(digits, options):
    X, y = digits
    one, two = (
        gem_classifier(views="gem", **SMALL, **options, n_threads=n).fit(X, y) for n in (1, 2)
    )
    assert one.logit_.coef_.tobytes() == two.logit_.coef_.tobytes()
    assert one.predict_proba(X).tobytes() == two.predict_proba(X).tobytes()


def test_the_seed_decides_what_is_random(digits):
    X, y = digits
    first, same, other = (
        gem_classifier(views="gem", **SMALL, random_state=seed).fit(X, y) for seed in (1, 1, 2)
    )
    assert_array_equal(first.predict_proba(X), same.predict_proba(X))
    assert first.layers_[0].pairs.tolist() != other.layers_[0].pairs.tolist()


def test_verbose_tells_the_steps(digits, capsys):
    X, y = digits
    gem_classifier(views="gem", **SMALL, depth=2, hidden_directions=2).fit(X, y)
    assert capsys.readouterr() == ("", "")
    gem_classifier(views="gem", **SMALL, depth=2, hidden_directions=2, verbose=1).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    for step in ("[GEM] moments: 500 rows", "moments of layer 2", "[GEMClassifier] logit: "):
        assert step in err


# ---- errors --------------------------------------------------------------------------------------


def test_not_fitted(digits):
    X, _ = digits
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(GEMClassifier(views="gem"), method)(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 0}, "'depth' parameter of GEMClassifier"),
        ({"penalty": -1}, "'penalty' parameter"),
        ({"ridge": -0.1}, "'ridge' parameter"),
        ({"expansion": "none"}, "expansion: expected"),
        ({"hidden_directions": 0}, "'hidden_directions' parameter"),
        ({"pairs": "some"}, "'pairs' parameter"),
        ({"n_threads": 0}, "'n_threads' parameter"),
        ({"powers": (1, 4)}, "powers: expected distinct numbers out of 1, 2, 3"),
        ({"powers": ()}, "powers: expected"),
        ({"powers": (1, 4), "depth": 2}, "powers: expected"),
        ({"pairs": [(0, 77)]}, "77"),
    ],
    ids=str,
)
def test_parameters_out_of_range(digits, options, message):
    with pytest.raises(ValueError, match=message):
        gem_classifier(views="gem", **options).fit(*digits)


def test_rows_labels_and_weights_that_do_not_fit(digits):
    X, y = digits
    model = gem_classifier(views="gem", **SMALL)
    with pytest.raises(ValueError, match=r"y: expected rows of at least two classes, got 1 class"):
        model.fit(X, np.zeros(500, dtype=int))
    with pytest.raises(ValueError, match="y: expected rows of at least two classes"):
        model.fit(X, y, y == 3)
    with pytest.raises(ValueError, match="at least one"):
        model.fit(X, y, np.zeros(500))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        model.fit(X, y, -np.ones(500))
    with pytest.raises(ValueError, match=r"events: expected 500 groups, one per row, got \(3,\)"):
        model.fit(X, y, events=[0, 1, 2])
    with pytest.raises(ValueError, match="expected rows of at least two classes"):
        model.fit(X, y, events=np.zeros(500, dtype=int))
    with pytest.raises(ValueError, match="y: expected a label for every row"):
        model.fit(X, np.where(y == 3, np.nan, y))
    with pytest.raises(ValueError, match="Input X contains infinity"):
        model.fit(np.where(X == 3, np.inf, X), y)
    with pytest.raises(ValueError, match="is expecting 64 features"):
        model.fit(X, y).predict(X[:, 1:])
    with pytest.raises(SingularDenominatorError, match="would do"):
        gem_classifier(views="gem", ridge=0).fit(X, y)


def test_a_failed_fit_leaves_the_classifier(digits):
    X, y = digits
    model = gem_classifier(views="gem", **SMALL).fit(X, y)
    expected = model.predict_proba(X)
    with pytest.raises(SingularDenominatorError):
        model.set_params(gem__ridge=0).fit(X, y)
    assert_array_equal(model.predict_proba(X), expected)
