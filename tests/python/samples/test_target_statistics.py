"""Target statistics of columns with many categories."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import GEMClassifier, TableClassifier, TableRegressor, open_rows
from eigenfeat.samples.blocks import ArrayBlocks
from eigenfeat.samples.estimator import prepare
from eigenfeat.samples.target_statistics import CategoryTargets, FoldStatistics, encoded_table


def shops(n_shops=150, each=20, seed=0):
    """A table with a column of many shops, on which the class depends."""
    random = np.random.RandomState(seed)
    rate = 2 * random.randn(n_shops)
    shop = random.permutation(np.repeat(np.arange(n_shops), each))
    x = random.randn(len(shop))
    z = rate[shop] + 0.5 * x
    y = (random.rand(len(shop)) < 1 / (1 + np.exp(-z))).astype(int)
    return pd.DataFrame({"shop": [f"s{i:03d}" for i in shop], "x": x}), y, z


def statistics(codes, y, weight=None, *, continuous=True, n_codes=60):
    """Statistics of all codes, and out of fold of each sample."""
    X = codes[:, None].astype(float)
    targets = CategoryTargets.of(y, weight, continuous=continuous)
    found = FoldStatistics.fit(ArrayBlocks(X, sample_weight=weight), {0: n_codes}, targets)
    return found.tables[0], found.encoded(X, slice(None))


def test_statistics_are_shrunk_means():
    random = np.random.RandomState(0)
    codes, weight = random.randint(0, 30, 400), random.randint(1, 4, 400).astype(float)
    y = codes % 3 + random.randn(400)
    found, _ = statistics(codes, y, weight, n_codes=32)
    mean = np.average(y, weights=weight)
    own = np.array([np.average(y[codes == c], weights=weight[codes == c]) for c in range(30)])
    assert (np.abs(found[:30, 0] - mean) <= np.abs(own - mean)).all()
    assert_allclose(found[30:], mean)  # codes of no sample
    assert_allclose(found[:30, 0], own, atol=0.35)
    assert_allclose(statistics(codes, y, 8.0 * weight, n_codes=32)[0], found, rtol=1e-12)


def test_no_label_is_in_its_own_statistic():
    random = np.random.RandomState(0)
    codes, y = random.randint(0, 60, 300), random.randint(0, 3, 300)
    _, found = statistics(codes, y, continuous=False)
    noise = [np.corrcoef(found[:, c], y == c)[0, 1] for c in (0, 1)]
    assert np.max(noise) < 0.1
    z = random.randn(300)
    i = np.argmax(z)
    other = z + 0.1 * (np.arange(300) == i)  # in the order of z, by which samples get their folds
    moved = np.abs(statistics(codes, other)[1] - statistics(codes, z)[1])[:, 0]
    assert moved[i] < 0.1 * moved.max()


def test_many_categories_have_target_statistics():
    X, y, _ = shops()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TableClassifier(["columns", "splines"]).fit(X[:2000], y[:2000])
    assert model.columns_.feature_names_.tolist() == ["shop_1", "x"]
    assert model.score(X[2000:], y[2000:]) > 0.75
    assert np.isfinite(model.predict_proba(X[:3].assign(shop=["new", None, "s001"]))).all()


def test_large_files_have_the_statistics_of_frames(tmp_path):
    X, y, _ = shops(80, 10)
    X = X.assign(x=X["x"].where(X["x"] > -1.5), town=np.where(X["x"] > 0, "a", "b"))
    y = np.where(y == 1, "yes", "no")
    path = tmp_path / "shops.csv"
    X.assign(y=y).to_csv(path, index=False)
    rows = open_rows(path, "y", block_rows=90)
    rows.memory = 0.0
    _, Z = encoded_table(X, y, None, continuous=False)
    samples = prepare(GEMClassifier(), rows, None, allows_missing=True)
    known = np.isfinite(Z)
    assert_allclose(samples.together().X[known], Z[known], rtol=1e-12)
    assert_allclose(samples.take(np.arange(5, 700, 7)).X, samples.together().X[5:700:7])
    assert_allclose(samples.moments().mean("yes"), samples.together().X[y == "yes"].mean(axis=0))
    model = GEMClassifier().fit(rows)
    local = GEMClassifier().fit(X, y)
    assert model.columns_.feature_names_.tolist() == ["shop_yes", "x", "town_a", "town_b"]
    assert_allclose(model.columns_.transform(X), local.columns_.transform(X), rtol=1e-12)
    assert_allclose(model.predict_proba(X), local.predict_proba(X), atol=0.01)


@pytest.mark.parametrize("weighted", [False, True])
def test_dask_frames_have_the_statistics_of_frames(weighted):
    dd = pytest.importorskip("dask.dataframe", reason="needs the extra 'dask'")
    X, y, _ = shops(80, 10)
    X.loc[:99, "shop"] = [f"t{i % 50}" for i in range(100)]
    frame = X.assign(y=y, w=np.arange(len(X)) // 100 % 3 if weighted else 1)
    expected, Z = encoded_table(X, y, frame["w"].to_numpy(float), continuous=False)
    lazy = dd.from_pandas(frame, npartitions=3)
    weights = ["w", lazy["w"], frame["w"].to_numpy()]
    for weight in weights if weighted else [None]:
        features = lazy[["shop", "x", "y", "w"] if isinstance(weight, str) else ["shop", "x", "y"]]
        samples = prepare(GEMClassifier(), features, "y", weight)
        assert_allclose(samples.together().X, Z[frame["w"] > 0], rtol=1e-12)
        model = GEMClassifier().fit(features, "y", weight)
        assert_allclose(model.columns_.transform(X), expected.transform(X), rtol=1e-12)
        found = model.predict_proba(lazy[["shop", "x"]]).compute()
        assert_allclose(found, model.predict_proba(X), atol=1e-6)


def test_statistics_of_classes_and_of_outputs():
    X, y, z = shops()
    three = np.array(["a", "b", "c"])[np.digitize(z, [-1, 1])]
    columns, _ = encoded_table(X, three, None, continuous=False)
    assert columns.feature_names_.tolist() == ["shop_a", "shop_b", "shop_c", "x"]
    assert columns.groups_.tolist() == [0, 0, 0, 1]
    assert columns.indicator_groups.tolist() == [0, 1, 2, 3]
    columns, _ = encoded_table(X, np.arange(len(y)) % 30, None, continuous=False)
    assert len(columns.feature_names_) == 11
    model = TableRegressor("columns").fit(X[:2000], z[:2000])
    assert model.columns_.feature_names_.tolist() == ["shop_mean", "x"]
    assert model.score(X[2000:], z[2000:]) > 0.9
    both = TableRegressor("columns").fit(X[:2000], np.column_stack([z, -z + X["x"]])[:2000])
    assert both.predict(X[2000:]).shape == (1000, 2)


def test_samples_without_weight_have_no_part_in_categories():
    X, y, _ = shops()
    other = X.assign(shop=[f"t{i % 90}" for i in range(len(X))], more=None)
    other.loc[0, "more"] = "x"
    both = pd.concat([X.assign(more=None), other], ignore_index=True)
    weight = np.repeat([1.0, 0.0], len(X))
    few = X["shop"].str[:3]  # 15 categories
    for table in (both, both.assign(shop=pd.concat([few, other["shop"]], ignore_index=True))):
        with pytest.warns(UserWarning, match="without any value .'more'"):
            found, Z = encoded_table(table, np.tile(y, 2), weight, continuous=False)
        with pytest.warns(UserWarning, match="without any value .'more'"):
            expected, alone = encoded_table(table[: len(X)], y, None, continuous=False)
        assert_array_equal(Z[: len(X)], alone)
        assert found.feature_names_.tolist() == expected.feature_names_.tolist()
        assert_array_equal(found.transform(table), expected.transform(table))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries(library):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    X, y, _ = shops(60, 5)
    make = module.DataFrame if library == "polars" else module.table
    other = make({name: X[name].tolist() for name in X})
    weight = np.arange(len(y)) % 3
    _, expected = encoded_table(X, y, weight.astype(float), continuous=False)
    _, found = encoded_table(other, y, weight.astype(float), continuous=False)
    assert_array_equal(found, expected)
