"""Estimators fitted to Dask collections are those fitted to the same rows on one machine."""

import pickle

import numpy as np
import pandas as pd
import pytest
from flat_gem import gem_classifier, nested
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

import eigenfeat

dask = pytest.importorskip("dask", reason="needs the extra 'dask'")
da = pytest.importorskip("dask.array", reason="needs the extra 'dask'")
dd = pytest.importorskip("dask.dataframe", reason="needs the extra 'dask'")


@pytest.fixture(autouse=True)
def one_process():
    """Run on threads, which start faster than processes."""
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900], np.array(list("abcdefghij"))[y[:900] // 2]


def on_dask(X, y, chunk=250):
    return da.from_array(X, chunks=(chunk, X.shape[1])), da.from_array(y, chunks=chunk)


def chance(p, q):
    return np.abs(p - q).max()


@pytest.mark.parametrize(
    "options",
    [
        {"include_input": True, "pairs": ("confusion", 12)},
        {"depth": 2, "hidden_directions": 2},
    ],
)
def test_the_classifier_is_that_of_one_machine(digits, options):
    X, y = digits
    options = {"n_directions": 2, "scale": "none", **options}
    local = gem_classifier(**options).fit(X, y)
    spread = eigenfeat.GEMClassifier(**nested(dict(**options))).fit(*on_dask(X, y))
    assert_array_equal(spread.layers_[-1].pairs, local.layers_[-1].pairs)
    assert_allclose(spread.layers_[0].eigenvalues, local.layers_[0].eigenvalues, rtol=1e-8)
    assert chance(spread.predict_proba(X), local.predict_proba(X)) < 1e-2
    dX, dy = on_dask(X, y)
    assert spread.score(dX, dy) == spread.score(X, y) == local.score(X, y)
    assert_array_equal(spread.predict(dX).compute(), spread.predict(X))
    again = pickle.loads(pickle.dumps(spread))
    assert_array_equal(again.predict_proba(X), spread.predict_proba(X))


def loans(n=300):
    random = np.random.RandomState(0)
    age = random.randint(18, 80, n).astype(float)
    job = random.choice(["clerk", "smith", "nurse"], n)
    frame = pd.DataFrame(
        {
            "age": np.where(random.rand(n) < 0.1, np.nan, age),
            "job": pd.Series(job).where(random.rand(n) > 0.1, None),
            "town": pd.Categorical(random.choice(["Ulm", "Bern", "Graz"], n)),
            "owner": random.rand(n) < 0.5,
            "since": pd.date_range("2020-01-01", periods=n).astype(str),
        }
    )
    frame.loc[:99, "job"] = frame.loc[:99, "job"].mask(frame.loc[:99, "job"] == "nurse", None)
    frame.loc[:99, "town"] = None  # a column without any value in the first partition
    return frame.assign(kind=np.where((job == "smith") ^ (age > 50), "bad", "good"))


def test_frames_with_words_and_gaps():
    frame = loans()
    X, y = frame.drop(columns="kind"), frame["kind"]
    local = eigenfeat.GEMClassifier().fit(X, y)
    lazy = dd.from_pandas(frame, npartitions=3)
    given = lazy, "kind"
    spread = eigenfeat.GEMClassifier().fit(*given)
    assert spread.columns_.feature_names_.tolist() == local.columns_.feature_names_.tolist()
    assert spread.feature_names_in_.tolist() == list(X)
    assert spread.n_features_in_ == 5
    rows = lazy.drop(columns="kind")
    found = spread.predict_proba(rows).compute()
    assert chance(found, local.predict_proba(X)) < 0.02
    assert spread.score(*given) == spread.score(X, y)
    assert spread.predict(X).tolist() == spread.predict(rows).compute().tolist()
    with pytest.raises(ValueError, match="categories, got a dask array"):
        spread.score(da.zeros((10, 4)), da.zeros(10))


def test_scores_find_the_columns_of_the_fit(digits):
    X, y = digits
    names = [f"p{j}" for j in range(20)]
    frame = pd.DataFrame(X[:, 10:30], columns=names).assign(y=y)
    lazy = dd.from_pandas(frame, npartitions=2)
    model = eigenfeat.MultinomialLogit().fit(lazy, "y")
    others = lazy.assign(more=1.0)[["y", "more", *names[::-1]]]
    assert model.score(others, "y") == model.score(others, y) == model.score(frame[names], y)
    with pytest.raises(ValueError, match="got none named p3"):
        model.score(lazy.drop(columns="p3"), "y")


def test_nullable_numbers_with_gaps_are_numbers():
    frame = loans()
    numbers = frame[["age", "owner"]].convert_dtypes().assign(rooms=pd.array([1, pd.NA, 3] * 100))
    local = eigenfeat.GEMClassifier().fit(numbers, frame["kind"])
    for form in (numbers, numbers.astype({"rooms": "int64[pyarrow]"})):
        lazy = dd.from_pandas(form.assign(kind=frame["kind"]), npartitions=3)
        for X, y in ((lazy, "kind"), (lazy[[*numbers]], lazy["kind"])):
            found = eigenfeat.GEMClassifier().fit(X, y).predict_proba(lazy[[*numbers]])
            assert chance(found.compute(), local.predict_proba(numbers)) < 0.02
