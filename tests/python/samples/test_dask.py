"""Samples in Dask collections have the moments, features and fits of samples in memory."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from flat_gem import gem_classifier
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from table_files import loans

import eigenfeat
from eigenfeat import ClassMoments
from eigenfeat.samples import DaskBlocks, class_moments

dask = pytest.importorskip("dask", reason="needs the extra 'dask'")
da = pytest.importorskip("dask.array", reason="needs the extra 'dask'")
dd = pytest.importorskip("dask.dataframe", reason="needs the extra 'dask'")
Callback = pytest.importorskip("dask.callbacks").Callback

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:dask|distributed|tornado")


@pytest.fixture(autouse=True)
def one_process():
    """Run on threads, which start faster than processes."""
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture
def rows():
    random = np.random.RandomState(0)
    X = random.randn(1000, 6) * [1, 2, 3, 4, 5, 6]
    y = np.array(["low", "middle", "top"])[np.arange(1000) % 3]
    return X + (y == "top")[:, None], y, random.rand(1000)


def assert_same_moments(found, expected, tolerance=1e-13):
    assert set(found.classes_) == set(expected.classes_)
    for c in expected.classes_.tolist():
        assert_allclose(found.weight(c), expected.weight(c), rtol=tolerance)
        assert_allclose(found.mean(c), expected.mean(c), atol=tolerance * 10)
        scale = np.abs(expected.covariance(c)).max()
        assert_allclose(found.covariance(c), expected.covariance(c), atol=tolerance * scale)


# ---- rows of every kind --------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [70, (10, 0, 490, 500)])
def test_moments_of_chunks_are_the_moments_of_all_rows(rows, chunk):
    X, y, w = rows
    expected = ClassMoments().update(X, y, w)
    dX, dy = da.from_array(X, chunks=(chunk, 6)), da.from_array(y, chunks=400)
    found = class_moments(dX, dy, da.from_array(w, chunks=chunk))
    assert_same_moments(found, expected)
    assert class_moments(dX, y, w) == found  # labels and weights in memory
    assert class_moments(dX.rechunk({1: 2}), y, w) == found


def test_sparse_chunks_stay_sparse(rows):
    X, y, _ = rows
    X[np.abs(X) < 2] = 0
    chunks = da.from_array(X, chunks=(300, 6)).map_blocks(sp.csr_matrix, meta=sp.csr_matrix((0, 6)))
    assert_same_moments(class_moments(chunks, y), ClassMoments().update(X, y))
    blocks = DaskBlocks(chunks, y)
    assert all(sp.issparse(block.X) for block in blocks)
    model = eigenfeat.GEM(n_directions=2).fit(X, y)
    features = model.transform(chunks)
    assert_allclose(features.compute(), model.transform(X), rtol=1e-12)


def test_chunks_of_unknown_length_are_measured(rows):
    X, y, w = rows
    dX, dy, dw = (da.from_array(a, chunks=(130, *a.shape[1:])) for a in rows)
    kept = X[:, 0] > 0
    mask = dX[:, 0] > 0
    filtered = dX[mask]
    found = class_moments(filtered, dy[mask], dw[mask])
    assert_same_moments(found, ClassMoments().update(X[kept], y[kept], w[kept]))
    assert np.isnan(filtered.shape[0])  # the caller's array is unchanged
    assert DaskBlocks(filtered, y[kept]).n_rows == kept.sum()
    with pytest.raises(ValueError, match=rf"y: expected {kept.sum()} values, one per sample, got"):
        list(DaskBlocks(filtered, dy))


def test_a_data_frame_holds_its_labels_and_weights(rows):
    X, y, w = rows
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=y, weight=w)
    table = dd.from_pandas(frame, npartitions=5)
    expected = ClassMoments().update(X, y, w)
    blocks = DaskBlocks(table, "label", "weight")
    assert (blocks.n_rows, blocks.n_features) == X.shape
    assert blocks.column_names == tuple("abcdef")
    found = class_moments(blocks)
    assert_same_moments(found, expected)
    for parts in (
        (table[list("abcdef")], table["label"], table["weight"]),
        (table[list("abcdef")], y, w),
        (table.drop(columns="weight"), "label", w),
        (table[list("abcdef")], table[["label"]], table[["weight"]]),
    ):
        assert class_moments(*parts) == found
    some = table[table["a"] > 2.0]  # leaves partitions without rows, perhaps
    kept = X[:, 0] > 2.0
    moments = class_moments(some, "label", "weight")
    assert_same_moments(moments, ClassMoments().update(X[kept], y[kept], w[kept]))
    with pytest.raises(ValueError, match=r"expected the name of a column, got 'nothing'"):
        list(DaskBlocks(table, "nothing"))


def test_blocks_go_through_all_rows_in_order(rows):
    X, y, w = rows
    blocks = DaskBlocks(da.from_array(X, chunks=(300, 6)), y, w)
    seen = list(blocks)
    assert [block.start for block in seen] == [0, 300, 600, 900]
    assert_array_equal(np.vstack([block.X for block in seen]), X)
    assert_array_equal(np.concatenate([block.y for block in seen]), y)
    starts = blocks.reduce(lambda block: [block.start], lambda a, b: a + b)
    assert starts == [block.start for block in seen]


def test_bad_rows_are_refused(rows):
    X, y, _ = rows
    dX = da.from_array(X, chunks=(300, 6))
    with pytest.raises(ValueError, match=r"X: expected a dask array \(n, d\) or a dask data frame"):
        DaskBlocks(X, y)
    with pytest.raises(ValueError, match=r"X: expected a dask array"):
        DaskBlocks(dX[:, 0], y)
    with pytest.raises(
        ValueError, match=r"y: expected 1000 values, one per sample, got .*\(999,\)"
    ):
        list(DaskBlocks(dX, y[1:]))
    with pytest.raises(ValueError, match=r"sample_weight: expected one value per sample"):
        list(DaskBlocks(dX, y, dX))
    for labels in ("label", dd.from_dask_array(dX)):
        with pytest.raises(ValueError, match=r"y: expected one value per sample"):
            list(DaskBlocks(dX, labels))
    with pytest.raises(ValueError, match=r"at least one block of rows"):
        DaskBlocks(dX[:0], y[:0]).reduce(len, int.__add__)
    with pytest.raises(ValueError, match=r"y: expected labels, or the name of a column, got None"):
        eigenfeat.GEM().fit(dX)
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"row 7"):
        class_moments(da.from_array(X, chunks=(300, 6)), y)


# ---- the tree ------------------------------------------------------------------------------------


def remembered(block, kept):
    """A result that `kept` holds too, as Dask keeps results for use after a worker's loss."""
    return kept.setdefault(block.start, np.full(3, float(block.start)))


def added_in_place(a, b):
    a += b
    return a


def test_merging_leaves_results_as_they_are(rows):
    X, y, _ = rows
    kept = {}
    blocks = DaskBlocks(da.from_array(X, chunks=(100, 6)), y)
    sums = [blocks.reduce(remembered, added_in_place, kept) for _ in range(2)]
    assert_array_equal(sums, np.full((2, 3), 4500.0))
    assert {start: value[0] for start, value in kept.items()} == {s: s for s in range(0, 1000, 100)}


# ---- GEM and methods on partitions ---------------------------------------------------------------


def test_gem_knows_a_data_frames_columns(rows):
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=y)
    table = dd.from_pandas(frame, npartitions=4)
    model = eigenfeat.GEM(n_directions=1).fit(table, "label")
    assert model.feature_names_in_.tolist() == list("abcdef")
    features = model.transform(table[list("abcdef")])
    assert_array_equal(features.compute(), model.transform(frame[list("abcdef")]))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(table[list("bacdef")])


def test_methods_are_lazy_and_of_the_right_type(rows):
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=list("abcdef"))
    table = dd.from_pandas(frame, npartitions=3)
    dX = da.from_array(X, chunks=((400, 0, 600), 3))
    model = eigenfeat.MultinomialLogit().fit(frame, y)
    plain = eigenfeat.MultinomialLogit().fit(X, y)
    for method, width in (("predict", None), ("predict_proba", 3), ("decision_function", 3)):
        expected = getattr(plain, method)(X)
        lazy = getattr(plain, method)(dX)
        assert lazy.shape == ((1000,) if width is None else (1000, width))
        assert lazy.chunks[0] == (400, 0, 600)
        assert lazy.dtype == expected.dtype
        assert_array_equal(lazy.compute(), expected)
        of_table = getattr(model, method)(table)
        assert of_table.dtype == expected.dtype
        assert_array_equal(of_table.compute(), expected)
        assert_array_equal(getattr(model, method)(table[table["a"] > 99]).compute(), expected[:0])
    with pytest.raises(ValueError, match="X: expected a dask array"):
        plain.predict(dX[:, 0])
    with pytest.raises(NotFittedError):
        eigenfeat.MultinomialLogit().predict(dX)


def test_predictions_in_other_processes(rows):
    X, y, _ = rows
    dX = da.from_array(X, chunks=(500, 6))
    model = eigenfeat.QuadraticDiscriminant().fit(dX, y)
    with dask.config.set(scheduler="processes", num_workers=1):
        found = model.predict_proba(dX).compute()
    assert_allclose(found, model.predict_proba(X), rtol=1e-10, atol=1e-10)


def test_samples_are_not_gathered_on_the_client(rows):
    X, y, _ = rows
    dX, seen = da.from_array(X, chunks=(100, 6)), []
    with Callback(posttask=lambda key, result, *rest: seen.append(_size(result))):
        eigenfeat.GEM(n_directions=1, scale="none").fit(dX, y)
    gathered = [size for size in seen if size > X.nbytes // 2]
    assert not gathered


def _size(result):
    return getattr(result, "nbytes", 0)


def unaligned_counts(block, given):
    assert given.flags.aligned
    counts = np.frombuffer(b"\0" + given.tobytes(), np.uint8)[1:].view(np.int64)
    assert not counts.flags.aligned
    return counts


def test_results_and_arguments_of_workers_are_aligned(rows):
    """Arrays that come from another process may begin at any byte."""
    X, y, _ = rows
    given = np.frombuffer(b"\0" + bytes(16), np.uint8)[1:].view(np.int64)
    blocks = DaskBlocks(da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000))
    assert blocks.reduce(unaligned_counts, np.add, given).flags.aligned


# ---- fits ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900], np.array(list("abcdefghij"))[y[:900] // 2]


def chance(p, q):
    return np.abs(p - q).max()


@pytest.mark.parametrize(
    "options",
    [
        {"expansion": "with_input", "pairs": ("confusion", 12)},
        {"depth": 2, "hidden_directions": 2},
    ],
)
def test_the_classifier_is_that_of_one_machine(digits, options):
    X, y = digits
    options = {"n_directions": 2, "scale": "none", **options}
    local = gem_classifier(**options).fit(X, y)
    dX, dy = da.from_array(X, chunks=(250, 64)), da.from_array(y, chunks=250)
    spread = gem_classifier(**options).fit(dX, dy)
    assert_array_equal(spread.layers_[-1].pairs, local.layers_[-1].pairs)
    assert_allclose(spread.layers_[0].eigenvalues, local.layers_[0].eigenvalues, rtol=1e-8)
    assert chance(spread.predict_proba(X), local.predict_proba(X)) < 1e-2
    assert spread.score(dX, dy) == spread.score(X, y) == local.score(X, y)
    assert_array_equal(spread.predict(dX).compute(), spread.predict(X))


def loans_in_parts():
    """Loans whose first hundred have no nurse, and a column without any value."""
    frame = loans().drop(columns="debts").astype({"town": "category"})
    frame["since"] = pd.date_range("2020-01-01", periods=300).astype(str)
    frame.loc[:99, "job"] = frame["job"].mask(frame["job"] == "nurse", None)
    frame.loc[:99, "town"] = None
    return frame


def test_frames_with_words_and_gaps():
    frame = loans_in_parts()
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


@pytest.mark.parametrize("columns", [["age"], ["age", "job"]])
def test_infinite_numbers_are_named(columns):
    frame = loans_in_parts()[[*columns, "kind"]].fillna({"age": 40.0})
    frame.loc[250, "age"] = np.inf
    with pytest.raises(ValueError, match="finite numbers, got inf in row 250, column 'age'"):
        eigenfeat.GEMClassifier().fit(dd.from_pandas(frame, npartitions=3), "kind")


def test_scores_find_the_columns_of_the_fit(digits):
    X, y = digits
    names = [f"p{j}" for j in range(20)]
    frame = pd.DataFrame(X[:, 10:30], columns=names).assign(y=y)
    lazy = dd.from_pandas(frame, npartitions=2)
    model = eigenfeat.MultinomialLogit().fit(lazy, "y")
    others = lazy.assign(more=1.0)[["y", "more", *names[::-1]]]
    assert model.score(others, "y") == model.score(others, y) == model.score(frame[names], y)
    with pytest.raises(ValueError, match="got none named 'p3'"):
        model.score(lazy.drop(columns="p3"), "y")


def test_wrong_cells_of_later_partitions_are_named_by_their_row():
    frame = loans_in_parts()[["age", "job", "kind"]]
    model = eigenfeat.GEMClassifier().fit(frame[["age", "job"]], frame["kind"])
    wrong = frame.astype({"age": object})
    wrong.loc[250, "age"] = "old"
    for samples in (wrong, dd.from_pandas(wrong, npartitions=3)):
        with pytest.raises(ValueError, match=r"numbers in column 'age'.*, got 'old' in row 250"):
            model.score(samples[["age", "job"]], frame["kind"].to_numpy())


def test_lists_in_later_partitions_are_named_by_their_row():
    frame = loans_in_parts()[["age", "job", "kind"]].assign(weight=1.0)
    frame.loc[:220, "weight"] = 0.0
    frame["job"] = frame["job"].astype(object).map(lambda job: [job] if job == "nurse" else job)
    row = next(i for i, job in enumerate(frame["job"]) if i > 220 and isinstance(job, list))
    with dask.config.set({"dataframe.convert-string": False}):
        lazy = dd.from_pandas(frame, npartitions=3)
        with pytest.raises(ValueError, match=rf"in column 'job', got \['nurse'\] in row {row}$"):
            eigenfeat.GEMClassifier().fit(lazy, "kind", sample_weight="weight")


def test_nullable_numbers_with_gaps_are_numbers():
    frame = loans_in_parts()
    numbers = frame[["age", "owner"]].convert_dtypes().assign(rooms=pd.array([1, pd.NA, 3] * 100))
    local = eigenfeat.GEMClassifier().fit(numbers, frame["kind"])
    for form in (numbers, numbers.astype({"rooms": "int64[pyarrow]"})):
        lazy = dd.from_pandas(form.assign(kind=frame["kind"]), npartitions=3)
        for X, y in ((lazy, "kind"), (lazy[[*numbers]], lazy["kind"])):
            found = eigenfeat.GEMClassifier().fit(X, y).predict_proba(lazy[[*numbers]])
            assert chance(found.compute(), local.predict_proba(numbers)) < 0.02
