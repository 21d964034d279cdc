"""Categories: one text for each value in any container, and the columns that encode them."""

import datetime as dt
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.preprocessing import OneHotEncoder

from eigenfeat import GEMClassifier, TableClassifier, TableRegressor, open_rows
from eigenfeat.samples.categories import category_codes, category_text, distinct_values
from eigenfeat.samples.columns import TableColumns, has_categories

BIG = 2**53
DAY = dt.datetime(2020, 1, 31, 22, 30)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("True", [True, np.True_, "True", " True "]),
        ("1", [1, 1.0, "1", "1.0", "1.00", np.int8(1), np.float32(1), Decimal("1.0"), b"1"]),
        ("0.1", [0.1, np.float32(0.1), "0.1", "0.10", Decimal("0.10")]),
        ("0", [0, -0.0, "0.0", "-0.0"]),
        (str(BIG + 1), [BIG + 1, np.int64(BIG + 1), str(BIG + 1), Decimal(BIG + 1)]),
        (
            "2020-01-01",
            [
                *("2020-01-01", "2020-01-01 00:00:00", np.datetime64("2020-01-01", "ns")),
                *(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01").date()),
            ],
        ),
        ("2020-01-31 22:30:00", [DAY, np.datetime64(DAY), pd.Timestamp(DAY), str(DAY)]),
        ("007", ["007"]),
        ("1.2.0", ["1.2.0"]),
        (None, [None, np.nan, pd.NA, pd.NaT, "", "  ", np.float32("nan")]),
    ],
)
def test_a_value_has_one_text(text, values):
    assert [category_text(value) for value in values] == [text] * len(values)


def test_equal_keys_of_a_dictionary_stay_apart():
    values = np.array([True, 1, 1.0, "True", "x", None, np.nan], dtype=object)
    codes, texts = category_codes(*distinct_values(values))
    assert [texts[code] for code in codes] == ["True", "1", "1", "True", "x", None, None]


def as_pandas(values):
    return pd.DataFrame({"c": values})


def as_polars(values):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    return pl.DataFrame({"c": [None if one is pd.NA else one for one in values]})


def as_arrow(values):
    return pa.table({"c": [None if one is pd.NA else one for one in values]})


def as_parquet(values, path):
    frame = pd.DataFrame({"c": pd.Series(values).convert_dtypes()})
    frame.to_parquet(path / "new.parquet")
    return open_rows(path / "new.parquet")


def as_csv(values, path):
    pd.DataFrame({"c": values}).to_csv(path / "new.csv", index=False)
    return open_rows(path / "new.csv")


@pytest.mark.parametrize(
    ("trained", "new"),
    [
        (["True", "False", "unknown"], [True, False, True]),
        (["true", "false", "unknown"], [True, False, True]),
        (["1", "2", "x"], [1, 2, 1]),
        (["1.0", "2.0", "x"], [1, 2, 1]),
        (["01", "02", "x"], [1, 2, 1]),
        (["1", "2", "x"], [1.0, 2.0, pd.NA]),
        (["1", "2", "x"], [1, 2, pd.NA]),
        (["0.5", "1.50", "x"], [0.5, 1.5, 0.5]),
        ([str(BIG), str(BIG + 1), "x"], [BIG, BIG + 1, BIG]),
        ([str(BIG), str(BIG + 1), "x"], [BIG, BIG + 1, pd.NA]),
        (["2020-01-01", "2020-01-31 22:30:00", "x"], [dt.datetime(2020, 1, 1), DAY]),
    ],
)
def test_the_container_does_not_matter(tmp_path, trained, new):
    """Each container of the new values gives the model's columns for their texts."""
    columns = TableColumns().fit(as_pandas(trained * 4))
    texts = [None if one is pd.NA else trained[i % 2] for i, one in enumerate(new)]
    expected = columns.transform(as_pandas(np.array([*texts], dtype=object)))
    assert (expected[[i for i, one in enumerate(new) if one is not pd.NA]].sum(axis=1) == 1).all()
    frames = [
        as_pandas(np.array(new, dtype=object)),
        as_pandas(pd.Series(new).convert_dtypes()),
        as_pandas(pd.Series(new).convert_dtypes(dtype_backend="pyarrow")),
        as_pandas(pd.Series(new, dtype="category")),
        as_polars(new),
        as_arrow(new),
    ]
    for frame in frames:
        np.testing.assert_array_equal(columns.transform(frame), expected)
    for rows in (as_parquet(new, tmp_path), as_csv(new, tmp_path)):
        blocks = rows.prepared_for(_Fitted(columns), fitted=True)
        found = np.concatenate([block.X for block in blocks])
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None, BIG + 1], [[1], [np.nan], [BIG]]),
        ([dt.timedelta(hours=1), None], [[3600], [np.nan]]),
        ([dt.time(1, 2, 3), None], [[3723], [np.nan]]),
        ([DAY, None], [[18292.9375, 1, 4, 22], [np.nan] * 4]),
        ([DAY.date(), None], [[18292, 1, 4, 0], [np.nan] * 4]),
        (
            [DAY.replace(tzinfo=dt.timezone(dt.timedelta(hours=-2))), None],
            [[18293 + 0.5 / 24, 2, 5, 0], [np.nan] * 4],
        ),
    ],
)
def test_numbers_and_dates_of_every_container(values, expected):
    table = pa.table({"c": values})
    frames = [
        as_pandas(pd.Series(values, dtype=object)),
        as_pandas(values).convert_dtypes(),
        table,
        table.to_pandas(types_mapper=pd.ArrowDtype),
        as_polars(values),
    ]
    for frame in frames:
        found = TableColumns().fit(frame).transform(frame)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert has_categories(frame) == (type(values[0]) is not int)


@pytest.mark.parametrize("missing", [2, None])
def test_integers_of_128_bits(missing):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    frame = pl.DataFrame({"c": pl.Series([1, missing, BIG + 1], dtype=pl.Int128)})
    expected = [[1], [np.nan if missing is None else missing], [BIG]]
    np.testing.assert_array_equal(TableColumns().fit(frame).transform(frame), expected)


class _Fitted:
    """The attributes of a fitted estimator that `FileRows.prepared_for` reads."""

    def __init__(self, columns):
        self.columns_, self.n_features_in_ = columns, len(columns.names_)
        self.feature_names_in_ = np.array(columns.names_, dtype=object)


def test_numbers_of_several_forms_are_not_guessed():
    """ "7" and "007" are two categories, and the number 7 is the category "7"."""
    columns = TableColumns().fit(as_pandas(["7", "007", "x"] * 4))
    found = columns.transform(as_pandas([7, 7]))
    np.testing.assert_array_equal(found, columns.transform(as_pandas(["7", "7"])))


def test_a_warning_where_no_value_is_known():
    frame = pd.DataFrame({"town": ["bern", "oslo"] * 40, "x": np.arange(80) % 7})
    model = TableClassifier(views=["columns"]).fit(frame, np.arange(80) % 2)
    with pytest.warns(UserWarning, match="none of the values of column 'town'.*'BERN'"):
        model.predict(frame.assign(town=frame["town"].str.upper()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame.assign(town=None))
        model.predict(frame.assign(town=["rome"] * 79 + ["oslo"]))


def test_rare_and_unknown_categories_share_a_column():
    columns = TableColumns().fit(as_pandas(["a", "a", "b", "b", "c", "d"]))
    assert columns.feature_names_.tolist() == ["c_a", "c_b", "c_infrequent_sklearn"]
    encoder = OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist")
    encoder.fit(pd.DataFrame({"c": ["a", "a", "b", "b", "c", "d"]}))
    assert encoder.get_feature_names_out().tolist() == columns.feature_names_.tolist()
    found = columns.transform(as_pandas(["b", "c", "new"]))
    np.testing.assert_array_equal(found, [[0, 1, 0], [0, 0, 1], [0, 0, 1]])
    columns = TableColumns().fit(as_pandas(["a", "a", "b", "b", None, None]))
    assert columns.feature_names_.tolist() == ["c_a", "c_b", "c_None"]
    np.testing.assert_array_equal(columns.transform(as_pandas(["new"])), [[0, 0, 0]])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_are_no_numbers(unit):
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "b", "a", "b"]})
    encoder = TableColumns().fit(table)
    dates = pd.Series(pd.date_range("2020-01-01", periods=4)).astype(f"datetime64[{unit}]")
    with pytest.raises(
        ValueError, match=r"^X: expected numbers in column 'x', .* got '2020-01-01 "
    ):
        encoder.transform(table.assign(x=dates))
    hours = pd.Series(pd.to_timedelta([1, 2, 3, 4], unit="h")).astype(f"timedelta64[{unit}]")
    assert encoder.transform(table.assign(x=hours))[:, 0].tolist() == [3600, 7200, 10800, 14400]
    with pytest.raises(ValueError, match=r"^X: expected dates in column 'x', .* got .*timedelta"):
        TableColumns().fit(table.assign(x=dates)).transform(table.assign(x=hours))


def test_lists_are_refused_by_name():
    with pytest.raises(ValueError, match=r"text in column 'c', got \[1\] in row 1"):
        TableColumns().fit(as_pandas(pd.Series(["a", [1]], dtype=object)))


@pytest.mark.parametrize("make", [TableClassifier, TableRegressor, GEMClassifier])
def test_rows_of_weight_0_count_in_messages(make):
    cells = pd.Series(["a", "b"] * 30, dtype=object)
    cells[40] = [1]
    X = pd.DataFrame({"text": ["u", "v"] * 30, "c": cells})
    weight = np.repeat([0.0, 1.0], [10, 50])
    with pytest.raises(ValueError, match=r"in column 'c', got \[1\] in row 40$"):
        make().fit(X, np.arange(60) % 2, sample_weight=weight)


@pytest.mark.parametrize(
    ("what", "form"),
    [
        *(("numbers", form) for form in ("{},5", "{}.5 kg", "-{} \u00b0", "{} m2", "{:,}.5 EUR")),
        *(("dates", form) for form in ("12/31/{}", "31.12.{}", "{}/12/31", "31 Dec {}")),
        *(("dates", form) for form in ("Dec 31, {}", "1.2.{} 10:30", "{}/12/31 10:30")),
    ],
)
@pytest.mark.parametrize("repeats", [1, 2])
def test_text_that_looks_like_numbers_or_dates_is_named(what, form, repeats):
    """Columns of distinct values are left out; repeated values become categories."""
    texts = [form.format(1900 + n) for n in range(100)] * repeats
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        TableColumns().fit(pd.DataFrame({"a": texts, "b": range(len(texts))}))
    message = str(found[-1].message)
    assert f"look like {what} are not read as {what}: 'a' ({texts[0]!r});" in message
    assert len(found) == 1 + (repeats == 1)


@pytest.mark.parametrize(
    "form",
    [
        *("{}A{}", "A{}", "{}:30", "192.168.0.{}", "{}", "0{}", "{}-{}", "v{}.0"),
        *("{1:02}-{1:02}-{0}", "{0}/{1:02}/1", "{1:02} Main {0}"),
    ],
)
def test_codes_do_not_look_like_numbers_or_dates(form):
    texts = [form.format(1900 + n, n) for n in range(100)] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableColumns().fit(pd.DataFrame({"a": texts, "b": range(len(texts))}))
