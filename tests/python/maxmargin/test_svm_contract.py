"""MulticlassSVM as an estimator: scikit-learn's checks, errors that change nothing, copies."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from eigenfeat.maxmargin import MulticlassSVM


@pytest.fixture(scope="module")
def rows():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def state(model):
    return pickle.dumps(sorted(model.__dict__.items()))


def spoilt(X, value=np.nan):
    X = X.copy()
    X[3, 5] = value
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, w: (spoilt(X), y, w), "NaN"),
        (lambda X, y, w: (sp.csr_matrix(spoilt(X, np.inf)), y, w), "infinity"),
        (lambda X, y, w: (1e170 * X, y, w), "X: expected rows whose squares times C fit float64"),
        (lambda X, y, w: (X, y[:-1], w), "inconsistent numbers of samples"),
        (lambda X, y, w: (X, 0 * y, w), "y: expected rows of at least two classes"),
        (lambda X, y, w: (X, y + 0.5, w), "label type"),
        (lambda X, y, w: (X, y, w[:-1]), "sample_weight"),
        (lambda X, y, w: (X, y, -w), "sample_weight"),
        (lambda X, y, w: (X, y, 0 * w), "at least one"),
        (lambda X, y, w: (X, y, w * (y == 0)), "y: expected rows of at least two classes"),
        (lambda X, y, w: (X[:, :0], y, w), "0 feature"),
    ],
)
def test_errors_leave_the_estimator_as_it_was(rows, change, message):
    X, y = rows
    model = MulticlassSVM().fit(X[:, :7], np.array(["a", "b", "c"])[y])
    before = state(model)
    with pytest.raises(ValueError, match=message):
        model.fit(*change(X, y, np.ones(len(y))))
    assert state(model) == before
    model.predict(X[:, :7])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("C", 0.0),
        ("C", np.inf),
        ("C", np.nan),
        ("loss_scale", 0.0),
        ("fit_intercept", "yes"),
        ("solver", "newton"),
        ("batch_size", 0),
        ("class_weight", "some"),
        ("tol", 0.0),
        ("max_iter", 0),
        ("random_state", "now"),
        ("n_threads", 0),
    ],
)
def test_parameters_out_of_range(rows, parameter, value):
    model = MulticlassSVM().fit(*rows).set_params(**{parameter: value})
    before = state(model)
    with pytest.raises(ValueError, match=parameter):
        model.fit(*rows)
    assert state(model) == before


def test_class_weights_must_be_positive(rows):
    with pytest.raises(ValueError, match="class_weight: expected positive"):
        MulticlassSVM(class_weight={0: 0.0}).fit(*rows)


def test_a_warm_start_needs_the_same_rows(rows):
    X, y = rows
    model = MulticlassSVM(warm_start=True).fit(X, y)
    before = state(model)
    with pytest.raises(ValueError, match="expected the 178 rows and 3 classes"):
        model.fit(X[:100], y[:100])
    assert state(model) == before


def test_what_is_left_is_warned_about(rows):
    X, y = rows
    with pytest.warns(
        ConvergenceWarning, match="2 epochs left a gap of .* raise max_iter"
    ) as caught:
        MulticlassSVM(tol=1e-12, max_iter=2).fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="give float64 rows") as caught:
        MulticlassSVM(tol=1e-14, C=0.1).fit(X.astype(np.float32), y)


def test_interrupts_leave_the_estimator(rows, monkeypatch):
    X, y = rows
    model = MulticlassSVM().fit(X, y)
    before = state(model)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(MulticlassSVM, "_log", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :4], y == 0)
    assert state(model) == before


def test_it_says_how_it_goes_and_survives_copies(rows, capsys):
    X, y = rows
    model = MulticlassSVM(verbose=1).fit(X, y)
    assert "[MulticlassSVM] epoch 1: objective" in capsys.readouterr().err
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()
    names = np.array(["x", "y", "z"], dtype=object)[y]
    assert_array_equal(
        MulticlassSVM().fit(X, names).predict(X), np.array(["x", "y", "z"])[model.predict(X)]
    )
