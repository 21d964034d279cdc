"""Tables with words, categories, booleans and gaps in `GEMClassifier` and its relatives."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from eigenfeat import TableClassifier, TableRegressor
from eigenfeat.samples.columns import TableColumns, has_categories

pd = pytest.importorskip("pandas", reason="pandas is not installed")


def classifier():
    """A pool of two views, whose fits are quick."""
    return TableClassifier(views=["columns", "gem"])


def credit(n=200, seed=0):
    random = np.random.RandomState(seed)
    job = random.choice(["clerk", "smith", "nurse"], n)
    age = random.randint(18, 80, n).astype(float)
    frame = pd.DataFrame(
        {
            "age": np.where(random.rand(n) < 0.1, np.nan, age),
            "job": pd.Series(job).where(random.rand(n) > 0.1, None),
            "house": pd.Categorical(random.choice(["own", "rent"], n)),
            "debts": pd.array(random.randint(0, 5, n), dtype="Int64"),
            "student": random.rand(n) < 0.3,
            "phone": pd.array(random.rand(n) < 0.5, dtype="boolean"),
        }
    )
    frame.loc[0, "phone"] = pd.NA
    frame.loc[1, "debts"] = pd.NA
    y = np.where((job == "smith") ^ (age > 50), "bad", "good")
    return frame, y


def test_columns_of_every_kind():
    frame, _ = credit()
    columns = TableColumns().fit(frame)
    assert columns.kinds_ == ["number", "category", "category", "number", "number", "number"]
    Z = columns.transform(frame)
    assert Z.dtype == np.float64
    assert Z.shape == (200, len(columns.feature_names_))
    missing = [name for name in columns.feature_names_ if "None" in name]
    assert missing == ["job_None"]
    assert np.isnan(Z[1, list(columns.feature_names_).index("debts")])


def test_a_table_with_words_and_gaps():
    frame, y = credit(400)
    model = classifier().fit(frame[:300], y[:300])
    assert model.score(frame[300:], y[300:]) > 0.8
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.n_features_in_ == 6


def test_unknown_categories_and_new_gaps():
    frame, y = credit()
    model = classifier().fit(frame, y)
    new = frame[:3].copy()
    new["job"] = ["astronaut", None, "nurse"]
    new["house"] = pd.Categorical(["own", None, "boat"])
    new.loc[2, "debts"] = pd.NA
    assert np.isfinite(model.predict_proba(new)).all()


def test_columns_in_another_order_or_missing_are_refused():
    frame, y = credit()
    model = classifier().fit(frame, y)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="job"):
        model.predict(frame.drop(columns="job"))
    with pytest.raises(ValueError, match="expected a table with the columns of the fit"):
        model.predict(np.zeros((3, 6)))


def test_text_in_a_column_of_numbers_is_refused_by_name():
    frame, y = credit()
    model = classifier().fit(frame, y)
    new = frame[:3].copy()
    new["age"] = ["young", "old", "old"]
    with pytest.raises(ValueError, match=r"expected numbers in column 'age'.*'young' in row 0"):
        model.predict(new)


def test_frames_of_numbers_are_read_as_before():
    X = np.random.RandomState(0).randn(100, 4)
    y = (X[:, 0] > 0).astype(int)
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert not has_categories(frame)
    expected = classifier().fit(X, y).decision_function(X)
    model = classifier().fit(frame, y)
    assert not hasattr(model, "columns_")
    np.testing.assert_array_equal(model.decision_function(frame), expected)


def test_polars_frames_give_what_pandas_frames_give():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    frame, y = credit()
    other = pl.DataFrame(
        {
            name: frame[name].astype(object).where(frame[name].notna(), None).tolist()
            for name in frame.columns
        }
    )
    a = TableColumns().fit(frame)
    b = TableColumns().fit(other)
    np.testing.assert_array_equal(a.transform(frame), b.transform(other))
    assert y.shape == (200,)


def test_objects_that_are_dates_or_numbers():
    days = [datetime.date(2020, 1, 1)] * 3
    frame = pd.DataFrame({"n": np.array([1, 2.5, None], dtype=object), "d": days})
    with pytest.warns(UserWarning, match="dates"):
        columns = TableColumns().fit(frame)
    assert columns.kinds_ == ["number", "left out"]


def test_columns_of_one_name_are_refused():
    frame = pd.DataFrame([[1, "a"], [2, "b"]], columns=["x", "x"])
    with pytest.raises(ValueError, match="two named 'x'"):
        TableColumns().fit(frame)


def test_the_regressor_takes_words():
    frame, _ = credit(300)
    frame = frame.fillna({"age": 40.0, "debts": 0}).assign(phone=True)
    y = frame["age"] * 0.1 + (frame["job"] == "smith") * 5.0
    model = TableRegressor().fit(frame[:200], y[:200])
    assert model.score(frame[200:], y[200:]) > 0.95
    assert (model.n_features_in_, list(model.feature_names_in_)) == (6, list(frame.columns))
    assert TableRegressor().fit(frame[["age", "debts"]], y).score(frame[["age", "debts"]], y) < 0.6
    new = frame[:2].assign(job=["pilot", None])
    assert np.isfinite(model.predict(new)).all()
    with pytest.raises(ValueError, match="'job'"):
        TableRegressor(categorical_features=None).fit(frame, y)
    with pytest.raises(ValueError, match="expected a table with the columns of the fit"):
        model.predict(np.zeros((3, 6)))
    model.fit(frame[["age", "debts"]], y)
    assert not hasattr(model, "columns_")
