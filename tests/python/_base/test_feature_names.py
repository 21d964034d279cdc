"""Names of columns: in moments, their files and merges, and in estimators fitted to moments."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from command_line import run
from saved_files import change_value, listed, refusal, value
from table_files import csv_text

import eigenfeat as ef
from eigenfeat import ClassMoments
from eigenfeat.ldg import LDG
from eigenfeat.rayleigh import OrientedPCA, RayleighPCA

NAMES = ["length", "width", "height"]


@pytest.fixture(scope="module")
def problem():
    y, rng = np.arange(120) % 2, np.random.default_rng(20140621)
    return rng.standard_normal((120, 3)) * (1 + y[:, None]), y


def names(found):
    return found.feature_names_in_.tolist()


def test_names_go_wherever_moments_go(tmp_path, problem):
    X, y = problem
    named = ClassMoments(feature_names=NAMES).update(X, y)
    ef.save(named, tmp_path / "m.efm")
    again = pickle.loads(pickle.dumps(named))
    framed = ClassMoments().update(pd.DataFrame(X, columns=NAMES), y)
    for found in (named, again, framed, named.copy(), ef.load(tmp_path / "m.efm"), named + named):
        assert names(found) == NAMES
    assert names(ClassMoments().merge(named)) == NAMES
    bare = ClassMoments().update(X, y)
    assert not hasattr(bare, "feature_names_in_")
    assert bare == named  # numbers alone
    assert names(bare.merge(named)) == names(named.merge(ClassMoments().update(X, y))) == NAMES


def test_columns_of_other_names_are_refused(problem):
    X, y = problem
    moments = ClassMoments().update(pd.DataFrame(X, columns=NAMES), y)
    before = moments.copy()
    other = pd.DataFrame(X, columns=["length", "height", "width"])
    with pytest.raises(ValueError, match=r"^X: expected 'width' as column 1, got 'height'$"):
        moments.update(other, y)
    with pytest.raises(ValueError, match=r"^other: expected 'width' as column 1, got 'height'$"):
        moments.merge(ClassMoments().update(other, y))
    with pytest.raises(ValueError, match=r"^other: expected 3 columns, got 2$"):
        moments.merge(ClassMoments(feature_names=NAMES[:2]))
    with pytest.raises(ValueError, match=r"^X: expected 3 columns, got 2$"):
        ClassMoments(feature_names=NAMES).update(X[:, :2], y)
    assert moments == before
    assert names(moments) == NAMES
    numbered = pd.DataFrame(X)  # whose columns have no names
    assert names(moments.update(numbered, y)) == NAMES


def test_names_are_distinct_strings():
    for wrong in ("abc", ["a", "b", "a"], ["a", 1, "b"], []):
        with pytest.raises(ValueError, match=r"^feature_names: expected "):
            ClassMoments(feature_names=wrong)


@pytest.mark.parametrize("wrong", [["a", "b"], ["a", "b", "a"], ["a", "b", 3]])
def test_files_with_other_names_than_columns_are_refused(tmp_path, problem, wrong):
    path = tmp_path / "m.efm"
    ef.save(ClassMoments(feature_names=NAMES).update(*problem), path)
    change_value(path, "feature_names", to=listed([value(name) for name in wrong]))
    assert "feature_names" in refusal(path)


def test_estimators_fitted_to_moments_have_the_names_of_the_moments(problem):
    X, y = problem
    named = ClassMoments(feature_names=NAMES).update(X, y)
    for estimator in (ef.GEM(), RayleighPCA(), ef.FisherLDA(), OrientedPCA()):
        assert names(estimator.fit_moments(named)) == NAMES
        assert estimator.n_features_in_ == 3
        with pytest.raises(ValueError, match="feature names should match"):
            estimator.transform(pd.DataFrame(X, columns=["a", "b", "c"]))
        bare = ClassMoments().update(X, y)
        assert not hasattr(estimator.fit_moments(bare), "feature_names_in_")


# ---- other columns than those of the fit ---------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(problem):
    X, y = problem
    frame = pd.DataFrame(X, columns=NAMES)
    word = np.where(y == 0, "red", "blue")
    return frame, [
        (ef.GEMClassifier().fit(frame, y), frame),
        (ef.TableClassifier(["columns"]).fit(frame, y), frame),
        (ef.TableClassifier(["columns"]).fit(frame.assign(word=word), y), frame.assign(word=word)),
    ]


def message_of(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"feature|columns") as caught:
            model.predict(X)
    return str(caught.value)


def test_columns_of_other_names_or_order_are_named(fitted):
    advice = "X[list(model.feature_names_in_)] has the columns of the fit in their order."
    for model, frame in fitted[1]:
        fit = "The feature names should match those that were passed during fit.\n"
        found = message_of(model, frame.drop(columns="width"))
        assert found.startswith(fit)
        assert "yet now missing:\n- width" in found
        assert advice not in found
        for other in (frame[frame.columns[::-1]], frame.assign(zip=1.0), frame.assign(kind="a")):
            found = message_of(model, other)
            assert found.startswith(fit)
            assert advice in found
            if len(other.columns) > len(frame.columns):
                assert f"unseen at fit time:\n- {other.columns[-1]}\n" in found
            model.predict(other[list(model.feature_names_in_)])


def test_errors_of_arrays_of_another_width_list_the_columns_of_the_fit(fitted, problem):
    frame, models = fitted
    shown = "'length', 'width', 'height'"
    for model, _ in models[:2]:
        name = type(model).__name__
        for X in (
            frame.to_numpy()[:, :2],
            np.c_[frame, problem[1] == 0],
            np.c_[frame, ["a"] * 120],
        ):
            assert message_of(model, X) == (
                f"X has {X.shape[1]} features, but {name} is expecting 3 features as input. "
                f"Columns of the fit: {shown}"
            )
        plain = type(model)(**model.get_params(deep=False)).fit(*problem)
        assert message_of(plain, frame.assign(kind="a")) == (
            f"X has 4 features, but {name} is expecting 3 features as input. Columns of X: "
            f"{shown}, 'kind'"
        )
    unnamed = models[2][1].set_axis(range(4), axis=1)
    assert message_of(models[2][0], unnamed).endswith(f"got none named {shown}, 'word'")


def test_long_lists_of_columns_end_between_two_names(problem):
    X, y = np.random.default_rng(0).standard_normal((120, 99)), problem[1]
    model = ef.GEMClassifier().fit(pd.DataFrame(X).add_prefix("column "), y)
    found = message_of(model, X[:, :98])
    assert found.endswith("'column 22', ...")
    assert len(found) < 450


def test_transposed_samples_are_recognised(problem):
    X, y = problem
    for model in (ef.GEMClassifier(), ef.TableClassifier(), LDG()):
        with pytest.raises(ValueError, match=r"3 labels, .* got 120; X\.T has 120 samples$"):
            model.fit(X.T, y)
        with pytest.raises(ValueError, match=r"120 labels, one per sample, got 100$"):
            model.fit(X, y[:100])


def test_errors_of_files_of_another_width_list_the_columns_of_the_fit(fitted, tmp_path):
    frame, models = fitted
    ef.save(models[1][0], tmp_path / "m.efm")
    np.save(tmp_path / "new.npy", frame.to_numpy()[:, :2])
    given = (tmp_path / "m.efm", tmp_path / "new.npy", "-o", tmp_path / "p.csv")
    status, _, err = run("predict", *given)
    assert status == 1
    assert "3 columns that the model was fitted to ('length', 'width', 'height'), got 2" in err


# ---- the command line ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory, problem):
    tmp_path = tmp_path_factory.mktemp("rows")
    X, y = problem
    (tmp_path / "a.csv").write_text(csv_text(X[:60], y[:60]))
    (tmp_path / "b.csv").write_text(csv_text(X[60:], y[60:]).replace("x1", "x9", 1))
    np.save(tmp_path / "c.npy", X)
    np.save(tmp_path / "y.npy", y)
    for name, options in (("a.csv", ["--target", "kind"]), ("b.csv", ["--target", "kind"])):
        out = tmp_path / f"{name[0]}.efm"
        assert run("moments", tmp_path / name, *options, "-o", out)[0] == 0
    given = ("moments", tmp_path / "c.npy", "--target", tmp_path / "y.npy")
    assert run(*given, "-o", tmp_path / "c.efm")[0] == 0
    return tmp_path


def test_moments_of_files_keep_the_names_of_columns(files):
    assert names(ef.load(files / "a.efm")) == ["x0", "x1", "x2"]
    assert not hasattr(ef.load(files / "c.efm"), "feature_names_in_")
    status, said, _ = run("inspect", files / "a.efm")
    assert status == 0
    assert "  feature names: 'x0', 'x1', 'x2'\n" in said
    assert "  dtype: float64\n" in said
    assert json.loads(run("inspect", files / "a.efm", "--json")[1])["feature_names"][2] == "x2"
    assert "feature names" not in run("inspect", files / "c.efm")[1]
    ef.save(ClassMoments().update([[1.0]], [1]), files / "own.efm")
    said = run("inspect", files / "own.efm")[1]
    assert "  dtype: float32 of float32 rows, else float64\n" in said


def test_a_fit_from_moments_finds_columns_by_name(files, problem):
    assert run("fit", "--moments", files / "a.efm", "-o", files / "gem.efm")[0] == 0
    model = ef.load(files / "gem.efm")
    assert names(model) == ["x0", "x1", "x2"]
    X, _ = problem
    shuffled = pd.DataFrame(X[:, [2, 0, 1]], columns=["x2", "x0", "x1"])
    shuffled.to_csv(files / "new.csv", index=False)
    out = files / "found.npy"
    assert run("transform", files / "gem.efm", files / "new.csv", "-o", out)[0] == 0
    expected = model.transform(pd.DataFrame(X, columns=["x0", "x1", "x2"]))
    np.testing.assert_array_equal(np.load(out), expected)


def test_merging_says_which_column_differs(files, problem):
    X, y = problem
    command = ["moments", "merge"]
    a, b, c = (files / f"{name}.efm" for name in "abc")
    for paths in ([a, b], [a, c, b], [c, a, b]):
        status, _, err = run(*command, *paths, "-o", files / "no.efm")
        text = f"{b}: expected the columns of {a}, whose column 1 is 'x1', got 'x9'"
        assert (status, err) == (1, f"eigenfeat: {text}\n")
        assert not (files / "no.efm").exists()
    assert run(*command, c, a, "-o", files / "all.efm")[0] == 0
    assert names(ef.load(files / "all.efm")) == ["x0", "x1", "x2"]
    ef.save(ClassMoments(feature_names=["x0", "x1"]).update(X[:, :2], y), b)
    status, _, err = run(*command, a, b, "-o", files / "no.efm")
    assert f"{b}: expected the columns of {a}, whose column 2 is 'x2', got no column" in err
    status, _, err = run(*command, c, b, "-o", files / "no.efm")
    assert (status, err) == (1, f"eigenfeat: {b}: expected 3 columns, got 2\n")
    status, _, err = run(*command, a, c, "-o", files / "nodir" / "all.efm")
    assert (status, err) == (1, f"eigenfeat: {files / 'nodir'}: No such file or directory\n")
