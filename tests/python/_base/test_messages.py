"""Messages about common mistakes name the argument and say what to do."""

import inspect
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from every_estimator import ESTIMATORS, OF_SERIES, X, Y, good_rows, new
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import eigenfeat as ef
from eigenfeat.early import GaussianCompletion, ReliableClassifier

NAMES = [name for name in ESTIMATORS if "," not in name]
BLOCKWISE = ["GEM", "GEMClassifier", "GEMEnsemble", "MultinomialLogit", "FisherLDA", "RayleighPCA"]
BLOCKWISE += ["QuadraticDiscriminant", "VanishingComponents", "RegularizedFisher"]
BLOCKWISE += ["SlicedInverseRegression"]


@pytest.fixture
def problem(rng):
    y = np.arange(90) % 3
    return rng.standard_normal((90, 4)) * (1 + y[:, None]), y


@pytest.mark.parametrize("name", BLOCKWISE)
def test_a_list_of_blocks_is_refused_with_what_takes_it(name, problem):
    estimator = ESTIMATORS[name]()
    X, y = problem
    pairs = [(X[:45], y[:45]), (X[45:], y[45:])]
    text = r"^X: expected samples or RowBlocks, got a (list|tuple) of 2 blocks; eigenfeat\.samples"
    for blocks in (
        pairs,
        tuple(pairs),
        [(*pair, np.ones(45)) for pair in pairs],
        [(sp.csr_matrix(X), y)] * 2,
        [(pd.DataFrame(X), y)] * 2,
        [X[:45], X[45:]],
    ):
        with pytest.raises(ValueError, match=text):
            estimator.fit(blocks)
        assert not [name for name in vars(estimator) if name.endswith("_")]
    estimator.fit(ef.samples.GeneratedBlocks(pairs))
    method = estimator.predict if hasattr(estimator, "predict") else estimator.transform
    with pytest.raises(ValueError, match=text):
        method([X[:45], X[45:]])


def test_methods_of_samples_in_memory_refuse_blocks(problem):
    X, y = problem
    blocks = ef.samples.ArrayBlocks(X)
    message = r"^X: expected samples in memory, got ArrayBlocks$"
    with pytest.raises(ValueError, match=message):
        ESTIMATORS["TransferLDG"]().fit(X, y).transform(blocks)
    with pytest.raises(ValueError, match=message):
        ESTIMATORS["GEMPatches"]().fit(blocks, y)


def test_lists_of_rows_are_rows(problem):
    X, y = problem
    assert ef.GEM().fit(X.tolist(), y).n_features_in_ == 4
    assert ef.GEM().fit(list(X), y).n_features_in_ == 4
    assert ef.GEM().fit([tuple(row) for row in X.tolist()], y).n_features_in_ == 4
    assert ef.GEM().fit([tuple(row) for row in X[:, :2].tolist()], y).n_features_in_ == 2


def test_a_fit_on_incomplete_rows_says_what_to_do(problem):
    model = ReliableClassifier(LinearDiscriminantAnalysis())
    X, y = problem
    holes = X.copy()
    holes[[7, 9], [2, 0]] = np.nan
    place = "X: expected complete samples, got NaN in row 7, column 2"
    complete = "; complete samples first, with GaussianCompletion().fit(X).transform(X)"
    further = "; decide takes incomplete samples"
    further += "; pass series with missing values as X[:, None] or as a list"
    further += "; pass series that have ended as a list of arrays, without NaN at their ends"
    with pytest.raises(ValueError, match=f"^{re.escape(place + complete + further)}$"):
        model.fit(holes, y)
    with pytest.raises(ValueError, match=rf"^{place} \('c'\);"):
        model.fit(pd.DataFrame(holes, columns=list("abcd")), y)
    assert not hasattr(model, "n_features_in_")
    wide = X.copy()
    wide[3, 1] = -np.inf
    with pytest.raises(ValueError, match=r"^X: expected finite rows, got -inf in row 3, column 1$"):
        model.fit(wide, y)
    model.fit(GaussianCompletion().fit(holes).transform(holes), y)  # the advice is good
    for method in (model.predict, model.predict_early):
        with pytest.raises(ValueError, match=f"^{re.escape(place + further)}$"):
            method(holes)
    assert len(model.decide(holes).labels) == 90
    model.fit(holes[:, None], y).predict_early(holes[:, None])


def test_missing_cells_of_a_frame_and_targets_are_named(problem):
    X, y = problem
    frame = pd.DataFrame(X, columns=list("abcd"))
    holes, target = frame.copy(), X[:, 0].copy()
    holes.loc[7, "c"] = target[4] = np.nan
    text = r"^X: expected finite numbers, got NaN in row 7, column 'c'; complete or leave out such"
    with pytest.raises(ValueError, match=text):
        ef.LDG().fit(holes, y)
    text = r"^y: expected a target for every sample, got 1 missing value, the first in row 4; leave"
    for given in (target, target.tolist(), pd.Series(target)):
        with pytest.raises(ValueError, match=text):
            ef.TableRegressor().fit(frame, given)
    with pytest.raises(ValueError, match=r"^Input y contains NaN"):
        ef.TableRegressor().fit(holes, np.column_stack([target, target]))


def test_a_folder_that_is_missing_is_named(tmp_path, problem, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = problem
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for model in (
        ef.GEM().fit(X, y),
        ef.GEMClassifier().fit(X, y),
        ef.ClassMoments().update(X, y),
    ):
        for path, kind, named in (
            ("nodir/x", FileNotFoundError, "No such file or directory: 'nodir'"),
            ("nodir/deeper/x", FileNotFoundError, "No such file or directory: 'nodir'"),
            ("file/x", NotADirectoryError, "Not a directory: 'file'"),
            ("folder", IsADirectoryError, "Is a directory: 'folder'"),
        ):
            with pytest.raises(kind, match=rf"^\[Errno \d+\] {named}$") as caught:
                ef.save(model, path)
            assert caught.value.filename == path.split("/")[0]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


# ---- text in a column of numbers -----------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_SERIES])
def test_fit_names_the_column(name):
    frame = pd.DataFrame(X, columns=list("abcd")).astype(object)
    frame.loc[3, "c"] = "green"
    estimator, more = new(name)
    if name == "GEMClassifierCV":
        estimator.set_params(estimator=ef.GEMClassifier())
    for part in (estimator, getattr(estimator, "estimator", None)):
        if hasattr(part, "categorical_features"):
            part.set_params(categorical_features=None)
    with pytest.raises(ValueError, match=r"text in column 'c' \('green' in row 3\)"):
        estimator.fit(frame, Y, **more)


def test_predictions_name_the_column():
    frame = pd.DataFrame(X, columns=list("abcd"))
    bad = frame.astype(object)
    bad.loc[5, "b"] = "red"
    for method, model in (
        ("decide", ReliableClassifier(LinearDiscriminantAnalysis())),
        ("predict", ReliableClassifier(LinearDiscriminantAnalysis())),
        ("transform", ef.MaxMarginShift(sigma2=0.5)),
        ("transform", ef.GEM()),
        ("predict_proba", ef.TableClassifier("columns", categorical_features=None)),
        ("predict", ef.TableRegressor("columns", categorical_features=None)),
    ):
        with pytest.raises(ValueError, match="text in column 'b'"):
            getattr(model.fit(frame, Y), method)(bad)


# ---- methods before fit --------------------------------------------------------------------------

# Methods that need no fit, or are given checked samples.
FITS = ("fit", "partial_fit", "iterate_path", "shift", "load", "get_m", "get_p", "set_")
FITS += ("check_parameters", "prepare", "keep", "nested", "depth_options", "logit_options")
FITS += ("logits_of", "features", "table")


def methods(estimator):
    for name, function in inspect.getmembers(type(estimator), callable):
        if not name.startswith(("_", *FITS)):
            yield name, inspect.signature(function).parameters


@pytest.mark.parametrize("name", NAMES)
def test_methods_before_fit(name):
    estimator = ESTIMATORS[name]()
    for method, parameters in methods(estimator):
        given = {"y": Y, "n_series": 2, "path": "nowhere.ef"}
        needed = [p for p in parameters.values() if p.default is p.empty and p.kind <= 1][1:]
        arguments = {p.name: given.get(p.name, X) for p in needed}
        if "y" in parameters:
            arguments["y"] = Y
        with pytest.raises(NotFittedError):
            getattr(estimator, method)(**arguments)


@pytest.mark.parametrize("name", ["TableRegressor", "TableClassifier", "LDG", "GEM", "FisherLDA"])
def test_infinite_cells_are_named(name, problem):
    X, y = problem
    X = X.copy()
    X[5, 2] = np.inf
    for given, column in ((X, 2), (X.tolist(), 2), (pd.DataFrame(X, columns=list("abcd")), "'c'")):
        text = rf"^X: expected finite numbers, got inf in row 5, column {column}$"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match=text):
                ESTIMATORS[name]().fit(given, y)


def test_missing_cells_of_an_array_are_named(problem):
    X, y = problem
    X = X.copy()
    X[7, 2] = np.nan
    with pytest.raises(
        ValueError, match=r"^X: expected finite numbers, got NaN in row 7, column 2"
    ):
        ef.LDG().fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted({*NAMES} - OF_SERIES))
def test_a_dict_is_no_table(name):
    estimator, more = new(name)
    columns = dict(zip("abcd", X.T, strict=False))
    text = "X: expected an array or a data frame, got dict; pandas.DataFrame(X) makes a data frame"
    text = f"^{re.escape(text)}$"
    with pytest.raises(TypeError, match=text):
        estimator.fit(columns, Y, **more)
    estimator.fit(good_rows(name), Y, **more)
    method = estimator.predict if hasattr(estimator, "predict") else estimator.transform
    with pytest.raises(TypeError, match=text):
        method(columns)


@pytest.mark.parametrize("name", sorted({*NAMES} - OF_SERIES))
def test_labels_of_another_number_than_the_samples(name):
    n = len(X)
    for wrong in (Y[:-7], np.tile(Y, 2)):
        estimator, more = new(name)
        if not get_tags(estimator).target_tags.required:
            continue
        text = rf"^y: expected {n} (labels|targets|rows)(, one per sample)?, got .*{len(wrong)}"
        for given in (good_rows(name), pd.DataFrame(good_rows(name))):
            with pytest.raises(ValueError, match=text):
                estimator.fit(given, wrong, **more)


def test_labels_of_another_number_than_the_rows_of_a_table(problem):
    _, y = problem
    words = pd.DataFrame({"job": list("ab") * 45, "age": np.linspace(20, 60, 90)})
    with pytest.raises(ValueError, match=r"^y: expected 90 labels, one per sample, got 50$"):
        ef.TableClassifier().fit(words, y[:50])
    with pytest.raises(ValueError, match=r"^y: expected 90 targets, one per sample, got 50$"):
        ef.TableRegressor().fit(words, y[:50])
