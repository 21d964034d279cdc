"""Early classifiers of series that begin alike, stand still, or end at different times."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eigenfeat.demo.early import signals
from eigenfeat.incomplete import (
    ECTS,
    FixedTime,
    MinimumCostClassifier,
)
from eigenfeat.rayleigh import QuadraticDiscriminant

IDLE = 12


def LDA():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


CLASSIFIERS = {
    "LDA": LinearDiscriminantAnalysis,
    "naive Bayes": GaussianNB,
    "QuadraticDiscriminant": QuadraticDiscriminant,
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
}


def series(n=90, seed=0, idle=IDLE, value=0.0):
    X, y = signals(n, np.random.default_rng(seed))
    X[:, :idle] = value
    return X, y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_idle_beginnings(name):
    X, y = series()
    N, t = series(40, 1)
    early = MinimumCostClassifier(CLASSIFIERS[name](), delay_cost=0.5, n_times=6, n_folds=2).fit(
        X, y
    )
    assert early.onset_ == IDLE
    assert early.times_[0] > IDLE
    assert len(early.times_) == 6
    found = early.predict_early(N)
    assert np.mean(found.label == t) > 0.7
    assert (found.time > IDLE).all()


@pytest.mark.parametrize("value", [3.7, -1e6])
def test_the_offset_of_what_is_idle_does_not_matter(value):
    X, y = series(value=value)
    X[:, :IDLE] *= 1 + np.random.default_rng(2).choice([0.0, 2.0**-52], (len(X), IDLE))
    by_time = np.arange(1, 61) / 100
    early = MinimumCostClassifier(LDA(), by_time, n_times=3, n_folds=2).fit(X, y)
    assert early.onset_ == IDLE
    wanted = MinimumCostClassifier(LDA(), by_time[IDLE:], n_times=3, n_folds=2)
    wanted.fit(X[:, IDLE:], y)
    assert_array_equal(early.times_, wanted.times_ + IDLE)
    found = early.predict_early(X)
    assert_array_equal(found.label, wanted.predict_early(X[:, IDLE:]).label)


def test_given_times_before_the_onset_are_left_out():
    X, y = series()
    early = MinimumCostClassifier(LDA(), times=[4, 12, 13, 40]).fit(X, y)
    assert early.times_.tolist() == [13, 40, X.shape[1]]


def test_beginnings_that_differ_in_one_series():
    X, y = series()
    X[0, :IDLE] = 1.0  # alike in every fold but one
    early = MinimumCostClassifier(LinearDiscriminantAnalysis(), times=[5, 30]).fit(X, y)
    assert early.onset_ == 0
    assert np.mean(early.predict_early(X).label == y) > 0.7


def test_series_that_never_differ():
    X, y = series()
    with pytest.raises(ValueError, match=r"^X: expected series that differ at some time, got the"):
        MinimumCostClassifier().fit(np.ones_like(X), y)


def test_a_classifier_that_cannot_be_fitted_is_named():
    X, y = series()
    X = np.column_stack([X, X[:, -1]])
    y[:] = 0
    y[:2] = 1, 2
    with pytest.raises(ValueError, match=r"^(y|classifier): expected [^\n]*$"):
        MinimumCostClassifier(QuadraticDiscriminantAnalysis(), n_folds=2).fit(X, y)


@pytest.mark.parametrize("make", [ECTS, lambda: FixedTime(30)])
def test_other_early_classifiers_take_idle_series(make):
    X, y = series()
    model = make().fit(X, y)
    assert np.mean(model.predict(X) == y) > 0.6


# ---- unequal lengths -----------------------------------------------------------------------------


def unequal(n=60, seed=0):
    X, y = signals(n, np.random.default_rng(seed))
    ends = X.shape[1] - np.arange(n) % 5
    return [x[:end] for x, end in zip(X, ends, strict=True)], y, ends


def held(given, length):
    """What lacks filled with the last sample."""
    return np.array([np.concatenate([x, np.full(length - len(x), x[-1])]) for x in given])


MODELS = {
    "costs": lambda: MinimumCostClassifier(LDA(), 0.01, n_times=5, n_folds=2),
    "ECTS": ECTS,
    "fixed time": lambda: FixedTime(30),
}


@pytest.mark.parametrize("name", MODELS)
def test_lists_of_unequal_series(name):
    given, y, ends = unequal()
    rows = held(given, max(ends))
    model, wanted = MODELS[name]().fit(given, y), MODELS[name]().fit(rows, y)
    assert model.n_features_in_ == max(ends)
    assert_array_equal(model.predict(given), wanted.predict(rows))
    found, whole = model.predict_early(given), wanted.predict_early(rows)
    assert (found.time <= ends).all()
    before = whole.time <= ends
    assert_array_equal(found.label[before], whole.label[before])
    assert_array_equal(found.time[before], whole.time[before])
    if name != "costs":
        assert (found.time[~before] == ends[~before]).all()
    tuples = tuple(np.asarray(x, dtype=np.float32).astype(float).tolist() for x in given)
    assert len(model.predict_early(tuples).label) == len(given)


@pytest.mark.parametrize("name", MODELS)
def test_what_series_cannot_be_is_named(name):
    given, y, _ = unequal()
    model = MODELS[name]()
    gap = [*given]
    gap[3] = given[3].copy()
    gap[3][7] = np.nan
    if name != "costs":  # which takes channels and missing samples
        with pytest.raises(ValueError, match=r"^X: expected series without .* series 3, sample 7;"):
            model.fit(gap, y)
        with pytest.raises(ValueError, match=r"^X: expected series of one channel, got 2 channels"):
            model.fit([np.stack([x, x]) for x in given], y)
    with pytest.raises(ValueError, match=r"^X: expected at least two series and as many labels"):
        model.fit(given, y[:-1])
    fitted = MODELS[name]().fit(given, y)
    with pytest.raises(ValueError, match=r"^X\[0\]: expected at most \d+ samples, got \d+"):
        fitted.predict_early([np.zeros(500), np.zeros(3)])
    if name != "costs":
        with pytest.raises(ValueError, match=r"series 3, sample 7"):
            fitted.predict_early(gap)
