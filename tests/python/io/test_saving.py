"""Saving and loading: the outputs of loaded objects are bit-for-bit identical."""

import json
import os
import pickle
import subprocess
import sys
from functools import partial

import every_estimator
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from fitted_models import FRAME, MODELS, NAMES, X, Y, outputs
from flat_gem import gem_classifier, plain_params
from numpy.testing import assert_array_equal
from saved_files import members, refusal, rewrite
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import BallTree, KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import eigenfeat as ef
from eigenfeat.io.saving import SCHEMA

FITTED = {}


def fitted(name):
    if name not in FITTED:
        FITTED[name] = MODELS[name]()
    return FITTED[name]


def assert_same(twin, model):
    assert type(twin) is type(model)
    expected, found = outputs(model), outputs(twin)
    assert len(expected) > 0
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert_array_equal(found[name], array, err_msg=name, strict=True)


@pytest.mark.parametrize("name", MODELS)
def test_saved_objects_are_loaded_exactly(tmp_path, name):
    model, path = fitted(name), tmp_path / "model"
    ef.save(model, path)
    loaded = ef.load(path)
    ef.save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert_same(loaded, model)
    if isinstance(model, BaseEstimator):
        assert loaded.get_params().keys() == model.get_params().keys()
        assert vars(loaded).keys() == vars(model).keys()


PICKLED = ("moments", "moments of few", "pencils", "directions", "contrasts", "GEM, partly fitted")
PICKLED += ("RandomizedGEM", "MulticlassSVM, sparse", "ReliableClassifier, LDA")


# scikit-learn's checks pickle the other estimators.
@pytest.mark.parametrize("name", [*PICKLED, *sorted(every_estimator.OF_SERIES)])
def test_pickled_objects_are_loaded_exactly(name):
    assert_same(pickle.loads(pickle.dumps(fitted(name))), fitted(name))


@pytest.mark.parametrize("name", ["TableClassifier", "LDG", "ReliableClassifier, local"])
def test_unfitted_estimators_are_loaded(tmp_path, name):
    model, _ = every_estimator.new(name)
    ef.save(model, tmp_path / "unfitted")
    loaded = ef.load(tmp_path / "unfitted")
    assert not any(key.endswith("_") for key in vars(loaded))
    assert loaded.get_params().keys() == model.get_params().keys()


# ---- inside scikit-learn's estimators ------------------------------------------------------------

TABLE = FRAME.assign(kind=np.array(["x", "y", "z"])[np.arange(90) % 3])
WITH_GEM = {
    "ColumnTransformer": lambda: make_pipeline(
        ColumnTransformer(
            [
                ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b", "c", "d"]),
                ("kinds", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
            ],
            remainder="passthrough",
        ),
        ef.GEMClassifier(),
    ).fit(TABLE, Y),
    "CalibratedClassifierCV": lambda: CalibratedClassifierCV(ef.GEMClassifier(), cv=3).fit(
        FRAME, Y
    ),
    "VotingClassifier": lambda: VotingClassifier(
        [("gem", ef.GEMClassifier()), ("logit", LogisticRegression())], voting="soft"
    ).fit(FRAME, Y),
    "GridSearchCV": lambda: GridSearchCV(
        ef.GEMClassifier(logit=ef.MultinomialLogit()),
        {"logit__penalty": [0.1, 1.0]},
        cv=3,
        error_score="raise",
    ).fit(FRAME, Y),
    "neighbours": lambda: make_pipeline(
        ef.LDG(n_components=2), KNeighborsClassifier(3, algorithm="ball_tree")
    ).fit(FRAME, Y),
}


TRUSTED = {
    "ColumnTransformer": [OneHotEncoder],
    "neighbours": [
        KNeighborsClassifier,
        BallTree,
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
    ],
}


@pytest.mark.parametrize("name", WITH_GEM)
def test_estimators_inside_those_of_scikit_learn(tmp_path, name):
    model = WITH_GEM[name]()
    rows = TABLE if name == "ColumnTransformer" else FRAME
    ef.save(model, tmp_path / "model")
    loaded = ef.load(tmp_path / "model", trusted=TRUSTED.get(name, []))
    for method in ("predict", "predict_proba"):
        assert_array_equal(getattr(loaded, method)(rows), getattr(model, method)(rows), strict=True)


class Doubled(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.factor_ = 2.0
        return self

    def transform(self, X):
        return self.factor_ * X


def test_errors_name_types_that_are_not_trusted(tmp_path):
    path = tmp_path / "model"
    model = make_pipeline(Doubled(), FunctionTransformer(np.linalg.norm)).fit(X)
    ef.save(make_pipeline(Doubled(), ef.GEMClassifier()).fit(X, Y), path)
    name = f"{Doubled.__module__}.Doubled"
    text = refusal(path)
    assert text == (
        f"{path}: cannot be loaded: it contains types that are not trusted: {name}; if its source "
        f"is trusted, load(path, trusted=['{name}']) reads it"
    )
    for trusted in ([name], [Doubled]):
        assert ef.load(path, trusted=trusted)[0].factor_ == 2
    ef.save(model, path)
    assert "numpy.linalg.norm" in refusal(path, trusted=[name])
    ef.save(make_pipeline(RandomForestClassifier(2)).fit(X, Y), path)
    assert "not trusted: sklearn.tree._tree.Tree" in refusal(path)


# ---- details -------------------------------------------------------------------------------------


def test_a_loaded_model_continues_its_partial_fit(tmp_path):
    model = MODELS["GEM, partly fitted"]()
    ef.save(model, tmp_path / "model")
    loaded = ef.load(tmp_path / "model")
    state, twin = model.random_state.get_state(), loaded.random_state.get_state()
    assert_array_equal(state[1], twin[1])
    for one in (model, loaded):
        one.partial_fit(X[1::2], Y[1::2])
    assert_same(loaded, model)


def test_saving_forms_the_state_of_moments_once(tmp_path, monkeypatch):
    moments, states, form = ef.ClassMoments().update(X, Y), [], ef.ClassMoments.__getstate__

    def formed(self):
        states.append(form(self))
        return states[-1]

    monkeypatch.setattr(ef.ClassMoments, "__getstate__", formed)
    ef.save(moments, tmp_path / "moments")
    assert len(states) == 1
    assert ef.load(tmp_path / "moments") == moments == pickle.loads(pickle.dumps(moments))


@pytest.mark.parametrize("copy", ["file", "pickle"])
def test_a_partial_fit_to_one_class_can_be_saved_and_continued(tmp_path, copy):
    model = ef.GEM(n_directions=2).partial_fit(X[Y == "elm"], Y[Y == "elm"], classes=NAMES)
    ef.save(model, tmp_path / "model")
    loaded = ef.load(tmp_path / "model")
    loaded = loaded if copy == "file" else pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="samples of at least two classes"):
        loaded.transform(X)
    for twin in (model, loaded):
        twin.partial_fit(X, Y)
    assert_same(loaded, model)


@pytest.mark.long
def test_another_process_writes_identical_bytes(tmp_path):
    names = ("GEM", "MulticlassSVM, sparse", "ReliableClassifier, LDA")
    (tmp_path / "models").write_bytes(pickle.dumps([fitted(name) for name in names]))
    code = f"""
import eigenfeat, pickle
with open(r"{tmp_path}/models", "rb") as file:
    for number, model in enumerate(pickle.load(file)):
        eigenfeat.save(model, rf"{tmp_path}/{{number}}")
"""
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    for number, name in enumerate(names):
        ef.save(pickle.loads(pickle.dumps(fitted(name))), tmp_path / "here")
        assert (tmp_path / "here").read_bytes() == (tmp_path / str(number)).read_bytes()


def test_files_store_the_versions_of_packages(tmp_path):
    ef.save(fitted("LDG"), tmp_path / "model")
    versions = json.loads(members(tmp_path / "model")[SCHEMA])["_versions"]
    assert versions["eigenfeat"] == ef.__version__
    assert versions["numpy"] == np.__version__


def test_pandas_output_and_sparse_samples_are_loaded(tmp_path):
    model = ef.LDG(n_components=2, gamma=1.0, n_neighbors=4).fit(FRAME, Y)
    ef.save(model.set_output(transform="pandas"), tmp_path / "model")
    pd.testing.assert_frame_equal(
        ef.load(tmp_path / "model").transform(FRAME), model.transform(FRAME)
    )
    kernel = ef.ldg.KernelLDG(n_components=2, gamma=1.0, n_neighbors=4)
    for rows in (sp.csr_matrix(X[:30]), sp.csr_array(X[:30])):
        kernel.fit(rows, Y[:30])
        ef.save(kernel, tmp_path / "kernel")
        loaded = ef.load(tmp_path / "kernel")
        assert type(loaded.X_fit_) is type(kernel.X_fit_)
        assert_same(loaded, kernel)


def test_shared_objects_stay_shared(tmp_path):
    model = fitted("ReliableClassifier, LDA")
    assert model.classifier_ is model.fitted_.classifier
    ef.save(model, tmp_path / "model")
    loaded = ef.load(tmp_path / "model")
    assert loaded.classifier_ is loaded.fitted_.classifier


@pytest.mark.parametrize(
    "labels",
    [
        Y,
        Y.astype(object),
        (np.arange(90) % 2).astype(bool),
        np.arange(90) % 3 + 1.0,
        (np.arange(90) % 3 + 2**60).astype(np.uint64),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_types(tmp_path, labels):
    for model in (gem_classifier(n_directions=1).fit(X, labels), ef.FisherLDA().fit(X, labels)):
        ef.save(model, tmp_path / "model")
        found = ef.load(tmp_path / "model").predict(X)
        assert found.dtype == model.predict(X).dtype
        assert_array_equal(found, model.predict(X))


@pytest.mark.parametrize(
    "parameters",
    [
        {"pairs": [("birch", "elm"), ("elm", "oak"), ("oak", "birch")]},
        {"pairs": ("confusion", 4), "powers": [1, 2]},
        {"n_directions": np.int64(3), "ridge": np.float32(0.5)},
        {"threshold": None, "constant": np.bool_(False), "random_state": 7},
        {"class_weight": {"birch": 2, "elm": 1.5, "oak": 1}},
        {"random_state": np.random.RandomState(3)},
    ],
    ids=lambda parameters: ", ".join(parameters),
)
def test_parameters_keep_values_and_types(tmp_path, parameters):
    model = gem_classifier(**parameters).fit(X, Y)
    ef.save(model, tmp_path / "model")
    found = plain_params(ef.load(tmp_path / "model"))
    for name, value in plain_params(model).items():
        assert type(found[name]) is type(value)
        assert found[name] == value or name == "random_state"


def local_function():
    def doubled(x):
        return 2 * x

    return doubled


def local_class():
    class Local(BaseEstimator):
        pass

    return Local()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            ef.LDG(gamma={(1, 2): 3}),
            r"^model\.steps\[1\]\[1\]\.gamma cannot be saved: keys must be str, int",
        ),
        (
            ef.LDG(gamma={True: 3}),
            r"^model\.steps\[1\]\[1\]\.gamma: expected keys that are text or numbers, got bool",
        ),
        (ef.LDG(gamma=(x for x in "ab")), r"^model\.steps\[1\]\[1\]\.gamma cannot be saved"),
        (FunctionTransformer(lambda x: x), r"\.func: expected a function that can be imported"),
        (FunctionTransformer(local_function()), r"\.func: .* got .*\.doubled"),
        (FunctionTransformer(partial(lambda x: x)), r"\.func\.func: expected a function"),
        (local_class(), r"model\.steps\[1\]\[1\]: expected a type .* imported, got .*\.Local"),
    ],
    ids=["tuple", "bool", "generator", "lambda", "function", "partial", "class"],
)
def test_errors_name_attributes_that_cannot_be_saved(tmp_path, part, message):
    with pytest.raises(ValueError, match=message):
        ef.save(make_pipeline(ef.FisherLDA(), part), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_functions_of_numpy_are_trusted(tmp_path):
    ef.save(FunctionTransformer(np.log1p), tmp_path / "model")
    assert ef.load(tmp_path / "model").func is np.log1p


def test_a_dictionary_of_models_is_loaded(tmp_path):
    ef.save({"features": fitted("GEM"), "moments": fitted("moments"), 3: [1]}, tmp_path / "models")
    loaded = ef.load(tmp_path / "models")
    assert loaded[3] == [1]
    assert loaded["moments"] == fitted("moments")
    assert_same(loaded["features"], fitted("GEM"))
    with pytest.raises(ValueError, match=r"^model\.a\.b cannot be saved"):
        ef.save({"a": {"b": (x for x in "ab")}}, tmp_path / "models")


def test_objects_that_are_not_models_are_refused(tmp_path):
    for value in (3, None, X, ef.LDG):
        with pytest.raises(ValueError, match="model: expected a fitted estimator, got"):
            ef.save(value, tmp_path / "model")


def test_another_version_of_scikit_learn_warns(tmp_path):
    ef.save(fitted("Pipeline"), tmp_path / "model")
    contents = members(tmp_path / "model")
    version = json.dumps(json.dumps(sklearn.__version__)).encode()
    assert version in contents[SCHEMA]
    older = contents[SCHEMA].replace(version, json.dumps('"1.0"').encode())
    rewrite(tmp_path / "model", contents | {SCHEMA: older})
    with pytest.warns(InconsistentVersionWarning):
        ef.load(tmp_path / "model")
