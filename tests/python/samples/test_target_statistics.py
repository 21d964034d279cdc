"""Target statistics of columns with many categories."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import TableClassifier, TableRegressor
from eigenfeat.samples.columns import TableColumns
from eigenfeat.samples.target_statistics import Targets, target_statistics

pd = pytest.importorskip("pandas", reason="pandas is not installed")


def shops(n_shops=150, each=20, seed=0):
    """A table whose class depends on the shop, of which there are many."""
    random = np.random.RandomState(seed)
    rate = 2 * random.randn(n_shops)
    shop = random.permutation(np.repeat(np.arange(n_shops), each))
    x = random.randn(len(shop))
    z = rate[shop] + 0.5 * x
    y = (random.rand(len(shop)) < 1 / (1 + np.exp(-z))).astype(int)
    return pd.DataFrame({"shop": [f"s{i:03d}" for i in shop], "x": x}), y, z


def test_statistics_are_shrunk_means():
    random = np.random.RandomState(0)
    codes, weight = random.randint(0, 30, 400), random.randint(1, 4, 400)
    y = codes % 3 + random.randn(400)
    targets = Targets.of(y, weight.astype(float), continuous=True)
    found, _ = target_statistics(codes, 32, targets)
    mean = np.average(y, weights=weight)
    own = np.array([np.average(y[codes == c], weights=weight[codes == c]) for c in range(30)])
    assert (np.abs(found[:30, 0] - mean) <= np.abs(own - mean)).all()
    assert_allclose(found[30:], mean)  # codes of no sample
    assert_allclose(found[:30, 0], own, atol=0.35)
    scaled = Targets.of(y, 8.0 * weight, continuous=True)
    assert_allclose(target_statistics(codes, 32, scaled)[0], found, rtol=1e-12)


def test_no_label_is_in_its_own_statistic():
    random = np.random.RandomState(0)
    codes, y = random.randint(0, 60, 300), random.randint(0, 3, 300)
    targets = Targets.of(y, None, continuous=False)
    other = y.copy()
    other[7] = (y[7] + 1) % 3
    changed = Targets(
        np.eye(3)[other], targets.names, targets.weight, targets.folds
    )  # but for the mean of all samples
    before = target_statistics(codes, 60, targets)[1][7]
    assert_allclose(target_statistics(codes, 60, changed)[1][7], before, atol=0.02)
    noise = [
        np.corrcoef(target_statistics(codes, 60, targets)[1][:, c], y == c)[0, 1] for c in (0, 1)
    ]
    assert np.max(noise) < 0.1


def test_many_categories_have_target_statistics():
    X, y, _ = shops()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TableClassifier(["columns", "splines"]).fit(X[:2000], y[:2000])
    assert model.columns_.feature_names_.tolist() == ["shop_1", "x"]
    assert model.score(X[2000:], y[2000:]) > 0.75
    assert np.isfinite(model.predict_proba(X[:3].assign(shop=["new", None, "s001"]))).all()


def test_statistics_of_classes_and_of_outputs():
    X, y, z = shops()
    three = np.array(["a", "b", "c"])[np.digitize(z, [-1, 1])]
    columns = TableColumns()
    columns.fit_transform(X, three, None, continuous=False)
    assert columns.feature_names_.tolist() == ["shop_a", "shop_b", "shop_c", "x"]
    assert columns.groups_.tolist() == [0, 0, 0, 1]
    assert columns.indicator_groups.tolist() == [0, 1, 2, 3]
    columns.fit_transform(X, np.arange(len(y)) % 30, None, continuous=False)
    assert len(columns.feature_names_) == 11
    model = TableRegressor().fit(X[:2000], z[:2000])
    assert model.columns_.feature_names_.tolist() == ["shop_mean", "x"]
    assert model.score(X[2000:], z[2000:]) > 0.9
    both = TableRegressor().fit(X[:2000], np.column_stack([z, -z + X["x"]])[:2000])
    assert both.predict(X[2000:]).shape == (1000, 2)


def test_samples_without_weight_have_no_part_in_categories():
    X, y, _ = shops()
    other = X.assign(shop=[f"t{i % 90}" for i in range(len(X))], more=None)
    other.loc[0, "more"] = "x"
    both = pd.concat([X.assign(more=None), other], ignore_index=True)
    weight = np.repeat([1.0, 0.0], len(X))
    few = X["shop"].str[:3]  # 15 categories
    for table in (both, both.assign(shop=pd.concat([few, other["shop"]], ignore_index=True))):
        found, expected = TableColumns(), TableColumns()
        with pytest.warns(UserWarning, match="without any value .'more'"):
            Z = found.fit_transform(table, np.tile(y, 2), weight, continuous=False)
        with pytest.warns(UserWarning, match="without any value .'more'"):
            alone = expected.fit_transform(table[: len(X)], y, None, continuous=False)
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
    expected = TableColumns().fit_transform(X, y, weight.astype(float), continuous=False)
    found = TableColumns().fit_transform(other, y, weight.astype(float), continuous=False)
    assert_array_equal(found, expected)
