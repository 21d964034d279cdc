"""Early decisions and linear reductions in onnxruntime: labels and times are those of Python."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from eigenfeat import ldg
from eigenfeat.demo.early import signals
from eigenfeat.incomplete import MixtureCompletion, ReliableClassifier, ReliableClassifierCV
from eigenfeat.models import to_onnx

pytest.importorskip("onnx", reason="onnx is not installed: the extra onnx")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def long(name):
    return pytest.param(name, marks=pytest.mark.long)


def run(made, rows):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


def lda():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def trained(seed=0, n=200, **options):
    rng = np.random.default_rng(seed)
    X, y = signals(n, rng)
    return ReliableClassifier(lda(), **options).fit(X, y), rng


@pytest.mark.parametrize("completion", [None, MixtureCompletion()], ids=["gaussian", "mixture"])
def test_ten_thousand_series_are_decided_alike(completion):
    model, rng = trained(completion=completion)
    X, _ = signals(10_000, rng)
    found = run(to_onnx(model, dtype="float64"), X)
    expected = model.predict_early(X)
    assert list(found) == ["label", "time"]
    assert_array_equal(found["label"], expected.label)
    assert_array_equal(found["time"], expected.time)
    assert len(np.unique(expected.time)) > 5


def test_float32_differs_only_at_the_threshold():
    model, rng = trained()
    X = signals(10_000, rng)[0].astype(np.float32)
    found = run(to_onnx(model), X)
    expected = model.predict_early(X)
    same = (found["label"] == expected.label) & (found["time"] == expected.time)
    assert same.mean() > 0.999


@pytest.mark.parametrize("name", ["TwoPatterns", *map(long, ["Wafer", "SyntheticControl"])])
def test_measured_series_are_decided_alike(shared_data, name):
    data = shared_data(f"ucr/{name}.npz")
    model = ReliableClassifier(lda(), reliability=0.9, correct=False)
    model.fit(data["X_train"], data["y_train"])
    X = np.asarray(data["X_test"], dtype=np.float64)
    found = run(to_onnx(model, dtype="float64"), X)
    expected = model.predict_early(X)
    assert_array_equal(found["label"], expected.label)
    assert_array_equal(found["time"], expected.time)


def test_prefixes_are_undecided_or_decided_by_what_is_known():
    model, rng = trained(completion=MixtureCompletion())
    X, _ = signals(400, rng)
    known = rng.integers(0, 61, len(X))
    rows = np.where(np.arange(60) < known[:, None], X, np.nan)
    rows[:, 5] = np.where(known > 50, np.nan, rows[:, 5])  # a hole ends what is known
    known = np.where(known > 50, 5, known)
    found = run(to_onnx(model, dtype="float64"), rows)
    early = model.predict_early(X)
    assert_array_equal(found["time"], np.where(early.time <= known, early.time, 0))
    decided = found["time"] > 0
    assert 0.1 < decided.mean() < 0.9
    assert_array_equal(found["label"][decided], early.label[decided])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_channels_features_and_searches(n_classes):
    rng = np.random.default_rng(4)
    X, y = signals(180, rng)
    codes = np.unique(y, return_inverse=True)[1]
    X, codes = X[codes < n_classes], codes[codes < n_classes]
    channels = np.stack([X, X[:, ::-1] + 0.1 * rng.standard_normal(X.shape)], axis=1)
    candidates = {
        "one": ReliableClassifier(LogisticRegression(C=0.1), features=ldg.LDG(n_components=3))
    }
    search = ReliableClassifierCV(candidates).fit(channels, codes)
    rows = channels.transpose(0, 2, 1).reshape(len(X), -1)
    found = run(to_onnx(search, dtype="float64"), rows)
    expected = search.best_estimator_.predict_early(channels)
    assert_array_equal(found["time"], expected.time)
    assert_array_equal(found["label"], expected.label)


def test_what_cannot_be_exported_is_an_error(tmp_path):
    X, y = signals(60, np.random.default_rng(2))
    for model, reason in [
        (ReliableClassifier(GaussianNB(), correct=False), "rule 'quadratic'"),
        (ReliableClassifier(lda(), rule="box", correct=False), "rule 'box'"),
    ]:
        with pytest.raises(ValueError, match=f"model: expected the rule 'pairwise'.*{reason}"):
            to_onnx(model.fit(X, y), tmp_path / "model.onnx")
    kernel = ldg.KernelLDG(n_components=2).fit(X, y)
    with pytest.raises(ValueError, match=r"model: expected one of GEM, LDG.*got KernelLDG"):
        to_onnx(kernel, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


X, y = load_digits(return_X_y=True)
REDUCTIONS = {
    "LDG": ldg.LDG(n_components=6),
    "gradient": ldg.DiscriminativeGaussian(n_components=4, tol=0.2),
    "sparse": ldg.SparseLDG(n_components=4),
    "Fisher": ldg.RegularizedFisher(),
    "LFDA": ldg.LocalFisher(n_components=5),
    "transfer": ldg.TransferLDG(n_components=5),
    "pooled": ldg.PooledPCA(n_components=5),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_linear_reductions(name):
    model = REDUCTIONS[name].fit(X[:400], y[:400])
    expected = model.transform(X)
    size = np.abs(X / getattr(model, "scale_", 1.0)).max() * np.abs(model.components_).sum(1).max()
    for dtype in ("float32", "float64"):
        found = run(to_onnx(model, dtype=dtype), X.astype(dtype))["features"]
        assert_allclose(found, expected, rtol=0, atol=100 * np.finfo(dtype).eps * size)


def test_reductions_before_classifiers():
    model = make_pipeline(ldg.LDG(n_components=6), LinearDiscriminantAnalysis())
    model.fit(X[:400], y[:400])
    found = run(to_onnx(model, dtype="float64"), X)
    assert_array_equal(found["label"], model.predict(X))
    assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-9)
