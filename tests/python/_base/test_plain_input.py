"""Every estimator treats masks, complex numbers, dates and labels of any type alike."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from block_support import misaligned
from every_estimator import ESTIMATORS, X, Y, good_rows, new, seeded
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

import eigenfeat as ef
from eigenfeat._base.core import core
from eigenfeat._base.labels import plain_labels
from eigenfeat.early import ReliableClassifier
from eigenfeat.embedding import RandomizedCCA
from eigenfeat.rayleigh import SlicedInverseRegression

NAMES = [name for name in ESTIMATORS if "," not in name]
METHODS = (
    *("predict", "predict_proba", "decision_function", "transform", "predict_early"),
    "decide",
)


def mask_of(rows):
    mask = np.zeros(rows.shape, dtype=bool)
    mask[[4, 9, 30], [1, 2, 0]] = True
    return mask


MASK = mask_of(X)


def takes_missing(estimator):
    return get_tags(estimator).input_tags.allow_nan


def methods_of(estimator):
    return [name for name in METHODS if hasattr(estimator, name)]


def takes_labels_of(make):
    estimator = make()
    required = get_tags(estimator).target_tags.required
    numbers = is_regressor(estimator) or isinstance(
        estimator, SlicedInverseRegression | RandomizedCCA
    )
    return (required or is_classifier(estimator)) and not numbers


LABELLED = [name for name in NAMES if takes_labels_of(ESTIMATORS[name])]


# ---- masks ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=NAMES)
def case(request):
    """Name of an estimator, and the fitted estimator."""
    estimator, more = new(request.param)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return request.param, estimator.fit(good_rows(request.param), Y, **more)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_masked_entries_are_missing_or_refused(case):
    name, fitted = case
    rows = good_rows(name)
    mask = mask_of(rows)
    hidden = np.ma.masked_array(np.where(mask, 1e6, rows), mask)
    holes = np.where(mask, np.nan, rows)
    estimator, more = seeded(name)
    if takes_missing(estimator):
        estimator.fit(hidden, Y, **more)
        wanted = seeded(name)[0].fit(holes, Y, **more)
        for method in methods_of(estimator):
            if method in ("transform", "predict"):
                found, right = (getattr(one, method)(rows) for one in (estimator, wanted))
                np.testing.assert_array_equal(found, right)
    else:
        with pytest.raises(ValueError, match=r"^X: expected (no masked|complete).*row 4, column 1"):
            estimator.fit(hidden, Y, **more)
        for method in methods_of(fitted):
            if method == "decide":  # takes incomplete rows
                assert np.array_equal(fitted.decide(hidden).label, fitted.decide(holes).label)
                continue
            with pytest.raises(ValueError, match=r"^X: expected .* row 4, column 1"):
                getattr(fitted, method)(hidden)
    shown = np.ma.masked_array(rows, np.zeros(rows.shape, dtype=bool))
    for method in methods_of(fitted):
        if method in ("transform", "predict"):
            got, right = getattr(fitted, method)(shown), getattr(fitted, method)(rows)
            np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("name", LABELLED)
def test_masked_and_missing_labels_are_refused(name):
    estimator, more = new(name)
    labels = np.ma.masked_array(Y, np.arange(len(Y)) == 8)
    with pytest.raises(ValueError, match=r"^y: expected a label .* 1 missing value, .* row 8;"):
        estimator.fit(good_rows(name), labels, **more)
    with pytest.raises(ValueError, match=REFUSED):
        estimator.fit(good_rows(name), GAPS["Int64"], **more)


def test_masked_rows_in_lists_blocks_and_batches():
    hidden = np.ma.masked_array(np.where(MASK, 1e6, X), MASK)
    holes = np.where(MASK, np.nan, X)
    model = ef.GEMClassifier()
    wanted = model.fit(holes, Y).predict_proba(X)
    halves = [(hidden[:30], Y[:30]), (hidden[30:], Y[30:])]
    for rows in (ef.samples.ArrayBlocks(hidden, Y), ef.samples.GeneratedBlocks(halves)):
        found = model.fit(rows).predict_proba(X)
        np.testing.assert_allclose(found, wanted, atol=0.02)
    np.testing.assert_array_equal(model.fit(list(hidden), Y).predict_proba(X), wanted)
    with pytest.raises(ValueError, match=r"^X: expected no masked entries, got 3 masked values"):
        ef.ClassMoments().update(hidden, Y)
    with pytest.raises(ValueError, match=r"^X: expected complete samples in partial_fit"):
        ef.GEM().partial_fit(hidden, Y)
    with pytest.raises(ValueError, match=r"^X: expected no masked entries"):
        ef.SpatialFilters().fit(
            np.ma.masked_array(X.reshape(15, 4, 4), MASK.reshape(15, 4, 4)), Y[:15]
        )


# ---- complex numbers and dates -------------------------------------------------------------------


def test_complex_rows_are_refused(case):
    name, fitted = case
    rows = good_rows(name)
    frame = pd.DataFrame(X, columns=list("abcd")).astype({"b": complex})
    objects = rows.astype(object)
    objects[3, 2] += 1j
    estimator, more = new(name)
    others = [frame] if rows.ndim == 2 else []
    for bad in (rows + 1j, objects, rows.astype(np.complex64).tolist(), *others):
        with pytest.raises(
            ValueError, match=r"^X: expected real numbers, got complex(64|128| num)[^\n]*$"
        ):
            estimator.fit(bad, Y, **more)
        for method in methods_of(fitted):
            with pytest.raises(
                ValueError, match=r"^X: expected real numbers, got complex(64|128| num)"
            ):
                getattr(fitted, method)(bad)


def test_complex_labels_and_weights_are_refused():
    with pytest.raises(ValueError, match=r"^y: expected real numbers, got complex128 as labels"):
        ef.GEMClassifier().fit(X, Y + 0j)
    with pytest.raises(ValueError, match=r"^sample_weight: expected real numbers, got complex128"):
        ef.ClassMoments().update(X, Y, np.ones(len(Y)) + 0j)


DAYS = pd.date_range("2020-01-01", periods=len(Y))
DATES = {
    "dates": DAYS,
    "zones": DAYS.tz_localize("UTC"),
    "durations": DAYS - DAYS[0],
    "periods": DAYS.to_period("D"),
    "days": [day.date() for day in DAYS],
    "arrow": pd.array(DAYS, dtype="timestamp[us][pyarrow]"),
    "arrow days": pd.array([day.date() for day in DAYS], dtype="date32[pyarrow]"),
}


@pytest.mark.parametrize("kind", DATES)
def test_columns_of_dates_are_named(kind):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(when=DATES[kind])
    for model, table in ((ef.GEM(), frame), (ef.MulticlassSVM(), frame[["when"]])):
        with pytest.raises(ValueError, match=r"^X: expected numbers, got dates .*column 'when'"):
            model.fit(table, Y)


def test_arrays_and_polars_columns_of_dates_are_refused():
    polars = pytest.importorskip("polars")
    days = DAYS.to_numpy()[:, None]
    objects = np.array([datetime.date(2020, 1, 1 + i % 28) for i in range(len(Y))], dtype=object)
    for bad in (days, days - days[:1], objects[:, None]):
        with pytest.raises(ValueError, match=r"^X: expected numbers, got dates or times"):
            ef.GEMClassifier().fit(bad, Y)
    frame = polars.DataFrame({"a": X[:, 0], "when": objects.tolist()})
    with pytest.raises(ValueError, match=r"^X: expected numbers, got dates .* column 'when'"):
        ef.TableClassifier(categorical_features=None).fit(frame, Y)


# ---- labels --------------------------------------------------------------------------------------

IDS = [1582218195625938945, 1582218195625938946, 1582218195625939945]
HUGE = [11898508762506083287, 11898508762506083288, 11898508762506083289]


def columns_of(values):
    """The labels `values` in every type of column that can hold them."""
    polars = pytest.importorskip("polars")
    plain = [values[k] for k in Y]
    whole, text = type(values[0]) is int, isinstance(values[0], str)
    kind = pa.uint64() if whole and max(values) >= 2**63 else None
    found = {
        "list": plain,
        "objects": np.array(plain, dtype=object),
        "series": pd.Series(plain),
        "series of objects": pd.Series(plain, dtype=object),
        "categories": pd.Series(plain).astype("category"),
        "index": pd.Index(plain),
        "arrow": pa.array(plain, kind),
        "chunks": pa.chunked_array([plain[:20], plain[20:]], kind),
        "polars": polars.Series(plain),
        "frame": pd.DataFrame({"y": plain})["y"],
    }
    if whole:
        signed = max(values) < 2**63
        found["nullable"] = pd.Series(plain, dtype="Int64" if signed else "UInt64")
        found["extension"] = found["nullable"].array
        found["arrow-backed"] = pd.Series(
            plain, dtype="int64[pyarrow]" if signed else "uint64[pyarrow]"
        )
        found["unsigned"] = np.array(plain, dtype=np.uint64)
    elif text:
        found["nullable"] = pd.Series(plain, dtype="string")
        found["arrow-backed"] = pd.Series(plain, dtype="string[pyarrow]")
        if hasattr(np.dtypes, "StringDType"):
            found["numpy strings"] = np.array(plain, dtype=np.dtypes.StringDType())
        found["polars categories"] = polars.Series(plain, dtype=polars.Categorical)
    else:
        found["nullable"] = pd.Series(plain, dtype="boolean")
        found["arrow-backed"] = pd.Series(plain, dtype="bool[pyarrow]")
    return found


LABELS = {
    "whole": [0, 1, 2],
    "ids": IDS,
    "huge": HUGE,
    "text": ["u", "v", "w"],
    "boolean": [False, True, True],
}


@pytest.mark.parametrize("values", LABELS)
def test_labels_of_every_type_keep_their_values(values):
    for what, y in columns_of(LABELS[values]).items():
        plain = plain_labels(y)
        assert isinstance(plain, np.ndarray), what
        assert plain.tolist() == [LABELS[values][k] for k in Y], what
        kinds = {"whole": "iu", "ids": "iu", "huge": "u", "text": "OU", "boolean": "b"}[values]
        assert plain.dtype.kind in kinds, what


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, "ids") for name in LABELLED),
        *((n, v) for n in ("GEMClassifier", "LDG", "MulticlassSVM") for v in ("huge", "text")),
        *(("GEMClassifier", "boolean"), ("FisherLDA", "boolean")),
    ],
)
def test_every_estimator_accepts_labels_of_any_type(name, values):
    rows, columns = good_rows(name), columns_of(LABELS[values])
    for what in ("objects", "arrow-backed"):
        estimator, more = new(name)
        estimator.fit(rows, columns[what], **more)
        if hasattr(estimator, "classes_"):
            wanted = sorted(set(LABELS[values]))
            assert np.asarray(estimator.classes_).tolist() == wanted, what
        if hasattr(estimator, "predict"):
            assert set(estimator.predict(rows).tolist()) <= set(LABELS[values]), what


IS_KNOWN = np.arange(len(Y)) % 50 != 7
GAPS = {
    "Int64": pd.Series(Y, dtype="Int64").where(IS_KNOWN),
    "boolean": pd.Series(Y > 0, dtype="boolean").where(IS_KNOWN),
    "string": pd.Series(Y.astype(str), dtype="string").where(IS_KNOWN),
    "category": pd.Series(Y).where(IS_KNOWN).astype("category"),
    "float": np.where(IS_KNOWN, Y, np.nan),
    "list": [str(k) if known else None for k, known in zip(Y, IS_KNOWN, strict=True)],
    "mixed list": [str(k) if known else float("nan") for k, known in zip(Y, IS_KNOWN, strict=True)],
    "arrow": pd.Series(Y, dtype="int64[pyarrow]").where(IS_KNOWN),
}
REFUSED = r"^y: expected a label for every sample, got 2 missing values, the first in row 7; leave"


@pytest.mark.parametrize("kind", GAPS)
def test_missing_labels_are_counted_in_blocks_and_moments(kind):
    y = GAPS[kind]
    with pytest.raises(ValueError, match=REFUSED):
        ef.ClassMoments().update(X, y)
    with pytest.raises(ValueError, match=REFUSED):
        ef.GEMClassifier().fit(ef.samples.ArrayBlocks(X, y))
    parts = [(X[:5], y[:5]), (X[5:], y[5:].reset_index(drop=True) if hasattr(y, "loc") else y[5:])]
    with pytest.raises(ValueError, match=REFUSED):
        ef.GEMClassifier().fit(lambda: iter(parts))
    for model in (ef.GEMClassifier(), ef.GEM()):
        with pytest.raises(ValueError, match=r"^y: expected a label .*in row 7; leave"):
            model.fit(X, y)
    with pytest.raises(ValueError, match=r"^y: expected a label .*in row 7; leave"):
        ReliableClassifier(LinearDiscriminantAnalysis()).fit(
            [x[: 4 - i % 2] for i, x in enumerate(X)], y
        )


@pytest.mark.parametrize("kind", ["string", "boolean"])
def test_missing_labels_are_counted_in_dask_collections(kind):
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    from eigenfeat.samples import DaskBlocks

    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=GAPS[kind])
    for blocks in (
        lambda: DaskBlocks(dd.from_pandas(frame, npartitions=3), "kind"),
        lambda: DaskBlocks(da.from_array(X, chunks=(20, 4)), frame["kind"]),
        lambda: DaskBlocks(
            dd.from_pandas(frame[list("abcd")], npartitions=3),
            dd.from_pandas(frame["kind"], npartitions=3),
        ),
    ):
        with pytest.raises(
            ValueError, match=r"^y: expected a label .* the first in row 5?7; leave"
        ):
            ef.GEMClassifier().fit(blocks())
    whole = frame.dropna()
    made = DaskBlocks(dd.from_pandas(whole, npartitions=3), "kind")
    found = ef.GEMClassifier().fit(made)
    assert len(found.classes_) == (2 if kind == "boolean" else 3)
    assert found.classes_.dtype.kind == {"boolean": "b", "string": "O"}[kind]


def test_labels_that_would_merge_are_refused():
    for y, text in (
        ([1, "1", 2] * 20, "a mixture of int, str"),
        ([True, "True", False] * 20, "a mixture of bool, str"),
        ([2**53 + 1, 0.5, 3] * 20, "a mixture of float, int"),
        ([2**64, 1, 2] * 20, "at most 64 bits, got 18446744073709551616 in row 0"),
        ([2**63, -1, 2] * 20, "at most 64 bits, got 9223372036854775808 in row 0"),
    ):
        for given in (y, np.array(y, dtype=object)):
            with pytest.raises(ValueError, match=f"^y: expected .*{text}"):
                ef.GEMClassifier().fit(X, given)
            with pytest.raises(ValueError, match=f"^y: expected .*{text}"):
                ef.ClassMoments().update(X, given)
    assert plain_labels([1, 2.5, 3]).tolist() == [1.0, 2.5, 3.0]


def test_blocks_of_signed_and_unsigned_labels():
    blocks = [(X, np.array(IDS)[Y]), (X, np.array(HUGE, dtype=np.uint64)[Y])]
    found = ef.GEMClassifier().fit(ef.samples.GeneratedBlocks(blocks))
    assert found.classes_.dtype == np.uint64
    assert found.classes_.tolist() == IDS + HUGE


# ---- weights and sessions ------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_complex_and_masked_weights_are_refused(name):
    (model, more), ones = new(name), np.ones(len(Y))
    if has_fit_parameter(model, "sample_weight"):
        hidden = np.ma.masked_array(ones, np.arange(len(Y)) == 8)
        for weight, text in (
            (ones + 0j, "real numbers, got complex128"),
            (hidden, "no masked entries, got 1 masked value, the first in row 8$"),
        ):
            with pytest.raises(ValueError, match=f"^sample_weight: expected {text}"):
                model.fit(good_rows(name), Y, sample_weight=weight, **more)


@pytest.mark.parametrize("name", ["TangentSpace", "SpatialFilters"])
def test_missing_sessions_are_counted(name):
    text = r"^groups: expected a session for every sample, got 1 missing value, the first in row 7"
    names = pd.Series(["a", "b"] * (len(Y) // 2), dtype="string")
    gone = np.arange(len(Y)) == 7
    for groups in (
        names.where(~gone),
        names.astype(object).where(~gone, None),
        np.ma.masked_array(np.arange(len(Y)) % 2, gone),
        np.where(gone, np.nan, np.arange(len(Y)) % 2),
    ):
        with pytest.raises(ValueError, match=text):
            new(name)[0].set_params(align="session").fit(good_rows(name), Y, groups=groups)
    model = new(name)[0].set_params(align="session").fit(good_rows(name), Y, groups=names)
    assert model.alignment_.names.tolist() == ["a", "b"]


# ---- arrays at odd addresses ---------------------------------------------------------------------


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_sparse_matrices_at_odd_addresses_give_the_same_results(part):
    rows = sparse.random_array((60, 30), density=0.2, rng=np.random.default_rng(0)).tocsr()
    expected = ef.MultinomialLogit().fit(rows, Y).predict_proba(rows)
    setattr(rows, part, misaligned(getattr(rows, part)))
    np.testing.assert_array_equal(ef.MultinomialLogit().fit(rows, Y).predict_proba(rows), expected)


def test_functions_take_arrays_at_odd_addresses():
    A = np.cov(X.T)
    expected = ef.generalized_eigh(A, np.eye(4)).eigenvalues
    found = ef.generalized_eigh(misaligned(A), misaligned(np.eye(4))).eigenvalues
    np.testing.assert_array_equal(found, expected)
    moments = ef.ClassMoments().update(misaligned(X), misaligned(Y), misaligned(np.ones(len(Y))))
    assert moments == ef.ClassMoments().update(X, Y, np.ones(len(Y)))


def test_the_core_refuses_arrays_at_odd_addresses():
    with pytest.raises(ValueError, match="matrix: expected an aligned array, got an offset of"):
        core.is_positive_definite(misaligned(np.eye(3)), np.zeros(3), 1)
