"""One safe format for everything: what comes back predicts the same bits, and nothing else does."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from fitted_models import FRAME, MODELS, NAMES, X, Y, outputs
from numpy.testing import assert_array_equal
from saved_files import change_meta
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.svm import SVC

import eigenfeat as ef
from eigenfeat._base.files import persist
from eigenfeat._base.files.stored import Stored
from eigenfeat._base.files.values import Decoder, Encoder
from eigenfeat.models import saving
from eigenfeat.models.classes import REGISTRY

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
def test_files_hold_every_bit(tmp_path, name):
    model, path = fitted(name), tmp_path / "model"
    ef.save(model, path)
    loaded = ef.load(path)
    assert_same(loaded, model)
    ef.save(loaded, tmp_path / "again")
    if name != "GEM, partly fitted":  # whose generator has its default now
        assert (tmp_path / "again").read_bytes() == path.read_bytes()
    if isinstance(model, BaseEstimator):
        parameters = {k: v for k, v in model.get_params().items() if k != "random_state"}
        assert str({name: loaded.get_params()[name] for name in parameters}) == str(parameters)
        assert set(vars(loaded)) >= set(vars(model)) or name.startswith("GEM")


@pytest.mark.parametrize("name", MODELS)
def test_pickles_hold_every_bit(name):
    assert_same(pickle.loads(pickle.dumps(fitted(name))), fitted(name))


@pytest.mark.parametrize("name", MODELS)
def test_skops_holds_every_bit(name):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    if name == "GEM, partly fitted":
        outputs(fitted(name))  # a promise to solve would be a functools.partial
    data = io.dumps(fitted(name))
    trusted = set(saving.trusted_types())
    unknown = set(io.get_untrusted_types(data=data)) - trusted
    if name in ("FixedTime", "ReliableClassifier, 1-NN"):
        assert all(kind.startswith("sklearn.") for kind in unknown)
    else:
        assert unknown == set()
    assert_same(io.loads(data, trusted=sorted(trusted | unknown)), fitted(name))


def test_every_public_estimator_has_a_case():
    modules = (ef, ef.ldg, ef.incomplete, ef.maxmargin)
    public = {getattr(module, name) for module in modules for name in module.__all__}
    estimators = {c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)}
    assert len(estimators) > 30
    assert estimators <= {type(fitted(name)) for name in MODELS}


# ---- particulars ---------------------------------------------------------------------------------


def test_a_loaded_model_goes_on_from_where_it_was(tmp_path):
    model = MODELS["GEM, partly fitted"]()
    ef.save(model, tmp_path / "model")
    loaded = ef.load(tmp_path / "model")
    for twin in (model, loaded):
        twin.partial_fit(X[1::2], Y[1::2])
    assert_same(loaded, model)


def test_directions_that_cannot_be_solved_for_yet_are_promised_again(tmp_path):
    model = ef.GEM(n_directions=2).partial_fit(X[Y == "elm"], Y[Y == "elm"], classes=NAMES)
    ef.save(model, tmp_path / "model")
    loaded = ef.load(tmp_path / "model")
    with pytest.raises(ValueError, match="rows of at least two classes"):
        loaded.transform(X)
    for twin in (model, loaded):
        twin.partial_fit(X, Y)
    assert_same(loaded, model)


def test_another_process_writes_the_same_bytes(tmp_path):
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
        ef.save(fitted(name), tmp_path / "here")
        assert (tmp_path / "here").read_bytes() == (tmp_path / str(number)).read_bytes()


def test_pandas_output_and_sparse_rows_are_kept(tmp_path):
    model = ef.LDG(n_components=2, gamma=1.0, n_neighbors=4).fit(FRAME, Y)
    ef.save(model.set_output(transform="pandas"), tmp_path / "model")
    pd.testing.assert_frame_equal(
        ef.load(tmp_path / "model").transform(FRAME), model.transform(FRAME)
    )
    kernel = ef.ldg.KernelLDG(n_components=2, gamma=1.0, n_neighbors=4)
    kernel.fit(sp.csr_matrix(X[:30]), Y[:30])
    ef.save(kernel, tmp_path / "kernel")
    assert_same(ef.load(tmp_path / "kernel"), kernel)


def test_unfitted_estimators_stay_so(tmp_path):
    for model in (ef.LDG(gamma=0.5), ef.GEMEnsemble(ef.GEMClassifier(ridge=0.7))):
        holder = ef.GEMClassifierCV(estimator=model)
        ef.save(holder, tmp_path / "model")
        loaded = ef.load(tmp_path / "model")
        assert str(loaded.get_params()) == str(holder.get_params())
        assert not hasattr(loaded, "classes_")


def test_what_occurs_twice_is_one_object_again(tmp_path):
    model = fitted("FixedTime")
    model.classifier_ = model.complete_classifier_
    ef.save(model, tmp_path / "model")
    loaded = ef.load(tmp_path / "model")
    assert loaded.classifier_ is loaded.complete_classifier_


SIX = np.arange(6)
VALUES = {
    "scalars": [None, True, 0, -(2**63), 2**64 - 1, 1.5, -0.0, 5e-324, "ü\n\0", b"\0\xff"],
    "not finite": [float("nan"), float("inf"), -float("inf")],
    "containers": {"a": [(), (1, [2, {}])], 1: {"x": None}, (1, "b"): [], None: 1, 2.5: b"y"},
    "numpy scalars": [
        np.float32(1.1),
        np.int8(-3),
        np.bool_(True),
        np.str_("x"),
        np.float64("nan"),
    ],
    "numbers": [SIX.astype(t).reshape(2, 3) for t in ("f8", "f4", "f2", "i1", "u8", ">i4")],
    "shapes": [np.array(2.0), np.zeros(0), np.zeros((2, 0, 3)), np.zeros((0, 3)).T],
    "orders": [SIX.reshape(2, 3).T, np.arange(24).reshape(2, 3, 4).T, SIX[::-2]],
    "texts": [np.array(["a", "ü"]), np.array(["a"], "U9"), np.array([b"x", b""])],
    "objects": [np.array(["a", 1, 2.5, None, b"c", True], object), np.array("x", object)],
    "sparse": [sp.random(4, 3, 0.5, f, random_state=0) for f in ("csr", "csc")],
    "sparse arrays": [sp.csr_array(np.eye(3)[:2]), sp.csc_array((2, 0))],
    "dtypes": [np.dtype("f4"), np.dtype("<U3"), np.dtype(object)],
}


def same(a, b):
    if sp.issparse(a):
        return same([a.data, a.indices, a.indptr, a.shape], [b.data, b.indices, b.indptr, b.shape])
    if isinstance(a, np.ndarray):
        same_layout = a.flags.f_contiguous == b.flags.f_contiguous or not a.flags.forc
        assert_array_equal(b, a.astype(a.dtype.newbyteorder("<")), strict=True)
        return same_layout
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same, a.values(), b.values()))
    return type(a) is type(b) and repr(a) == repr(b)


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back_as_they_were(tmp_path, name):
    encoder = Encoder(REGISTRY)
    tree = encoder.encode(VALUES[name], "value")
    persist.write(tmp_path / "value", "value", {"tree": tree}, encoder.arrays.items())
    with persist.read(tmp_path / "value", "value") as file:
        found = Decoder(REGISTRY, lambda name: file.array(name, None, None)).decode(tree)
    assert type(found) is type(VALUES[name])
    assert same(VALUES[name], found)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**64, "LDG.gamma: expected what files can hold, got 18446744073709551616"),
        (1 + 2j, r"LDG.gamma: .* got \(1\+2j\)"),
        ({1, 2}, "LDG.gamma: "),
        ([0, len], r"LDG.gamma.1: .* got <built-in function len>"),
        (lambda x: x, "LDG.gamma: "),
        (np.zeros(2, dtype="i4,f4"), "LDG.gamma: "),
        (np.array([1j]), "LDG.gamma: "),
        (np.array([{}], dtype=object), "'dict' object|LDG.gamma: "),
        (np.datetime64("2020-01-01"), "LDG.gamma: "),
        (sp.coo_matrix(np.eye(2)), "LDG.gamma: "),
        (object(), "LDG.gamma: "),
        (SVC(), r"LDG.gamma: .* got SVC\(\)"),
    ],
)
def test_what_files_cannot_hold_is_named(tmp_path, value, message):
    with pytest.raises(ValueError, match=message):
        ef.save(ef.LDG(gamma=value), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_classes_of_others_are_refused(tmp_path):
    class Own(ef.LDG):
        pass

    for value in (Own(), SVC(), 3, None, X):
        with pytest.raises(ValueError, match="obj: expected an estimator or a result of eigenfeat"):
            ef.save(value, tmp_path / "model")
    model = ef.LDG(n_components=2, gamma=1.0, n_neighbors=4).fit(X, Y)
    model._more = 1
    with pytest.raises(ValueError, match="LDG: expected known attributes, got _more"):
        ef.save(model, tmp_path / "model")


def test_what_a_base_class_sets_is_made_again_and_not_kept():
    class Base(BaseEstimator):
        def __init__(self, solver="full"):
            self.solver = solver

    class Derived(Base):
        def __init__(self, gamma=1.0):
            super().__init__(solver="own")
            self.gamma = gamma

    stored, value = Stored("Derived", Derived), Derived(2.0)
    value.found_ = 3
    assert stored.state(value) == {"gamma": 2.0, "found_": 3}
    assert vars(stored.restored(stored.state(value))) == vars(value)


def test_another_version_of_scikit_learn_warns(tmp_path):
    ef.save(fitted("Pipeline"), tmp_path / "model")

    def older(meta):
        meta["object"]["state"]["version"] = "1.0"

    change_meta(tmp_path / "model", older)
    with pytest.warns(InconsistentVersionWarning):
        ef.load(tmp_path / "model")
