"""Exported ONNX models predict in onnxruntime as the original models do, up to rounding."""

import re
import sys

import numpy as np
import pandas
import pytest
from flat_gem import gem_classifier
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import eigenfeat as ef
from eigenfeat import ldg
from eigenfeat.early import ReliableClassifier
from eigenfeat.io.onnx import to_onnx
from eigenfeat.tables.regression_views import VIEWS

onnx = pytest.importorskip("onnx", reason="onnx, of the extra onnx, is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

X, y = load_digits(return_X_y=True)
X = X.astype(np.float32)
NAMES = np.array(
    ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
)
TRAIN, TEST = slice(0, 500), slice(500, 1000)
SMALL = {"n_directions": 3, "pairs": "hypercube"}

CLASSIFIERS = {
    "forest": lambda: ef.TableClassifier(["gem", "forest"]),
    "columns": lambda: ef.TableClassifier(["columns", "splines"]),
    "ranks": lambda: ef.TableClassifier(["gem_ranks", "kernel"]),
    "interactions": lambda: ef.TableClassifier("interactions"),
    "gem": lambda: gem_classifier(),
    "half waves": lambda: gem_classifier(expansion="half_wave", powers=(3, 1), **SMALL),
    "without constant": lambda: gem_classifier(constant=False, scale="columns", **SMALL),
    "deep with input": lambda: gem_classifier(
        depth=2, hidden_directions=4, expansion="with_input", **SMALL
    ),
    "deeper": lambda: gem_classifier(depth=3, hidden_directions=3, **SMALL),
    "ensemble of pipelines": lambda: ef.GEMEnsemble(
        make_pipeline(
            StandardScaler(with_std=False),
            RBFSampler(gamma=5e-4, n_components=80),
            gem_classifier(**SMALL),
        ),
        n_members=2,
    ),
    "search": lambda: ef.GEMClassifierCV(gem_classifier(**SMALL), {"logit__penalty": [0.1, 0.3]}),
    "logit": lambda: ef.MultinomialLogit(penalty=0.3),
    "scikit-learn": lambda: make_pipeline(
        StandardScaler(with_std=False),
        "passthrough",
        ef.GEM(expansion="with_input", powers=[2], **SMALL),
        LogisticRegression(C=0.01),
    ),
}
FITTED = {}


def fitted(name):
    if name not in FITTED:
        FITTED[name] = CLASSIFIERS[name]().fit(X[TRAIN], NAMES[y[TRAIN]])
    return FITTED[name]


def run(made, rows):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    given = rows if isinstance(rows, dict) else {"X": rows}
    return dict(zip(names, session.run(None, given), strict=True))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name):
    model = fitted(name)
    expected, labels = model.predict_proba(X[TEST]), model.predict(X[TEST])
    top = np.sort(expected, axis=1)
    clear = top[:, -1] - top[:, -2] > 1e-4
    assert clear.mean() > 0.98
    for dtype in ("float32", "float64"):
        made = to_onnx(model, dtype=dtype)
        # The newest onnxruntime for Python 3.10 and for Intel's macOS has no Cos in float64.
        assert "Cos" not in {node.op_type for node in made.graph.node}
        found = run(made, X[TEST].astype(dtype))
        assert list(found) == ["label", "probabilities"]
        assert found["probabilities"].dtype == dtype
        assert_allclose(found["probabilities"], expected, rtol=0, atol=5e-5)
        assert np.abs(found["probabilities"] - expected).mean() < 2e-6
        assert_allclose(found["probabilities"].sum(axis=1), 1, atol=1e-5)
        assert_array_equal(found["label"][clear], labels[clear])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"expansion": "with_input", "powers": (2,)},
        {"expansion": "shifted", "constant": False},
        {"expansion": "polynomial"},
        {"expansion": "none"},
    ],
)
def test_features(options):
    model = ef.GEM(**SMALL, **options).fit(X[TRAIN], y[TRAIN])
    found = run(to_onnx(model), X[TEST])
    assert list(found) == ["features"]
    expected = model.transform(X[TEST])
    scale = np.abs(X[TEST]).max() * np.abs(model.directions_).sum(axis=0).max()
    atol = 30 * np.finfo(np.float32).eps * scale * max(1.0, np.abs(expected).max() / scale)
    roots = np.sqrt(atol) if options == {} else 0.0  # roots of values that round to 0
    assert_allclose(found["features"], expected, rtol=3e-5, atol=max(atol, roots))


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array([-3, 7], dtype=np.int16), np.int64),
        (np.array([False, True]), np.bool_),
        (np.array(["a", "b"], dtype=object), np.object_),
        (np.array([0, 2**63 - 1], dtype=np.uint64), np.int64),
        (np.array([1.0, 7.0]), np.int64),
    ],
)
def test_two_classes_of_any_labels(labels, kind):
    rows, classes = X[y < 2], labels[y[y < 2]]
    model = gem_classifier(n_directions=2).fit(rows, classes)
    found = run(to_onnx(model), rows)
    assert found["label"].dtype == kind
    assert found["label"].tolist() == model.predict(rows).tolist()
    assert found["probabilities"].shape == (len(rows), 2)
    assert_allclose(found["probabilities"], model.predict_proba(rows), atol=1e-5)
    for n in (1, 0, 5):
        assert run(to_onnx(model), rows[:n])["label"].shape == (n,)


def test_metadata_of_the_model(tmp_path):
    model = fitted("half waves")
    path = tmp_path / "model.onnx"
    made = to_onnx(model, path)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    assert onnx.load(path) == made
    assert (made.producer_name, made.producer_version) == ("eigenfeat", ef.__version__)
    assert made.opset_import[0].version == 17
    assert {p.key: p.value for p in made.metadata_props} == {"estimator": "GEMClassifier"}
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    assert made.graph.input[0].type.tensor_type.shape.dim[1].dim_value == 64
    to_onnx(model, tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.onnx", "model.onnx"]


def test_column_names_are_exported():
    frame = pandas.DataFrame(X[TRAIN, 20:24], columns=["a", "b", "ü", "d"])
    model = ef.MultinomialLogit().fit(frame, y[TRAIN])
    props = {p.key: p.value for p in to_onnx(model).metadata_props}
    assert props == {"estimator": "MultinomialLogit", "feature_names": "a\nb\nü\nd"}


REDUCTIONS = {
    "LDG": ldg.LDG(n_components=6, gamma=0.5, n_neighbors=4),
    "Fisher": ldg.RegularizedFisher(),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_linear_reductions(name):
    dtype = "float32" if len(name) % 2 else "float64"
    model = REDUCTIONS[name].fit(X[:400].astype(float), y[:400])
    found = run(to_onnx(model, dtype=dtype), X.astype(dtype))["features"]
    expected = model.transform(X.astype(float))
    size = np.abs(X / getattr(model, "scale_", 1.0)).max() * np.abs(model.components_).sum(1).max()
    assert_allclose(found, expected, rtol=0, atol=100 * np.finfo(dtype).eps * size)


def test_reductions_before_classifiers():
    rows = X.astype(np.float64)
    model = make_pipeline(ldg.LDG(n_components=6), LinearDiscriminantAnalysis())
    model.fit(rows[TRAIN], y[TRAIN])
    found = run(to_onnx(model, dtype="float64"), rows)
    assert_array_equal(found["label"], model.predict(rows))
    assert_allclose(found["probabilities"], model.predict_proba(rows), atol=1e-9)


def grid(n):
    """Samples that are multiples of 0.1, which float32 rounds, and a target."""
    rng = np.random.default_rng(0)
    rows = np.round(rng.uniform(-1, 1, (n, 5)), 1)
    y = np.sin(3 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + (rows[:, 3] > 0.2)
    return rows, y + 0.1 * rng.standard_normal(n)


POOL = ["columns", "splines", "kernel"]


@pytest.mark.parametrize(
    ("view", "outputs"), [*((view, 1 + i % 2) for i, view in enumerate(VIEWS)), (POOL, 2)]
)
def test_regressors(view, outputs):
    rows, target = grid(500)
    if outputs > 1:
        target = np.column_stack([target, rows[:, 0] - target])
    if view in ("splines_log", "boosting_log"):
        target -= target.min() - 1.0
    y_scale = target.std()
    model = ef.TableRegressor(view).fit(rows[:300], target[:300])
    expected = model.predict(rows)
    for dtype in ("float32", "float64"):
        made = to_onnx(model, dtype=dtype)
        found = run(made, rows.astype(dtype))
        assert list(found) == ["prediction"]
        assert found["prediction"].dtype == dtype
        # Exported models compute kernels in float32, too.
        kernel = 100.0 if "kernel" in view else 1.0
        assert_allclose(found["prediction"], expected, rtol=0, atol=2e-4 * kernel * y_scale)
        assert np.abs(found["prediction"] - expected).mean() < 3e-5 * kernel * y_scale


def mixed(n):
    """A frame with few categories, many categories and missing values, and a target."""
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame({"a": rng.standard_normal(n), "b": rng.standard_normal(n)})
    frame["kind"] = rng.choice(["low", "mid", "high", None], n)
    frame["shop"] = [f"s{i}" for i in rng.integers(0, 70, n)]
    frame["c"] = frame["a"] + 0.3 * rng.standard_normal(n)
    frame["code"] = pandas.Categorical(rng.integers(1, 4, n))
    y = np.sin(2 * frame["a"]) + (frame["kind"] == "mid") + frame["shop"].str[1:].astype(int) / 70
    for name in "abc":
        frame.loc[rng.random(n) < 0.2, name] = np.nan
    return frame, y.to_numpy()


def inputs(frame, dtype):
    """Inputs of an exported model, from a frame of `mixed`."""
    out = {}
    for name, column in frame.items():
        texts = ["" if pandas.isna(value) else str(value) for value in column.astype(object)]
        values = column.to_numpy(dtype) if name in "abc" else np.array(texts, dtype=object)
        out[name] = values[:, None]
    return out


@pytest.mark.parametrize("kind", [ef.TableRegressor, ef.TableClassifier, ef.GEMClassifier])
def test_categories_and_gaps(kind):
    frame, y = mixed(700)
    y = y if kind is ef.TableRegressor else np.array(["few", "many"])[(y > 0.8).astype(int)]
    model = kind().fit(frame[:500], y[:500])
    new = frame[400:].copy()
    new.loc[new.index[::9], "kind"] = "never seen"
    values = new.copy()
    new.loc[new.index[::7], "code"] = 2
    values["code"] = new["code"].astype(object)
    values.loc[values.index[::7], "code"] = "2.0"  # another text of the category 2
    expected = model.predict(new) if kind is ef.TableRegressor else model.predict_proba(new)
    for dtype in ("float32", "float64"):
        found = run(to_onnx(model, dtype=dtype), inputs(values, dtype))
        assert_allclose([*found.values()][-1], expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize("columns", [["a", "kind"], ["kind", "code"], ["a", "shop"]])
def test_pairs_of_categories_and_of_columns_with_gaps(columns):
    frame, y = mixed(700)
    frame = frame[columns]
    model = ef.TableClassifier(["interactions"]).fit(frame[:500], y[:500] > 0.8)
    found = run(to_onnx(model, dtype="float64"), inputs(frame[500:], "float64"))["probabilities"]
    assert_allclose(found, model.predict_proba(frame[500:]), rtol=0, atol=1e-5)


def test_many_gaps_are_completed(rng):
    rows = rng.standard_normal((400, 30)) @ rng.standard_normal((30, 30))
    rows[rng.random(rows.shape) < 0.4] = np.nan
    rows[:, 7] = np.where(np.isnan(rows[:, 7]), np.nan, 3.0)
    model = ef.GEM(n_directions=2).fit(rows, np.arange(400) % 2)
    expected = model.transform(rows)
    found = run(to_onnx(model, dtype="float64"), rows)["features"]
    assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_the_code_of_an_error_leaves_out_all_columns_of_dates():
    frame, y = mixed(200)
    days = pandas.date_range("2024-01-01", periods=200)[np.arange(200) // 2]
    dated = frame.assign(**{f"a column with the date of event {i}": days for i in range(12)})
    with pytest.raises(ValueError, match="got dates in") as caught:
        to_onnx(ef.TableRegressor("columns").fit(dated, y))
    left, dropped = re.findall(r"fit to (.*), with .* --drop (.*), or put", str(caught.value))[0]
    assert list(eval(left, {"X": dated})) == list(frame)
    assert dropped.split(",") == [name for name in dated if name not in frame]


def test_errors_name_the_part_that_cannot_be_exported():
    frame, y = mixed(200)
    days = pandas.date_range("2024-01-01", periods=200)[np.arange(200) // 2]
    dated = frame.assign(when=days, since=days.astype(str).to_series().where(days.day > 3).array)
    with pytest.raises(ValueError, match="got dates in 'when', 'since'; fit to X") as caught:
        to_onnx(ef.TableRegressor("columns").fit(dated, y))
    left, number = re.findall(r"fit to (.*), with .* such as (.*)", str(caught.value))[0]
    names = {"X": dated, "pandas": pandas}
    assert list(eval(left, names)) == list(frame)
    numbers = {"when": eval(number, names), "since": eval(number.replace("when", "since"), names)}
    to_onnx(ef.TableRegressor("columns").fit(dated.assign(**numbers), y))
    for name, what in (
        ("prediction", "the name of an output, 'prediction'"),
        ("", "an empty name"),
    ):
        with pytest.raises(ValueError, match=f"got {what}.*has another name"):
            to_onnx(ef.TableRegressor("columns").fit(frame.rename(columns={"a": name}), y))
    model = ef.TableRegressor(["columns", DecisionTreeRegressor()]).fit(frame[["a", "b"]], y)
    with pytest.raises(ValueError, match="got DecisionTreeRegressor; leave it out of views"):
        to_onnx(model)
    search = ef.GEMClassifierCV(gem_classifier(**SMALL), {"logit__penalty": [0.1, 0.3]})
    search.fit(frame, y > 0.8)
    with pytest.raises(ValueError, match="GEMClassifierCV, which encodes categories; encode"):
        to_onnx(search)


def test_models_and_arguments_that_cannot_be_exported_are_named(tmp_path, monkeypatch):
    with pytest.raises(NotFittedError):
        to_onnx(ef.TableClassifier())
    with pytest.raises(ValueError, match="dtype: expected 'float32' or 'float64', got 'float16'"):
        to_onnx(fitted("logit"), dtype="float16")
    tree = DecisionTreeClassifier().fit(X[TRAIN], y[TRAIN])
    for model in (tree, make_pipeline(ef.GEM(**SMALL), tree).fit(X[TRAIN], y[TRAIN])):
        with pytest.raises(ValueError, match=r"model: expected one of GEM, .* got DecisionTree"):
            to_onnx(model, tmp_path / "model")
    early = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X[TRAIN, :20], y[TRAIN] % 2)
    with pytest.raises(ValueError, match="got an early classifier; use to_c"):
        to_onnx(early, tmp_path / "model")
    real = ef.MultinomialLogit().fit(X[TRAIN], y[TRAIN])
    real.classes_ = real.classes_ + 0.5
    with pytest.raises(
        ValueError, match="classes: expected whole numbers, booleans or strings, got"
    ):
        to_onnx(real)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "eigenfeat\[onnx\]"'):
        to_onnx(fitted("logit"))
