"""GEM and its classifier on blocks of rows and on memory-mapped files."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from block_support import FarBlocks, mapped, objective_gap
from command_line import python
from flat_gem import gem_classifier
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from eigenfeat import GEM, GEMClassifier
from eigenfeat.samples import ArrayBlocks
from eigenfeat.samples import blocks as sample_blocks


@pytest.fixture(scope="module")
def digits():
    """900 rows of five classes: more rows than features, so that optima are well determined."""
    X, y = load_digits(return_X_y=True)
    return X[y < 5][:900].astype(np.float32), y[y < 5][:900]


@pytest.fixture(scope="module")
def weight():
    return np.random.RandomState(0).randint(0, 3, 900) / 2.0


@pytest.mark.parametrize(
    ("kind", "dtype", "weighted"),
    [
        (np.asarray, np.uint8, False),
        (np.asarray, np.float32, True),
        (np.asarray, np.float64, True),
        (sp.csr_matrix, np.uint8, True),
        (sp.csr_matrix, np.float32, False),
    ],
)
def test_gem_of_blocks_is_gem_of_all_rows(digits, weight, kind, dtype, weighted):
    X, y = kind(digits[0].astype(dtype)), digits[1]
    w = weight if weighted else None
    memory = GEM(n_directions=3).fit(X, y, w)
    found = GEM(n_directions=3).fit(FarBlocks(X, y, w, block_rows=250))
    assert found.scale_report_.n_samples == memory.scale_report_.n_samples > 0
    assert found.scale_report_.errors == memory.scale_report_.errors  # of the same rows
    eps = np.finfo(np.float32 if dtype == np.float32 else np.float64).eps
    np.testing.assert_allclose(found.eigenvalues_, memory.eigenvalues_, rtol=1e4 * eps)
    np.testing.assert_allclose(found.directions_, memory.directions_, atol=1e5 * eps)
    np.testing.assert_array_equal(found.pairs_, memory.pairs_)
    assert found.moments_.weight(3) == memory.moments_.weight(3)


def test_gem_needs_one_pass_where_scale_and_constant_are_given(digits):
    X, y = digits
    model = GEM(scale="columns", constant=True)
    found = model.fit((X[i : i + 90], y[i : i + 90]) for i in range(0, 900, 90))
    memory = GEM(scale="columns", constant=True).fit(X, y)
    np.testing.assert_allclose(found.eigenvalues_, memory.eigenvalues_, rtol=1e-4)


CLASSIFIERS = [
    {},
    {"depth": 2, "hidden_directions": 2},
    {"depth": 3, "hidden_directions": 1, "expansion": "with_input"},
    {"expansion": "polynomial", "pairs": "hypercube", "scale": "columns", "constant": False},
]


@pytest.mark.parametrize(("number", "options"), enumerate(CLASSIFIERS), ids=str)
def test_the_classifier_of_blocks_is_that_of_all_rows(digits, weight, number, options):
    X, y = digits
    w = weight if number % 2 == 0 else None
    options = {"n_directions": 2, "penalty": 0.3, "tol": 1e-6} | options
    memory = gem_classifier(**options).fit(X, y, w)
    found = gem_classifier(**options).fit(FarBlocks(X, y, w, block_rows=250))
    for layer, expected in zip(found.layers_, memory.layers_, strict=True):
        size = np.abs(expected.directions).max()
        np.testing.assert_allclose(layer.directions, expected.directions, atol=1e-3 * size)
        np.testing.assert_array_equal(layer.pairs, expected.pairs)
    assert objective_gap(memory.logit_, found.logit_) < 1e-4
    scores, expected = found.decision_function(X), memory.decision_function(X)
    assert np.abs(scores - expected).max() < 0.01 * np.abs(expected).max()
    assert np.mean(found.predict(X) == memory.predict(X)) > 0.99
    assert found.n_features_in_ == 64


@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_memory_maps_beyond_memory_are_fitted_by_blocks(tmp_path, digits, dtype, monkeypatch):
    monkeypatch.setattr(sample_blocks, "physical_memory", lambda: 0)
    X, y = mapped(tmp_path / "rows", digits[0].astype(dtype)), digits[1]
    memory = gem_classifier(n_directions=3).fit(np.array(X), y)
    found = gem_classifier(n_directions=3).fit(X, y)
    assert objective_gap(memory.logit_, found.logit_) < 1e-4
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        of_file = getattr(found, method)(X)
        assert type(of_file) is np.ndarray
        of_array = getattr(found, method)(np.array(X))
        np.testing.assert_allclose(of_file, of_array, rtol=1e-4, atol=1e-4)
        assert of_file.dtype == of_array.dtype
    assert found.score(X, y) > 0.95
    features = GEM(n_directions=2).fit(X, y)
    np.testing.assert_allclose(
        features.transform(X), features.transform(np.array(X)), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, lambda X: X.astype(np.uint8)])
def test_a_block_without_rows_has_results_without_rows(digits, form):
    X, y = digits
    model = gem_classifier(n_directions=1).fit(X, y)
    blocks = [form(X[:10]), form(X[10:10]), form(X[10:30])]
    for method in (model.predict, model.predict_proba):
        parts = list(method(iter(blocks)))
        assert [len(part) for part in parts] == [10, 0, 20]
        assert parts[1].shape[1:] == parts[0].shape[1:]
        assert parts[1].dtype == parts[0].dtype


def test_bad_rows_of_blocks_are_named_in_predictions(tmp_path, digits, monkeypatch):
    monkeypatch.setattr(sample_blocks, "physical_memory", lambda: 0)
    X, y = digits
    model = gem_classifier(n_directions=2).fit(X, y)
    bad = X.copy()
    bad[777, 5] = np.nan
    found = model.predict(ArrayBlocks(bad, block_rows=100))
    assert len(next(found)) == 100
    for rows in (ArrayBlocks(bad, block_rows=100), mapped(tmp_path / "bad", bad)):
        with pytest.raises(ValueError, match=r"X: expected finite.* nan in row 777, column 5"):
            list(model.predict(rows))
    with pytest.raises(ValueError, match=r"X: expected 64 columns, got 63 in the block from row 0"):
        list(model.predict(ArrayBlocks(X[:, 1:])))
    with pytest.raises(ValueError, match="63 features"):
        model.predict(mapped(tmp_path / "narrow", X[:, 1:]))
    with pytest.raises(NotFittedError):
        GEMClassifier().predict(ArrayBlocks(X))


SCRIPT = """
import threading
import numpy as np
from eigenfeat import GEM, GEMClassifier, MultinomialLogit
from eigenfeat.samples import ArrayBlocks
from eigenfeat.samples import blocks as sample_blocks
path, dtype, n, d = {arguments}


def own_bytes():  # memory of this process, without mapped files, whose pages the system may free
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return 1024 * int(status["RssAnon"].split()[0])


def watch():
    while not ended.wait(0.002):
        seen.append(own_bytes())


X = np.memmap(path, dtype=dtype, mode="r", shape=(n, d))
y = (np.arange(n) % 3).astype(np.int8)
seen, ended, thread = [own_bytes()], threading.Event(), threading.Thread(target=watch, daemon=True)
thread.start()
logit = MultinomialLogit(tol=0.05, temperature="auto")
gem = GEM(n_directions=1)
model = GEMClassifier(gem=gem, logit=logit, n_threads=2).fit(ArrayBlocks(X, y))
right = np.mean(np.concatenate(list(model.predict(ArrayBlocks(X)))) == y)
ended.set()
thread.join()
print(right, max(seen) - seen[0])
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory is read from /proc")
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_memory_does_not_grow_with_the_file(tmp_path, dtype):
    """Rows that take 240 MB as float32 are fitted and predicted with five eighths of that."""
    n, d, path = 600_000, 100, tmp_path / "rows"
    X = np.memmap(path, dtype=dtype, mode="w+", shape=(n, d))
    rows = np.random.RandomState(0).randint(0, 50, size=(50_001, d)).astype(dtype)
    rows[:, :9] += (np.arange(len(rows))[:, None] % 3 == np.arange(9) % 3).astype(dtype) * 40
    for begin in range(0, n, len(rows)):  # a multiple of three, as the labels need
        X[begin : begin + len(rows)] = rows[: n - begin]
    X.flush()
    done = python(SCRIPT.format(arguments=(str(path), dtype, n, d)))
    assert done.returncode == 0, done.stderr[-2000:]
    right, most = map(float, done.stdout.split())
    assert right > 0.9
    assert 1e6 < most < 150e6  # some 60e6; how soon memory goes back depends on the machine's load


def test_containers_of_set_output_need_samples_in_memory(digits):
    da = pytest.importorskip("dask.array", reason="needs the extra 'dask'")
    X, y = digits
    model = GEM(n_directions=1).fit(X, y).set_output(transform="pandas")
    message = "^set_output: expected transform='default' for samples in blocks, got 'pandas'$"
    for rows in (ArrayBlocks(X, block_rows=250), da.from_array(X, chunks=(250, -1))):
        with pytest.raises(ValueError, match=message):
            model.transform(rows)
    assert list(model.transform(X)) == list(model.get_feature_names_out())
