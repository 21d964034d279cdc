"""Series and epochs in layouts other than (n, channels, times): messages, warnings, and lists."""

import warnings

import numpy as np
import pandas as pd
import pytest
from recordings import Epochs
from scipy.sparse import csr_array
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import DataConversionWarning

from eigenfeat import (
    LDG,
    EpochClassifier,
    GEMClassifier,
    SpatialFilters,
    TableClassifier,
    TangentSpace,
)
from eigenfeat.early import MinimumCostClassifier, ReliableClassifier
from eigenfeat.signals import ConvolutionClassifier

Y = np.tile(["a", "b"], 60)
SWAPPED = r"more channels than times, shape \(120, \d+, \d\); .* pass np.swapaxes\(X, 1, 2\)"


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(0)
    return rng.standard_normal((120, 40)) + np.where(Y == "a", 1, -1)[:, None]


def reliable():
    return ReliableClassifier(LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5))


def convolutions():
    return ConvolutionClassifier(random_state=0)


MODELS = [reliable, convolutions]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("channels", [1, 3])
def test_series_of_few_times_and_many_channels_warn(series, model, channels):
    swapped = np.repeat(series[:, :, None], channels, axis=2)
    with pytest.warns(UserWarning, match=SWAPPED):
        model().fit(swapped, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(np.swapaxes(swapped, 1, 2), Y)


@pytest.mark.parametrize("model", [EpochClassifier, SpatialFilters, TangentSpace])
def test_epochs_of_few_times_and_many_channels_warn_once(model):
    epochs = np.random.default_rng(0).standard_normal((120, 6, 60))
    with pytest.warns(UserWarning, match=SWAPPED) as caught:
        model().fit(np.swapaxes(epochs, 1, 2), Y)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(epochs, Y)


@pytest.mark.parametrize("model", [convolutions, EpochClassifier, SpatialFilters, TangentSpace])
def test_epochs_of_mne_with_many_channels_do_not_warn(model):
    data = np.random.default_rng(0).standard_normal((120, 40, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(Epochs(data, 100.0, map(str, range(40))), Y)


@pytest.mark.parametrize("classifier", [ConvolutionClassifier(), EpochClassifier(views="tangent")])
def test_short_beginnings_of_series_do_not_warn_of_their_axes(classifier):
    X = np.random.default_rng(0).standard_normal((120, 8, 30)) + (Y == "a")[:, None, None]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*more channels than times")
        model = MinimumCostClassifier(classifier, delay_cost=0.1, times=[2]).fit(X, Y)
    assert model.times_.tolist() == [2, 30]
    with pytest.warns(UserWarning, match="more channels than times") as caught:
        model.fit(np.swapaxes(X, 1, 2)[:, :, :7], Y)
    assert len([one for one in caught if "than times" in str(one.message)]) == 1


@pytest.mark.parametrize("model", MODELS)
def test_lists_of_times_and_channels_are_recognised(series, model):
    lists = [np.stack([row, row], axis=1)[: 30 + i % 10] for i, row in enumerate(series)]
    with pytest.raises(ValueError, match=r"pass series of shape .* as \[x\.T for x in X\]$"):
        model().fit(lists, Y)
    model().fit([x.T for x in lists], Y)
    with pytest.raises(ValueError, match=r"channel.*\(2, 40\)[^;]*$"):  # another mistake
        model().fit([np.stack([row, row]) if i else row for i, row in enumerate(series)], Y)


@pytest.mark.parametrize("model", MODELS)
def test_arrays_of_objects_and_columns_of_series_are_lists(series, model):
    expected = model().fit(series, Y).predict(series)
    objects = np.empty(120, dtype=object)
    objects[:] = list(series)
    for X in (objects, pd.Series(list(series)), series.astype(object)):
        fitted = model().fit(X, Y)
        np.testing.assert_array_equal(fitted.predict(X), expected)


@pytest.mark.parametrize("model", MODELS)
def test_long_tables_are_pivoted(series, model):
    long = pd.DataFrame(series).rename_axis(index="id", columns="time").stack()
    with pytest.raises(ValueError, match=r"got a pandas Series; X\.unstack\(\) makes a table"):
        model().fit(long, Y)
    table = long.rename("value").reset_index()
    expected = model().fit(series, Y).predict(series)
    for X in (long.unstack(), table.pivot(index="id", columns="time", values="value")):
        np.testing.assert_array_equal(model().fit(X, Y).predict(X), expected)


@pytest.mark.parametrize("model", MODELS)
def test_row_numbers_in_a_table_of_series_warn(series, model):
    table = pd.DataFrame(series).add_prefix("t")
    with pytest.warns(UserWarning, match=r"identifiers \('patient'\) are used as"):
        fitted = model().fit(table.assign(patient=np.arange(120)), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict(table.assign(patient=np.arange(120)))
        model().fit(table, Y)


def test_columns_of_a_table_of_series_may_have_equal_names(series):
    table = pd.DataFrame(series, columns=["x"] * 40)
    expected = convolutions().fit(series, Y).predict(series)
    np.testing.assert_array_equal(convolutions().fit(table, Y).predict(table), expected)


@pytest.mark.parametrize("model", MODELS)
def test_text_in_a_table_of_series_names_the_column(series, model):
    table = pd.DataFrame(series).add_prefix("t").assign(patient="p0")
    with pytest.raises(ValueError, match=r"got text in column 'patient' .*; leave (such|out) "):
        model().fit(table, Y)


@pytest.mark.parametrize("model", [*MODELS, EpochClassifier, SpatialFilters])
def test_sparse_series_are_refused(series, model):
    with pytest.raises(TypeError, match="X: expected dense samples, got sparse samples"):
        model().fit(csr_array(series), Y)


@pytest.mark.parametrize("model", [GEMClassifier, TableClassifier, LDG])
def test_estimators_of_columns_name_those_of_series(series, model):
    with pytest.raises(ValueError, match=r"X\.reshape.* makes .* EpochClassifier take"):
        model().fit(series[:, None], Y)


def test_one_series_and_one_epoch():
    with pytest.raises(ValueError, match=r"got shape \(40,\); one series is X\[None\]"):
        convolutions().fit(np.arange(40.0), Y[:1])
    with pytest.raises(ValueError, match=r"got shape \(6, 60\); one epoch is X\[None\],"):
        SpatialFilters().fit(np.ones((6, 60)), Y[:1])


@pytest.mark.parametrize("model", [convolutions, EpochClassifier, SpatialFilters])
def test_a_column_of_labels_warns_as_in_scikit_learn(series, model):
    X = series if model is convolutions else series.reshape(120, 2, 20)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model().fit(X, Y[:, None])
